"""The pipeline: what a job does from acceptance to settlement, as durable workflows of steps.

Chunks are understood in parallel and resolved in order. A chunk that fails is named and not charged; the
others are kept.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog
from opentelemetry.trace import SpanKind

from gateway.errors import JobNotFound
from gateway.ingest.archiving import Archiving
from gateway.ingest.archiving import ended as archiving_ended
from gateway.ingest.durable import JSON, DurableEngine, Run
from gateway.ingest.endings import Ended, Endings
from gateway.ingest.erasing import Erasing
from gateway.ingest.fair import FairGate, Turns
from gateway.ingest.milestones import Milestone
from gateway.ingest.patience import status_in
from gateway.ingest.rebuilding import Rebuilding
from gateway.ingest.rebuilding import ended as rebuilding_ended
from gateway.ingest.rereading import Rereading
from gateway.ingest.retracting import Retracting, totals
from gateway.ingest.retrying import Retrying
from gateway.ingest.steps import Steps
from gateway.ingest.undoing import Undoing
from gateway.store.job_values import Job, JobKind
from gateway.store.jobs import Jobs
from gateway.store.lease import JobTakenOver, held
from palimpsest.internal.v1 import resolver_pb2
from palimpsest.v1.memory_ingest_pb2 import AssertTriplesRequest
from services import tracing
from services.domain.errors import InternalFailure
from services.domain.ids import JobId, Revision
from services.runtime.status import status_of

log = structlog.get_logger(__name__)

INGEST = "ingest"
ASSERT = "assert"
RETRACT = "retract"
ERASE = "erase"
REBUILD = "rebuild"
ARCHIVE = "archive"

WORKFLOWS = {
    JobKind.INGEST: INGEST,
    JobKind.ASSERT: ASSERT,
    JobKind.RETRACTION: RETRACT,
    JobKind.ERASURE: ERASE,
    JobKind.REBUILD: REBUILD,
    JobKind.RETENTION: ARCHIVE,
}
RETRY = "retry"
"""Of what is left of an ingest."""


class Pipeline:
    """Hands accepted jobs to the durable engine, and is what the engine runs."""

    def __init__(
        self,
        engine: DurableEngine,
        jobs: Jobs,
        steps: Steps,
        retracting: Retracting,
        retrying: Retrying,
        rebuilding: Rebuilding,
        rereading: Rereading,
        undoing: Undoing,
        archiving: Archiving,
        endings: Endings,
        erasing: Erasing,
        chunk_concurrency: int = 8,
    ) -> None:
        """`chunk_concurrency` bounds how many chunks of all jobs are understood at once in this process."""
        self._engine = engine
        self._jobs = jobs
        self._steps = steps
        self._retracting = retracting
        self._retrying = retrying
        self._rebuilding = rebuilding
        self._rereading = rereading
        self._undoing = undoing
        self._archiving = archiving
        self._endings = endings
        self._patience = steps.settings.patience
        self._reached = steps.settings.reached
        self._chunks = FairGate(chunk_concurrency)
        self._turns = Turns()
        self._register(INGEST, self._understood)
        self._register(ASSERT, self._asserted)
        self._register(RETRACT, self._retracted)
        self._register(REBUILD, self._rebuilt)
        self._register(ARCHIVE, self._archived)
        self._register(RETRY, self._retried)
        self._register(ERASE, erasing.run)

    async def submit(self, job: Job) -> None:
        """Gives a job to the engine, durably. Idempotent."""
        self._reached(Milestone.ACCEPTED)
        await self._steps.keep_trace(job.id)
        turn = self._turns.next(job.scope.tenant)
        if job.attempt:
            await self._engine.start(RETRY, job.workflow, job.workflow, turn)
        else:
            await self._engine.start(WORKFLOWS[job.kind], job.workflow, job.id, turn)
        self._reached(Milestone.ENQUEUED)
        await self._jobs.taken(job.id)

    async def run_now(
        self, job: Job, asked: AssertTriplesRequest
    ) -> tuple[Job, resolver_pb2.AssertResponse | None]:
        """Does an assertion at once and ends it; with what it recorded, None when that failed.

        If that is cut short, the next start, or the same call, completes it.
        """
        assert job.kind is JobKind.ASSERT, "only what needs no model is done at once"
        result, recorded = await self._steps.assert_now(job, asked)
        ended = _of_assertion(result, [] if recorded is None else [recorded.outcome])
        return await self._patience.insist(lambda: self._endings.end(job.id, ended)), recorded

    def _register(self, name: str, work: Callable[[Run, JobId], Awaitable[Ended]]) -> None:
        """A workflow that does `work` for a job, as the run of it that counts, and ends the job."""

        async def workflow(run: Run, argument: str) -> None:
            id, _, attempt = argument.partition(":")
            job = JobId(id)
            try:
                lease = await self._steps.claim(job, int(attempt or 0))
            except JobTakenOver:
                log.info("an attempt that is over was begun again", job=job, attempt=attempt)
                return
            parent = await self._steps.trace_of(job)
            with (
                held(lease, self._steps.confirm),
                tracing.continued(parent),
                tracing.span(f"job {name}", SpanKind.CONSUMER),
            ):
                await self._end(run, job, await self._sure(job, work(run, job)))

        self._engine.register(name, workflow)

    async def _sure(self, job: JobId, work: Awaitable[Ended]) -> Ended:
        """How a job ended; one that a bug broke has failed, since the engine runs no workflow that raised."""
        try:
            return await work
        except Exception:
            log.exception("job failed", job=job)
            return Ended(error=status_of(InternalFailure()))

    async def _understood(self, run: Run, job: JobId) -> Ended:
        stopped = await self._stopped(run, job, "preprocess")
        prepared = stopped or await run.step("preprocess/1", lambda: self._steps.preprocess(job))
        return await self._learned(run, job, prepared)

    async def _retried(self, run: Run, job: JobId) -> Ended:
        stopped = await self._stopped(run, job, "take_up")
        prepared = stopped or await run.step("take_up/1", lambda: self._retrying.take_up(job))
        return await self._learned(run, job, prepared)

    async def _learned(self, run: Run, job: JobId, prepared: JSON) -> Ended:
        """What came of the chunks that are prepared: understood in parallel, resolved in order."""
        places: list[JSON | None] = list(prepared.get("chunks", ()))
        chunks = {index: chunk for index, chunk in enumerate(places) if chunk is not None}
        open_chunks = [index for index, chunk in chunks.items() if not chunk["nothing"]]
        answers = await asyncio.gather(
            *(self._understand(run, job, index, prepared) for index in open_chunks)
        )
        understood = dict(zip(open_chunks, answers, strict=True))
        resolved: dict[int, JSON] = {}
        for index, result in understood.items():
            if status_in(result) is None and not result["nothing"]:
                resolved[index] = await self._resolve(run, job, index, chunks[index], result)
        unsupported: JSON | None = None
        if prepared.get("removed"):
            stopped = await self._stopped(run, job, "unsupported")
            unsupported = stopped or await run.step(
                "unsupported/1", lambda: self._steps.end_unsupported(job, prepared)
            )
        return Ended.of_ingest(prepared, understood, resolved, unsupported)

    async def _asserted(self, run: Run, job: JobId) -> Ended:
        return _of_assertion(await run.step("assert/1", lambda: self._steps.assert_triples(job)))

    async def _retracted(self, run: Run, job: JobId) -> Ended:
        """Deletes part after part. What is given while that lasts goes as well."""
        done: list[JSON] = []
        while True:
            part = len(done)
            listed = await run.step(f"list/1/{part}", partial(self._retracting.list, job, part))
            error = status_in(listed)
            if error is not None or not (listed["episodes"] or listed["versions"]):
                break
            deleted = await run.step(f"retract/1/{part}", partial(self._retracting.delete, job, part, listed))
            error = status_in(deleted)
            if error is not None:
                break
            done.append(deleted)
        newest = max((int(one["revision"]) for one in done), default=0)
        return Ended(revision=Revision(newest), error=error, deleted=totals(done))

    async def _rebuilt(self, run: Run, job: JobId) -> Ended:
        """Part after part, and of those with pages page after page; stops where one fails or is cancelled.

        Or, if that is asked, every text is read anew, or that is undone.
        """
        asked = await run.step("asked/1", lambda: self._rebuilding.asked(job))
        if status_in(asked) is not None:
            return Ended(error=status_in(asked))
        if asked["read"]:
            return await self._rereading.run(run, job, self._chunks.place)
        if asked["undo"]:
            return await self._undoing.run(run, job)
        done: list[JSON] = []
        part, parts, after = 0, 1, ""
        while part < parts:
            number = len(done)
            stopped = await self._stopped(run, job, f"part/{number}")
            one = stopped or await run.step(
                f"rebuild/1/{number}", partial(self._rebuilding.part, job, part, after)
            )
            done.append(one)
            if status_in(one) is not None:
                break
            parts, after = int(one["parts"]), str(one["after"])
            part += not after
        return rebuilding_ended(done)

    async def _archived(self, run: Run, job: JobId) -> Ended:
        """Page after page; stops where one fails or the job is cancelled."""
        stopped = await self._stopped(run, job, "rules")
        rules = stopped or await run.step("rules/1", lambda: self._archiving.rules(job))
        if status_in(rules) is not None:
            return archiving_ended([rules])
        done: list[JSON] = []
        after = ""
        while not done or after:
            number = len(done)
            stopped = await self._stopped(run, job, f"archive/{number}")
            one = stopped or await run.step(
                f"archive/1/{number}", partial(self._archiving.page, job, number, rules, after)
            )
            done.append(one)
            if status_in(one) is not None:
                break
            after = str(one["after"])
        return archiving_ended(done)

    async def _understand(self, run: Run, job: JobId, index: int, prepared: JSON) -> JSON:
        return await run.step(
            f"understand/1/{index}",
            lambda: self._steps.understand(job, index, prepared, self._chunks.place),
        )

    async def _resolve(self, run: Run, job: JobId, index: int, chunk: JSON, understood: JSON) -> JSON:
        dropped: dict[str, int] = dict(understood["dropped"])
        stopped = await self._stopped(run, job, f"resolve/{index}")
        if stopped is not None:
            return await run.step(
                f"stop/1/{index}", lambda: self._steps.stop_chunk(job, index, chunk, stopped)
            )
        return await run.step(f"resolve/1/{index}", lambda: self._steps.resolve(job, index, chunk, dropped))

    async def _stopped(self, run: Run, job: JobId, before: str) -> JSON | None:
        """What is answered for a step of a job that was cancelled before it; None: go on.

        A step of its own: when one that publishes is done again, it must not be stopped half way.
        """
        answer = await run.step(f"going/1/{before}", lambda: self._steps.going_on(job))
        return None if status_in(answer) is None else answer

    async def _end(self, run: Run, job: JobId, ended: Ended) -> None:
        async def end() -> JSON:
            self._reached(Milestone.SETTLING)
            try:
                state = (await self._endings.end(job, ended)).state
            except JobNotFound:
                # Its graph was erased, and it with it: it was ended then, and its credits given back.
                return {}
            self._reached(Milestone.SETTLED)
            return {"state": state}

        # Nobody else ends a job: its credits would be held until they expire.
        await run.step("end/1", lambda: self._patience.insist(end))


def _of_assertion(result: JSON, outcomes: Sequence[resolver_pb2.Outcome] | None = None) -> Ended:
    return Ended(
        revision=Revision(int(result.get("revision", 0))), error=status_in(result), outcomes=outcomes
    )
