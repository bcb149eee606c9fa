"""Steps of jobs: each asks the services for one thing. Idempotent; what comes out is small JSON of ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.convert.episodes import source_in
from gateway.convert.names import nothing_out
from gateway.credits.prices import Prices
from gateway.ingest.asserting import Asserting
from gateway.ingest.durable import JSON
from gateway.ingest.patience import Patience, status_in
from gateway.ingest.understanding import Understanding
from gateway.services import Services
from gateway.store.graphs import Graphs
from gateway.store.job_values import Job
from gateway.store.jobs import Jobs
from gateway.store.progress import Progress
from palimpsest.internal.v1 import preprocessor_pb2, resolver_pb2, values_pb2
from palimpsest.v1 import episode_pb2, job_pb2
from palimpsest.v1.episode_pb2 import ChunkStage
from palimpsest.v1.memory_ingest_pb2 import AddEpisodeRequest, AssertTriplesRequest
from services.domain.ids import JobId, Revision

REMOVED = "removed"
"""Artifact: ids of passages that a document's newest version lacks."""
_WHOLE_JOB = -1
"""The chunk number of artifacts that belong to no chunk."""


@dataclass(frozen=True, slots=True)
class StepSettings:
    """How long a call to a service may take, and how patiently a step is tried again."""

    store_seconds: float = 60.0
    model_seconds: float = 600.0
    patience: Patience = field(default_factory=Patience)


class Steps:
    """What each step of a job does."""

    def __init__(
        self,
        services: Services,
        jobs: Jobs,
        graphs: Graphs,
        progress: Progress,
        prices: Prices,
        settings: StepSettings,
    ) -> None:
        self._services = services
        self._jobs = jobs
        self._progress = progress
        self._prices = prices
        self._settings = settings
        self._understanding = Understanding(
            services, graphs, progress, settings.store_seconds, settings.model_seconds
        )
        self.asserting = Asserting(services, settings.store_seconds)

    async def preprocess(self, job_id: JobId) -> JSON:
        """Saves the text as episodes. Answers its chunks, or why nothing is new."""
        job = await self._jobs.start(job_id)

        async def work() -> JSON:
            asked = await self._asked(job_id)
            request = preprocessor_pb2.PreprocessRequest(
                job_id=job_id, source=source_in(asked, job.created_at)
            )
            done = await self._services.call(
                job.scope, self._services.preprocessor.Preprocess, request, self._settings.store_seconds
            )
            removed = "\n".join(done.removed_passage_ids).encode()
            await self._progress.save_artifact(job_id, _WHOLE_JOB, REMOVED, removed)
            chunks = [
                {"episode": chunk.episode_id, "tokens": chunk.tokens, "nothing": chunk.nothing}
                for chunk in done.chunks
            ]
            await self._show_chunks(job_id, chunks)
            return {
                "chunks": chunks,
                "nothing": done.nothing,
                "saved": done.tokens_saved,
                "version": done.version,
                "document": asked.document_id,
                "removed": len(done.removed_passage_ids),
            }

        return await self._settings.patience.attempt(job_id, "preprocess", work)

    async def understand(self, job_id: JobId, index: int, chunk: JSON) -> JSON:
        """Draws facts from a chunk and stages them. Answers why there is nothing, or what was dropped."""
        job = await self._jobs.find(job_id)

        async def work() -> JSON:
            episode = str(chunk["episode"])
            facts = await self._understanding.of_chunk(job, await self._asked(job_id), index, episode)
            await self._keep_receipts(job_id, f"understand/{index}", index, facts.receipts)
            dropped = _counted(facts.dropped)
            if facts.nothing:
                await self._spend(job, index, chunk)
                stage = job_pb2.JobChunk(
                    stage=episode_pb2.CHUNK_STAGE_NOTHING, nothing_reason=nothing_out(facts.nothing)
                )
            else:
                request = resolver_pb2.StoreFactsRequest(
                    episode_id=episode, world=facts.world, voice=facts.voice, setting=facts.setting
                )
                await self._services.call(
                    job.scope, self._services.resolver.StoreFacts, request, self._settings.store_seconds
                )
                stage = job_pb2.JobChunk(stage=episode_pb2.CHUNK_STAGE_UNDERSTOOD)
            stage.dropped.update(dropped)
            await self._mark(job_id, index, chunk, stage)
            return {"nothing": facts.nothing, "dropped": dropped}

        result = await self._settings.patience.attempt(job_id, f"understand/{index}", work)
        await self._mark_failure(job_id, index, chunk, result)
        return result

    async def resolve(self, job_id: JobId, index: int, chunk: JSON, dropped: Mapping[str, int]) -> JSON:
        """Publishes a staged chunk and records what it cost. Answers what changed."""
        job = await self._jobs.find(job_id)

        async def work() -> JSON:
            request = resolver_pb2.ResolveRequest(episode_id=str(chunk["episode"]))
            done = await self._services.call(
                job.scope, self._services.resolver.Resolve, request, self._settings.model_seconds
            )
            await self._keep_receipts(job_id, f"resolve/{index}", index, done.receipts)
            await self._spend(job, index, chunk)
            await self._jobs.published(job_id, Revision(done.revision))
            stage = job_pb2.JobChunk(stage=episode_pb2.CHUNK_STAGE_RESOLVED)
            for reason, count in [*dropped.items(), *_counted(done.dropped).items()]:
                stage.dropped[reason] += count
            await self._mark(job_id, index, chunk, stage)
            return {"revision": done.revision, "outcome": outcome_json(done.outcome)}

        result = await self._settings.patience.attempt(job_id, f"resolve/{index}", work)
        await self._mark_failure(job_id, index, chunk, result)
        return result

    async def end_unsupported(self, job_id: JobId, episode: str) -> JSON:
        """Ends what only removed passages of a document said. Answers what changed."""
        job = await self._jobs.find(job_id)

        async def work() -> JSON:
            asked = await self._asked(job_id)
            removed = await self._progress.artifact(job_id, _WHOLE_JOB, REMOVED) or b""
            request = resolver_pb2.EndUnsupportedRequest(
                commit_id=job_id,
                removed_passage_ids=removed.decode().split(),
                at=source_in(asked, job.created_at).reference_time,
                episode_id=episode,
            )
            done = await self._services.call(
                job.scope, self._services.resolver.EndUnsupported, request, self._settings.store_seconds
            )
            await self._jobs.published(job_id, Revision(done.revision))
            return {"revision": done.revision, "outcome": outcome_json(done.outcome)}

        return await self._settings.patience.attempt(job_id, "unsupported", work)

    async def assert_triples(self, job_id: JobId) -> JSON:
        """Keeps asserted triples as evidence and records them. Answers what changed."""
        job = await self._jobs.start(job_id)

        async def work() -> JSON:
            asked = AssertTriplesRequest.FromString(await self._jobs.payload(job_id))
            answer = await self.asserting.record(job, asked)
            records = len(asked.claims) + len(asked.ends) + len(asked.denials)
            prices = await self._prices.of(job.hold.price_version)
            await self._jobs.spend(job_id, "assert", prices.asserted(records))
            await self._jobs.published(job_id, Revision(answer.done.revision))
            return {"revision": answer.done.revision, "outcome": outcome_json(answer.done.outcome)}

        return await self._settings.patience.attempt(job_id, "assert", work)

    async def _asked(self, job_id: JobId) -> AddEpisodeRequest:
        return AddEpisodeRequest.FromString(await self._jobs.payload(job_id))

    async def _spend(self, job: Job, index: int, chunk: JSON) -> None:
        prices = await self._prices.of(job.hold.price_version)
        await self._jobs.spend(job.id, f"chunk/{index}", prices.ingest(int(chunk["tokens"])))

    async def _keep_receipts(
        self, job_id: JobId, step: str, position: int, receipts: Sequence[values_pb2.Receipt]
    ) -> None:
        stages = [
            job_pb2.StageReceipt(
                stage=receipt.stage,
                model=receipt.model,
                prompt_version=receipt.prompt_version,
                calls=receipt.calls,
                tokens_in=receipt.tokens_in,
                tokens_out=receipt.tokens_out,
                tokens_cached=receipt.tokens_cached,
                duration_millis=round(receipt.milliseconds),
            )
            for receipt in receipts
        ]
        engine = receipts[0].engine if receipts else ""
        await self._progress.add_receipts(job_id, step, engine, stages, position)

    async def _show_chunks(self, job_id: JobId, chunks: Sequence[JSON]) -> None:
        shown = [
            job_pb2.JobChunk(
                index=index,
                episode_id=str(chunk["episode"]),
                token_count=int(chunk["tokens"]),
                stage=episode_pb2.CHUNK_STAGE_NOTHING
                if chunk["nothing"]
                else episode_pb2.CHUNK_STAGE_PREPROCESSED,
                nothing_reason=nothing_out(str(chunk["nothing"])),
            )
            for index, chunk in enumerate(chunks)
        ]
        await self._progress.record(job_id, shown)

    async def _mark(self, job_id: JobId, index: int, chunk: JSON, stage: job_pb2.JobChunk) -> None:
        stage.index, stage.episode_id, stage.token_count = (
            index,
            str(chunk["episode"]),
            int(chunk["tokens"]),
        )
        await self._progress.record(job_id, [stage])

    async def _mark_failure(self, job_id: JobId, index: int, chunk: JSON, result: JSON) -> None:
        status = status_in(result)
        if status is not None:
            failed = job_pb2.JobChunk(stage=ChunkStage.CHUNK_STAGE_FAILED, error=status)
            await self._mark(job_id, index, chunk, failed)


def outcome_json(outcome: resolver_pb2.Outcome) -> JSON:
    """An outcome as a step's result: lists of ids."""
    return {
        "entities_added": list(outcome.entities_added),
        "statements_added": list(outcome.statements_added),
        "statements_ended": list(outcome.statements_ended),
        "statements_restored": list(outcome.statements_restored),
        "voice_added": list(outcome.voice_added),
        "voice_ended": list(outcome.voice_ended),
        "claims": outcome.claims,
        "ends": outcome.ends,
        "denials": outcome.denials,
    }


def _counted(dropped: Sequence[values_pb2.DroppedFact]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for fact in dropped:
        counts[fact.reason] = counts.get(fact.reason, 0) + 1
    return counts
