"""The front of a service: what every runtime does around a call, whatever carries it.

The call is for this service, its assertion gives the scope, its errors become a status, its end is a line in
the log. Only the adapters know gRPC's two kinds of servers.
"""

import keyword
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import structlog
from google.protobuf.message import Message
from opentelemetry.trace import Span, SpanKind

from services import tracing
from services.domain.errors import ApplicationUnknown, InternalFailure, Unauthenticated
from services.domain.scope import Scope
from services.runtime.assertion import METADATA_KEY, Signer
from services.runtime.names import APPLICATION, TRACE
from services.runtime.probing import PROBE, Probed, empty_answer
from services.runtime.status import Rendered, error_of, render

log = structlog.get_logger(__name__)

Metadata = Sequence[tuple[str, str | bytes]]
Unary = Callable[[Scope, Message], Awaitable[Message]]
Streaming = Callable[[Scope, Message], AsyncIterator[Message]]


def method_name(rpc: str) -> str:
    """`ReadEpisode` → `read_episode`; a keyword gets an underscore: `Assert` → `assert_`."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", rpc).lower()
    return f"{name}_" if keyword.iskeyword(name) else name


@dataclass(frozen=True, slots=True)
class Front:
    """One service and who may call it.

    A service class has a coroutine for each RPC, and an async generator for each that streams, named in snake
    case: from a scope and a request to a response. Nothing that a method raises leaves but as a status.
    """

    application: str
    service: object
    signer: Signer = field(repr=False)

    async def answer(self, rpc: str, request: Message, metadata: Metadata) -> Message | Rendered:
        """The response, or the status to answer instead. Raises only CancelledError."""
        began = time.perf_counter()
        found = _texts(metadata)
        outcome: Message | Rendered
        try:
            scope = self._admit(found)
            if PROBE in found:
                return await self._probed(scope, rpc, found[PROBE])
            method: Unary = getattr(self.service, method_name(rpc))
            with tracing.continued(tracing.parent_in(found)), self._span(rpc):
                outcome = await method(scope, request)
        except Exception as exception:
            if isinstance(error_of(exception), InternalFailure):
                log.exception("internal failure", service=self.application, rpc=rpc)
            outcome = render(exception)
        self._tell(rpc, outcome, found, began)
        return outcome

    async def stream(
        self, rpc: str, request: Message, metadata: Metadata
    ) -> AsyncIterator[Message | Rendered]:
        """The responses; a status comes last, if at all. Raises only CancelledError."""
        began = time.perf_counter()
        found = _texts(metadata)
        outcome: Message | Rendered | None = None
        try:
            scope = self._admit(found)
            method: Streaming = getattr(self.service, method_name(rpc))
            # A generator may be ended in another context than it began in, so no span is made current here.
            async for outcome in method(scope, request):
                yield outcome
        except Exception as exception:
            if isinstance(error_of(exception), InternalFailure):
                log.exception("internal failure", service=self.application, rpc=rpc)
            outcome = render(exception)
            yield outcome
        self._tell(rpc, outcome, found, began)

    async def _probed(self, scope: Scope, rpc: str, store: str) -> Message:
        """Answers for the service, and for a store of its if one is named. Not a line in the log."""
        if store and isinstance(self.service, Probed):
            await self.service.probe(scope, store)
        return empty_answer(self.application, rpc)

    def _span(self, rpc: str) -> AbstractContextManager[Span]:
        return tracing.span(f"{self.application} {rpc}", SpanKind.SERVER)

    def _admit(self, metadata: Mapping[str, str]) -> Scope:
        if metadata.get(APPLICATION) != self.application:
            raise ApplicationUnknown
        if METADATA_KEY not in metadata:
            raise Unauthenticated
        return self.signer.verify(metadata[METADATA_KEY])

    def _tell(
        self, rpc: str, outcome: Message | Rendered | None, metadata: Mapping[str, str], began: float
    ) -> None:
        log.info(
            "answered",
            service=self.application,
            rpc=rpc,
            code=outcome.code.name if isinstance(outcome, Rendered) else "OK",
            milliseconds=round(1000 * (time.perf_counter() - began), 1),
            trace=metadata.get(TRACE),
        )


def _texts(metadata: Metadata) -> Mapping[str, str]:
    """The entries that are text; of a repeated key the first, so that none can be slipped in behind it."""
    found: dict[str, str] = {}
    for key, value in metadata:
        found.setdefault(key, value if isinstance(value, str) else value.decode("ascii", "replace"))
    return found
