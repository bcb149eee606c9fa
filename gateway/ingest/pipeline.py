"""The pipeline: what a job does from acceptance to settlement, as durable workflows of steps.

Chunks are understood in parallel and resolved in order. A chunk that fails is named and not charged; the
others are kept.
"""

import asyncio

from gateway.ingest.durable import JSON, DurableEngine, Run
from gateway.ingest.endings import Ended, Endings
from gateway.ingest.patience import status_in
from gateway.ingest.steps import Steps
from gateway.store.job_values import Job, JobKind
from gateway.store.jobs import Jobs
from services.domain.ids import JobId

INGEST = "ingest"
ASSERT = "assert"

WORKFLOWS = {JobKind.INGEST: INGEST, JobKind.ASSERT: ASSERT}


class Pipeline:
    """Hands accepted jobs to the durable engine, and is what the engine runs."""

    def __init__(
        self, engine: DurableEngine, jobs: Jobs, steps: Steps, endings: Endings, chunk_concurrency: int = 8
    ) -> None:
        """`chunk_concurrency` bounds how many chunks of all jobs are understood at once in this process."""
        self._engine = engine
        self._jobs = jobs
        self._steps = steps
        self._endings = endings
        self._chunks = asyncio.Semaphore(chunk_concurrency)
        engine.register(INGEST, self._ingest)
        engine.register(ASSERT, self._assert)

    async def submit(self, job: Job) -> None:
        """Gives a job to the engine, durably. Idempotent."""
        await self._engine.start(WORKFLOWS[job.kind], job.id, job.id)
        await self._jobs.taken(job.id)

    async def run_now(self, job: Job) -> Job:
        """Does an assertion at once and ends it. If that is cut short, `submit` completes it."""
        assert job.kind is JobKind.ASSERT, "only what needs no model is done at once"
        result = await self._steps.assert_triples(job.id)
        return await self._endings.end(job.id, Ended(resolved=(result,), error=status_in(result)))

    async def _ingest(self, run: Run, argument: str) -> None:
        job = JobId(argument)
        prepared = await run.step("preprocess/1", lambda: self._steps.preprocess(job))
        chunks: list[JSON] = list(prepared.get("chunks", ()))
        open_chunks = [index for index, chunk in enumerate(chunks) if not chunk["nothing"]]
        understood = await asyncio.gather(
            *(self._understand(run, job, index, chunks[index]) for index in open_chunks)
        )
        resolved: list[JSON] = []
        for index, result in zip(open_chunks, understood, strict=True):
            if status_in(result) is None and not result["nothing"]:
                resolved.append(await self._resolve(run, job, index, chunks[index], result))
        if prepared.get("removed"):
            episode = str(chunks[0]["episode"]) if chunks else ""
            unsupported = await run.step("unsupported/1", lambda: self._steps.end_unsupported(job, episode))
            resolved.append(unsupported)
        ended = Ended.of_ingest(prepared, chunks, understood, resolved)
        await run.step("end/1", lambda: self._end(job, ended))

    async def _assert(self, run: Run, argument: str) -> None:
        job = JobId(argument)
        result = await run.step("assert/1", lambda: self._steps.assert_triples(job))
        ended = Ended(resolved=(result,), error=status_in(result))
        await run.step("end/1", lambda: self._end(job, ended))

    async def _understand(self, run: Run, job: JobId, index: int, chunk: JSON) -> JSON:
        async def bounded() -> JSON:
            async with self._chunks:
                return await self._steps.understand(job, index, chunk)

        return await run.step(f"understand/1/{index}", bounded)

    async def _resolve(self, run: Run, job: JobId, index: int, chunk: JSON, understood: JSON) -> JSON:
        dropped: dict[str, int] = dict(understood["dropped"])
        return await run.step(f"resolve/1/{index}", lambda: self._steps.resolve(job, index, chunk, dropped))

    async def _end(self, job: JobId, ended: Ended) -> JSON:
        final = await self._endings.end(job, ended)
        return {"state": final.state}
