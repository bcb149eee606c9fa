"""Understanding: from a saved chunk to classified facts, asking no model twice for one chunk."""

from gateway.ingest.milestones import Milestone, Reached, unwatched
from gateway.ingest.receipts import Receipts
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

    async def of_chunk(self, job: Job, time_zone: str, index: int, episode: str) -> values_pb2.Understood:
        """The facts of a chunk; those of an earlier run of the step when there are some.

        `time_zone` is the request's; "" takes the graph's.
        """
        kept = await self._kept(job, index, UNDERSTOOD)
        if kept is not None:
            return kept
        understood = await self._kept(job, index, EXTRACTED)
        if understood is None:
            understood = await self._extracted(job, time_zone, index, episode)
        if understood.world or understood.voice:
            await self._classify(job, index, understood)
        self._reached(Milestone.ANSWERED)
        await self._keep(job, index, UNDERSTOOD, understood)
        self._reached(Milestone.KEPT)
        return understood

    async def _extracted(self, job: Job, time_zone: str, index: int, episode: str) -> values_pb2.Understood:
        """What a chunk says, kept before it is classified: that may fail, and nobody is asked again."""
        services = self._services
        context = await services.call(
            job.scope,
            services.recall.GatherContext,
            recall_pb2.GatherContextRequest(episode_id=episode),
            self._store_seconds,
        )
        setting = context.setting
        ruled = await self._rules.for_text(job.scope, setting.source)
        await self._tell(job, time_zone, setting, ruled)
        request = extractor_pb2.ExtractRequest(turns=context.turns, setting=setting)
        answer = await self._receipts.counted(
            job,
            f"chunk/{index}/1/extract",
            index,
            services.call(job.scope, services.extractor.Extract, request, self._model_seconds),
        )
        for fact in answer.world:
            fact.confidence *= ruled.trust
        extracted = values_pb2.Understood(
            nothing=answer.nothing,
            world=answer.world,
            voice=answer.voice,
            dropped=answer.dropped,
            setting=setting,
            classified=answer.classified,
        )
        await self._keep(job, index, EXTRACTED, extracted)
        return extracted

    async def _classify(self, job: Job, index: int, understood: values_pb2.Understood) -> None:
        """Gives facts their aspects, unless they have them."""
        if understood.classified:
            return
        services = self._services
        request = classifier_pb2.ClassifyRequest(
            world=understood.world, voice=understood.voice, setting=understood.setting
        )
        answer = await self._receipts.counted(
            job,
            f"chunk/{index}/2/classify",
            index,
            services.call(job.scope, services.classifier.Classify, request, self._model_seconds),
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

    async def _tell(self, job: Job, time_zone: str, setting: values_pb2.Setting, ruled: Ruled) -> None:
        """What only the gateway knows: the graph's user, languages, zone and models, the source's rules."""
        settings = (await self._graphs.get(job.scope)).settings
        check_providers(settings, self._providers)
        setting.user_name = settings.user_name
        setting.time_zone = time_zone or settings.time_zone or "UTC"
        del setting.languages[:]
        setting.languages.extend(settings.languages)
        chosen = settings.models
        offered = self._offered_models
        setting.medium_model = chosen.medium_model if chosen.medium_model in offered else ""
        setting.low_model = chosen.low_model if chosen.low_model in offered else ""
        economy = settings.extraction_profile == graph_pb2.EXTRACTION_PROFILE_ECONOMY
        setting.profile = "economy" if economy else "full"
        del setting.rules[:]
        setting.rules.extend(ruled.instructions)
