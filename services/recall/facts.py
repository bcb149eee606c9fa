"""Facts: finds statements by vector, by words, by walking and by time; checks each exactly; ranks them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.domain.graph import GraphAspect
from services.domain.ids import EntityId, StatementId
from services.recall.asking import Asking, dense_leg
from services.recall.care import at_once
from services.recall.fuse import Leg, best_first
from services.recall.hot.reads import FactReads, Searches
from services.recall.ranking import Checked, FactFound, by_confidence, rank_facts, with_slots
from services.recall.readings import shown_as, steps_as
from services.recall.seeds import MAX_FOUND, weighed
from services.recall.slots import Slots, read_slots
from services.recall.standing import Standing, Time, standing_of
from services.recall.walking import PER_LEVEL, Reached, reach, walk_leg
from services.stores.graph.port import AsOf, Records, StatementFilter, StatementView
from services.stores.memory.lexicons import Lexicons
from services.stores.vectors.port import Collection, VectorFilter

WIDTH = 40
"""Hits asked of each search at first, or twice what is wanted."""
WEIGHED = 2
"""How many times what is wanted is weighed by confidence: so far the unsure can fall behind."""
WIDENINGS = 3
"""How often a search that the filters left too little of is asked again for four times as many."""
TIME_HITS = 100
SLOTS = 10
"""The first facts whose slots are read, for what they replaced and what replaced them."""


@dataclass(frozen=True, slots=True)
class FactsFound:
    """Facts, best first, and the records that were read of them on the way."""

    facts: Sequence[FactFound] = ()
    records: Records | None = None


class Facts:
    """Searches the statements of one graph."""

    def __init__(self, graph: FactReads, vectors: Searches, lexicons: Lexicons) -> None:
        self._graph = graph
        self._vectors = vectors
        self._lexicons = lexicons

    async def find(self, asking: Asking, limit: int) -> FactsFound:
        """At most `limit` facts. What is down is told to `asking.care`, or raised by it."""
        seeds = await self._seeds(asking)
        async with at_once() as group:
            walking = group.create_task(asking.care.of(self._walk(asking, seeds), {}))
            timing = group.create_task(asking.care.of(self._timed(asking), None))
        reached, timed = walking.result(), timing.result()
        fixed = [walk_leg(reached)] if seeds and asking.question.limits.hops else []
        fixed += [timed] if timed is not None else []
        width = max(WIDTH, 2 * limit)
        for widening in range(WIDENINGS):
            legs = [*fixed, *await self._searched(asking, width)]
            checked = await asking.care.of(self._checked(asking, legs), {})
            full = any(len(leg.hits) >= width for leg in legs if leg.name.startswith("statements"))
            if len(checked) >= limit or not full or widening == WIDENINGS - 1:
                break
            width *= 4
        ranked = rank_facts(asking, legs, checked, reached, WEIGHED * limit)
        own = await asking.care.of(self._records(asking, ranked), None)
        found = by_confidence(ranked, own, asking.known.at)[:limit]
        slots = await asking.care.of(self._slots(asking, found[:SLOTS], own), {})
        whole = [
            fact for fact in with_slots(asking.time, found, slots) if asking.topics.keeps(fact.view.episodes)
        ]
        return FactsFound(whole[:limit], own)

    async def _seeds(self, asking: Asking) -> dict[EntityId, float]:
        if not asking.question.limits.hops:
            return {}
        named = [entity.id for entity in (*asking.plan.entities, *asking.hints)]
        words = _entities_by_words(asking)
        near: Sequence[tuple[str, float]] = ()
        if asking.vector is not None and not named and not words:
            leg = dense_leg(self._vectors, asking, "entities_dense", Collection.ENTITIES, 3, VectorFilter())
            found = await asking.care.of(leg, None)
            near = _as_read(found.hits, asking) if found else ()
        return weighed(named, words, near)

    async def _walk(self, asking: Asking, seeds: Mapping[EntityId, float]) -> dict[StatementId, Reached]:
        if not seeds:
            return {}
        hops, together = asking.question.limits.hops, asking.reads.together
        met = await self._graph.walk(asking.scope, list(seeds), _walk_time(asking), hops, PER_LEVEL, together)
        steps = await steps_as(self._graph, asking.scope, met, asking.reads)
        return reach(steps, seeds, asking.plan.cues.predicates)

    async def _timed(self, asking: Asking) -> Leg | None:
        """Facts of the period asked about: those that begin in it before those that only meet it."""
        period = asking.time.within or asking.time.period
        wordless = not asking.terms and asking.vector is None and asking.question.is_filtered
        if period is None and not wordless:
            return None
        at = AsOf(
            asking.known.at,
            asking.time.as_of,
            period.start if period else None,
            period.end if period else None,
        )
        where = StatementFilter(aspects=asking.question.aspects, include_ended=asking.time.show_ended)
        listed = await self._graph.first(asking.scope, where, at, TIME_HITS)
        hits = [
            (
                view.statement.id,
                1.0
                if period is None
                or any(s.valid_at is not None and period.contains(s.valid_at) for s in view.spans)
                else 0.5,
            )
            for view in listed
        ]
        return Leg("time", best_first(hits))

    async def _searched(self, asking: Asking, width: int) -> list[Leg]:
        index = asking.facts_index
        legs: list[Leg] = []
        if index is not None:
            hits = index.statements.best(index.statements.scores(asking.terms), width)
            legs.append(Leg("statements_lexical", hits))
        if asking.vector is not None:
            where = _hull(asking.time, asking.question.aspects)
            found = await asking.care.of(self._dense(asking, width, where), None)
            legs += [found] if found else []
        return legs

    async def _dense(self, asking: Asking, width: int, where: VectorFilter) -> Leg:
        """The nearest statements; of a whole graph as if none were archived."""
        legs = [
            await dense_leg(self._vectors, asking, "statements_dense", collection, width, where)
            for collection in (Collection.STATEMENTS, *([Collection.ARCHIVE] if asking.whole else ()))
        ]
        scores = {id: score for leg in legs for id, score in leg.hits}
        return Leg(legs[0].name, best_first(scores.items())[:width])

    async def _checked(self, asking: Asking, legs: Sequence[Leg]) -> Checked:
        """The hits that stand to the time asked about, read from the store as known."""
        ids = list(dict.fromkeys(StatementId(id) for leg in legs for id, _ in leg.hits))
        found = await self._graph.views(asking.scope, ids, AsOf(asking.known.at)) if ids else ()
        views = await shown_as(self._graph, asking.scope, found, asking.reads)
        aspects, time, topics = asking.question.aspects, asking.time, asking.topics
        checked: dict[str, tuple[StatementView, Standing]] = {}
        for view in views:
            one = view.statement
            standing = standing_of(view.spans, time)
            if standing is None or not one.fact or (aspects and one.aspect not in aspects):
                continue
            if topics.keeps(view.episodes):
                checked[one.id] = (view, standing)
        return checked

    async def _records(self, asking: Asking, found: Sequence[FactFound]) -> Records | None:
        ids = [fact.view.statement.id for fact in found]
        return await self._graph.records(asking.scope, ids) if ids else None

    async def _slots(self, asking: Asking, found: Sequence[FactFound], own: Records | None) -> Slots:
        views = [fact.view for fact in found]
        verdicts = own.verdicts if own else ()
        lexicon = await self._lexicons.at(asking.scope, asking.known.at)
        return await read_slots(
            self._graph, lexicon, asking.scope, views, verdicts, asking.known.at, asking.reads
        )


def _entities_by_words(asking: Asking) -> Sequence[tuple[str, float]]:
    index = asking.facts_index
    if index is None:
        return ()
    return _as_read(index.entities.best(index.entities.scores(asking.terms), MAX_FOUND), asking)


def _as_read(hits: Sequence[tuple[str, float]], asking: Asking) -> Sequence[tuple[str, float]]:
    return [(asking.reads.root(EntityId(id)), score) for id, score in hits]


def _walk_time(asking: Asking) -> AsOf:
    """A walk crosses what ended only where a time is asked for."""
    time = asking.time
    period = time.within or (time.period if time.names_none else None)
    if period is not None:
        return AsOf(asking.known.at, time.as_of, period.start, period.end)
    return AsOf(asking.known.at, time.now if time.as_of is None else time.as_of)


def _hull(time: Time, aspects: Sequence[GraphAspect]) -> VectorFilter:
    """The filter on hulls that loses none of what the exact check keeps."""
    holds_at = time.as_of
    if time.names_none and time.period is None and not time.show_ended:
        holds_at = time.now
    since = time.within.start if time.within else None
    until = time.within.end if time.within else None
    return VectorFilter(holds_at, since, until, aspects)
