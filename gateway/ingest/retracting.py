"""Retracting: all that one source gave, some of it at a time, until nothing of it is left."""

import json
from collections.abc import Iterable, Mapping

from gateway.ingest.documents import Documents
from gateway.ingest.durable import JSON
from gateway.ingest.endings import OUTCOME
from gateway.ingest.milestones import Milestone, Reached, unwatched
from gateway.ingest.patience import Patience
from gateway.store.jobs import Jobs
from gateway.store.progress import Progress
from palimpsest.internal.v1 import resolver_pb2
from services.domain.ids import JobId, Revision

PART = 200
"""Episodes of one step: a revision, which other writers wait for, is done in seconds."""
WHY = "source retracted"


def payload(source: str, actor: str) -> bytes:
    """What the pipeline reads: which source, and who asked."""
    return json.dumps({"source": source, "actor": actor}).encode()


class Retracting:
    """The steps of a retraction: what to delete next, and its deletion. Idempotent by (job, part)."""

    def __init__(
        self,
        documents: Documents,
        jobs: Jobs,
        progress: Progress,
        patience: Patience,
        reached: Reached = unwatched,
    ) -> None:
        self._documents = documents
        self._jobs = jobs
        self._progress = progress
        self._patience = patience
        self._reached = reached

    async def list(self, job_id: JobId, part: int) -> JSON:
        """What is there of the source: episodes, and versions of documents, the newest first.

        A step of its own: a deletion that is cut short must go on with what it began with.
        """

        async def work() -> JSON:
            job = await self._jobs.start(job_id)
            asked = json.loads(await self._jobs.payload(job_id))
            listed = await self._documents.of_source(job.scope, asked["source"], PART)
            versions = {(one.document_id, one.version) for one in listed if one.version}
            return {
                "episodes": [one.episode_id for one in listed if not one.version],
                "versions": [list(one) for one in sorted(versions, key=lambda one: (one[0], -one[1]))],
            }

        return await self._patience.attempt(job_id, f"list/{part}", work)

    async def delete(self, job_id: JobId, part: int, listed: JSON) -> JSON:
        """Deletes what was listed: the episodes as one revision, each version as one.

        Answers the newest revision, and how much of each kind went.
        """

        async def work() -> JSON:
            job = await self._jobs.find(job_id)
            actor = json.loads(await self._jobs.payload(job_id))["actor"]
            commit, episodes = f"{job_id}:{part}", list(listed["episodes"])
            deleted = len(episodes)
            done: list[resolver_pb2.RevokeResponse] = []
            if episodes:
                done.append(await self._documents.delete_episodes(job.scope, episodes, commit, actor, WHY))
            for document, version in listed["versions"]:
                gone, revoked = await self._documents.delete(job.scope, document, version, commit, actor, WHY)
                deleted += len(gone.episode_ids)
                done.append(revoked)
            self._reached(Milestone.RETRACTED)
            outcome = resolver_pb2.Outcome()
            for one in done:
                outcome.MergeFrom(one.outcome)
            revision = max(one.revision for one in done)
            await self._progress.save_artifact(job_id, part, OUTCOME, outcome.SerializeToString())
            await self._jobs.published(job_id, Revision(revision))
            return {
                "revision": revision,
                "episodes_deleted": deleted,
                "claims_revoked": sum(one.claims for one in done),
                "ends_revoked": sum(one.ends for one in done),
                "denials_revoked": sum(one.denials for one in done),
                "voice_revoked": sum(one.voice for one in done),
            }

        return await self._patience.attempt(job_id, f"retract/{part}", work, publishes=True)


def totals(parts: Iterable[JSON]) -> Mapping[str, int]:
    """How much of each kind all parts deleted."""
    summed: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            if name != "revision":
                summed[name] = summed.get(name, 0) + int(count)
    return summed
