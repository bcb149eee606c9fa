"""Jobs as callers see them: read whole, watched change by change, waited for."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, replace

from google.protobuf.timestamp_pb2 import Timestamp

from gateway.credits.money import MicroCredits
from gateway.credits.values import HoldState
from gateway.errors import CursorExpired
from gateway.store.bell import Bell
from gateway.store.job_values import Job, JobFilter, JobState
from gateway.store.jobs import Jobs
from gateway.store.progress import Progress, reached
from palimpsest.v1 import job_pb2
from palimpsest.v1.episode_pb2 import ChunkStage
from services.domain.ids import JobId, Revision
from services.domain.instants import Instant
from services.domain.scope import TenantId
from services.stores.paging import Listed, Page


@dataclass(frozen=True, slots=True)
class WatchPoint:
    """How much of a job a watcher has seen: changes of chunks, and versions of the job itself."""

    event: int
    version: int


class JobView:
    """Reads and watches jobs of a tenant. Raises JobNotFound for any other's."""

    def __init__(self, jobs: Jobs, progress: Progress, bell: Bell, poll_seconds: float) -> None:
        self._jobs = jobs
        self._progress = progress
        self._bell = bell
        self._poll_seconds = poll_seconds

    async def read(self, tenant: TenantId, job: JobId) -> job_pb2.Job:
        """The whole job as it stands."""
        found = await self._jobs.get(tenant, job)
        snapshot = await self._progress.snapshot(job)
        return job_message(found, snapshot.chunks.values(), snapshot.receipt)

    async def list(self, tenant: TenantId, where: JobFilter, page: Page) -> Listed[job_pb2.Job]:
        """Jobs newest first, without chunks, receipts and the ids of results.

        Raises ValueError for a position that no list of jobs gave.
        """
        listed = await self._jobs.list(tenant, where, page)
        return Listed([_outline(job) for job in listed.items], listed.after)

    async def cancel(self, tenant: TenantId, job: JobId) -> job_pb2.Job:
        """Asks a job to stop at its next step. Idempotent. Raises JobNotFound, JobFinished."""
        await self._jobs.request_cancel(tenant, job)
        return await self.read(tenant, job)

    async def wait(
        self, tenant: TenantId, job: JobId, stage: ChunkStage.ValueType, at_most_seconds: float
    ) -> job_pb2.Job:
        """The job once every chunk has reached `stage` or it has ended; as it stands when time runs out."""
        loop = asyncio.get_running_loop()
        until = loop.time() + at_most_seconds
        with self._bell.listen(job) as listener:
            while True:
                message = await self.read(tenant, job)
                left = until - loop.time()
                if left <= 0 or message.HasField("finished_at") or _all_reached(message, stage):
                    return message
                await listener.wait(min(left, self._poll_seconds))

    async def watch(
        self, tenant: TenantId, job: JobId, seen: WatchPoint | None
    ) -> AsyncIterator[tuple[job_pb2.Job, WatchPoint]]:
        """The job at once (without `seen`), then after each change; ends after a final state.

        Raises CursorExpired when what happened since `seen` is not kept.
        """
        with self._bell.listen(job) as listener:
            found = await self._jobs.get(tenant, job)
            if seen is None:
                snapshot = await self._progress.snapshot(job)
                chunks = dict(snapshot.chunks)
                point = WatchPoint(snapshot.last_event, found.version)
                yield job_message(found, chunks.values(), snapshot.receipt), point
                if found.finished:
                    return
            else:
                chunks = await self._seen_chunks(found, seen)
                point = seen
            while True:
                found = await self._jobs.get(tenant, job)
                # Read after the job: whatever a final state rests on is among these.
                events = await self._progress.events(job, after=point.event)
                if events or found.version > point.version:
                    receipt = await self._progress.receipt(job)
                    for event in events:
                        chunks[event.chunk.index] = event.chunk
                        point = replace(point, event=event.number)
                        yield job_message(_unfinished(found), _in_order(chunks), receipt), point
                    if found.version > point.version:
                        point = replace(point, version=found.version)
                        yield job_message(found, _in_order(chunks), receipt), point
                if found.finished:
                    return
                await listener.wait(self._poll_seconds)

    async def _seen_chunks(self, job: Job, seen: WatchPoint) -> dict[int, job_pb2.JobChunk]:
        events = await self._progress.events(job.id)
        before = [event for event in events if event.number <= seen.event]
        if len(before) < seen.event or seen.version > job.version:
            raise CursorExpired
        return {event.chunk.index: event.chunk for event in before}


def job_message(
    job: Job, chunks: Iterable[job_pb2.JobChunk], receipt: job_pb2.JobReceipt | None
) -> job_pb2.Job:
    """The public form of a job."""
    hold = job.hold
    spent = hold.settled if hold.state is not HoldState.OPEN else min(hold.spent, hold.ceiling)
    message = job_pb2.Job(
        job_id=job.id,
        graph_id=job.scope.graph,
        kind=job_pb2.JobKind.Value(f"JOB_KIND_{job.kind}"),
        state=job_pb2.JobState.Value(f"JOB_STATE_{job.state}"),
        request_id=job.request_key,
        created_at=timestamp(job.created_at),
        updated_at=timestamp(job.updated_at),
        chunks=chunks,
        credits=job_pb2.JobCredits(
            held_micros=hold.held,
            spent_micros=spent + job.earlier.settled,
            refunded_micros=hold.returned + job.earlier.returned,
            price_version=hold.price_version,
        ),
        receipt=receipt,
        result=job.result,
        revision=job.revision,
        cancel_requested=job.cancel_requested,
    )
    if job.started_at is not None:
        message.started_at.CopyFrom(timestamp(job.started_at))
    if job.finished_at is not None:
        message.finished_at.CopyFrom(timestamp(job.finished_at))
    if job.error is not None:
        message.error.CopyFrom(job.error)
    return message


def timestamp(at: Instant) -> Timestamp:
    """An instant on the wire."""
    message = Timestamp()
    message.FromMicroseconds(at)
    return message


def _outline(job: Job) -> job_pb2.Job:
    result = job_pb2.JobResult(
        counts=job.result.counts,
        document_id=job.result.document_id,
        document_version=job.result.document_version,
    )
    return job_message(replace(job, result=result), (), None)


def _unfinished(job: Job) -> Job:
    """A finished job as it stood before its end, for changes that are told afterwards."""
    if not job.finished:
        return job
    hold = replace(job.hold, state=HoldState.OPEN, settled=MicroCredits(0), goodwill=MicroCredits(0))
    return replace(
        job,
        state=JobState.RUNNING,
        finished_at=None,
        result=job_pb2.JobResult(),
        error=None,
        revision=Revision(0),
        hold=hold,
    )


def _in_order(chunks: Mapping[int, job_pb2.JobChunk]) -> list[job_pb2.JobChunk]:
    return [chunks[index] for index in sorted(chunks)]


def _all_reached(job: job_pb2.Job, stage: ChunkStage.ValueType) -> bool:
    return bool(job.chunks) and all(reached(chunk, stage) for chunk in job.chunks)
