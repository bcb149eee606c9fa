"""Progress of jobs: chunks with their stages, the log of changes, receipts, and artifacts of steps.

Written often and lost without harm to money: a database of its own on SQLite. Everything a job's state
depends on is with the job (gateway/store/jobs.py).
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy import BindParameter, and_, bindparam, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.store.bell import Bell
from gateway.store.clock import DAY, DatabaseClock
from gateway.store.lease import Lease, lease_on
from gateway.store.once import insert_once
from gateway.store.tables import artifacts, job_chunks, job_events, job_progress, job_receipts
from palimpsest.v1.episode_pb2 import ChunkStage
from palimpsest.v1.errors_pb2 import NothingReason
from palimpsest.v1.job_pb2 import JobChunk, JobReceipt, StageReceipt
from services.domain.ids import JobId
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across, OfJob
from services.stores.sql.rows import insert_or_update

EVENTS_KEPT = 7 * DAY
"""How long a broken watch can go on with its cursor."""

# Made once: to make a statement, and to see that it was compiled before, costs more than to send it.
_JOB: BindParameter[str] = bindparam("of_job")
_LAST = select(job_progress.c.last_event).where(job_progress.c.job == _JOB)
_LOCK = (
    update(job_progress)
    .where(job_progress.c.job == _JOB)
    .values(last_event=job_progress.c.last_event)
    .returning(job_progress.c.last_event, job_progress.c.epoch)
)
_EVENTS = (
    select(job_events.c.number, job_events.c.chunk)
    .where(job_events.c.job == _JOB, job_events.c.number > bindparam("after"))
    .order_by(job_events.c.number)
)
_CHUNKS = (
    select(job_chunks.c.index, job_chunks.c.body).where(job_chunks.c.job == _JOB).order_by(job_chunks.c.index)
)
_RECEIPTS = (
    select(job_receipts.c.engine, job_receipts.c.receipts)
    .where(job_receipts.c.job == _JOB)
    .order_by(job_receipts.c.position, job_receipts.c.step)
)
_ARTIFACT = select(artifacts.c.data).where(
    artifacts.c.job == _JOB, artifacts.c.chunk == bindparam("of_chunk"), artifacts.c.stage == bindparam("at")
)

_RANKS = {
    ChunkStage.CHUNK_STAGE_ACCEPTED: 1,
    ChunkStage.CHUNK_STAGE_PREPROCESSED: 2,
    ChunkStage.CHUNK_STAGE_UNDERSTOOD: 3,
    ChunkStage.CHUNK_STAGE_RESOLVED: 4,
    ChunkStage.CHUNK_STAGE_NOTHING: 4,
    ChunkStage.CHUNK_STAGE_FAILED: 4,
}


def reached(chunk: JobChunk, stage: ChunkStage.ValueType) -> bool:
    """Whether a chunk has come that far; NOTHING and FAILED have reached every stage."""
    return _RANKS.get(chunk.stage, 0) >= _RANKS.get(stage, 0)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A job's chunks by index after its change number `last_event`, and its receipts."""

    last_event: int
    chunks: Mapping[int, JobChunk]
    receipt: JobReceipt


@dataclass(frozen=True, slots=True)
class Event:
    """Change number `number` (from 1, without gaps): the chunk as it then was."""

    number: int
    chunk: JobChunk


class Progress:
    """How far jobs have come. Jobs are named by ids that only their tenant learns."""

    def __init__(self, database: Database, clock: DatabaseClock, bell: Bell) -> None:
        self._database = database
        self._clock = clock
        self._bell = bell

    async def claim(self, lease: Lease) -> None:
        """From now on runs of the job before this one write nothing here. Idempotent."""
        async with self._database.write(OfJob(lease.job)) as connection:
            await self._lock(connection, lease.job)
            await connection.execute(
                update(job_progress)
                .where(job_progress.c.job == lease.job, func.coalesce(job_progress.c.epoch, 0) < lease.epoch)
                .values(epoch=lease.epoch)
            )

    async def record(self, job: JobId, chunks: Sequence[JobChunk]) -> int:
        """Moves chunks on to later stages; answers how many changed.

        A chunk that has come as far already is left as it is, so a step that runs twice, or comes too
        late, changes nothing. `updated_at` is set here. Raises JobTakenOver, as all writes here.
        """
        changed = 0
        async with self._database.write(OfJob(job)) as connection:
            number = await self._lock(connection, job)
            known = await self._chunks(connection, job)
            now = (await connection.execute(select(self._clock.now()))).scalar_one()
            for chunk in chunks:
                before = known.get(chunk.index)
                if before is not None and reached(before, chunk.stage):
                    continue
                changed += 1
                await self._move(connection, job, chunk, number + changed, now)
            if changed:
                await connection.execute(
                    update(job_progress).where(job_progress.c.job == job).values(last_event=number + changed)
                )
        if changed:
            self._bell.ring(job)
        return changed

    async def add_receipts(
        self, job: JobId, step: str, engine: str, stages: Sequence[StageReceipt], position: int = 0
    ) -> None:
        """Keeps what a step spent on models. A step that runs twice is counted once."""
        row = {
            "job": job,
            "step": step,
            "position": position,
            "engine": engine,
            "receipts": JobReceipt(stages=stages).SerializeToString(),
        }
        async with self._mine(job) as connection:
            await insert_once(connection, job_receipts, row)

    async def snapshot(self, job: JobId) -> Snapshot:
        """A job's chunks and receipts now. Empty for a job that has none yet."""
        async with self._database.read(OfJob(job)) as connection:
            last = await connection.execute(_LAST, {"of_job": job})
            return Snapshot(
                last.scalar_one_or_none() or 0,
                await self._chunks(connection, job),
                await self._receipt(connection, job),
            )

    async def receipt(self, job: JobId) -> JobReceipt:
        """What its steps spent on models so far."""
        async with self._database.read(OfJob(job)) as connection:
            return await self._receipt(connection, job)

    async def events(self, job: JobId, after: int = 0) -> Sequence[Event]:
        """The changes after number `after`, in order."""
        async with self._database.read(OfJob(job)) as connection:
            rows = await connection.execute(_EVENTS, {"of_job": job, "after": after})
            return [Event(row.number, JobChunk.FromString(row.chunk)) for row in rows]

    async def save_artifact(self, job: JobId, chunk: int, stage: str, data: bytes) -> None:
        """Keeps what a step made, for the next one; the first to be saved stays. Idempotent."""
        row = {"job": job, "chunk": chunk, "stage": stage, "data": data, "created_at": self._clock.now()}
        async with self._mine(job) as connection:
            await insert_once(connection, artifacts, row)

    async def artifact(self, job: JobId, chunk: int, stage: str) -> bytes | None:
        asked = {"of_job": job, "of_chunk": chunk, "at": stage}
        async with self._database.read(OfJob(job)) as connection:
            data = (await connection.execute(_ARTIFACT, asked)).scalar_one_or_none()
        return None if data is None else bytes(data)

    async def artifacts(self, job: JobId, stage: str) -> Mapping[int, bytes]:
        """What was made at a stage, by chunk, in order."""
        query = select(artifacts.c.chunk, artifacts.c.data).where(
            artifacts.c.job == job, artifacts.c.stage == stage
        )
        async with self._database.read(OfJob(job)) as connection:
            rows = await connection.execute(query.order_by(artifacts.c.chunk))
            return {row.chunk: bytes(row.data) for row in rows}

    async def drop_artifacts(self, job: JobId, but: str = "") -> None:
        """Removes what steps of a job made, but for one stage. Idempotent."""
        these = and_(artifacts.c.job == job, artifacts.c.stage != but)
        async with self._mine(job) as connection:
            await connection.execute(delete(artifacts).where(these))

    async def reopen(self, job: JobId, why_nothing: Mapping[int, NothingReason.ValueType]) -> None:
        """Before a retry: what failed, or was held, of these is to be understood, or has nothing in it.

        Nothing is kept of what steps made before. Idempotent until the chunks have moved on.
        """
        async with self._mine(job) as connection:
            await connection.execute(delete(artifacts).where(artifacts.c.job == job))
            number = await self._lock(connection, job)
            known = await self._chunks(connection, job)
            now = (await connection.execute(select(self._clock.now()))).scalar_one()
            for index, reason in why_nothing.items():
                before = known[index]
                if before.stage != ChunkStage.CHUNK_STAGE_FAILED and not _is_held(before):
                    continue
                number += 1
                stage = ChunkStage.CHUNK_STAGE_NOTHING if reason else ChunkStage.CHUNK_STAGE_PREPROCESSED
                again = JobChunk(
                    index=index,
                    episode_id=before.episode_id,
                    token_count=before.token_count,
                    stage=stage,
                    nothing_reason=reason,
                )
                await self._move(connection, job, again, number, now)
            await connection.execute(
                update(job_progress).where(job_progress.c.job == job).values(last_event=number)
            )
        self._bell.ring(job)

    async def jobs_with_artifacts(self) -> Sequence[JobId]:
        """For the sweep: what a job changed is kept until it has ended, and more after a crash."""
        async with self._database.read(Across("sweep")) as connection:
            rows = await connection.execute(select(artifacts.c.job).distinct())
            return [JobId(row.job) for row in rows]

    async def drop_old_events(self) -> int:
        """Removes changes that are older than a watch may go back."""
        old = job_events.c.created_at < self._clock.now() - EVENTS_KEPT
        async with self._database.write(Across("sweep")) as connection:
            return (await connection.execute(delete(job_events).where(old))).rowcount

    async def _lock(self, connection: AsyncConnection, job: JobId) -> int:
        # A second writer of the job waits here, and finds the row that the first one made.
        row = (await connection.execute(_LOCK, {"of_job": job})).one_or_none()
        if row is None:
            await insert_once(connection, job_progress, {"job": job, "last_event": 0})
            row = (await connection.execute(_LOCK, {"of_job": job})).one()
        if (lease := lease_on(job)) is not None:
            lease.check(row.epoch or 0)
        return int(row.last_event)

    @asynccontextmanager
    async def _mine(self, job: JobId) -> AsyncIterator[AsyncConnection]:
        """A transaction of a job's writer; one that has lost the job writes nothing. Raises JobTakenOver."""
        async with self._database.write(OfJob(job)) as connection:
            if lease_on(job) is not None:
                await self._lock(connection, job)
            yield connection

    async def _move(
        self, connection: AsyncConnection, job: JobId, chunk: JobChunk, number: int, now: int
    ) -> None:
        stamped = JobChunk()
        stamped.CopyFrom(chunk)
        stamped.updated_at.FromMicroseconds(now)
        body = stamped.SerializeToString()
        row = {"job": job, "index": chunk.index, "stage": chunk.stage, "body": body}
        await insert_or_update(connection, job_chunks, [row], ["stage", "body"])
        await connection.execute(
            job_events.insert().values(job=job, number=number, chunk=body, created_at=now)
        )

    async def _chunks(self, connection: AsyncConnection, job: JobId) -> dict[int, JobChunk]:
        rows = await connection.execute(_CHUNKS, {"of_job": job})
        return {index: JobChunk.FromString(body) for index, body in rows}

    async def _receipt(self, connection: AsyncConnection, job: JobId) -> JobReceipt:
        rows = await connection.execute(_RECEIPTS, {"of_job": job})
        return merged((row.engine, JobReceipt.FromString(row.receipts)) for row in rows)


def merged(parts: Iterable[tuple[str, JobReceipt]]) -> JobReceipt:
    """One receipt of many: sums by stage, model and prompt version, in the order they first appear."""
    total = JobReceipt()
    lines: dict[tuple[str, str, str], StageReceipt] = {}
    for engine, receipt in parts:
        total.engine = total.engine or engine
        for stage in receipt.stages:
            line = lines.get((stage.stage, stage.model, stage.prompt_version))
            if line is None:
                line = total.stages.add(
                    stage=stage.stage, model=stage.model, prompt_version=stage.prompt_version
                )
                lines[stage.stage, stage.model, stage.prompt_version] = line
            line.calls += stage.calls
            line.tokens_in += stage.tokens_in
            line.tokens_out += stage.tokens_out
            line.tokens_cached += stage.tokens_cached
            line.duration_millis += stage.duration_millis
    return total


def _is_held(chunk: JobChunk) -> bool:
    return chunk.nothing_reason == NothingReason.NOTHING_REASON_QUARANTINED
