"""Passages: finds what was literally said, by vector and by words; a matching turn lifts its neighbours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from services.domain.ids import EpisodeId, PassageId
from services.domain.instants import Instant, Interval
from services.domain.memory import Episode, Passage
from services.recall.asking import Asking, dense_leg
from services.recall.fuse import Found, Fused, Leg, fuse, ranked
from services.recall.hot.reads import Searches, TextReads
from services.recall.messages import said_at
from services.recall.texts_index import TextsIndex
from services.stores.vectors.port import Collection, VectorFilter

WIDTH = 200
"""Hits asked of each search at first."""
WIDENINGS = 3
"""How often a search that the filters left too little of is asked again for four times as many."""
SAID_THEN = 0.05
"""What a passage gains that was said in the period that the question names."""


@dataclass(frozen=True, slots=True)
class PassageFound:
    """A passage that matters, with its episode."""

    passage: Passage
    episode: Episode
    fused: Fused

    @property
    def said_at(self) -> Instant:
        return said_at(self.passage, self.episode)


class Passages:
    """Searches the passages of one graph."""

    def __init__(self, text: TextReads, vectors: Searches) -> None:
        self._text = text
        self._vectors = vectors

    async def find(self, asking: Asking, limit: int) -> list[PassageFound]:
        """At most `limit` passages, best first."""
        width = max(WIDTH, limit)
        found: dict[PassageId, tuple[Passage, Episode]] = {}
        legs: list[Leg] = []
        beside: set[str] = set()
        for _ in range(WIDENINGS):
            beside.clear()
            legs = await self._searched(asking, width, beside)
            found = await asking.care.of(self._checked(asking, legs), {})
            if len(found) >= limit or not any(len(leg.hits) >= width for leg in legs):
                break
            width *= 4
        return _ranked(asking, legs, found, beside)[:limit]

    async def _searched(self, asking: Asking, width: int, beside: set[str]) -> list[Leg]:
        legs = [] if asking.texts_index is None else [_by_words(asking, asking.texts_index, width, beside)]
        if asking.vector is not None:
            within = asking.time.within
            where = VectorFilter(until=within.end if within else None)
            dense = dense_leg(self._vectors, asking, "passages_dense", Collection.PASSAGES, width, where)
            found = await asking.care.of(dense, None)
            legs += [found] if found else []
        return legs

    async def _checked(self, asking: Asking, legs: Sequence[Leg]) -> dict[PassageId, tuple[Passage, Episode]]:
        """The hits that are still there, known by then, and said in the range asked for."""
        ids = list(dict.fromkeys(PassageId(id) for leg in legs for id, _ in leg.hits))
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


def _by_words(asking: Asking, index: TextsIndex, width: int, beside: set[str]) -> Leg:
    """`beside` gets the ids that only a neighbour's words found."""
    own = index.passages.scores(asking.terms)
    hits = index.passages.best(index.with_neighbours(own), width)
    beside |= {id for id, _ in hits if own[index.passages.place(id) or 0] <= 0}
    return Leg("passages_lexical", hits)


def _is_asked(asking: Asking, passage: Passage, episode: Episode) -> bool:
    until, within = asking.known.saved_until, asking.time.within
    if episode.deleted_at is not None or (until is not None and episode.created_at > until):
        return False
    return within is None or within.contains(said_at(passage, episode))


def _ranked(
    asking: Asking,
    legs: Sequence[Leg],
    found: Mapping[PassageId, tuple[Passage, Episode]],
    beside: set[str],
) -> list[PassageFound]:
    fused = fuse(legs, found)
    passages: dict[str, PassageFound] = {}
    for id, (passage, episode) in found.items():
        item = _told(fused[id], beside)
        if _is_in(asking.time.period, said_at(passage, episode)):
            item = replace(item, score=min(1.0, item.score + SAID_THEN))
        passages[id] = PassageFound(passage, episode, item)
    order = ranked(
        [one.fused for one in passages.values()],
        newest=lambda id: passages[id].said_at,
        sources=lambda _: 1,
    )
    return [passages[item.id] for item in order]


def _is_in(period: Interval | None, at: Instant) -> bool:
    return period is not None and period.contains(at)


def _told(item: Fused, beside: set[str]) -> Fused:
    """An item that only a neighbour's words found says so."""
    if item.id not in beside:
        return item
    found = tuple(
        Found("passages_neighbour", one.rank, one.score) if one.leg == "passages_lexical" else one
        for one in item.found
    )
    return replace(item, found=found)
