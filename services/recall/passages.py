"""Passages: finds what was literally said, by vector and by words; a matching turn lifts its neighbours."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from services.domain.ids import PassageId
from services.domain.instants import Instant, Interval
from services.domain.memory import Passage
from services.recall.asking import Asking, dense_leg
from services.recall.bm25 import Scores
from services.recall.care import together
from services.recall.fuse import Found, Fused, Leg, best_first, fuse, ranked
from services.recall.hot.reads import Searches, TextReads
from services.recall.terms import terms
from services.recall.texts_index import TextsIndex, is_searchable
from services.recall.whose import whose
from services.stores.memory.following import Said
from services.stores.memory.port import EpisodeFilter
from services.stores.paging import Page
from services.stores.vectors.port import Collection, VectorFilter

WIDTH = 200
"""Hits asked of each search at first."""
WIDENINGS = 3
"""How often a search that the filters left too little of is asked again for four times as many."""
SOON_AFTER_MICROS = 7 * 86_400_000_000
"""What happened in a period is told in it, or within days."""
TIMED_EPISODES = 8
"""The latest episodes of the period asked about, whose passages are found without a word in common."""
OWN_WORDS = 0.2
"""What a turn gains by a speaker whom the question names: people tell of themselves, and seldom by name."""
ASKS = 0.06
"""What a turn loses that is itself a question: the answer stands beside it."""

Beside = Callable[[str, str], bool]
"""Whether a leg, by its name, has a passage for a neighbour's sake alone."""


@dataclass(frozen=True, slots=True)
class PassageFound:
    """A passage that matters, with what is told of its episode."""

    passage: Passage
    said: Said
    fused: Fused


@dataclass(frozen=True, slots=True)
class PassagesFound:
    """Passages, best first; `whose`: how sure it is, 0 to 1, that they are about whom the question names."""

    passages: Sequence[PassageFound] = ()
    whose: float = 1.0


class Passages:
    """Searches the passages of one graph."""

    def __init__(self, text: TextReads, vectors: Searches) -> None:
        self._text = text
        self._vectors = vectors

    async def find(self, asking: Asking, limit: int) -> PassagesFound:
        """At most `limit` passages."""
        width = max(WIDTH, limit)
        found: Mapping[PassageId, Said] = {}
        legs: list[Leg] = []
        beside: Beside = _by_itself
        then = _then(asking)
        timed = await asking.care.of(self._said_in(asking, then), ()) if then else ()
        for _ in range(WIDENINGS):
            legs, beside = await self._searched(asking, width)
            found = await asking.care.of(self._checked(asking, legs, timed), {})
            if len(found) >= limit or not any(len(leg.hits) >= width for leg in legs):
                break
            width *= 4
        if then is not None:
            legs.append(_time_leg(then, found))
        first = [_told(item, beside) for item in _ranked(asking, legs, found, limit)]
        shown = await asking.care.of(self._shown(asking, first, found), ())
        return PassagesFound(shown, _whose(asking, legs, found))

    async def _said_in(self, asking: Asking, period: Interval) -> Sequence[PassageId]:
        where = EpisodeFilter(since=period.start, until=period.end)
        listed = await self._text.latest_episodes(asking.scope, where, Page(TIMED_EPISODES))
        said = await together(*(self._text.passages_of(asking.scope, one.id) for one in listed.items))
        return [passage.id for passages in said for passage in passages if is_searchable(passage)]

    async def _searched(self, asking: Asking, width: int) -> tuple[list[Leg], Beside]:
        near: Leg | None = None
        if asking.vector is not None:
            within = asking.time.within
            where = VectorFilter(until=within.end if within else None)
            dense = dense_leg(self._vectors, asking, "passages_dense", Collection.PASSAGES, width, where)
            near = await asking.care.of(dense, None)
        index = asking.texts_index
        if index is None:
            return [near] if near else [], _by_itself
        return _in_windows(asking, index, near, width)

    async def _checked(
        self, asking: Asking, legs: Sequence[Leg], timed: Sequence[PassageId]
    ) -> Mapping[PassageId, Said]:
        """The hits that are still there, known by then, and said in the range asked for."""
        hits = [PassageId(id) for leg in legs for id, _ in leg.hits]
        ids = list(dict.fromkeys([*hits, *timed]))
        said = await self._text.said(asking.scope, ids) if ids else {}
        until, within, topics = asking.known.saved_until, asking.time.within, asking.topics
        if until is None and within is None and topics.only is None:
            return said
        return {
            id: one
            for id, one in said.items()
            if (until is None or one.saved_at <= until)
            and (within is None or within.contains(one.at))
            and topics.keeps([one.episode])
        }

    async def _shown(
        self, asking: Asking, items: Sequence[Fused], found: Mapping[PassageId, Said]
    ) -> list[PassageFound]:
        """What is shown of passages, read for these alone: what was found are hundreds."""
        if not items:
            return []
        read = await self._text.passages(asking.scope, [PassageId(item.id) for item in items])
        passages: dict[str, Passage] = {passage.id: passage for passage in read}
        return [
            PassageFound(passages[item.id], found[PassageId(item.id)], item)
            for item in items
            if item.id in passages
        ]


def _by_itself(leg: str, id: str) -> bool:
    return False


def _in_windows(asking: Asking, index: TextsIndex, near: Leg | None, width: int) -> tuple[list[Leg], Beside]:
    """Both legs with what neighbours add, over the best `width` of each together.

    A turn that one leg has among its best is told by the other as well, however far down: to count it as
    nothing there would be worse than wrong.
    """
    passages = index.passages
    words = index.turns.windowed(passages, asking.terms)
    best = [id for id, _ in passages.best(words, width)]
    like = dict(index.turns.lifted(passages, near.hits)) if near else {}
    chosen = list(dict.fromkeys([*best, *list(like)[:width]]))
    legs = [Leg("passages_lexical", best_first(hit for hit in passages.told(words, chosen) if hit[1] > 0))]
    if near is not None:
        legs.append(Leg(near.name, best_first((id, like[id]) for id in chosen if id in like)))
    own: Scores | None = None
    alike = {id for id, _ in near.hits} if near else set()

    def beside(leg: str, id: str) -> bool:
        nonlocal own
        if near is not None and leg == near.name:
            return id not in alike
        if leg != "passages_lexical":
            return False
        own = passages.scores(asking.terms) if own is None else own
        return index.score_of(own, id) <= 0

    return legs, beside


def _then(asking: Asking) -> Interval | None:
    """When what is asked about was told: in the period that the question names, or soon after."""
    if asking.time.within is not None:
        return asking.time.within
    period = asking.time.period
    if period is None or period.end is None:
        return period
    return Interval(period.start, Instant(period.end + SOON_AFTER_MICROS))


def _time_leg(then: Interval, found: Mapping[PassageId, Said]) -> Leg:
    return Leg("passages_time", [(id, 1.0) for id in sorted(found) if then.contains(found[id].at)])


def _whose(asking: Asking, legs: Sequence[Leg], found: Iterable[PassageId]) -> float:
    index = asking.texts_index
    if index is None or not asking.speakers:
        return 1.0
    near = [hit for leg in legs if leg.name == "passages_dense" for hit in leg.hits]
    names = {term for key in asking.speakers for term in terms(key)}
    asked = [term for term in asking.terms if term not in names]
    return whose(index.passages, index.turns, asking.speakers, asked, near, found)


def _ranked(asking: Asking, legs: Sequence[Leg], found: Mapping[PassageId, Said], limit: int) -> list[Fused]:
    """The first of them, with scores from 0 to 1."""
    fusion = fuse(legs, found)
    gains, topics = _gains(asking, list(fusion.scores)), asking.topics
    lifts = bool(topics.lifted)
    scores = {
        id: score + gain + (topics.lift([found[PassageId(id)].episode]) if lifts else 0.0)
        for (id, score), gain in zip(fusion.scores.items(), gains, strict=True)
    }
    order = ranked(scores, limit, newest=lambda id: found[PassageId(id)].at)
    # Ranked before, so that no two of the best become equal.
    return fusion.items(order, {id: min(1.0, max(0.0, scores[id])) for id in order})


def _gains(asking: Asking, ids: Sequence[str]) -> list[float]:
    """What who speaks, and whether they ask, adds to the score of each of some passages."""
    index = asking.texts_index
    if index is None or not len(index.passages):
        return [0.0] * len(ids)
    places = index.passages.places(ids)
    own, asks = index.turns.are_by(places, asking.speakers), index.turns.ask(places)
    gains = np.where(own, OWN_WORDS, 0.0) - np.where(asks, ASKS, 0.0)
    return list(np.where(places < 0, 0.0, gains).tolist())


def _told(item: Fused, beside: Beside) -> Fused:
    """An item that only its neighbours made a leg find says so."""
    found = tuple(
        Found("passages_neighbour", one.rank, one.score) if beside(one.leg, item.id) else one
        for one in item.found
    )
    return replace(item, found=found)
