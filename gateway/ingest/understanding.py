"""Understanding: from a saved chunk to classified facts, asking no model twice for one chunk."""

from gateway.ingest.milestones import Milestone, Reached, unwatched
from gateway.policy import check_providers
from gateway.services import Services
from gateway.store.graphs import Graphs
from gateway.store.job_values import Job
from gateway.store.progress import Progress
from gateway.store.rules import IngestionRules, Ruled
from palimpsest.internal.v1 import classifier_pb2, extractor_pb2, recall_pb2, values_pb2

UNDERSTOOD = "understood"
"""The artifact that keeps a chunk's facts until the job ends."""


class Understanding:
    """Gathers context, extracts, classifies. Raises ServiceError."""

    def __init__(
        self,
        services: Services,
        graphs: Graphs,
        rules: IngestionRules,
        progress: Progress,
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
        self._store_seconds = store_seconds
        self._model_seconds = model_seconds
        self._offered_models = offered_models
        self._reached = reached

    async def of_chunk(self, job: Job, time_zone: str, index: int, episode: str) -> values_pb2.Understood:
        """The facts of a chunk; those of an earlier run of the step when there are some.

        `time_zone` is the request's; "" takes the graph's.
        """
        kept = await self._progress.artifact(job.id, index, UNDERSTOOD)
        if kept is not None:
            return values_pb2.Understood.FromString(kept)
        understood = await self._ask(job, time_zone, episode)
        self._reached(Milestone.ANSWERED)
        await self._progress.save_artifact(job.id, index, UNDERSTOOD, understood.SerializeToString())
        self._reached(Milestone.KEPT)
        return understood

    async def _ask(self, job: Job, time_zone: str, episode: str) -> values_pb2.Understood:
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
        extracted = await services.call(
            job.scope,
            services.extractor.Extract,
            extractor_pb2.ExtractRequest(turns=context.turns, setting=setting),
            self._model_seconds,
        )
        understood = values_pb2.Understood(
            nothing=extracted.nothing,
            dropped=extracted.dropped,
            receipts=extracted.receipts,
            setting=setting,
        )
        if not extracted.nothing:
            classified = await services.call(
                job.scope,
                services.classifier.Classify,
                classifier_pb2.ClassifyRequest(world=extracted.world, voice=extracted.voice, setting=setting),
                self._model_seconds,
            )
            understood.world.extend(classified.world)
            for fact in understood.world:
                fact.confidence *= ruled.trust
            understood.voice.extend(classified.voice)
            understood.dropped.extend(classified.dropped)
            understood.receipts.extend(classified.receipts)
        return understood

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
        del setting.rules[:]
        setting.rules.extend(ruled.instructions)
