"""AddEpisode: quoted, accepted as a job with its credits held, handed to the pipeline, waited for."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from gateway.convert.episodes import source_in
from gateway.convert.times import instant_of
from gateway.convert.zones import check_time_zone
from gateway.credits.ledger import Ledger
from gateway.credits.money import MicroCredits
from gateway.credits.prices import Prices
from gateway.errors import MaxCreditsExceeded
from gateway.ingest.pipeline import Pipeline
from gateway.policy import TextPolicy
from gateway.services import Services
from gateway.store.job_values import Accepted, JobKind, Order
from gateway.store.job_view import JobView
from gateway.store.jobs import Jobs
from gateway.store.requests import fingerprint
from palimpsest.internal.v1 import preprocessor_pb2
from palimpsest.v1 import job_pb2, memory_ingest_pb2
from services.domain.errors import DocumentTooLarge
from services.domain.instants import Instant
from services.domain.scope import Scope

METHOD = "MemoryService.AddEpisode"
HOW_TO_ANSWER = ("wait_for", "validate_only")
"""Fields that don't change what is asked, only how it is answered."""


@dataclass(frozen=True, slots=True)
class IngestLimits:
    """`document_bytes` is the largest text of one call; `jobs` the tenant's unfinished jobs (0: no limit)."""

    document_bytes: int
    jobs: int


@dataclass(frozen=True, slots=True)
class Taken:
    """A text with its quote, and its job; without one it was only quoted."""

    quote: job_pb2.Quote
    accepted: Accepted | None = None


class AddEpisode:
    """Accepts a text. Idempotent by request_id."""

    def __init__(
        self,
        services: Services,
        jobs: Jobs,
        view: JobView,
        ledger: Ledger,
        prices: Prices,
        pipeline: Pipeline,
        now: Callable[[], Instant],
        policy: TextPolicy,
    ) -> None:
        self._policy = policy
        self._services = services
        self._jobs = jobs
        self._view = view
        self._ledger = ledger
        self._prices = prices
        self._pipeline = pipeline
        self._now = now

    async def __call__(
        self,
        scope: Scope,
        request: memory_ingest_pb2.AddEpisodeRequest,
        limits: IngestLimits,
        timeout_seconds: float,
        before_waiting: Callable[[], None] = lambda: None,
    ) -> memory_ingest_pb2.AddEpisodeResponse:
        """The job as it stands when `wait_for` is reached or time runs out. Raises as `take`.

        `before_waiting` is called when all that is left to do is to wait.
        """
        until = asyncio.get_running_loop().time() + timeout_seconds
        taken = await self.take(scope, request, limits, timeout_seconds)
        return await self.answer(scope, request, taken, until, before_waiting)

    async def take(
        self,
        scope: Scope,
        request: memory_ingest_pb2.AddEpisodeRequest,
        limits: IngestLimits,
        timeout_seconds: float,
    ) -> Taken:
        """Accepts a text and hands it to the pipeline; with `validate_only`, only quotes it.

        Raises ValidationFailed, DocumentTooLarge, InsufficientCredits, MaxCreditsExceeded, TooManyJobs,
        TooManyGraphs, DailyBytesExceeded, RequestIdReused, ModelNotAllowed.
        """
        size = _checked_size(request, limits.document_bytes)
        _check_times(request)
        # From here on there is only what may be kept and read.
        request = await self._policy(scope, request)
        quote = await self._quote(scope, request, timeout_seconds)
        if request.validate_only:
            return Taken(quote)
        if request.HasField("max_credits_micros") and quote.credits_micros > request.max_credits_micros:
            raise MaxCreditsExceeded(
                MicroCredits(quote.credits_micros), MicroCredits(request.max_credits_micros)
            )
        order = Order(
            scope=scope,
            kind=JobKind.INGEST,
            method=METHOD,
            request_key=request.request_id,
            payload_hash=fingerprint(request, *HOW_TO_ANSWER),
            payload=request.SerializeToString(deterministic=True),
            ceiling=MicroCredits(quote.credits_micros),
            price_version=quote.price_version,
            text_bytes=size,
        )
        accepted = await self._jobs.accept(order, limits.jobs)
        if not accepted.job.finished:
            await self._pipeline.submit(accepted.job)
        return Taken(quote, accepted)

    async def answer(
        self,
        scope: Scope,
        request: memory_ingest_pb2.AddEpisodeRequest,
        taken: Taken,
        until: float,
        before_waiting: Callable[[], None] = lambda: None,
    ) -> memory_ingest_pb2.AddEpisodeResponse:
        """What was taken, as it stands at `wait_for` or at the loop's time `until`."""
        if taken.accepted is None:
            return memory_ingest_pb2.AddEpisodeResponse(quote=taken.quote)
        id = taken.accepted.job.id
        left = until - asyncio.get_running_loop().time()
        if request.wait_for:
            before_waiting()
            job = await self._view.wait(scope.tenant, id, request.wait_for, left)
        else:
            job = await self._view.read(scope.tenant, id)
        return memory_ingest_pb2.AddEpisodeResponse(
            job=job, quote=taken.quote, replayed=not taken.accepted.fresh
        )

    async def _quote(
        self, scope: Scope, request: memory_ingest_pb2.AddEpisodeRequest, timeout_seconds: float
    ) -> job_pb2.Quote:
        asked = preprocessor_pb2.QuoteRequest(source=source_in(request, self._now()))
        counted, prices, balance = await asyncio.gather(
            self._services.call(scope, self._services.preprocessor.Quote, asked, timeout_seconds),
            self._prices.current(),
            self._ledger.balance(scope.tenant),
        )
        # Chunks are priced one by one, each rounded up by less than a micro-credit.
        most = prices.ingest(counted.tokens) + max(0, counted.chunks - 1)
        return job_pb2.Quote(
            credits_micros=most,
            price_version=prices.version,
            token_count=counted.tokens,
            chunk_count=counted.chunks,
            available_micros=balance.available,
        )


def size_of(request: memory_ingest_pb2.AddEpisodeRequest) -> int:
    """Bytes of UTF-8 of all it says."""
    texts = [request.text, *(message.text for message in request.messages.messages)]
    return sum(len(text.encode()) for text in texts)


def _checked_size(request: memory_ingest_pb2.AddEpisodeRequest, limit: int) -> int:
    size = size_of(request)
    if size > limit:
        raise DocumentTooLarge("messages" if request.HasField("messages") else "text", limit, size)
    return size


def _check_times(request: memory_ingest_pb2.AddEpisodeRequest) -> None:
    check_time_zone(request.time_zone, "time_zone")
    for time in [request.reference_time, *(message.time for message in request.messages.messages)]:
        instant_of(time)
