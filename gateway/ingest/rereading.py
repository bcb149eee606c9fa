"""Rereading: every text of a graph is understood anew, beside what is known; then what each said is replaced.

Nothing of the graph changes until all are read, which is what takes long, costs, and may fail. Then they
change text after text, as one revision each, so that at no moment one counts twice or not at all. A text that
can't be read keeps what it said.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gateway.ingest.chunk_notes import counted
from gateway.ingest.durable import JSON, Run, all_pages
from gateway.ingest.endings import Ended
from gateway.ingest.milestones import Milestone
from gateway.ingest.patience import status_in
from gateway.ingest.retracting import totals
from gateway.ingest.steps import PlaceOf, Steps, check_going
from gateway.ingest.understanding import Asked, Models
from gateway.ingest.undoing import REVOKED
from gateway.services import Services
from gateway.store.graphs import Graphs
from gateway.store.job_values import Job
from gateway.store.jobs import Jobs
from palimpsest.internal.v1 import preprocessor_rereading_pb2 as pb
from palimpsest.internal.v1 import resolver_pb2
from palimpsest.v1 import episode_pb2, graph_pb2, job_pb2
from services.domain.errors import EpisodeNotFound
from services.domain.facts import NothingReason
from services.domain.ids import JobId, Revision
from services.domain.instants import Instant
from services.domain.scope import Scope

BLOCK = 64
"""Texts whose steps are open at once; how many are understood at once is the process's to say."""
_GONE = {"nothing": NothingReason.NO_DURABLE_FACT.value, "dropped": {}, "revision": 0}
"""Of a text that was deleted meanwhile."""


@dataclass(frozen=True, slots=True)
class Reading:
    """By whom a graph is read anew, for whom: what was saved until an instant."""

    models: Models
    actor: str
    until: Instant

    def to_bytes(self) -> bytes:
        """The payload of its job."""
        asked = {"medium": self.models.medium, "low": self.models.low}
        return json.dumps({"read": asked, "actor": self.actor, "until": self.until}).encode()

    @classmethod
    def from_bytes(cls, payload: bytes) -> "Reading":
        read = json.loads(payload)
        return cls(Models(**read["read"]), read["actor"], Instant(read["until"]))


async def readable(
    services: Services, scope: Scope, until: Instant, gate: bool, after: str, seconds: float
) -> pb.ListReadableResponse:
    """A page of the texts of a graph that can be read anew. Raises StoreDown."""
    asked = pb.ListReadableRequest(until=until, relevance_gate=gate, after=after)
    return await services.call(scope, services.preprocessor.ListReadable, asked, seconds)


async def gates(graphs: Graphs, scope: Scope) -> bool:
    """Whether small talk of a graph is told apart. Raises GraphNotFound."""
    return (await graphs.get(scope)).settings.relevance_gate != graph_pb2.SAVING_OFF


class Rereading:
    """The steps of a rereading, and their order. Idempotent by (job, step)."""

    def __init__(self, services: Services, jobs: Jobs, graphs: Graphs, steps: Steps) -> None:
        self._services = services
        self._jobs = jobs
        self._graphs = graphs
        self._steps = steps
        self._settings = steps.settings

    async def run(self, run: Run, job: JobId, place_of: PlaceOf) -> Ended:
        """Lists, understands, replaces. A job that is cancelled stops before its next text."""
        listed = await all_pages(run, "list/1", partial(self._list, job))
        error = status_in(listed[-1])
        if error is not None:
            return Ended(error=error)
        chunks = sorted(
            (one for page in listed for one in page["chunks"]), key=lambda one: (one["at"], one["episode"])
        )
        await run.step("show/1", partial(self._show, job, chunks))
        read = await self._all_understood(run, job, chunks, place_of)
        replaced: dict[int, JSON] = {}
        for index, chunk in enumerate(chunks):
            facts = read.get(index, chunk)
            if status_in(facts) is None:
                replaced[index] = await self._replaced(run, job, index, chunk, facts)
        return _ended(chunks, read, replaced)

    async def _all_understood(
        self, run: Run, job: JobId, chunks: Sequence[JSON], place_of: PlaceOf
    ) -> dict[int, JSON]:
        """What is read of each chunk that has something in it, a block of them at a time."""
        open_chunks = [index for index, chunk in enumerate(chunks) if not chunk["nothing"]]
        read: dict[int, JSON] = {}
        for start in range(0, len(open_chunks), BLOCK):
            block = open_chunks[start : start + BLOCK]
            answers = await asyncio.gather(
                *(
                    run.step(
                        f"understand/1/{index}",
                        partial(self._understand, job, index, chunks[index], place_of),
                    )
                    for index in block
                )
            )
            read |= dict(zip(block, answers, strict=True))
        return read

    async def _replaced(self, run: Run, job: JobId, index: int, chunk: JSON, facts: JSON) -> JSON:
        """Whether to go on is a step of its own: one that publishes must not be stopped half way."""
        going = await run.step(f"going/1/{index}", lambda: self._steps.going_on(job))
        if status_in(going) is not None:
            return await run.step(
                f"stop/1/{index}", partial(self._steps.with_failure_shown, job, index, chunk, going)
            )
        return await run.step(f"replace/1/{index}", partial(self._replace, job, index, chunk, facts))

    async def _list(self, job_id: JobId, after: str) -> JSON:
        """A page of what there was when the job was quoted."""

        async def work() -> JSON:
            job = await self._jobs.start(job_id)
            check_going(job)
            gate = await gates(self._graphs, job.scope)
            seconds = self._settings.store_seconds
            until = Reading.from_bytes(await self._jobs.payload(job_id)).until
            page = await readable(self._services, job.scope, until, gate, after, seconds)
            chunks = [
                {
                    "episode": one.episode_id,
                    "tokens": one.tokens,
                    "nothing": one.nothing,
                    "at": one.reference_time,
                }
                for one in page.episodes
            ]
            return {"chunks": chunks, "after": page.after}

        return await self._settings.patience.attempt(job_id, "list", work)

    async def _show(self, job_id: JobId, chunks: Sequence[JSON]) -> JSON:
        async def work() -> JSON:
            await self._steps.notes.show(job_id, chunks)
            return {}

        return await self._settings.patience.attempt(job_id, "show", work)

    async def _understand(self, job_id: JobId, index: int, chunk: JSON, place_of: PlaceOf) -> JSON:
        """Keeps what a text says now. Answers why there is nothing, or what was dropped."""

        async def work() -> JSON:
            job = await self._jobs.find(job_id)
            check_going(job)
            models = Reading.from_bytes(await self._jobs.payload(job_id)).models
            asked = Asked(index, str(chunk["episode"]), models=models, anew=True)
            try:
                facts = await self._steps.understanding.of_chunk(
                    job, asked, lambda: place_of(job.scope.tenant)
                )
            except EpisodeNotFound:
                return _GONE
            dropped = counted(facts.dropped)
            stage = job_pb2.JobChunk(stage=episode_pb2.CHUNK_STAGE_UNDERSTOOD, dropped=dropped)
            await self._steps.notes.mark(job_id, index, chunk, stage)
            return {"nothing": facts.nothing, "dropped": dropped}

        result = await self._settings.patience.attempt(job_id, f"understand/{index}", work)
        return await self._steps.with_failure_shown(job_id, index, chunk, result)

    async def _replace(self, job_id: JobId, index: int, chunk: JSON, facts: JSON) -> JSON:
        """Publishes what a text says now in place of what it said. Answers the revision."""

        async def work() -> JSON:
            job = await self._jobs.find(job_id)
            try:
                done = await self._publish(job, index, str(chunk["episode"]), nothing=bool(facts["nothing"]))
            except EpisodeNotFound:
                return _GONE
            self._settings.reached(Milestone.RESOLVED)
            notes = self._steps.notes
            if not chunk["nothing"]:
                await notes.spend(job, index, chunk)
            self._settings.reached(Milestone.PAID)
            await notes.keep_outcome(job_id, index, done.revision, done.outcome)
            nothing = str(facts["nothing"]) or done.nothing
            dropped: list[Mapping[str, int]] = [facts.get("dropped", {}), counted(done.dropped)]
            await notes.resolved(job_id, index, chunk, nothing, dropped)
            return {
                "revision": done.revision,
                "nothing": nothing,
                **{name: getattr(done, name) for name in REVOKED},
            }

        result = await self._settings.patience.attempt(job_id, f"replace/{index}", work, publishes=True)
        return await self._steps.with_failure_shown(job_id, index, chunk, result)

    async def _publish(
        self, job: Job, index: int, episode: str, *, nothing: bool
    ) -> resolver_pb2.ResolveAnewResponse:
        services, settings = self._services, self._settings
        asked = pb.ListWithdrawalsRequest(episode_id=episode)
        left_out = await services.call(
            job.scope, services.preprocessor.ListWithdrawals, asked, settings.store_seconds
        )
        request = resolver_pb2.ResolveAnewRequest(
            commit_id=job.id,
            facts=resolver_pb2.StoreFactsRequest(episode_id=episode),
            withdrawals=left_out.withdrawals,
            actor=Reading.from_bytes(await self._jobs.payload(job.id)).actor,
        )
        if not nothing:
            kept = await self._steps.understanding.kept(job, index)
            request.facts.world.extend(kept.world)
            request.facts.voice.extend(kept.voice)
            request.facts.setting.CopyFrom(kept.setting)
        return await self._steps.receipts.counted(
            job,
            f"chunk/{index}/3/resolve",
            index,
            services.call(job.scope, services.resolver.ResolveAnew, request, settings.model_seconds),
        )


def _ended(chunks: Sequence[JSON], read: Mapping[int, JSON], replaced: Mapping[int, JSON]) -> Ended:
    """What it came to. Nothing is asked for chunks that nobody had to read."""
    prepared = {"chunks": chunks, "nothing": "", "saved": 0, "document": "", "version": 0}
    of_read = {index: one for index, one in replaced.items() if index in read}
    unread = {index: one for index, one in replaced.items() if index not in read}
    failed = {index: one for index, one in unread.items() if status_in(one) is not None}
    ended = Ended.of_ingest(prepared, {**read, **failed}, {**of_read, **failed})
    done = [one for one in replaced.values() if status_in(one) is None]
    return replace(
        ended,
        revision=Revision(max((int(one["revision"]) for one in done), default=0)),
        deleted=totals([{name: one.get(name, 0) for name in REVOKED} for one in done]),
    )
