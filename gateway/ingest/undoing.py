"""Undoing: texts that a rebuild read anew say again what they said before, the last one first."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from gateway.ingest.durable import JSON, Run, all_pages
from gateway.ingest.endings import Ended
from gateway.ingest.milestones import Milestone
from gateway.ingest.patience import status_in
from gateway.ingest.retracting import totals
from gateway.ingest.retrying import Left
from gateway.ingest.steps import Steps
from gateway.services import Services
from gateway.store.jobs import Jobs
from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.v1 import episode_pb2, job_pb2
from services.domain.ids import JobId, Revision

REVOKED = ("claims_revoked", "ends_revoked", "denials_revoked", "voice_revoked")


@dataclass(frozen=True, slots=True)
class Undo:
    """Which rebuild is undone, for whom."""

    job: str
    actor: str

    def to_bytes(self) -> bytes:
        """The payload of its job."""
        return json.dumps({"undo": self.job, "actor": self.actor}).encode()

    @classmethod
    def from_bytes(cls, payload: bytes) -> "Undo":
        read = json.loads(payload)
        return cls(read["undo"], read["actor"])


class Undoing:
    """The steps, and their order. Idempotent by (job, step)."""

    def __init__(self, services: Services, jobs: Jobs, steps: Steps) -> None:
        self._services = services
        self._jobs = jobs
        self._steps = steps
        self._settings = steps.settings

    async def run(self, run: Run, job: JobId) -> Ended:
        """A job that is cancelled stops before its next text."""
        listed = await all_pages(run, "read/1", partial(self._list, job))
        error = status_in(listed[-1])
        if error is not None:
            return Ended(error=error)
        episodes = [str(one) for page in listed for one in page["episodes"]]
        done: dict[int, JSON] = {}
        for index, episode in enumerate(reversed(episodes)):
            going = await run.step(f"going/1/undo/{index}", lambda: self._steps.going_on(job))
            if status_in(going) is not None:
                done[index] = going
                break
            done[index] = await run.step(f"undo/1/{index}", partial(self._undo, job, index, episode))
        return _ended(list(reversed(episodes)), done)

    async def _list(self, job_id: JobId, after: str) -> JSON:
        async def work() -> JSON:
            job = await self._jobs.start(job_id)
            undo = Undo.from_bytes(await self._jobs.payload(job_id))
            listed = await self._services.call(
                job.scope,
                self._services.resolver.ListReadAnew,
                pb.ListReadAnewRequest(commit_id=undo.job, after=after),
                self._settings.store_seconds,
            )
            return {"episodes": list(listed.episode_ids), "after": listed.after}

        return await self._settings.patience.attempt(job_id, "read", work)

    async def _undo(self, job_id: JobId, index: int, episode: str) -> JSON:
        """Answers the revision. What has changed since stands: there is nothing to undo of it."""
        chunk = {"episode": episode, "tokens": 0}

        async def work() -> JSON:
            job = await self._jobs.find(job_id)
            undo = Undo.from_bytes(await self._jobs.payload(job_id))
            request = pb.UndoReadingRequest(
                commit_id=job_id, episode_id=episode, read_by=undo.job, actor=undo.actor
            )
            done = await self._services.call(
                job.scope, self._services.resolver.UndoReading, request, self._settings.model_seconds
            )
            self._settings.reached(Milestone.RESOLVED)
            await self._steps.notes.keep_outcome(job_id, index, done.revision, done.outcome)
            nothing = episode_pb2.CHUNK_STAGE_NOTHING
            stage = nothing if done.changed_since else episode_pb2.CHUNK_STAGE_RESOLVED
            await self._steps.notes.mark(job_id, index, chunk, job_pb2.JobChunk(stage=stage))
            return {
                "revision": done.revision,
                "nothing": done.changed_since,
                **{name: getattr(done, name) for name in REVOKED},
            }

        result = await self._settings.patience.attempt(job_id, f"undo/{index}", work, publishes=True)
        return await self._steps.with_failure_shown(job_id, index, chunk, result)


def _ended(episodes: Sequence[str], done: Mapping[int, JSON]) -> Ended:
    """What it came to; it costs nothing."""
    well = [one for one in done.values() if status_in(one) is None]
    failures = [status for one in done.values() if (status := status_in(one)) is not None]
    failed: dict[int, JSON] = {
        index: {} for index in range(len(episodes)) if index not in done or status_in(done[index])
    }
    return Ended(
        revision=Revision(max((int(one["revision"]) for one in well), default=0)),
        episodes=episodes,
        nothing=sum(bool(one["nothing"]) for one in well),
        failed=len(failures),
        first_failure=failures[0] if failures else None,
        deleted=totals([{name: int(one[name]) for name in REVOKED} for one in well]),
        left=Left(failed, len(episodes), ""),
    )
