"""Dependents: what relied on a statement: drawn from episodes that were understood with it as context."""

import json
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from services.domain.ids import EntityId, EpisodeId, Revision, StatementId
from services.domain.records import Verdict
from services.domain.scope import Scope
from services.recall.readings import ReadAs, shown_as
from services.recall.revisions import Known
from services.stores.graph.port import AsOf, GraphStore, StatementView
from services.stores.memory.commits import read_episode
from services.stores.memory.port import RevisionEntry, RevisionLog
from services.stores.paging import Page

PAGE = 200
"""Revisions read at a time."""
MAX_SCOPES = 64
"""Graphs whose contexts are kept in memory."""
MAX_EPISODES = 500
"""Episodes, the latest, whose facts are looked at."""
MAX_DEPENDENTS = 1_000


@dataclass(slots=True)
class _Contexts:
    """Which episodes were understood with a statement, by revision; read of the log up to `revision`."""

    revision: Revision = Revision(0)
    after: str = ""
    episodes: dict[StatementId, dict[EpisodeId, Revision]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, entry: RevisionEntry) -> None:
        episode = read_episode(entry.commit_id)
        if episode is None or not entry.summary:
            return
        for id in json.loads(entry.summary).get("context", ()):
            self.episodes[StatementId(id)].setdefault(episode, entry.revision)


class Dependents:
    """Finds dependents as known at a revision.

    Nobody can tell which of the facts shown with a text it truly relied on; to list all that was drawn from
    it would name much that did not. So of these facts those are told that share an entity with the
    statement, or that a verdict connects with it. The log of revisions has what was shown; a process reads
    it forward once.
    """

    def __init__(self, graph: GraphStore, log: RevisionLog) -> None:
        self._graph = graph
        self._log = log
        self._kept: OrderedDict[Scope, _Contexts] = OrderedDict()

    def drop(self, scope: Scope) -> None:
        """Forgets what is kept of a graph."""
        self._kept.pop(scope, None)

    async def of(
        self, scope: Scope, view: StatementView, verdicts: Iterable[Verdict], known: Known, reads: ReadAs
    ) -> Sequence[StatementId]:
        """Oldest first; `view` is shown as its nodes read. Raises StoreUnavailable."""
        contexts = await self._contexts(scope, known.current)
        offered = contexts.episodes.get(view.statement.id, {})
        episodes = [episode for episode, revision in offered.items() if revision <= known.at][-MAX_EPISODES:]
        drawn: dict[StatementId, None] = {}
        for episode in episodes:
            for claim in (await self._graph.of_episode(scope, episode)).claims:
                revoked = claim.revoked_at is not None and claim.revoked_at <= known.at
                if claim.recorded_at <= known.at and not revoked:
                    drawn[claim.statement] = None
        drawn.pop(view.statement.id, None)
        if not drawn:
            return ()
        found = await self._graph.views(scope, list(drawn), AsOf(known.at))
        judged = {side for one in verdicts for side in (one.left, one.right)}
        about = _nodes(view)
        relying = [
            one.statement
            for one in await shown_as(self._graph, scope, found, reads)
            if one.statement.id in judged or about & _nodes(one)
        ]
        relying.sort(key=lambda statement: (statement.created_at, statement.id))
        return [statement.id for statement in relying[:MAX_DEPENDENTS]]

    async def _contexts(self, scope: Scope, current: Revision) -> _Contexts:
        contexts = self._kept.setdefault(scope, _Contexts())
        self._kept.move_to_end(scope)
        while len(self._kept) > MAX_SCOPES:
            self._kept.popitem(last=False)
        while contexts.revision < current:
            listed = await self._log.scan(scope, Page(PAGE, contexts.after))
            for entry in listed.items:
                contexts.add(entry)
            if not listed.after:
                # The last page is read again next time: what comes later is put at its end.
                contexts.revision = current
                break
            contexts.after = listed.after
        return contexts


def _nodes(view: StatementView) -> set[EntityId]:
    return {view.subject.id} | ({view.object.id} if view.object is not None else set())
