"""Asserting: triples given directly become evidence and records, without a model."""

from collections.abc import Sequence

from gateway.convert.assertions import assertions_in
from gateway.services import Services
from gateway.store.job_values import Job
from gateway.store.rules import IngestionRules
from palimpsest.internal.v1 import preprocessor_pb2, resolver_pb2
from palimpsest.v1.memory_ingest_pb2 import AssertTriplesRequest
from services.domain.errors import Code, ServiceError

_REFUSED = (Code.NOT_FOUND, Code.INVALID_ARGUMENT)
"""What was asked can't be done, now or later."""


class Asserting:
    """Idempotent by job. Raises ServiceError."""

    def __init__(self, services: Services, rules: IngestionRules, seconds: float) -> None:
        self._services = services
        self._rules = rules
        self._seconds = seconds

    async def recorded(self, job: Job) -> resolver_pb2.AssertResponse:
        """What a job has recorded, whatever became of it since."""
        return await self._assert(job, [])

    async def record(self, job: Job, asked: AssertTriplesRequest) -> resolver_pb2.AssertResponse:
        """One episode for each reference time, one passage for each triple, one revision for all."""
        assertions = assertions_in(asked, job.created_at)
        trust = (await self._rules.for_text(job.scope, asked.source)).trust
        for one in assertions:
            one.message.confidence *= trust
        times = sorted({one.attested_at for one in assertions})
        recorded = await self._services.call(
            job.scope,
            self._services.preprocessor.RecordAssertions,
            preprocessor_pb2.RecordAssertionsRequest(
                job_id=job.id,
                source=asked.source,
                groups=[
                    preprocessor_pb2.AssertionGroup(
                        reference_time=time,
                        lines=[one.line for one in assertions if one.attested_at == time],
                    )
                    for time in times
                ],
            ),
            self._seconds,
        )
        passages = {
            time: iter(episode.passages) for time, episode in zip(times, recorded.episodes, strict=True)
        }
        for one in assertions:
            passage = next(passages[one.attested_at])
            one.message.passage_id, one.message.episode_id = passage.id, passage.episode_id
        try:
            return await self._assert(job, [one.message for one in assertions])
        except ServiceError as error:
            if error.code in _REFUSED:
                # It recorded nothing, so nothing of it is kept to be found.
                await self._forget(job, [one.passages[0].episode_id for one in recorded.episodes])
            raise

    async def _forget(self, job: Job, episodes: Sequence[str]) -> None:
        await self._services.call(
            job.scope,
            self._services.preprocessor.DeleteEpisodeTexts,
            preprocessor_pb2.DeleteEpisodeTextsRequest(episode_ids=episodes),
            self._seconds,
        )

    async def _assert(
        self, job: Job, assertions: Sequence[resolver_pb2.Assertion]
    ) -> resolver_pb2.AssertResponse:
        return await self._services.call(
            job.scope,
            self._services.resolver.Assert,
            resolver_pb2.AssertRequest(commit_id=job.id, assertions=assertions, request_id=job.request_key),
            self._seconds,
        )
