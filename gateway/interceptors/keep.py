"""The step that keeps who changed what: one row in the log of calls for each call that succeeded.

It is written before the answer goes out, so that nobody is told of a change that the log lacks. Where
writing it fails, the call fails, and repeating it (it is idempotent) writes it. Of a caller who leaves before
his answer the graph's own log of decisions tells.
"""

import hashlib
import re
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from google.protobuf.message import Message

from gateway.interceptors.call import Call
from gateway.keys import KeyScope
from gateway.store.calls import Call as Kept
from gateway.store.calls import CallLog
from services.domain.scope import TenantId

MOST_TARGETS = 20
"""Ids that are kept of a call; one that names more is told by its request and its job."""
_NO_TARGETS = frozenset({"graph_id", "request_id", "tenant_id", "session_id", "document_id", "message_id"})
"""Names that tenants choose, and what has a column of its own."""
_OURS = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class KeepCalls:
    """Keeps calls that change something. Reads and streams are none; nor is what only asks for a quote."""

    def __init__(self, log: CallLog) -> None:
        self._log = log

    @asynccontextmanager
    async def around(self, call: Call) -> AsyncIterator[None]:
        yield
        # Not reached when the call failed.
        kept = kept_of(call)
        if kept is not None:
            await self._log.record(kept)


def kept_of(call: Call) -> Kept | None:
    """What is kept of a call; None for one that changed nothing, or nothing of a tenant."""
    request, rpc = call.request, call.rpc
    if rpc is None or rpc.scope is KeyScope.READ or rpc.stream or not isinstance(request, Message):
        return None
    if getattr(request, "validate_only", False):
        return None
    caller = call.caller
    tenant = caller.owner or TenantId(getattr(request, "tenant_id", ""))
    if not tenant:
        return None
    request_id: str = getattr(request, "request_id", "")
    revision = getattr(call.response, "revision", 0)
    named = (*_targets(request), *_targets_of_answer(call.response))
    found = [id for id in dict.fromkeys(named) if id]
    return Kept(
        tenant=tenant,
        id=_id(call.method, request_id, request),
        action=call.method.rpartition("/")[2],
        key=caller.key,
        graph=getattr(request, "graph_id", ""),
        operator=caller.owner is None,
        targets=tuple(found)[:MOST_TARGETS],
        request=request_id or call.request_id,
        revision=revision if isinstance(revision, int) else 0,
        reason="" if caller.owner else getattr(request, "reason", ""),
    )


def _id(method: str, request_id: str, request: Message) -> str:
    """The same for a repeated call; a call that names itself by nothing is a call of its own."""
    if not request_id:
        return uuid.uuid4().hex
    parts = (method.encode(), request_id.encode(), request.SerializeToString(deterministic=True))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def _targets_of_answer(response: object) -> Iterator[str]:
    """What a call made: a job, or what it answers by its id."""
    if isinstance(response, Message):
        yield from _targets(response, deep=False)
        yield getattr(getattr(response, "job", None), "job_id", "")


def _targets(message: Message, deep: bool = True) -> Iterator[str]:
    """Our ids in fields of a message that are named as such; `deep`: those of messages in it too."""
    for field, value in message.ListFields():
        each = value if field.is_repeated else [value]
        if field.message_type is not None:
            if deep and not field.message_type.GetOptions().map_entry:
                for one in each:
                    yield from _targets(one)
        elif field.name.endswith(("_id", "_ids")) and field.name not in _NO_TARGETS:
            yield from (one for one in each if isinstance(one, str) and _OURS.fullmatch(one))
