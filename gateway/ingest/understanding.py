"""Understanding: from a saved chunk to classified facts, asking no model twice for one chunk."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from gateway.ingest.joining import joined, parted
from gateway.ingest.milestones import Milestone, Reached, unwatched
from gateway.ingest.receipts import Receipts
from gateway.ingest.together import Together
from gateway.policy import check_providers
from gateway.services import Services
from gateway.store.graphs import Graphs
from gateway.store.job_values import Job
from gateway.store.progress import Progress
from gateway.store.rules import IngestionRules, Ruled
from palimpsest.internal.v1 import classifier_pb2, extractor_pb2, recall_pb2, values_pb2
from palimpsest.v1 import graph_pb2

UNDERSTOOD = "understood"
"""The artifact that keeps a chunk's facts until the job ends."""
EXTRACTED = "extracted"
"""The one that keeps them while they have no aspects."""

Place = Callable[[], AbstractAsyncContextManager[None]]
"""A place among the chunks that are understood at once."""


@dataclass(frozen=True, slots=True)
class Models:
    """Which models to ask; "": the graph's, or the tier's own."""

    medium: str = ""
    low: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A chunk to understand. `time_zone` is the request's; "" takes the graph's.

    `companions`: equal for chunks that may be understood together; "" for one that goes alone. `anew`: it was
    understood before, and what only it said is no context of it.
    """

    index: int
    episode: str
    time_zone: str = ""
    companions: str = ""
    models: Models = Models()
    anew: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    job: Job
    asked: Asked
    place: Place


class Understanding:
    """Gathers context, extracts, classifies. Raises ServiceError."""

    def __init__(
        self,
        services: Services,
        graphs: Graphs,
        rules: IngestionRules,
        progress: Progress,
        receipts: Receipts,
        store_seconds: float,
        model_seconds: float,
        offered_models: frozenset[str] = frozenset(),
        providers: frozenset[str] = frozenset(),
        reached: Reached = unwatched,
    ) -> None:
        self._providers = providers
        self._services = services
        self._graphs = graphs
        self._rules = rules
        self._progress = progress
        self._receipts = receipts
        self._store_seconds = store_seconds
        self._model_seconds = model_seconds
        self._offered_models = offered_models
        self._reached = reached
        self._together: Together[_Part, values_pb2.Understood] = Together(self._in_one_go)

    async def of_chunk(self, job: Job, asked: Asked, place: Place) -> values_pb2.Understood:
        """The facts of a chunk; those of an earlier run of the step when there are some.

        A chunk that may be understood with others of its session waits for these, outside of `place`.
        """
        index = asked.index
        kept = await self._kept(job, index, UNDERSTOOD)
        if kept is not None:
            return kept
        understood = await self._kept(job, index, EXTRACTED)
        part = _Part(job, asked, place)
        if understood is None and asked.companions and await self._batches(job):
            understood = await self._together(f"{job.scope.key}:{asked.companions}", part)
        else:
            async with place():
                if understood is None:
                    understood = await self._extracted(part)
                    await self._keep(job, index, EXTRACTED, understood)
                await self._classify(part, understood)
        self._reached(Milestone.ANSWERED)
        await self._keep(job, index, UNDERSTOOD, understood)
        self._reached(Milestone.KEPT)
        return understood

    async def kept(self, job: Job, index: int) -> values_pb2.Understood:
        """What `of_chunk` answered for a chunk of a job that has not ended."""
        kept = await self._kept(job, index, UNDERSTOOD)
        assert kept is not None, "kept by the step before"
        return kept

    async def _batches(self, job: Job) -> bool:
        """Whether short messages of a session are understood together, as the graph says."""
        settings = (await self._graphs.get(job.scope)).settings
        if settings.batching == graph_pb2.SAVING_UNSPECIFIED:
            return settings.extraction_profile == graph_pb2.EXTRACTION_PROFILE_ECONOMY
        return settings.batching == graph_pb2.SAVING_ON

    async def _in_one_go(self, parts: Sequence[_Part]) -> Sequence[values_pb2.Understood]:
        """What several chunks say. What it cost stands with the first of their jobs."""
        first = parts[0]
        async with first.place():
            if len(parts) == 1:
                understood = await self._extracted(first)
                await self._classify(first, understood)
                return [understood]
            surrounded = await asyncio.gather(*(self._surrounded(part) for part in parts))
            contexts = [context for context, _ in surrounded]
            joint = joined(contexts)
            whole = await self._asked(first, joint.request, surrounded[0][1])
            await self._classify(first, whole)
            return parted(joint, contexts, whole)

    async def _extracted(self, part: _Part) -> values_pb2.Understood:
        """What a chunk says, without aspects yet where the profile gives these in a step of their own."""
        context, ruled = await self._surrounded(part)
        request = extractor_pb2.ExtractRequest(turns=context.turns, setting=context.setting)
        return await self._asked(part, request, ruled)

    async def _surrounded(self, part: _Part) -> tuple[recall_pb2.GatherContextResponse, Ruled]:
        """A chunk in what surrounds it, and what holds for its source."""
        services, job = self._services, part.job
        context = await services.call(
            job.scope,
            services.recall.GatherContext,
            recall_pb2.GatherContextRequest(episode_id=part.asked.episode, anew=part.asked.anew),
            self._store_seconds,
        )
        ruled = await self._rules.for_text(job.scope, context.setting.source)
        await self._tell(job, part.asked, context.setting, ruled)
        return context, ruled

    async def _asked(
        self, part: _Part, request: extractor_pb2.ExtractRequest, ruled: Ruled
    ) -> values_pb2.Understood:
        services = self._services
        answer = await self._receipts.counted(
            part.job,
            f"chunk/{part.asked.index}/1/extract",
            part.asked.index,
            services.call(part.job.scope, services.extractor.Extract, request, self._model_seconds),
        )
        for fact in answer.world:
            fact.confidence *= ruled.trust
        return values_pb2.Understood(
            nothing=answer.nothing,
            world=answer.world,
            voice=answer.voice,
            dropped=answer.dropped,
            setting=request.setting,
            classified=answer.classified,
        )

    async def _classify(self, part: _Part, understood: values_pb2.Understood) -> None:
        """Gives facts their aspects, unless they have them."""
        if understood.classified or not (understood.world or understood.voice):
            return
        services = self._services
        request = classifier_pb2.ClassifyRequest(
            world=understood.world, voice=understood.voice, setting=understood.setting
        )
        answer = await self._receipts.counted(
            part.job,
            f"chunk/{part.asked.index}/2/classify",
            part.asked.index,
            services.call(part.job.scope, services.classifier.Classify, request, self._model_seconds),
        )
        del understood.world[:]
        del understood.voice[:]
        understood.world.extend(answer.world)
        understood.voice.extend(answer.voice)
        understood.dropped.extend(answer.dropped)
        understood.classified = True

    async def _kept(self, job: Job, index: int, stage: str) -> values_pb2.Understood | None:
        kept = await self._progress.artifact(job.id, index, stage)
        return None if kept is None else values_pb2.Understood.FromString(kept)

    async def _keep(self, job: Job, index: int, stage: str, understood: values_pb2.Understood) -> None:
        await self._progress.save_artifact(job.id, index, stage, understood.SerializeToString())

    async def _tell(self, job: Job, asked: Asked, setting: values_pb2.Setting, ruled: Ruled) -> None:
        """What only the gateway knows: the graph's user, languages, zone and models, the source's rules."""
        settings = (await self._graphs.get(job.scope)).settings
        check_providers(settings, self._providers)
        setting.user_name = settings.user_name
        setting.time_zone = asked.time_zone or settings.time_zone or "UTC"
        del setting.languages[:]
        setting.languages.extend(settings.languages)
        chosen, named = settings.models, asked.models
        setting.medium_model = self._offered(named.medium or chosen.medium_model)
        setting.low_model = self._offered(named.low or chosen.low_model)
        economy = settings.extraction_profile == graph_pb2.EXTRACTION_PROFILE_ECONOMY
        setting.profile = "economy" if economy else "full"
        del setting.rules[:]
        setting.rules.extend(ruled.instructions)

    def _offered(self, model: str) -> str:
        return model if model in self._offered_models else ""
