"""Rebuilding: what is derived of a graph, made anew part after part, and checked at the end."""

import json
from collections.abc import Iterable, Mapping, Sequence

from gateway.errors import Conflict
from gateway.ingest.durable import JSON
from gateway.ingest.endings import Ended
from gateway.ingest.patience import Patience, status_in
from gateway.services import Services
from gateway.store.jobs import Jobs
from palimpsest.internal.v1 import resolver_carrying_pb2
from palimpsest.v1.job_pb2 import RebuildReport
from services.domain.ids import JobId, Revision
from services.runtime.status import status_of

LEFT = "differences are left; `palimpsest-admin verify` tells which"


class Rebuilding:
    """The steps of a rebuild: one page of one part each. Idempotent by themselves."""

    def __init__(self, services: Services, jobs: Jobs, patience: Patience, seconds: float) -> None:
        """`seconds` is how long one step's call may take; texts are embedded in it."""
        self._services = services
        self._jobs = jobs
        self._patience = patience
        self._seconds = seconds

    async def asked(self, job_id: JobId) -> JSON:
        """`read` texts anew, `undo` that, or, if neither, make anew what is derived."""

        async def work() -> JSON:
            asked = json.loads(await self._jobs.payload(job_id) or b"{}")
            return {"read": "read" in asked, "undo": "undo" in asked}

        return await self._patience.attempt(job_id, "asked", work)

    async def part(self, job_id: JobId, number: int, after: str) -> JSON:
        """Makes a page of a part anew. Answers how much, and where the work goes on."""

        async def work() -> JSON:
            job = await self._jobs.start(job_id)
            asked = resolver_carrying_pb2.RebuildRequest(part=number, after=after)
            done = await self._services.call(job.scope, self._services.resolver.Rebuild, asked, self._seconds)
            return {
                "parts": done.parts,
                "after": done.after,
                "looked_at": done.looked_at,
                "vectors": done.vectors,
                "repaired": dict(done.repaired),
                "left": dict(done.left) if done.checks else {},
                "revision": done.revision,
            }

        return await self._patience.attempt(job_id, f"rebuild/{number}", work, publishes=True)


def ended(parts: Sequence[JSON]) -> Ended:
    """What the parts of a rebuild came to; the last may have failed."""
    done = [part for part in parts if status_in(part) is None]
    report = RebuildReport(
        looked_at=sum(int(part["looked_at"]) for part in done),
        vectors=sum(int(part["vectors"]) for part in done),
        repaired=_summed(part["repaired"] for part in done),
        left=_summed(part["left"] for part in done),
    )
    failed = status_in(parts[-1]) if parts else None
    if failed is None and report.left:
        failed = status_of(Conflict(LEFT))
    revision = max((int(part["revision"]) for part in done), default=0)
    return Ended(revision=Revision(revision), error=failed, outcomes=(), rebuilt=report if done else None)


def _summed(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    summed: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            summed[name] = summed.get(name, 0) + int(count)
    return summed
