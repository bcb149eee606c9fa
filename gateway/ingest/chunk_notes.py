"""Chunk notes: what is written down of a job's chunks: their stage, what they cost, what they changed."""

from collections.abc import Mapping, Sequence

from gateway.convert.names import nothing_out
from gateway.credits.prices import Prices
from gateway.ingest.durable import JSON
from gateway.ingest.endings import OUTCOME
from gateway.ingest.receipts import of_attempt
from gateway.store.job_values import Job
from gateway.store.jobs import Jobs
from gateway.store.progress import Progress
from palimpsest.internal.v1 import resolver_pb2, values_pb2
from palimpsest.v1 import episode_pb2, job_pb2
from services.domain.ids import JobId, Revision


class ChunkNotes:
    """A chunk is JSON: its `episode`, its `tokens`, why there is `nothing` in it. All is idempotent."""

    def __init__(self, jobs: Jobs, progress: Progress, prices: Prices) -> None:
        self._jobs = jobs
        self._progress = progress
        self._prices = prices

    async def show(self, job: JobId, chunks: Sequence[JSON]) -> None:
        """Chunks as they are before any is understood."""
        shown = [
            job_pb2.JobChunk(
                index=index,
                episode_id=str(chunk["episode"]),
                token_count=int(chunk["tokens"]),
                stage=episode_pb2.CHUNK_STAGE_NOTHING
                if chunk["nothing"]
                else episode_pb2.CHUNK_STAGE_PREPROCESSED,
                nothing_reason=nothing_out(str(chunk["nothing"])),
            )
            for index, chunk in enumerate(chunks)
        ]
        await self._progress.record(job, shown)

    async def mark(self, job: JobId, index: int, chunk: JSON, stage: job_pb2.JobChunk) -> None:
        """The stage that a chunk has reached."""
        stage.index, stage.episode_id, stage.token_count = (
            index,
            str(chunk["episode"]),
            int(chunk["tokens"]),
        )
        await self._progress.record(job, [stage])

    async def resolved(
        self, job: JobId, index: int, chunk: JSON, nothing: str, dropped: Sequence[Mapping[str, int]]
    ) -> None:
        """A chunk's last stage, with how many facts were not believed, by reason."""
        stage = job_pb2.JobChunk(
            stage=episode_pb2.CHUNK_STAGE_NOTHING if nothing else episode_pb2.CHUNK_STAGE_RESOLVED,
            nothing_reason=nothing_out(nothing),
        )
        for counts in dropped:
            for reason, count in counts.items():
                stage.dropped[reason] += count
        await self.mark(job, index, chunk, stage)

    async def spend(self, job: Job, index: int, chunk: JSON) -> None:
        """What understanding a chunk costs. Raises HoldExpired, JobNotFound."""
        prices = await self._prices.of(job.hold.price_version)
        step, tokens = of_attempt(job, f"chunk/{index}"), int(chunk["tokens"])
        await self._jobs.spend(job.id, step, prices.ingest(tokens), tokens)

    async def keep_outcome(
        self, job: JobId, chunk: int, revision: int, outcome: resolver_pb2.Outcome
    ) -> None:
        """What a chunk changed, for the job's result."""
        await self._progress.save_artifact(job, chunk, OUTCOME, outcome.SerializeToString())
        await self._jobs.published(job, Revision(revision))


def counted(dropped: Sequence[values_pb2.DroppedFact]) -> dict[str, int]:
    """How many facts were dropped, by reason."""
    counts: dict[str, int] = {}
    for fact in dropped:
        counts[fact.reason] = counts.get(fact.reason, 0) + 1
    return counts
