"""HotGraph: one graph's statements as arrays: validity on both axes, adjacency; and what is told of each."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from services.domain.graph import Entity, GraphAspect
from services.domain.ids import EntityId, RecordId, Revision, StatementId
from services.domain.records import Claim, Denial, End, Verdict
from services.recall.hot.arrays import Growing, Neighbours
from services.recall.hot.nodes import HotNodes
from services.recall.hot.packing import (
    Nodes,
    Packed,
    Pieces,
    Told,
    age,
    belief,
    cut,
    nodes_of,
    packed,
    recorded,
    records_of,
    seen_between,
    told,
)
from services.recall.hot.spans import HotSpans, columns_of
from services.recall.states import State
from services.stores.graph.plain import PlainRecords, Row, plain_verdict, statement_of, verdict_of
from services.stores.graph.port import (
    AsOf,
    NodePair,
    Records,
    StatementFilter,
    StatementView,
    Step,
    Together,
    with_groups,
)
from services.stores.graph.steps import beyond, via
from services.stores.vectors.port import VectorFilter
from services.stores.vectors.rows import NEVER, digest, statement_text

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

UNPACKED = 8_192
"""Statements, shown lately, that stay unpacked. A graph of as many is quickest; all of a larger one would be
objects that Python looks through again and again."""
_UNPACKED_BYTES = 1_000
_VIEWED_BYTES = 300

_NONE = -1
_STATEMENT_BYTES = 320
"""What Python keeps of a statement besides its pieces: its id, its place, its entries in arrays and lists."""
_VERDICT_BYTES = 900
_BYTES_HEAD = 33
"""Of a bytes object."""

_FACT = 6
_AGE = itemgetter(9, 0)
"""Where a plain statement has its sentence, and what its place is by: who created it, then its id."""


class OutOfOrder(Exception):
    """A statement comes that should stand before others: the graph must be loaded anew."""


class HotGraph:
    """Answers as the graph store does (services/stores/graph/port.py) for revisions that it has reached.

    A statement's place is where it stands in order of creation, then of id; arrays are by place. What is read
    of a later revision than the loaded one is there already, or not yet: every read names its own.
    """

    def __init__(self, state: State | None = None) -> None:
        """`state`: another one's."""
        held = state or {}
        self.ids: list[StatementId] = [*held.get("ids", ())]
        self._places = {id: place for place, id in enumerate(self.ids)}
        self._told: list[Packed] = [*held.get("told", ())]
        self._records: list[Packed] = [*held.get("records", ())]
        self.nodes = HotNodes(held)
        self._subject, self._predicate, self._object = Growing(), Growing(), Growing()
        self._aspect, self._created = Growing(), Growing()
        self._hull_from, self._hull_to = Growing(), Growing()
        self._has_text = Growing()
        self._unpacked: dict[int, Told] = {}
        self._viewed: dict[int, StatementView] = {}
        self._viewed_at = _NONE
        """The revision as of which what was shown lately is told in `_viewed`, with all that is believed."""
        self._spans = HotSpans(held.get("spans"))
        self._verdicts: dict[RecordId, Verdict] = {}
        self._judged: dict[StatementId, set[RecordId]] = {}
        self._beside = Neighbours()
        self._bytes = sum(map(len, self._told)) + sum(map(len, self._records))
        self._bytes += 2 * _BYTES_HEAD * len(self.ids)
        self._judge(map(verdict_of, held.get("verdicts", ())))
        for name, column in self._columns.items():
            column.extend(held.get(name, ()))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def bytes(self) -> int:
        """About what it takes of memory."""
        own = len(self.ids) * _STATEMENT_BYTES + self.nodes.bytes
        own += len(self._unpacked) * _UNPACKED_BYTES + len(self._viewed) * _VIEWED_BYTES
        return self._bytes + own + len(self._verdicts) * _VERDICT_BYTES + self._spans.bytes

    @property
    def state(self) -> State:
        """All that it holds, as it is now."""
        return {
            "ids": [*self.ids],
            "told": [*self._told],
            "records": [*self._records],
            "verdicts": [*map(plain_verdict, self._verdicts.values())],
            "spans": self._spans.held,
            **{name: column.array.copy() for name, column in self._columns.items()},
            **self.nodes.state,
        }

    @property
    def _columns(self) -> Mapping[str, Growing]:
        return {
            "subject": self._subject,
            "predicate": self._predicate,
            "object": self._object,
            "aspect": self._aspect,
            "created": self._created,
            "hull_from": self._hull_from,
            "hull_to": self._hull_to,
            "has_text": self._has_text,
        }

    def place(self, id: StatementId) -> int | None:
        """Where a statement stands, if it is there."""
        return self._places.get(id)

    def has(self, ids: Iterable[StatementId]) -> bool:
        """Whether all of these statements are there."""
        return all(id in self._places for id in ids)

    # What is put in

    def put_entities(self, entities: Iterable[Entity]) -> list[int]:
        """Adds or replaces nodes; answers the places of those that were there and now read otherwise."""
        other = self.nodes.put(entities)
        if other:
            self._viewed.clear()
        return other

    def put(self, records: PlainRecords) -> list[int]:
        """Adds or replaces statements with all of theirs; answers the places of those that read otherwise.

        Their nodes are there. Raises OutOfOrder, and is then to be thrown away.
        """
        pieces = packed(records)
        known = [one for one in records.statements if one[0] in self._places]
        replaced = [self._places[one[0]] for one in known]
        fresh = [one for one in records.statements if one[0] not in self._places]
        if fresh:
            self._append(sorted(fresh, key=_AGE), pieces)
        retold: list[int] = []
        for place, one in zip(replaced, known, strict=True):
            if self._told_at(place).statement != statement_of(one):
                retold.append(place)
            self._replace(place, one, pieces)
        self._put_spans(records.spans, np.array(replaced, dtype=np.int64))
        self._judge(records.verdicts)
        self._beside.stale()
        return retold

    def _judge(self, verdicts: Iterable[Verdict]) -> None:
        for verdict in verdicts:
            self._verdicts[verdict.id] = verdict
            for side in (verdict.left, verdict.right):
                self._judged.setdefault(side, set()).add(verdict.id)

    def _append(self, fresh: Sequence[Row], pieces: Mapping[StatementId, Pieces]) -> None:
        """Gives statements their places, in their order."""
        last = (int(self._created[len(self.ids) - 1]), self.ids[-1]) if self.ids else None
        if last is not None and _AGE(fresh[0]) < last:
            raise OutOfOrder
        count, node_place = len(fresh), self.nodes.place_of
        ids, subjects, predicates, objects, _, _, facts, aspects, _, created = zip(*fresh, strict=True)
        self._places.update(zip(ids, range(len(self.ids), len(self.ids) + count), strict=True))
        self.ids += ids
        told, records = zip(*map(pieces.__getitem__, ids), strict=True)
        self._told += told
        self._records += records
        self._bytes += sum(map(len, told)) + sum(map(len, records)) + 2 * _BYTES_HEAD * count
        self._subject.extend([node_place(node) for node in subjects])
        self._predicate.extend([node_place(node) for node in predicates])
        self._object.extend([_NONE if node is None else node_place(node) for node in objects])
        self._aspect.extend([_NONE if aspect is None else _ASPECTS[aspect] for aspect in aspects])
        self._created.extend(created)
        self._hull_from.extend([NEVER[0]] * count)
        self._hull_to.extend([NEVER[1]] * count)
        self._has_text.extend([bool(fact) for fact in facts])

    def _replace(self, place: int, one: Row, pieces: Mapping[StatementId, Pieces]) -> None:
        """Puts a statement anew that has its place."""
        told, records = pieces[one[0]]
        self._bytes += len(told) + len(records) - len(self._told[place]) - len(self._records[place])
        self._told[place], self._records[place] = told, records
        self._has_text[place] = bool(one[_FACT])
        self._unpacked.pop(place, None)
        self._viewed.pop(place, None)

    def _put_spans(self, spans: Sequence[Row], replaced: Places) -> None:
        columns = columns_of(spans, self._places)
        self._spans.put(columns, replaced)
        # Past beliefs are in the hull as well: spans only come, so it only widens.
        place, start, end = columns[:3]
        np.minimum.at(self._hull_from.array, place, np.maximum(start, NEVER[1]))
        np.maximum.at(self._hull_to.array, place, np.minimum(end, NEVER[0]))

    # What is read

    def views(self, ids: Iterable[StatementId], at: AsOf) -> list[StatementView]:
        places = np.array(
            [self._places[id] for id in dict.fromkeys(ids) if id in self._places], dtype=np.int64
        )
        return self._views(places[self._created.array[places] <= at.known_at], at)

    def records(self, ids: Iterable[StatementId]) -> Records:
        places = [self._places[id] for id in dict.fromkeys(ids) if id in self._places]
        read = [(self.ids[place], self._told_at(place)) for place in places]
        claims: list[Claim] = []
        ends: list[End] = []
        denials: list[Denial] = []
        for place in places:
            own = records_of(self.ids[place], self._records[place])
            claims += own[0]
            ends += own[1]
            denials += own[2]
        judged = {record for id, _ in read for record in self._judged.get(id, ())}
        return Records(
            statements=sorted((one.statement for _, one in read), key=age),
            claims=sorted(claims, key=recorded),
            ends=sorted(ends, key=recorded),
            denials=sorted(denials, key=recorded),
            verdicts=sorted((self._verdicts[id] for id in judged), key=recorded),
            spans=sorted((span for _, one in read for span in one.spans), key=belief),
        )

    def slots(self, pairs: Iterable[NodePair]) -> dict[NodePair, list[StatementId]]:
        found: dict[NodePair, list[StatementId]] = {}
        for subject, predicate in dict.fromkeys(pairs):
            node, kind = self.nodes.place(subject), self.nodes.place(predicate)
            if node is None or kind is None:
                continue
            beside = self._adjacent([node])
            mine = beside[(self._subject.array[beside] == node) & (self._predicate.array[beside] == kind)]
            if len(mine):
                found[subject, predicate] = [self.ids[place] for place in np.unique(mine)]
        return found

    def statements(self, where: StatementFilter, at: AsOf, limit: int) -> list[StatementView]:
        """The first of `list_statements`. Not by `episodes`, `invalidated_by` or `contested`."""
        ever = at.valid_at is None and at.since is None and at.until is None
        open_only = ever and not where.include_ended
        if where.subjects:
            places = self._beside_all(where.subjects)
            places = places[self._seen_of(places, at, open_only=open_only)]
        else:
            places = np.flatnonzero(self._seen(at, open_only=open_only))
        for column, asked in (
            (self._subject, where.subjects),
            (self._predicate, where.predicates),
            (self._object, where.objects),
        ):
            if asked:
                places = places[np.isin(column.array[places], self.nodes.places(asked))]
        if where.aspects:
            aspects = [_ASPECTS[aspect] for aspect in where.aspects]
            places = places[np.isin(self._aspect.array[places], aspects)]
        return self._views(places[:limit], at)

    def walk(
        self, seeds: Sequence[EntityId], at: AsOf, max_hops: int, per_level: int, together: Together
    ) -> list[Step]:
        steps: list[Step] = []
        frontier = with_groups(seeds, together)
        visited = set(frontier)
        met = np.zeros(len(self.ids), dtype=np.bool_)
        for hop in range(1, max_hops + 1):
            if not frontier:
                break
            beside = self._beside_all(frontier)
            beside = beside[~met[beside]]
            newest = beside[self._seen_of(beside, at)][::-1][:per_level]
            met[newest] = True
            level = self._views(newest, at)
            steps += [Step(view, hop, via(view, frontier)) for view in level]
            frontier = with_groups(beyond(level, visited), together)
            visited |= frontier
        return steps

    # Masks

    def _seen(self, at: AsOf, *, open_only: bool) -> Mask:
        """True for a statement with a span as asked, created by then; shape (statements,)."""
        mask = self._spans.seen(len(self.ids), at, open_only=open_only)
        return mask & (self._created.array <= at.known_at)

    def _seen_of(self, places: Places, at: AsOf, *, open_only: bool = False) -> Mask:
        """The same of some statements; shape (places,)."""
        mask = self._spans.seen_of(places, at, open_only=open_only)
        return mask & (self._created.array[places] <= at.known_at)

    def searched(self, where: VectorFilter) -> Mask:
        """What a dense search with this filter finds: by hulls, as the rows of the vector store have them."""
        mask = self.worded
        first, last = self._hull_from.array, self._hull_to.array
        # The sentinels mean open, so that a row without a start or an end also holds at the sentinel itself.
        if where.holds_at is not None:
            mask &= (first <= max(where.holds_at, NEVER[1])) & (last > min(where.holds_at, NEVER[0] - 1))
        if where.since is not None:
            mask &= last > min(where.since, NEVER[0] - 1)
        if where.until is not None:
            mask &= first < max(where.until, NEVER[1] + 1)
        if where.aspects:
            mask &= np.isin(self._aspect.array, [_ASPECTS[GraphAspect(aspect)] for aspect in where.aspects])
        return mask

    @property
    def worded(self) -> Mask:
        """True for a statement that has its text."""
        return self._has_text.array.astype(bool)

    def text_digest(self, place: int) -> str:
        """Of the text that a statement's vector is of."""
        one = told(self.ids[place], self._nodes_of(place), self._told[place])
        return digest(statement_text(one.statement))

    def _beside_all(self, ids: Iterable[EntityId]) -> Places:
        """Places of the statements that name one of some entities, each once, in their order."""
        return np.unique(self._adjacent(self.nodes.places(ids)))

    def _adjacent(self, nodes: Collection[int]) -> Places:
        """Places of the statements that name one of some nodes, as subject or object; may repeat."""
        return self._beside.of(nodes, self._subject.array, self._object.array, len(self.nodes))

    # One statement

    def _nodes_of(self, place: int) -> Nodes:
        target = self._object[place]
        nodes = self.nodes.ids
        return (
            nodes[self._subject[place]],
            nodes[self._predicate[place]],
            None if target == _NONE else nodes[target],
        )

    def _told_at(self, place: int) -> Told:
        found = self._unpacked.get(place)
        if found is None:
            found = told(self.ids[place], self._nodes_of(place), self._told[place])
            if len(self._unpacked) >= UNPACKED:
                self._unpacked.clear()
            self._unpacked[place] = found
        return found

    def _views(self, places: Places, at: AsOf) -> list[StatementView]:
        """Statements with the spans that are seen so. What is believed is read once: questions meet again."""
        if at.known_at != self._viewed_at or len(self._viewed) >= UNPACKED:
            self._viewed, self._viewed_at = {}, at.known_at
        viewed = self._viewed
        views: list[StatementView] = []
        for place in places.tolist():
            view = viewed.get(place)
            if view is None:
                view = viewed[place] = self._read(place, at.known_at)
            views.append(view)
        if at.valid_at is None and at.since is None and at.until is None:
            return views
        before, after = seen_between(at.valid_at, at.since, at.until)
        return [cut(view, before, after) for view in views]

    def _read(self, place: int, known_at: Revision) -> StatementView:
        one = self._told_at(place)
        subject, predicate, node = nodes_of(one.statement)
        return StatementView(
            one.statement,
            self.nodes[subject],
            self.nodes[predicate],
            None if node is None else self.nodes[node],
            one.believed(known_at),
            one.episodes(known_at),
        )


_ASPECTS: Mapping[str, int] = {aspect.value: number for number, aspect in enumerate(GraphAspect)}
