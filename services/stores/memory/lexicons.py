"""Lexicons: what predicates mean in a graph as known at a revision; those asked for lately are kept."""

from collections import OrderedDict
from collections.abc import Sequence

from services.domain.beliefs import in_force
from services.domain.identity import MergeKind
from services.domain.ids import Revision
from services.domain.lexicon import Lexicon, Synonym, predicate_id, synonyms_in
from services.domain.predicates import Declared, Vocabulary
from services.domain.scope import Scope
from services.stores.graph.port import GraphStore
from services.stores.memory.port import ReadingStore

KEPT = 512

Told = tuple[Declared, ...]


class Lexicons:
    """Safe to keep: what was declared or found by a published revision is never another."""

    def __init__(
        self, readings: ReadingStore, graph: GraphStore, shipped: Vocabulary, kept: int = KEPT
    ) -> None:
        """`kept`: how many revisions, of all graphs, are remembered."""
        self._readings = readings
        self._graph = graph
        self._shipped = shipped
        self._kept = kept
        self._generations: dict[Scope, int] = {}
        """Of graphs that were ever erased, and have been asked for since: few."""
        self._known: OrderedDict[tuple[Scope, Revision], Lexicon] = OrderedDict()
        self._same: OrderedDict[tuple[Scope, Told, Told], Lexicon] = OrderedDict()
        """By what was declared, and by what of it counts."""

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
            lexicon = self._declared(scope, records, known_at)
            if synonyms := await self._synonyms(scope, lexicon, known_at):
                lexicon = Lexicon(scope, self._shipped, records, known_at, synonyms)
            self._keep(key, lexicon)
        self._known.move_to_end(key)
        return self._known[key]

    def follow(self, scope: Scope, revision: Revision) -> None:
        """A published revision that declared, found and revoked nothing is known as the one before it."""
        before = self._known.get((scope, Revision(revision - 1)))
        # The name of a predicate that was found to be another's may have been forgotten with it.
        if before is not None and not before.synonyms:
            self._keep((scope, revision), before)

    def _keep(self, key: tuple[Scope, Revision], lexicon: Lexicon) -> None:
        self._known[key] = lexicon
        while len(self._known) > self._kept:
            self._known.popitem(last=False)

    def _declared(self, scope: Scope, records: Sequence[Declared], known_at: Revision) -> Lexicon:
        """The one of an earlier revision where nothing was declared since: most revisions declare nothing."""
        told = tuple(one for one in records if one.recorded_at <= known_at)
        key = (scope, told, tuple(in_force(told, known_at)))
        if key not in self._same:
            self._same[key] = Lexicon(scope, self._shipped, records, known_at)
            while len(self._same) > self._kept:
                self._same.popitem(last=False)
        self._same.move_to_end(key)
        return self._same[key]

    async def _synonyms(self, scope: Scope, told: Lexicon, known_at: Revision) -> list[Synonym]:
        """Those that count, with the names of both predicates; one whose name was forgotten says nothing."""
        merges = in_force(await self._readings.predicate_merges(scope), known_at)
        found = [merge for merge in merges if merge.kind is MergeKind.SYNONYM]
        if not found:
            return []
        ids = sorted({side for merge in found for side in (merge.entity, merge.into)})
        keys = {one.id: one.key for one in await self._graph.entities(scope, ids) if one.key}
        if len(keys) < len(ids):  # what ships or is declared has its name though no text uses it any more
            keys |= {predicate_id(scope, name): name for name in told.words}
        return synonyms_in(found, keys)
