"""The step that finds out who calls, and whether the key may."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.errors import ScopeMissing
from gateway.interceptors.call import Call, set_caller
from gateway.keys import Authenticator

AUTHORIZATION = "authorization"
_BEARER = "bearer "


class Authenticate:
    """Reads `authorization: Bearer pk_…`, and makes the caller known to the handler."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    @asynccontextmanager
    async def around(self, call: Call) -> AsyncIterator[None]:
        if call.rpc is None:
            yield
            return
        shown = call.metadata(AUTHORIZATION)
        key = shown[len(_BEARER) :] if shown.lower().startswith(_BEARER) else ""
        call.key = await self._authenticator.authenticate(key, host_of(call.context.peer()))
        caller = call.caller
        if call.rpc.scope not in caller.scopes:
            raise ScopeMissing(call.rpc.scope)
        set_caller(caller)
        yield


def host_of(peer: str) -> str:
    """The address of a peer without its port, which changes with each connection."""
    kind, _, address = peer.partition(":")
    return f"{kind}:{address.rpartition(':')[0]}" if kind in ("ipv4", "ipv6") else peer
