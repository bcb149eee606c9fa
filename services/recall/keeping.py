"""Keeping: a graph that changed is kept while nobody asks: its first question needn't read all of it."""

import asyncio

import structlog

from services.domain.scope import Scope
from services.recall.facts_index import FactsIndex
from services.recall.parts import Parts
from services.recall.revisions import Known
from services.recall.shelf import Shelf
from services.recall.texts_index import TextsIndex
from services.stores.errors import StoreError
from services.stores.paging import Page

log = structlog.get_logger(__name__)


class Keeping:
    """Reads and keeps one graph at a time: it takes as much memory as one that is held, for that while."""

    def __init__(self, parts: Parts, facts: Shelf[FactsIndex], texts: Shelf[TextsIndex]) -> None:
        self._parts = parts
        self._facts = facts
        self._texts = texts
        self._waiting: set[Scope] = set()
        self._too_large: set[Scope] = set()
        self._reading = asyncio.Lock()

    def changed(self, scope: Scope) -> None:
        """To be told of a graph that is quiet after a change: what is worth it is kept, behind the answer."""
        options = self._parts.options
        if options.hot and options.snapshots and scope not in self._waiting | self._too_large:
            self._waiting.add(scope)
            self._parts.behind.start(lambda: self._keep(scope))

    async def _keep(self, scope: Scope) -> None:
        try:
            async with self._reading:
                if await self._is_large(scope) and not await self._kept(scope):
                    self._too_large.add(scope)
        except StoreError as error:
            # The next change, or the first question, does it.
            log.info("graph not kept", error=str(error))
        finally:
            self._waiting.discard(scope)

    async def _kept(self, scope: Scope) -> bool:
        """False when there is no room for it: to read it once more would be in vain."""
        head = await self._parts.revisions.head(scope)
        known = Known(head.current, head.current, texts=head.texts)
        return await self._facts.keep(scope, known) and await self._texts.keep(scope, known)

    async def _is_large(self, scope: Scope) -> bool:
        least = self._parts.options.least_kept_rows
        if await self._parts.text.count_episodes(scope) >= least:
            return True
        return len((await self._parts.graph.scan(scope, Page(max(1, least)))).items) >= least
