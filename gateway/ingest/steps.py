"""Steps of jobs: each asks the services for one thing. Idempotent; what comes out is small JSON of ids."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from gateway.convert.episodes import source_in
from gateway.convert.names import nothing_out
from gateway.credits.prices import Prices
from gateway.errors import JobCancelled
from gateway.ingest.asserting import Asserting
from gateway.ingest.chunk_notes import ChunkNotes, counted
from gateway.ingest.durable import JSON
from gateway.ingest.endings import UNSUPPORTED
from gateway.ingest.joining import companions
from gateway.ingest.milestones import Milestone, Reached, unwatched
from gateway.ingest.patience import Patience, status_in
from gateway.ingest.receipts import Receipts
from gateway.ingest.understanding import Asked, Understanding
from gateway.services import Services
from gateway.store.graphs import Graphs
from gateway.store.job_values import Job
from gateway.store.jobs import Jobs
from gateway.store.lease import Lease
from gateway.store.progress import Progress
from gateway.store.rules import IngestionRules
from palimpsest.internal.v1 import preprocessor_pb2, resolver_pb2
from palimpsest.v1 import episode_pb2, graph_pb2, job_pb2
from palimpsest.v1.episode_pb2 import ChunkStage
from palimpsest.v1.memory_ingest_pb2 import AddEpisodeRequest, AssertTriplesRequest
from services import tracing
from services.domain.ids import JobId
from services.domain.scope import TenantId

TRACE = "trace"
"""Artifact: the trace of the call that asked for the job, as a `traceparent`."""
REMOVED = "removed"
"""Artifact: ids of passages that a document's newest version lacks."""


PlaceOf = Callable[[TenantId], AbstractAsyncContextManager[None]]
"""A place of a tenant's among the chunks that are understood at once."""


@dataclass(frozen=True, slots=True)
class StepSettings:
    """How long a call to a service may take, and how patiently a step is tried again.

    `model_seconds` is for calls that ask models, or embed: the local embedder does twenty texts a second.
    """

    store_seconds: float = 60.0
    model_seconds: float = 600.0
    patience: Patience = field(default_factory=Patience)
    offered_models: frozenset[str] = frozenset()
    """Models that graphs may choose."""
    providers: frozenset[str] = frozenset()
    reached: Reached = unwatched
    """Told of each milestone; for tests of crashes."""


class Steps:
    """What each step of a job does."""

    def __init__(
        self,
        services: Services,
        jobs: Jobs,
        graphs: Graphs,
        rules: IngestionRules,
        progress: Progress,
        prices: Prices,
        settings: StepSettings,
    ) -> None:
        self._services = services
        self._graphs = graphs
        self._jobs = jobs
        self._progress = progress
        self._prices = prices
        self._rules = rules
        self.settings = settings
        self.receipts = Receipts(progress)
        self.notes = ChunkNotes(jobs, progress, prices)
        self.understanding = Understanding(
            services,
            graphs,
            rules,
            progress,
            self.receipts,
            settings.store_seconds,
            settings.model_seconds,
            settings.offered_models,
            settings.providers,
            settings.reached,
        )
        self.asserting = Asserting(services, rules, settings.model_seconds)

    async def claim(self, job_id: JobId, attempt: int) -> Lease:
        """A run of the job begins: the runs before it write nothing any more. Waits for its stores.

        Raises JobTakenOver for an attempt that is over.
        """

        async def claim() -> Lease:
            lease = await self._jobs.claim(job_id, attempt)
            await self._progress.claim(lease)
            self.settings.reached(Milestone.CLAIMED)
            return lease

        return await self.settings.patience.insist(claim)

    async def keep_trace(self, job_id: JobId) -> None:
        """What is done for a job later, elsewhere, belongs to the trace of the call that asked for it."""
        parent = tracing.carried()
        if parent:
            await self._progress.save_artifact(job_id, UNSUPPORTED, TRACE, parent.encode())

    async def trace_of(self, job_id: JobId) -> str:
        """The trace that `keep_trace` kept; "" for none."""
        if not tracing.enabled():
            return ""
        return (await self._progress.artifact(job_id, UNSUPPORTED, TRACE) or b"").decode()

    async def confirm(self, lease: Lease) -> None:
        """Raises JobTakenOver when a later run has the job."""
        await self._jobs.confirm(lease)

    async def going_on(self, job_id: JobId) -> JSON:
        """Nothing, or the status of a job whose tenant asked it to stop."""

        async def work() -> JSON:
            check_going(await self._jobs.find(job_id))
            return {}

        return await self.settings.patience.attempt(job_id, "going", work)

    async def stop_chunk(self, job_id: JobId, index: int, chunk: JSON, stopped: JSON) -> JSON:
        """Shows a chunk as one that was not resolved. Answers `stopped`."""
        return await self._with_failure_marked(job_id, index, chunk, stopped)

    async def preprocess(self, job_id: JobId) -> JSON:
        """Saves the text as episodes. Answers its chunks, and what later steps need of the request."""

        async def work() -> JSON:
            job = await self._jobs.start(job_id)
            asked = AddEpisodeRequest.FromString(await self._jobs.payload(job_id))
            settings = (await self._graphs.get(job.scope)).settings
            request = preprocessor_pb2.PreprocessRequest(
                job_id=job_id,
                source=source_in(asked, job.created_at),
                relevance_gate=settings.relevance_gate != graph_pb2.SAVING_OFF,
                distrusted=(await self._rules.for_text(job.scope, asked.source)).distrusted,
            )
            done = await self._services.call(
                job.scope, self._services.preprocessor.Preprocess, request, self.settings.model_seconds
            )
            self.settings.reached(Milestone.PREPROCESSED)
            if done.removed_passage_ids:
                removed = "\n".join(done.removed_passage_ids).encode()
                await self._progress.save_artifact(job_id, UNSUPPORTED, REMOVED, removed)
            chunks = [
                {"episode": chunk.episode_id, "tokens": chunk.tokens, "nothing": chunk.nothing}
                for chunk in done.chunks
            ]
            await self.notes.show(job_id, chunks)
            return {
                "chunks": chunks,
                "nothing": done.nothing,
                "saved": done.tokens_saved,
                "version": done.version,
                "document": asked.document_id,
                "removed": len(done.removed_passage_ids),
                "version_episode": done.version_episode_id,
                "at": request.source.reference_time,
                "time_zone": asked.time_zone,
                "companions": companions(asked, [chunk.tokens for chunk in done.chunks]),
            }

        return await self.settings.patience.attempt(job_id, "preprocess", work)

    async def understand(self, job_id: JobId, index: int, prepared: JSON, place_of: PlaceOf) -> JSON:
        """Draws facts from a chunk and stages them. Answers why there is nothing, or what was dropped.

        Models are asked in a place of the tenant's.
        """
        chunk: JSON = prepared["chunks"][index]

        async def work() -> JSON:
            job = await self._jobs.find(job_id)
            check_going(job)
            episode = str(chunk["episode"])
            asked = Asked(index, episode, str(prepared["time_zone"]), str(prepared.get("companions", "")))
            facts = await self.understanding.of_chunk(job, asked, lambda: place_of(job.scope.tenant))
            dropped = counted(facts.dropped)
            if facts.nothing:
                await self.notes.spend(job, index, chunk)
                stage = job_pb2.JobChunk(
                    stage=episode_pb2.CHUNK_STAGE_NOTHING, nothing_reason=nothing_out(facts.nothing)
                )
            else:
                request = resolver_pb2.StoreFactsRequest(
                    episode_id=episode, world=facts.world, voice=facts.voice, setting=facts.setting
                )
                await self._services.call(
                    job.scope, self._services.resolver.StoreFacts, request, self.settings.store_seconds
                )
                self.settings.reached(Milestone.STAGED)
                stage = job_pb2.JobChunk(stage=episode_pb2.CHUNK_STAGE_UNDERSTOOD)
            stage.dropped.update(dropped)
            await self.notes.mark(job_id, index, chunk, stage)
            return {"nothing": facts.nothing, "dropped": dropped}

        result = await self.settings.patience.attempt(job_id, f"understand/{index}", work)
        return await self._with_failure_marked(job_id, index, chunk, result)

    async def resolve(self, job_id: JobId, index: int, chunk: JSON, dropped: Mapping[str, int]) -> JSON:
        """Publishes a staged chunk and records what it cost. Answers the revision."""

        async def work() -> JSON:
            job = await self._jobs.find(job_id)
            request = resolver_pb2.ResolveRequest(episode_id=str(chunk["episode"]))
            done = await self.receipts.counted(
                job,
                f"chunk/{index}/3/resolve",
                index,
                self._services.call(
                    job.scope, self._services.resolver.Resolve, request, self.settings.model_seconds
                ),
            )
            self.settings.reached(Milestone.RESOLVED)
            await self.notes.spend(job, index, chunk)
            self.settings.reached(Milestone.PAID)
            await self.notes.keep_outcome(job_id, index, done.revision, done.outcome)
            await self.notes.resolved(job_id, index, chunk, done.nothing, [dropped, counted(done.dropped)])
            return {"revision": done.revision, "nothing": done.nothing}

        result = await self.settings.patience.attempt(job_id, f"resolve/{index}", work, publishes=True)
        return await self._with_failure_marked(job_id, index, chunk, result)

    async def end_unsupported(self, job_id: JobId, prepared: JSON) -> JSON:
        """Ends what only removed passages of a document said. Answers the revision."""

        async def work() -> JSON:
            job = await self._jobs.find(job_id)
            removed = await self._progress.artifact(job_id, UNSUPPORTED, REMOVED) or b""
            request = resolver_pb2.EndUnsupportedRequest(
                commit_id=job_id,
                removed_passage_ids=removed.decode().split(),
                at=int(prepared["at"]),
                episode_id=str(prepared["version_episode"]),
            )
            done = await self._services.call(
                job.scope, self._services.resolver.EndUnsupported, request, self.settings.store_seconds
            )
            self.settings.reached(Milestone.UNSUPPORTED_ENDED)
            await self.notes.keep_outcome(job_id, UNSUPPORTED, done.revision, done.outcome)
            return {"revision": done.revision}

        return await self.settings.patience.attempt(job_id, "unsupported", work, publishes=True)

    async def assert_triples(self, job_id: JobId) -> JSON:
        """Keeps asserted triples as evidence and records them. Answers the revision."""

        async def work() -> JSON:
            job = await self._jobs.start(job_id)
            asked = AssertTriplesRequest.FromString(await self._jobs.payload(job_id))
            done = await self._record(job, asked)
            await self.notes.keep_outcome(job_id, 0, done.revision, done.outcome)
            return {"revision": done.revision}

        return await self.settings.patience.attempt(job_id, "assert", work, publishes=True)

    async def assert_now(
        self, job: Job, asked: AssertTriplesRequest
    ) -> tuple[JSON, resolver_pb2.AssertResponse | None]:
        """As `assert_triples`, of a request at hand; with what was recorded, None when that failed."""
        recorded: list[resolver_pb2.AssertResponse] = []

        async def work() -> JSON:
            await self._jobs.start(job.id)
            recorded[:] = [await self._record(job, asked)]
            return {"revision": recorded[0].revision}

        result = await self.settings.patience.attempt(job.id, "assert", work, publishes=True)
        return result, recorded[0] if recorded and status_in(result) is None else None

    async def _record(self, job: Job, asked: AssertTriplesRequest) -> resolver_pb2.AssertResponse:
        done = await self.asserting.record(job, asked)
        self.settings.reached(Milestone.ASSERTED)
        records = len(asked.claims) + len(asked.ends) + len(asked.denials)
        prices = await self._prices.of(job.hold.price_version)
        await self._jobs.spend(job.id, "assert", prices.asserted(records))
        return done

    async def with_failure_shown(
        self,
        job_id: JobId,
        index: int,
        chunk: JSON,
        result: JSON,
        also: Callable[[], Awaitable[object]] | None = None,
    ) -> JSON:
        """The result of a chunk's step, shown with the chunk where it is a failure; then `also` is done."""
        status = status_in(result)
        if status is not None:

            async def mark() -> JSON:
                failed = job_pb2.JobChunk(stage=ChunkStage.CHUNK_STAGE_FAILED, error=status)
                await self.notes.mark(job_id, index, chunk, failed)
                if also is not None:
                    await also()
                return {}

            # What can't be shown now is in the step's result all the same.
            await self.settings.patience.attempt(job_id, f"mark/{index}", mark)
        return result

    async def _with_failure_marked(self, job_id: JobId, index: int, chunk: JSON, result: JSON) -> JSON:
        async def unlearned() -> None:
            # Said again, under another request, it must not be taken for known.
            await self._services.call(
                (await self._jobs.find(job_id)).scope,
                self._services.preprocessor.MarkUnlearned,
                preprocessor_pb2.MarkUnlearnedRequest(episode_id=str(chunk["episode"])),
                self.settings.store_seconds,
            )

        return await self.with_failure_shown(job_id, index, chunk, result, unlearned)


def check_going(job: Job) -> None:
    """Raises JobCancelled when its tenant asked it to stop."""
    if job.cancel_requested:
        raise JobCancelled
