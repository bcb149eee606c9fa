"""Erasing: the steps that empty every store of a graph, or of all graphs of a tenant, and look again.

Each step is done until it succeeds, and finds what an earlier attempt left. What is counted before anything
goes is kept first, so that the report tells what was there, whatever crashes.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Self

import structlog

from gateway.credits.money import MicroCredits
from gateway.ingest.durable import JSON, DurableEngine, Run
from gateway.ingest.endings import Ended
from gateway.ingest.erasing_entity import EntityErasing, generation_of
from gateway.ingest.milestones import Milestone
from gateway.ingest.steps import StepSettings
from gateway.services import Services
from gateway.store.content import Content
from gateway.store.erasures import Erasures
from gateway.store.graphs import Graphs
from gateway.store.job_values import JobState, Outcome
from gateway.store.jobs import Jobs
from gateway.store.progress import Progress
from gateway.store.stores import Stores
from palimpsest.internal.v1 import erasing_pb2 as pb
from palimpsest.v1.job_pb2 import JobResult
from palimpsest.v1.privacy_pb2 import ErasureReport
from services.domain.errors import Conflict, GraphErased
from services.domain.ids import JobId
from services.domain.scope import Scope
from services.runtime.status import status_of

log = structlog.get_logger(__name__)

COUNTED = "counted"
"""Artifact: what there was of a graph, by store and kind, before anything of it went."""
_ROUNDS = 5
"""How often stores are emptied again when a writer was found to have filled them."""
QUIET_SECONDS = 30.0
"""How long calls that are under way to the services are waited for; later ones find the fence."""

Found = dict[str, dict[str, int]]
"""How much there is, by store and kind."""


def payload(entity: str, actor: str) -> bytes:
    """What the job reads: the entity's id ("" for all of a graph), and who asked."""
    return json.dumps({"entity": entity, "actor": actor}).encode()


class Erasing:
    """The workflow of an erasure. Its steps answer numbers alone."""

    @classmethod
    def over(cls, engine: DurableEngine, services: Services, stores: Stores, settings: StepSettings) -> Self:
        """With what the gateway keeps."""
        kept = (stores.jobs, stores.graphs, stores.progress, stores.erasures, stores.content)
        return cls(engine, services, *kept, settings)

    def __init__(
        self,
        engine: DurableEngine,
        services: Services,
        jobs: Jobs,
        graphs: Graphs,
        progress: Progress,
        erasures: Erasures,
        content: Content,
        settings: StepSettings,
    ) -> None:
        self._engine = engine
        self._services = services
        self._jobs = jobs
        self._graphs = graphs
        self._progress = progress
        self._erasures = erasures
        self._content = content
        self._patience = settings.patience
        self._reached = settings.reached
        self._store_seconds = settings.store_seconds
        self._long_seconds = settings.model_seconds
        """For calls that go through all of a graph."""
        self._entity = EntityErasing(
            services,
            jobs,
            content,
            progress,
            settings.patience,
            QUIET_SECONDS,
            settings.model_seconds,
            settings.reached,
        )

    async def run(self, run: Run, job_id: JobId) -> Ended:
        """An erasure from its mark to its tombstone."""

        async def begun() -> JSON:
            job = await self._jobs.start(job_id)
            asked = json.loads(await self._jobs.payload(job_id))
            return {"entity": bool(asked["entity"]), "tenant": not job.scope.graph}

        what = await self._step(run, "begin/1", begun)
        if what["entity"]:
            await self._entity.run(run, job_id)
        elif what["tenant"]:
            number = 0
            while (await self._step(run, f"next/1/{number}", self._next(job_id, number)))["erased"]:
                number += 1
        else:
            await self._step(run, "erase/1", self._whole_graph(job_id))
        await self._step(run, "content/1", self._gateway(job_id))
        await self._step(run, "tombstone/1", self._tombstone(job_id))
        return Ended()

    async def _step(self, run: Run, name: str, work: Callable[[], Awaitable[JSON]]) -> JSON:
        return await run.step(name, lambda: self._patience.insist(work))

    def _whole_graph(self, job_id: JobId) -> Callable[[], Awaitable[JSON]]:
        async def work() -> JSON:
            await self._erase(job_id, 0, (await self._jobs.find(job_id)).scope)
            return {}

        return work

    def _next(self, job_id: JobId, number: int) -> Callable[[], Awaitable[JSON]]:
        """The first graph that is left of a tenant; its row goes last, so that it is found again."""

        async def work() -> JSON:
            scope = (await self._jobs.find(job_id)).scope
            left = await self._graphs.every(scope.tenant, making=True)
            if left:
                await self._erase(job_id, number, left[0].scope)
                await self._content.remove_graph(left[0].scope, job_id)
            return {"erased": bool(left)}

        return work

    async def _erase(self, job_id: JobId, number: int, scope: Scope) -> None:
        """Everything of one graph: its jobs stopped, its stores emptied, and found empty."""
        await self._stop_jobs(job_id, scope)
        await self._services.quiet(scope, QUIET_SECONDS)
        await self._count(job_id, number, scope)
        # A process that sleeps from here on, and wakes when another has done this, erases nothing made since.
        generation = await generation_of(self._services, scope, self._store_seconds)
        self._reached(Milestone.ERASING)
        for _ in range(_ROUNDS):
            if not _some(await self._emptied(scope, generation)):
                break
        else:
            raise Conflict
        self._reached(Milestone.EMPTIED)
        services, seconds = self._services, self._store_seconds
        await services.call(scope, services.recall.ForgetScope, pb.ForgetScopeRequest(), seconds)
        opening = pb.OpenScopeRequest(generation=generation | 1)  # odd: that under which it is erased
        await services.call(scope, services.resolver.OpenScope, opening, self._long_seconds)

    async def _emptied(self, scope: Scope, generation: int) -> Found:
        method, asked = self._services.resolver.EraseScope, pb.EraseScopeRequest(generation=generation)
        return found_in((await self._services.call(scope, method, asked, self._long_seconds)).stores)

    async def _count(self, job_id: JobId, number: int, scope: Scope) -> None:
        """Counts once: what a crash interrupted has begun to remove what is counted."""
        if await self._progress.artifact(job_id, number, COUNTED) is not None:
            return
        method = self._services.resolver.CountScope
        answer = await self._services.call(scope, method, pb.CountScopeRequest(), self._long_seconds)
        found = found_in(answer.stores)
        if number == 0:
            whole = (await self._jobs.find(job_id)).scope
            found["jobs"] = dict(await self._content.rows(whole, job_id))
        await self._progress.save_artifact(job_id, number, COUNTED, json.dumps(found).encode())

    async def _stop_jobs(self, job_id: JobId, scope: Scope) -> None:
        """Ends what is under way, with all of its credits given back. What it publishes is void."""
        theirs = [job for job in await self._content.to_end(scope, job_id) if not job.finished]
        await self._engine.stop([id for job in theirs for id in job.workflows])
        for job in theirs:
            outcome = Outcome(
                JobState.CANCELLED, MicroCredits(0), JobResult(), error=status_of(GraphErased())
            )
            await self._jobs.finish(job.id, outcome)
            log.info("job ended by an erasure", job=job.id)

    def _gateway(self, job_id: JobId) -> Callable[[], Awaitable[JSON]]:
        """The gateway's own tables, and the engine's."""

        async def work() -> JSON:
            job = await self._jobs.find(job_id)
            asked = json.loads(await self._jobs.payload(job_id))
            if not asked["entity"]:
                await self._content_of(job_id, job.scope)
            await self._progress.drop_artifacts(job_id, but=COUNTED)
            await self._content.compact()
            await self._engine.compact()
            return {}

        return work

    async def _content_of(self, job_id: JobId, scope: Scope) -> None:
        await self._stop_jobs(job_id, scope)
        theirs = await self._content.to_end(scope, job_id)
        ids = [id for job in theirs for id in job.workflows]
        await self._engine.forget(ids)
        await self._content.erase(scope, job_id)
        if not scope.graph:
            await self._content.erase_tenant(scope, job_id)
        if await self._content.rows(scope, job_id) or await self._engine.remember(ids):
            raise Conflict

    def _tombstone(self, job_id: JobId) -> Callable[[], Awaitable[JSON]]:
        async def work() -> JSON:
            counted = await self._progress.artifacts(job_id, COUNTED)
            reports = reports_of([json.loads(each) for each in counted.values()])
            self._reached(Milestone.ERASED)
            await self._erasures.finish(job_id, (await self._jobs.find(job_id)).scope, reports)
            return {}

        return work


def found_in(stores: Sequence[pb.StoreRows]) -> Found:
    return {one.store: {kind: count for kind, count in one.rows.items() if count} for one in stores}


def _some(found: Mapping[str, Mapping[str, int]]) -> bool:
    return any(found.values())


def reports_of(counted: Sequence[Found]) -> list[ErasureReport]:
    """Sums over graphs, by store.

    Stores that were counted were read again and found empty: else the erasure would not have come this far.
    Caches are void, which no read tells.
    """
    summed: Found = {}
    for found in counted:
        for store, kinds in found.items():
            into = summed.setdefault(store, {})
            for kind, count in kinds.items():
                into[kind] = into.get(kind, 0) + count
    read_again = set(summed)
    for store in ("graph", "memory", "vectors", "jobs", "caches"):
        summed.setdefault(store, {})
    summed["caches"]["graphs"] = len(counted)
    return [
        ErasureReport(store=store, removed=kinds, verified_empty=store in read_again)
        for store, kinds in sorted(summed.items())
    ]
