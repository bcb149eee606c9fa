"""AssertTriples: triples given directly, recorded at once or in the background, paid for like any work."""

import asyncio
from collections.abc import Callable

from gateway.convert.assertions import assertions_in
from gateway.convert.times import timestamp
from gateway.credits.money import MicroCredits
from gateway.credits.prices import Prices
from gateway.errors import MaxCreditsExceeded
from gateway.ingest.asserting import Asserting
from gateway.ingest.background import Background
from gateway.ingest.pipeline import Pipeline
from gateway.store.job_values import Job, JobKind, JobState, Order
from gateway.store.job_view import JobView
from gateway.store.jobs import Jobs
from gateway.store.requests import fingerprint
from palimpsest.v1 import memory_ingest_pb2
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.runtime.status import error_of_status

METHOD = "MemoryService.AssertTriples"


class AssertTriples:
    """Records claims, ends and denials. Idempotent by request_id."""

    def __init__(
        self,
        jobs: Jobs,
        view: JobView,
        prices: Prices,
        pipeline: Pipeline,
        asserting: Asserting,
        background: Background,
        now: Callable[[], Instant],
    ) -> None:
        self._jobs = jobs
        self._view = view
        self._prices = prices
        self._pipeline = pipeline
        self._asserting = asserting
        self._background = background
        self._now = now

    async def __call__(
        self, scope: Scope, request: memory_ingest_pb2.AssertTriplesRequest, max_jobs: int
    ) -> memory_ingest_pb2.AssertTriplesResponse:
        """What was recorded; with `wait` false, the job that records it.

        Raises ValidationFailed, EntityNotFound, InsufficientCredits, MaxCreditsExceeded, TooManyJobs,
        RequestIdReused, and what recording raises.
        """
        assertions_in(request, self._now())  # refuses bad times before anything is accepted
        accepted = await self._jobs.accept(await self._order(scope, request), max_jobs)
        job = accepted.job
        if not job.finished and request.HasField("wait") and not request.wait:
            await self._pipeline.submit(job)
        elif not job.finished:
            # The caller may leave; what was accepted is done all the same.
            await self._jobs.taken(job.id)
            job = await asyncio.shield(self._background.start(self._pipeline.run_now(job)))
        response = await self._answer(job, request)
        response.replayed = not accepted.fresh
        return response

    async def _order(self, scope: Scope, request: memory_ingest_pb2.AssertTriplesRequest) -> Order:
        prices = await self._prices.current()
        cost = prices.asserted(len(request.claims) + len(request.ends) + len(request.denials))
        if request.HasField("max_credits_micros") and cost > request.max_credits_micros:
            raise MaxCreditsExceeded(cost, MicroCredits(request.max_credits_micros))
        return Order(
            scope=scope,
            kind=JobKind.ASSERT,
            method=METHOD,
            request_key=request.request_id,
            payload_hash=fingerprint(request, "wait"),
            payload=request.SerializeToString(deterministic=True),
            ceiling=cost,
            price_version=prices.version,
        )

    async def _answer(
        self, job: Job, request: memory_ingest_pb2.AssertTriplesRequest
    ) -> memory_ingest_pb2.AssertTriplesResponse:
        response = memory_ingest_pb2.AssertTriplesResponse(
            job=await self._view.read(job.scope.tenant, job.id)
        )
        if not job.finished:
            return response
        if job.state is not JobState.SUCCEEDED:
            assert job.error is not None, "a job that failed says why"
            raise error_of_status(job.error)
        recorded = await self._asserting.record(job, request)
        records = [
            memory_ingest_pb2.AssertedRecord(statement_id=statement, episode_id=episode)
            for statement, episode in zip(recorded.done.statement_ids, recorded.episode_ids, strict=True)
        ]
        claims, ends = len(request.claims), len(request.ends)
        response.revision = recorded.done.revision
        response.claims.extend(records[:claims])
        response.ends.extend(records[claims : claims + ends])
        response.denials.extend(records[claims + ends :])
        response.episodes.extend(
            memory_ingest_pb2.AssertedEpisode(
                episode_id=episode.id, reference_time=timestamp(episode.reference_time)
            )
            for episode in recorded.episodes
        )
        return response
