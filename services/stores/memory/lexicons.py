"""Lexicons: what predicates mean in a graph as known at a revision; those asked for lately are kept."""

from collections import OrderedDict
from collections.abc import Sequence

from services.domain.beliefs import in_force
from services.domain.ids import Revision
from services.domain.lexicon import Lexicon
from services.domain.predicates import Declared, Vocabulary
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
        self._known: OrderedDict[tuple[Scope, Revision], Lexicon] = OrderedDict()
        self._same: OrderedDict[tuple[Scope, tuple[Declared, ...], tuple[Declared, ...]], Lexicon] = (
            OrderedDict()
        )

    async def at(self, scope: Scope, known_at: Revision) -> Lexicon:
        """As known at a published revision. Raises StoreUnavailable."""
        key = (scope, known_at)
        if key not in self._known:
            records = await self._readings.declared(scope)
            self._known[key] = self._lexicon(scope, records, known_at)
            while len(self._known) > self._kept:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return self._known[key]

    def _lexicon(self, scope: Scope, records: Sequence[Declared], known_at: Revision) -> Lexicon:
        """The one of an earlier revision where nothing was declared since: most revisions declare nothing."""
        told = tuple(one for one in records if one.recorded_at <= known_at)
        key = (scope, told, tuple(in_force(told, known_at)))
        if key not in self._same:
            self._same[key] = Lexicon(scope, self._shipped, records, known_at)
            while len(self._same) > self._kept:
                self._same.popitem(last=False)
        self._same.move_to_end(key)
        return self._same[key]
