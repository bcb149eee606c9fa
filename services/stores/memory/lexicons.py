"""Lexicons: what predicates mean in a graph as known at a revision; those asked for lately are kept."""

from collections import OrderedDict

from services.domain.ids import Revision
from services.domain.lexicon import Lexicon
from services.domain.predicates import Vocabulary
from services.domain.scope import Scope
from services.stores.memory.port import ReadingStore

KEPT = 512


class Lexicons:
    """Safe to keep: what was declared by a published revision is never another."""

    def __init__(self, readings: ReadingStore, shipped: Vocabulary, kept: int = KEPT) -> None:
        """`kept`: how many revisions, of all graphs, are remembered."""
        self._readings = readings
        self._shipped = shipped
        self._kept = kept
        self._generations: dict[Scope, int] = {}
        """Of graphs that were ever erased, and have been asked for since: few."""
        self._known: OrderedDict[tuple[Scope, Revision], Lexicon] = OrderedDict()

    def renew(self, scope: Scope, generation: int) -> None:
        """Forgets what is kept of a graph of another generation: its revisions are counted anew."""
        if self._generations.get(scope, 0) != generation:
            self._generations[scope] = generation
            self.drop(scope)

    def drop(self, scope: Scope) -> None:
        """Forgets what is kept of a graph."""
        for key in [key for key in self._known if key[0] == scope]:
            del self._known[key]

    async def at(self, scope: Scope, known_at: Revision) -> Lexicon:
        """As known at a published revision. Raises StoreUnavailable."""
        key = (scope, known_at)
        if key not in self._known:
            records = await self._readings.declared(scope)
            self._known[key] = Lexicon(scope, self._shipped, records, known_at)
            while len(self._known) > self._kept:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]
