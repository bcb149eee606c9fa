"""Topics: labels of sessions in a question: those that it is filtered by, and those that its words name."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from services.domain.ids import EpisodeId, SessionId
from services.domain.scope import Scope
from services.recall.revisions import Known
from services.recall.terms import terms
from services.stores.memory.port import SummaryStore, TextStore
from services.stores.paging import Page

LIFT = 0.03
"""What an item gains that was said in a session whose label the question names; it hides nothing."""
MAX_LIFTED = 50
"""Sessions that are lifted at the most; a label that more carry tells nothing."""
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Topics:
    """Episodes of labelled sessions. `only`: nothing else is wanted; None: no label is filtered by."""

    only: frozenset[EpisodeId] | None = None
    lifted: frozenset[EpisodeId] = frozenset()

    def keeps(self, episodes: Iterable[EpisodeId]) -> bool:
        """Whether something said in these episodes is wanted."""
        return self.only is None or any(episode in self.only for episode in episodes)

    def lift(self, episodes: Iterable[EpisodeId]) -> float:
        """What something said in these episodes gains."""
        return LIFT if self.lifted and any(episode in self.lifted for episode in episodes) else 0.0


ANY = Topics()


class TopicReader:
    """Reads which episodes labels mean. Labels are those of now, whatever time is asked about."""

    def __init__(self, summaries: SummaryStore, text: TextStore) -> None:
        self._summaries = summaries
        self._text = text

    async def of(self, scope: Scope, wanted: Collection[str], words: Collection[str], known: Known) -> Topics:
        """`wanted`: labels to filter by; `words`: the question's terms. Raises StoreUnavailable."""
        if not known.labels:
            return Topics(frozenset() if wanted else None)
        only: frozenset[EpisodeId] | None = None
        if wanted:
            only = await self._episodes(scope, await self._summaries.labelled(scope, wanted))
        asked = set(words)
        named = [
            label.name
            for label in await self._summaries.labels(scope)
            if label.sessions <= MAX_LIFTED and (found := set(terms(label.name))) and found <= asked
        ]
        sessions = await self._summaries.labelled(scope, named) if named else ()
        return Topics(only, await self._episodes(scope, sessions[:MAX_LIFTED]))

    async def _episodes(self, scope: Scope, sessions: Iterable[SessionId]) -> frozenset[EpisodeId]:
        found: set[EpisodeId] = set()
        for session in sessions:
            page = Page(_PAGE)
            while True:
                listed = await self._text.list_episodes(scope, session, None, page)
                found |= {episode.id for episode in listed.items}
                if not listed.after:
                    break
                page = Page(_PAGE, listed.after)
        return frozenset(found)
