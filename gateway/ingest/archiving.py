"""Archiving: what retention takes out of a graph, page after page, as a job that time begins."""

from collections.abc import Callable, Sequence

from gateway.convert.names import aspect_in
from gateway.ingest.durable import JSON
from gateway.ingest.endings import Ended
from gateway.ingest.milestones import Milestone, Reached, unwatched
from gateway.ingest.patience import Patience, status_in
from gateway.services import Services
from gateway.store.graphs import Graphs
from gateway.store.jobs import Jobs
from palimpsest.internal.v1 import resolver_archiving_pb2
from palimpsest.v1.statement_pb2 import GRAPH_ASPECT_UNSPECIFIED
from services.domain.ids import JobId, Revision
from services.domain.instants import Instant

ACTOR = "retention"
_MICROS = 1_000_000


class Archiving:
    """The steps of an archiving: by when things must have ended, then page after page of the graph.

    Idempotent by (job, page): a step that is done again is told what it did.
    """

    def __init__(
        self,
        services: Services,
        jobs: Jobs,
        graphs: Graphs,
        patience: Patience,
        now: Callable[[], Instant],
        seconds: float,
        reached: Reached = unwatched,
    ) -> None:
        """`seconds` is how long one step's call may take."""
        self._services = services
        self._jobs = jobs
        self._graphs = graphs
        self._patience = patience
        self._now = now
        self._seconds = seconds
        self._reached = reached

    async def rules(self, job_id: JobId) -> JSON:
        """The graph's rules as instants: all pages are looked through by the same."""

        async def work() -> JSON:
            job = await self._jobs.start(job_id)
            settings = (await self._graphs.get(job.scope)).settings
            now = self._now()
            return {
                "rules": {
                    "" if rule.aspect == GRAPH_ASPECT_UNSPECIFIED else aspect_in(rule.aspect): now
                    - round(rule.archive_after.ToTimedelta().total_seconds() * _MICROS)
                    for rule in settings.retention
                }
            }

        return await self._patience.attempt(job_id, "rules", work)

    async def page(self, job_id: JobId, number: int, rules: JSON, after: str) -> JSON:
        """Archives what is due of one page. Answers how much, and where the next one begins."""

        async def work() -> JSON:
            job = await self._jobs.find(job_id)
            asked = resolver_archiving_pb2.ArchiveRequest(
                commit_id=f"{job_id}:{number}",
                rules=[
                    resolver_archiving_pb2.ArchiveRule(aspect=aspect, ended_by=by)
                    for aspect, by in rules["rules"].items()
                ],
                page_token=after,
                actor=ACTOR,
            )
            done = await self._services.call(job.scope, self._services.resolver.Archive, asked, self._seconds)
            self._reached(Milestone.ARCHIVED)
            return {"archived": done.archived, "after": done.next_page_token, "revision": done.revision}

        return await self._patience.attempt(job_id, f"archive/{number}", work, publishes=True)


def ended(pages: Sequence[JSON]) -> Ended:
    """What the pages came to; the last may have failed."""
    done = [page for page in pages if status_in(page) is None]
    return Ended(
        revision=Revision(max((int(page["revision"]) for page in done), default=0)),
        error=status_in(pages[-1]) if pages else None,
        outcomes=(),
        deleted={"statements_archived": sum(int(page["archived"]) for page in done)},
    )
