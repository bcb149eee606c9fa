"""BatchAddEpisodes: many texts in one call, accepted in order; one that is refused stops no other."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

from gateway.commands.ingesting import AddEpisode, IngestLimits, Taken, size_of
from gateway.errors import DeadlineTooShort, InternalFailure, ValidationFailed, Violation, error_of, status_of
from palimpsest.v1 import memory_ingest_pb2
from services.domain.errors import DocumentTooLarge
from services.domain.scope import Scope

log = structlog.get_logger(__name__)

T = TypeVar("T")

BATCH_BYTES = 15 * 1024 * 1024
"""Texts of one call together: below the transport's limit, so that the typed refusal comes first."""
_LEAST_SECONDS = 0.05
"""With less time left a text is not begun."""

Request = memory_ingest_pb2.AddEpisodeRequest
Result = memory_ingest_pb2.BatchAddEpisodesResult


class BatchAddEpisodes:
    """Accepts texts one after the other, so that jobs have the order of the batch. Idempotent by request_id.

    Texts that say the same in one session are known to each other as texts of separate calls are.
    """

    def __init__(self, add: AddEpisode) -> None:
        self._add = add

    async def __call__(
        self,
        request: memory_ingest_pb2.BatchAddEpisodesRequest,
        scope_of: Callable[[str], Scope],
        limits: IngestLimits,
        timeout_seconds: float,
        before_waiting: Callable[[], None] = lambda: None,
    ) -> memory_ingest_pb2.BatchAddEpisodesResponse:
        """A result for each text, in order; `scope_of` is the caller's, by graph.

        `before_waiting` is called when all that is left to do is to wait.

        Raises ValidationFailed (request ids that are the same), DocumentTooLarge (all together).
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_seconds
        _check(request.requests)
        taken: list[Taken | Result] = []
        for one in request.requests:
            taken.append(await self._take(scope_of(one.graph_id), one, limits, until - loop.time()))
        if any(one.wait_for for one in request.requests):
            before_waiting()
        # The waits share what time is left: all jobs are at work by now.
        results = await asyncio.gather(
            *(
                self._result(scope_of(one.graph_id), one, found, until)
                for one, found in zip(request.requests, taken, strict=True)
            )
        )
        return memory_ingest_pb2.BatchAddEpisodesResponse(results=results)

    async def _take(
        self, scope: Scope, request: Request, limits: IngestLimits, seconds: float
    ) -> Taken | Result:
        if seconds < _LEAST_SECONDS:
            return Result(request_id=request.request_id, error=status_of(DeadlineTooShort()))
        return await _tried(request, self._add.take(scope, request, limits, seconds))

    async def _result(self, scope: Scope, request: Request, taken: Taken | Result, until: float) -> Result:
        if isinstance(taken, Result):
            return taken
        response = await _tried(request, self._add.answer(scope, request, taken, until))
        if isinstance(response, Result):
            return response
        return Result(request_id=request.request_id, response=response)


async def _tried(request: Request, work: Awaitable[T]) -> T | Result:
    """What `work` answers, or the text's refusal."""
    try:
        return await work
    except Exception as failure:
        error = error_of(failure)
        if isinstance(error, InternalFailure):
            log.exception("a text of a batch failed")
        return Result(request_id=request.request_id, error=status_of(error))


def _check(requests: Sequence[Request]) -> None:
    seen: set[str] = set()
    for index, one in enumerate(requests):
        if one.request_id in seen:
            raise ValidationFailed(
                Violation(
                    f"requests[{index}].request_id", "must differ from the others", "batch.request_ids_differ"
                )
            )
        seen.add(one.request_id)
    size = sum(size_of(one) for one in requests)
    if size > BATCH_BYTES:
        raise DocumentTooLarge("requests", BATCH_BYTES, size)
