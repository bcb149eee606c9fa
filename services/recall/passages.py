"""Passages: finds what was literally said, by vector and by words; a matching turn lifts its neighbours."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from services.domain.ids import EpisodeId, PassageId
from services.domain.instants import Instant, Interval
from services.domain.memory import Episode, Passage
from services.recall.asking import Asking, dense_leg
from services.recall.care import together
from services.recall.fuse import Found, Fused, Leg, fuse, ranked
from services.recall.hot.reads import Searches, TextReads
from services.recall.messages import said_at
from services.recall.terms import terms
from services.recall.texts_index import TextsIndex, is_searchable
from services.recall.whose import whose
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

Beside = set[tuple[str, str]]
"""A leg and an id that it has for a neighbour's sake alone."""


@dataclass(frozen=True, slots=True)
class PassageFound:
    """A passage that matters, with its episode."""

    passage: Passage
    episode: Episode
    fused: Fused

    @property
    def said_at(self) -> Instant:
        return said_at(self.passage, self.episode)


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
        found: dict[PassageId, tuple[Passage, Episode]] = {}
        legs: list[Leg] = []
        beside: Beside = set()
        then = _then(asking)
        timed = await asking.care.of(self._said_in(asking, then), ()) if then else ()
        for _ in range(WIDENINGS):
            beside.clear()
            legs = await self._searched(asking, width, beside)
            found = await asking.care.of(self._checked(asking, legs, timed), {})
            if len(found) >= limit or not any(len(leg.hits) >= width for leg in legs):
                break
            width *= 4
        if then is not None:
            legs.append(_time_leg(then, found))
        return PassagesFound(_ranked(asking, legs, found, beside, limit), _whose(asking, legs, found))

    async def _said_in(self, asking: Asking, period: Interval) -> Sequence[PassageId]:
        where = EpisodeFilter(since=period.start, until=period.end)
        listed = await self._text.latest_episodes(asking.scope, where, Page(TIMED_EPISODES))
        said = await together(*(self._text.passages_of(asking.scope, one.id) for one in listed.items))
        return [passage.id for passages in said for passage in passages if is_searchable(passage)]

    async def _searched(self, asking: Asking, width: int, beside: Beside) -> list[Leg]:
        near: Leg | None = None
        if asking.vector is not None:
            within = asking.time.within
            where = VectorFilter(until=within.end if within else None)
            dense = dense_leg(self._vectors, asking, "passages_dense", Collection.PASSAGES, width, where)
            near = await asking.care.of(dense, None)
        index = asking.texts_index
        if index is None:
            return [near] if near else []
        return _in_windows(asking, index, near, width, beside)

    async def _checked(
        self, asking: Asking, legs: Sequence[Leg], timed: Sequence[PassageId]
    ) -> dict[PassageId, tuple[Passage, Episode]]:
        """The hits that are still there, known by then, and said in the range asked for."""
        hits = [PassageId(id) for leg in legs for id, _ in leg.hits]
        ids = list(dict.fromkeys([*hits, *timed]))
        if not ids:
            return {}
        passages = await self._text.passages(asking.scope, ids)
        episodes = await self.episodes(asking, [passage.episode for passage in passages])
        found: dict[PassageId, tuple[Passage, Episode]] = {}
        for passage in passages:
            episode = episodes.get(passage.episode)
            if episode is not None and _is_asked(asking, passage, episode):
                found[passage.id] = (passage, episode)
        return found

    async def episodes(self, asking: Asking, ids: Sequence[EpisodeId]) -> Mapping[EpisodeId, Episode]:
        read = await self._text.episodes(asking.scope, list(dict.fromkeys(ids)))
        return {episode.id: episode for episode in read}


def _in_windows(asking: Asking, index: TextsIndex, near: Leg | None, width: int, beside: Beside) -> list[Leg]:
    """Both legs with what neighbours add, over the best `width` of each together.

    A turn that one leg has among its best is told by the other as well, however far down: to count it as
    nothing there would be worse than wrong. `beside` gets what a leg has for a neighbour's sake alone.
    """
    own = index.passages.scores(asking.terms)
    words = index.turns.windowed(index.passages, asking.terms)
    best = [id for id, _ in index.passages.best(words, width)]
    like = dict(index.turns.lifted(index.passages, near.hits)) if near else {}
    chosen = list(dict.fromkeys([*best, *list(like)[:width]]))
    worded = ((id, index.score_of(words, id)) for id in chosen)
    legs = [Leg("passages_lexical", _sorted(hit for hit in worded if hit[1] > 0))]
    beside |= {("passages_lexical", id) for id, _ in legs[0].hits if index.score_of(own, id) <= 0}
    if near is not None:
        legs.append(Leg(near.name, _sorted((id, like[id]) for id in chosen if id in like)))
        beside |= {(near.name, id) for id in like} - {(near.name, id) for id, _ in near.hits}
    return legs


def _sorted(hits: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))


def _then(asking: Asking) -> Interval | None:
    """When what is asked about was told: in the period that the question names, or soon after."""
    if asking.time.within is not None:
        return asking.time.within
    period = asking.time.period
    if period is None or period.end is None:
        return period
    return Interval(period.start, Instant(period.end + SOON_AFTER_MICROS))


def _time_leg(then: Interval, found: Mapping[PassageId, tuple[Passage, Episode]]) -> Leg:
    return Leg(
        "passages_time",
        [(id, 1.0) for id in sorted(found) if then.contains(said_at(*found[id]))],
    )


def _whose(asking: Asking, legs: Sequence[Leg], found: Iterable[PassageId]) -> float:
    index = asking.texts_index
    if index is None:
        return 1.0
    near = [hit for leg in legs if leg.name == "passages_dense" for hit in leg.hits]
    names = {term for key in asking.speakers for term in terms(key)}
    asked = [term for term in asking.terms if term not in names]
    return whose(index.passages, index.turns, asking.speakers, asked, near, found)


def _is_asked(asking: Asking, passage: Passage, episode: Episode) -> bool:
    until, within = asking.known.saved_until, asking.time.within
    if not asking.topics.keeps([episode.id]):
        return False
    if episode.deleted_at is not None or (until is not None and episode.created_at > until):
        return False
    return within is None or within.contains(said_at(passage, episode))


def _ranked(
    asking: Asking,
    legs: Sequence[Leg],
    found: Mapping[PassageId, tuple[Passage, Episode]],
    beside: Beside,
    limit: int,
) -> list[PassageFound]:
    """The first of them. What is shown of each is made for these alone: there are hundreds."""
    items: list[Fused] = []
    for id, item in fuse(legs, found).items():
        passage, episode = found[PassageId(id)]
        score = item.score + _gain(asking, passage.id) + asking.topics.lift([episode.id])
        items.append(Fused(id, score, item.found))
    order = ranked(items, newest=lambda id: said_at(*found[PassageId(id)]), sources=lambda _: 1)
    return [
        PassageFound(*found[PassageId(item.id)], _within_bounds(_told(item, beside)))
        for item in order[:limit]
    ]


def _within_bounds(item: Fused) -> Fused:
    """With a score from 0 to 1; ranked before, so that no two of the best become equal."""
    return replace(item, score=min(1.0, max(0.0, item.score)))


def _gain(asking: Asking, id: PassageId) -> float:
    """What who speaks, and whether they ask, adds to a passage's score."""
    index = asking.texts_index
    place = index.passages.place(id) if index else None
    if index is None or place is None:
        return 0.0
    gain = OWN_WORDS if index.turns.is_by(place, asking.speakers) else 0.0
    return gain - (ASKS if index.turns.asks(place) else 0.0)


def _told(item: Fused, beside: Beside) -> Fused:
    """An item that only its neighbours made a leg find says so."""
    found = tuple(
        Found("passages_neighbour", one.rank, one.score) if (one.leg, item.id) in beside else one
        for one in item.found
    )
    return replace(item, found=found)
