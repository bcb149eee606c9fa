"""A call on its way through the chain, and who makes it, reachable from the handler."""

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from gateway.errors import ScopeMissing
from gateway.keys import ApiKey, KeyId, KeyScope, with_implied
from gateway.rpcs import Rpc
from gateway.store.tenants import Limits
from services.domain.scope import GraphId, Scope, TenantId

DOWNSTREAM_MARGIN_SECONDS = 0.05
"""Kept back from what goes downstream, so that the typed error comes before the caller's own time-out."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. `deadline` is on the event loop's clock; `limits` are the tenant's own (0: the default)."""

    key: KeyId
    scopes: frozenset[KeyScope]
    request_id: str
    deadline: float
    limits: Limits = field(default_factory=Limits)
    owner: TenantId | None = None

    @property
    def tenant(self) -> TenantId:
        """The tenant of the key. Raises ScopeMissing for an operator, who has none."""
        if self.owner is None:
            raise ScopeMissing(KeyScope.READ)
        return self.owner

    @property
    def actor(self) -> str:
        """How the log of decisions names the caller."""
        return f"key:{self.key}"

    def scope(self, graph_id: str) -> Scope:
        """A graph of the caller's tenant: the only place where a scope comes from a request."""
        return Scope(self.tenant, GraphId(graph_id))

    def remaining_seconds(self) -> float:
        """How long the handler still has; what goes downstream as a time-out."""
        return max(0.0, self.deadline - asyncio.get_running_loop().time())


@dataclass(slots=True)
class Call:
    """One call. Steps of the chain fill it in; `code` is what it ended with."""

    method: str
    rpc: Rpc | None
    context: "grpc.aio.ServicerContext[Any, Any]"
    request: Any = None
    request_id: str = ""
    deadline: float = float("inf")
    key: ApiKey | None = None
    code: grpc.StatusCode = grpc.StatusCode.OK
    response: Any = None
    """Of a call with one answer, once there is one."""
    finishes: bool = False
    """Its handler is let end though the caller leaves before."""
    left: "asyncio.Future[Any] | None" = None
    """Its handler, where that has come to pass."""

    def metadata(self, name: str) -> str:
        """A text of the call's metadata; "" if it isn't there."""
        for key, value in self.context.invocation_metadata() or ():
            if key == name:
                return value if isinstance(value, str) else value.decode("utf-8", "replace")
        return ""

    @property
    def caller(self) -> Caller:
        """Who calls; only after authentication."""
        assert self.key is not None, "no caller before authentication"
        tenant = self.key.tenant
        return Caller(
            key=self.key.id,
            scopes=with_implied(self.key.scopes),
            request_id=self.request_id,
            deadline=self.deadline,
            limits=Limits() if tenant is None else tenant.limits,
            owner=None if tenant is None else tenant.id,
        )


_CALLER: ContextVar[Caller] = ContextVar("palimpsest_caller")


def current_caller() -> Caller:
    """Who makes the call that is being handled. LookupError outside a call."""
    return _CALLER.get()


def set_caller(caller: Caller) -> None:
    """For the chain, and for tests of handlers. Each call runs in a task, so in a context, of its own."""
    _CALLER.set(caller)


def downstream_seconds(caller: Caller) -> float:
    """What is left for the services, so that our own error comes before the caller's time-out."""
    return max(0.0, caller.remaining_seconds() - DOWNSTREAM_MARGIN_SECONDS)
