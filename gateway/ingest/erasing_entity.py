"""Erasing one entity of a graph: whom it is about first, then passages that name them, then all facts.

Nothing is written to the graph meanwhile. Text goes before facts: names are what text is found by.
"""

import json
from collections.abc import Awaitable, Callable, Iterable

from gateway.ingest.durable import JSON, Run
from gateway.ingest.milestones import Milestone, Reached, unwatched
from gateway.ingest.patience import Patience
from gateway.services import Services
from gateway.store.content import Content
from gateway.store.jobs import Jobs
from gateway.store.progress import Progress
from palimpsest.internal.v1 import erasing_pb2 as pb
from services.domain.errors import Conflict
from services.domain.ids import JobId, Revision
from services.domain.scope import Scope

COUNTED = "counted"
"""Artifact: what there was, by store and kind, before anything of it went."""
WHOM = "whom"
"""Artifact: ids, names and passages of the entity. It ends with the job."""
_ROUNDS = 5


async def generation_of(services: Services, scope: Scope, seconds: float) -> int:
    """Of a graph as it is now."""
    read = services.resolver.ReadGeneration
    return (await services.call(scope, read, pb.ReadGenerationRequest(), seconds)).generation


class EntityErasing:
    """Steps of EraseEntity. Idempotent, each done until it succeeds."""

    def __init__(
        self,
        services: Services,
        jobs: Jobs,
        content: Content,
        progress: Progress,
        patience: Patience,
        quiet_seconds: float,
        model_seconds: float,
        reached: Reached = unwatched,
    ) -> None:
        """`quiet_seconds`: how long calls that are under way are waited for."""
        self._reached = reached
        self._services = services
        self._jobs = jobs
        self._content = content
        self._progress = progress
        self._patience = patience
        self._quiet_seconds = quiet_seconds
        self._seconds = model_seconds

    async def run(self, run: Run, job_id: JobId) -> None:
        """What was begun before the mark is finished first."""
        for name, work in (
            ("alone/1", self._alone),
            ("whom/1", self._whom),
            ("entity/1", self._erase),
        ):
            await self._step(run, name, job_id, work)

    async def _step(
        self, run: Run, name: str, job_id: JobId, work: Callable[[JobId, Scope], Awaitable[JSON]]
    ) -> None:
        async def once() -> JSON:
            return await work(job_id, (await self._jobs.find(job_id)).scope)

        await run.step(name, lambda: self._patience.insist(once))

    async def _alone(self, job_id: JobId, scope: Scope) -> JSON:
        """Waits until no other job of the graph is unfinished: others' texts are not thrown away."""
        if any(not job.finished for job in await self._content.jobs(scope, job_id)):
            raise Conflict
        await self._services.quiet(scope, self._quiet_seconds)
        return {}

    async def _whom(self, job_id: JobId, scope: Scope) -> JSON:
        """Keeps whom it is about, and which passages name them, while all of that can be found."""
        if await self._progress.artifact(job_id, 0, WHOM) is not None:
            return {}
        asked = json.loads(await self._jobs.payload(job_id))
        services = self._services
        plan = pb.PlanEntityErasureRequest(entity_id=asked["entity"])
        method = services.resolver.PlanEntityErasure
        erased = (await services.call(scope, method, plan, self._seconds)).erased
        text, facts = await self._left(job_id, scope, erased, ())
        erased.passage_ids.extend(sorted(set(text.passage_ids) - set(erased.passage_ids)))
        found = {one.store: dict(one.rows) for one in facts.stores}
        found["memory"] = {**found.get("memory", {}), **text.rows}
        await self._progress.save_artifact(job_id, 0, COUNTED, json.dumps(found).encode())
        await self._progress.save_artifact(job_id, 0, WHOM, erased.SerializeToString())
        return {}

    async def _erase(self, job_id: JobId, scope: Scope) -> JSON:
        kept = await self._progress.artifact(job_id, 0, WHOM)
        assert kept is not None, "kept by the step before"
        erased, services = pb.Erased.FromString(kept), self._services
        passages = list(erased.passage_ids)
        asked = json.loads(await self._jobs.payload(job_id))
        for _ in range(_ROUNDS):
            # It ends with this round: a process that sleeps in it erases nothing that was said since.
            generation = await generation_of(services, scope, self._seconds)
            self._reached(Milestone.ERASING)
            mentions = pb.EraseMentionsRequest(erased=erased, generation=generation)
            await services.call(scope, services.preprocessor.EraseMentions, mentions, self._seconds)
            facts = pb.EraseEntityRequest(
                commit_id=job_id,
                actor=asked["actor"],
                erased=erased,
                passage_ids=passages,
                generation=generation,
            )
            done = await services.call(scope, services.resolver.EraseEntity, facts, self._seconds)
            await self._jobs.published(job_id, Revision(done.revision))
            text, left = await self._left(job_id, scope, erased, passages)
            if not text.rows and not any(one.rows for one in left.stores):
                break
        else:
            raise Conflict
        self._reached(Milestone.EMPTIED)
        forgetting = services.recall.ForgetScope
        await services.call(scope, forgetting, pb.ForgetScopeRequest(), self._seconds)
        await services.call(scope, services.resolver.OpenScope, pb.OpenScopeRequest(), self._seconds)
        return {"revision": done.revision}

    async def _left(
        self, job_id: JobId, scope: Scope, erased: pb.Erased, passages: Iterable[str]
    ) -> tuple[pb.EraseMentionsResponse, pb.EraseEntityResponse]:
        """What there is of the entity, in text and in facts."""
        services = self._services
        mentions = pb.EraseMentionsRequest(erased=erased, count_only=True)
        text = await services.call(scope, services.preprocessor.EraseMentions, mentions, self._seconds)
        asked = pb.EraseEntityRequest(
            commit_id=job_id, erased=erased, passage_ids=[*passages, *text.passage_ids], count_only=True
        )
        return text, await services.call(scope, services.resolver.EraseEntity, asked, self._seconds)
