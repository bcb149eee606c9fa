"""Readings: which entities read as one, as known at a revision; kept in memory for graphs asked lately."""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from services.domain.beliefs import in_force
from services.domain.graph import Entity
from services.domain.identity import Merge, merged
from services.domain.ids import EntityId, Revision
from services.domain.lexicon import Lexicon
from services.domain.scope import Scope
from services.recall.hot.reads import GraphReads
from services.stores.graph.port import GraphStore, StatementView, Step
from services.stores.memory.groups import all_merges
from services.stores.memory.lexicons import Lexicons
from services.stores.memory.port import ReadingStore

MAX_KEPT = 200_000
"""Merged entities that are remembered, of all graphs and revisions together: some 40 MB."""


@dataclass(frozen=True, slots=True)
class ReadAs:
    """How entities read. `merged`: what each merged one reads as; `groups`: by that, all of its group."""

    merged: Mapping[EntityId, EntityId] = field(default_factory=dict)
    groups: Mapping[EntityId, Sequence[EntityId]] = field(default_factory=dict)
    lexicon: Lexicon | None = None
    """What the graph's predicates mean, where it was asked for."""

    def root(self, id: EntityId) -> EntityId:
        """What an entity reads as: itself, unless it is merged."""
        return self.merged.get(id, id)

    def group(self, id: EntityId) -> Sequence[EntityId]:
        """Every entity that reads as this one's root, the root first."""
        root = self.root(id)
        return self.groups.get(root, (root,))

    def spread(self, ids: Iterable[EntityId]) -> list[EntityId]:
        """These entities with all that reads as they do, each once."""
        return list(dict.fromkeys(member for id in ids for member in self.group(id)))

    @property
    def together(self) -> Mapping[EntityId, Sequence[EntityId]]:
        """For each entity that doesn't read as itself alone: its group."""
        return {id: group for group in self.groups.values() for id in group}


AS_THEMSELVES = ReadAs()


def read_as(merges: Iterable[Merge], predicates: Mapping[EntityId, EntityId]) -> ReadAs:
    """How entities read by merges that count, and predicates by what is declared of them."""
    reads = dict(merged(merges))
    reads = {id: reads.get(into, into) for id, into in predicates.items()} | reads
    if not reads:
        return AS_THEMSELVES
    groups: defaultdict[EntityId, list[EntityId]] = defaultdict(list)
    for id in sorted(reads):
        groups[reads[id]].append(id)
    return ReadAs(reads, {root: (root, *members) for root, members in groups.items()})


class Readings:
    """Loads and keeps how the entities of a graph read: as of a published revision the same for ever."""

    def __init__(
        self, store: ReadingStore, lexicons: Lexicons, graph: GraphStore, max_kept: int = MAX_KEPT
    ) -> None:
        self._store = store
        self._lexicons = lexicons
        self._graph = graph
        self._max_kept = max_kept
        self._kept: OrderedDict[tuple[Scope, Revision], ReadAs] = OrderedDict()
        self._size = 0

    def drop(self, scope: Scope) -> None:
        """Forgets what is kept of a graph."""
        for key in [key for key in self._kept if key[0] == scope]:
            self._size -= 1 + len(self._kept.pop(key).merged)

    async def of(self, scope: Scope, known_at: Revision) -> ReadAs:
        """As known at a published revision. Raises StoreUnavailable."""
        place = (scope, known_at)
        if place in self._kept:
            self._kept.move_to_end(place)
            return self._kept[place]
        counting = in_force(await all_merges(self._store, scope), known_at)
        lexicon = await self._lexicons.at(scope, known_at)
        reads = read_as(counting, await self._predicates(scope, lexicon))
        found = replace(reads, lexicon=lexicon)
        if place not in self._kept:
            self._kept[place] = found
            self._size += 1 + len(found.merged)
        while self._size > self._max_kept and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._size -= 1 + len(gone.merged)
        return found

    async def _predicates(self, scope: Scope, lexicon: Lexicon) -> Mapping[EntityId, EntityId]:
        """What predicates that are there read as, where something else is declared."""
        synonyms = lexicon.merged
        named = sorted({*synonyms, *synonyms.values()})
        here = {one.id for one in await self._graph.entities(scope, named) if one.key} if named else set()
        return {id: into for id, into in synonyms.items() if {id, into} <= here}


async def shown_as(
    graph: GraphReads, scope: Scope, views: Sequence[StatementView], reads: ReadAs
) -> list[StatementView]:
    """The views with the nodes that theirs read as. Their statements keep the ids that they were made with.

    Raises StoreUnavailable.
    """
    if not reads.merged:
        return list(views)
    merged_nodes = {node.id for view in views for node in _nodes(view) if node.id in reads.merged}
    if not merged_nodes:
        return list(views)
    roots = {reads.root(id) for id in merged_nodes}
    nodes = {node.id: node for node in await graph.entities(scope, sorted(roots))}

    def shown(node: Entity) -> Entity:
        return nodes.get(reads.root(node.id), node)

    return [
        replace(
            view,
            subject=shown(view.subject),
            predicate=shown(view.predicate),
            object=None if view.object is None else shown(view.object),
        )
        for view in views
    ]


def _nodes(view: StatementView) -> Iterable[Entity]:
    return (node for node in (view.subject, view.predicate, view.object) if node is not None)


async def steps_as(graph: GraphReads, scope: Scope, steps: Sequence[Step], reads: ReadAs) -> list[Step]:
    """Steps of a walk over what entities read as, as `shown_as`."""
    if not reads.merged:
        return list(steps)
    views = await shown_as(graph, scope, [step.view for step in steps], reads)
    return [
        replace(step, view=view, via=reads.root(step.via)) for step, view in zip(steps, views, strict=True)
    ]
