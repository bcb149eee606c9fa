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
from gateway.policy import TextPolicy
from gateway.store.job_values import Job, JobKind, JobState, Order
from gateway.store.job_view import job_message
from gateway.store.jobs import Jobs
from gateway.store.requests import fingerprint
from palimpsest.internal.v1 import resolver_pb2
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
        prices: Prices,
        pipeline: Pipeline,
        asserting: Asserting,
        background: Background,
        now: Callable[[], Instant],
        policy: TextPolicy,
    ) -> None:
        self._policy = policy
        self._jobs = jobs
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
        RequestIdReused, ModelNotAllowed, and what recording raises.
        """
        request = await self._policy(scope, request)
        assertions_in(request, self._now())  # refuses bad times before anything is accepted
        wait = request.wait or not request.HasField("wait")
        accepted = await self._jobs.accept(await self._order(scope, request), max_jobs, taken=wait)
        job, recorded = accepted.job, None
        if not job.finished and not wait:
            await self._pipeline.submit(job)
        elif not job.finished:
            # The caller may leave; what was accepted is done all the same.
            work = self._background.start(self._pipeline.run_now(job, request))
            job, recorded = await asyncio.shield(work)
        response = await self._answer(job, request, recorded)
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
            text_bytes=request.ByteSize(),
        )

    async def _answer(
        self,
        job: Job,
        request: memory_ingest_pb2.AssertTriplesRequest,
        recorded: resolver_pb2.AssertResponse | None,
    ) -> memory_ingest_pb2.AssertTriplesResponse:
        response = memory_ingest_pb2.AssertTriplesResponse(job=job_message(job, (), None))
        if not job.finished:
            return response
        if job.state is not JobState.SUCCEEDED:
            assert job.error is not None, "a job that failed says why"
            # The request_id belongs to the job that failed: repeating this call can't succeed.
            raise error_of_status(job.error).final()
        recorded = recorded or await self._asserting.recorded(job)
        assertions = assertions_in(request, job.created_at)
        records = [
            memory_ingest_pb2.AssertedRecord(statement_id=statement, episode_id=episode)
            for statement, episode in zip(recorded.statement_ids, recorded.episode_ids, strict=True)
        ]
        claims, ends = len(request.claims), len(request.ends)
        response.revision = recorded.revision
        response.claims.extend(records[:claims])
        response.ends.extend(records[claims : claims + ends])
        response.denials.extend(records[claims + ends :])
        times = dict(zip(recorded.episode_ids, (one.attested_at for one in assertions), strict=True))
        response.episodes.extend(
            memory_ingest_pb2.AssertedEpisode(episode_id=episode, reference_time=timestamp(time))
            for episode, time in sorted(times.items(), key=lambda one: one[1])
        )
        return response
