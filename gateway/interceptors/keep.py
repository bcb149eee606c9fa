"""The step that keeps who changed what: one row in the log of calls for each call that succeeded.

It is written before the answer goes out, so that nobody is told of a change that the log lacks. Where
writing it fails, the call fails, and repeating it (it is idempotent) writes it. A call whose caller leaves is
carried on to its end, and kept then.
"""

import asyncio
import hashlib
import re
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import structlog
from google.protobuf.message import Message

from gateway.interceptors.call import Call
from gateway.keys import KeyScope
from gateway.store.calls import Call as Kept
from gateway.store.calls import CallLog
from services.domain.scope import TenantId

log = structlog.get_logger(__name__)

MOST_LEFT = 256
"""Calls without a caller that are carried on at once; more are cut short where they are."""
MOST_TARGETS = 20
"""Ids that are kept of a call; one that names more is told by its request and its job."""
_NO_TARGETS = frozenset({"graph_id", "request_id", "tenant_id", "session_id", "document_id", "message_id"})
"""Names that tenants choose, and what has a column of its own."""
_OURS = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class KeepCalls:
    """Keeps calls that change something. Reads and streams are none; nor is what only asks for a quote."""

    def __init__(self, log: CallLog, most_left: int = MOST_LEFT) -> None:
        self._log = log
        self._most_left = most_left
        self._left: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def around(self, call: Call) -> AsyncIterator[None]:
        call.finishes = _whose(call) is not None
        try:
            yield
        except asyncio.CancelledError:
            if call.left is not None:
                self._carry_on(call, call.left)
            raise
        # Not reached when the call failed.
        await self._keep(call)

    async def close(self, grace_seconds: float) -> None:
        """Waits for calls whose callers have left, then cuts them short."""
        if self._left:
            await asyncio.wait(self._left, timeout=grace_seconds)
        left = list(self._left)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _carry_on(self, call: Call, work: "asyncio.Future[Any]") -> None:
        if len(self._left) >= self._most_left:
            work.cancel()
            return
        task = asyncio.get_running_loop().create_task(self._finish(call, work))
        self._left.add(task)
        task.add_done_callback(self._left.discard)

    async def _finish(self, call: Call, work: "asyncio.Future[Any]") -> None:
        try:
            call.response = await work
            await self._keep(call)
        except Exception as error:  # noqa: BLE001 - nobody is left to be told
            log.info("failed after its caller had left", method=call.method, raised=type(error).__name__)

    async def _keep(self, call: Call) -> None:
        kept = kept_of(call)
        if kept is not None:
            await self._log.record(kept)


def kept_of(call: Call) -> Kept | None:
    """What is kept of a call; None for one that changed nothing, or nothing of a tenant."""
    tenant = _whose(call)
    if tenant is None:
        return None
    caller, request = call.caller, call.request
    request_id: str = getattr(request, "request_id", "")
    revision = getattr(call.response, "revision", 0)
    named = (*_targets(request), *_targets_of_answer(call.response))
    found = [id for id in dict.fromkeys(named) if id]
    return Kept(
        tenant=tenant,
        id=_id(call.method, request_id, request),
        action=call.method.rpartition("/")[2],
        key=caller.key,
        graph=_graph_of(_parts(request)),
        operator=caller.owner is None,
        targets=tuple(found)[:MOST_TARGETS],
        request=request_id or call.request_id,
        revision=revision if isinstance(revision, int) else 0,
        reason="" if caller.owner else getattr(request, "reason", ""),
    )


def _whose(call: Call) -> TenantId | None:
    """The tenant that a call changes something of; None for one that changes nothing."""
    request, rpc = call.request, call.rpc
    if rpc is None or rpc.scope is KeyScope.READ or rpc.stream or not isinstance(request, Message):
        return None
    if all(getattr(part, "validate_only", False) for part in _parts(request)):
        return None
    return call.caller.owner or TenantId(getattr(request, "tenant_id", "")) or None


def _id(method: str, request_id: str, request: Message) -> str:
    """The same for a repeated call; a call that names itself by nothing is a call of its own."""
    if not request_id:
        return uuid.uuid4().hex
    parts = (method.encode(), request_id.encode(), request.SerializeToString(deterministic=True))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def _parts(request: Message) -> Sequence[Message]:
    """The requests of a batch; the request itself when it is none."""
    return getattr(request, "requests", None) or [request]


def _graph_of(parts: Sequence[Message]) -> str:
    """The graph that a call, or all of its parts, are about; empty for several."""
    graphs = {getattr(part, "graph_id", "") for part in parts}
    return graphs.pop() if len(graphs) == 1 else ""


def _targets_of_answer(response: object) -> Iterator[str]:
    """What a call made: a job, or what it answers by its id."""
    if isinstance(response, Message):
        yield from _targets(response, deep=False)
        yield getattr(getattr(response, "job", None), "job_id", "")
        for result in getattr(response, "results", ()):
            yield from _targets_of_answer(result.response)


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
