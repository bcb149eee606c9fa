"""Turns: who stands beside whom, who speaks of whom, and how words count that stand near each other."""

import re
from array import array
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from services.domain.graph import EntityType
from services.domain.ids import EntityId, EpisodeId
from services.domain.memory import Passage, Role
from services.domain.names import name_key
from services.recall.bm25 import Bm25, Scores
from services.recall.fuse import best_first
from services.recall.mentions import AliasTable
from services.recall.states import State
from services.recall.terms import folded
from services.stores.graph.port import Alias
from services.stores.memory.following import PlainPassage, plain_passage

SHARES = (0.6, 0.4, 0.3, 0.2)
"""What a word counts that is said one, two, three or four turns away. A question is often answered beside
the words that it repeats, and two turns that say half of it each are worth one that says all. Each word
counts once, where it stands nearest: said over and over it makes no turn better (sums did worse)."""

LIKE_SHARES = (0.8, 0.6)
"""The same for likeness to the question, one or two turns away. Cosines lie close together."""

_SELF = re.compile(
    r"(?<![\w'])(?:i|me|my|mine|myself|we|us|our|ours|i'm|i've|i'd|i'll|we're|we've|we'll)(?!\w)|[我咱俺]"
)
_YOU = re.compile(r"(?<![\w'])(?:you|your|yours|yourself|you're|you've|you'd|you'll)(?!\w)|[你您]")
_YOU_AT_LEAST = ("you", "你", "您")
_ASKS = ("?", "？")
_CLOSING = " \t\n\"'”’)）]】"
_TURN_BYTES = 60
_EPISODE_BYTES = 200
_POSITIONS = 2**32
"""More than an episode has."""

UNNAMED_ASSISTANT = "\0assistant"
"""The key of an assistant whose turns have no name; no name reads so."""

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Turns:
    """The turns of one graph, by their place in the index of their words. Added in the order of places."""

    def __init__(self, state: State | None = None) -> None:
        """`state`: another one's."""
        held = state or {}
        self.assistants: set[str] = {*held.get("assistants", ())}
        """Keys of the speakers that are assistants."""
        episodes: Sequence[EpisodeId] = held.get("episodes", ())
        self._episodes = {id: number for number, id in enumerate(episodes)}
        self._at = array("q", held.get("at", ()))
        """Which turn of which episode each is, as one number: neighbours follow each other."""
        self._speakers = array("i", held.get("speakers", ()))
        keys: Sequence[str] = held.get("keys", ())
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._spelled: dict[str, str] = dict(held.get("spelled", ()))
        self._asks = array("b", held.get("asks", ()))
        self._of_you = array("b", held.get("of_you", ()))
        self._about: Places | None = None
        self._beside: dict[int, Places | None] = {}
        self._names: AliasTable | None = None

    def __len__(self) -> int:
        return len(self._speakers)

    @property
    def bytes(self) -> int:
        """About what it takes of memory."""
        return len(self) * _TURN_BYTES + len(self._episodes) * _EPISODE_BYTES

    @property
    def state(self) -> State:
        """All that it holds, as it is now."""
        return {
            "assistants": [*self.assistants],
            "episodes": [*self._episodes],
            "at": [*self._at],
            "speakers": [*self._speakers],
            "keys": [*self._numbers],
            "spelled": [*self._spelled.items()],
            "asks": [*self._asks],
            "of_you": [*self._of_you],
        }

    def add(self, passage: Passage) -> None:
        """Takes the next place."""
        self.add_all([plain_passage(passage)])

    def add_all(self, passages: Iterable[PlainPassage]) -> None:
        """Each takes the next place."""
        for one in passages:
            episode = self._episodes.setdefault(one.episode, len(self._episodes))
            self._at.append(episode * _POSITIONS + one.position)
            self._speakers.append(self._speaker(one.speaker, one.role))
            self._asks.append(one.text.rstrip(_CLOSING).endswith(_ASKS))
            self._of_you.append(_is_of_you(one.text))
        self._beside.clear()
        self._about = None

    def _speaker(self, name: str, role: str) -> int:
        """The number of who speaks, -1 of nobody."""
        if not name and role != Role.ASSISTANT:
            return -1
        key = name_key(name)
        if key and key not in self._numbers:
            self._names = None
            self._spelled[key] = name
        if role == Role.ASSISTANT:
            key = key or UNNAMED_ASSISTANT
            self.assistants.add(key)
        return self._numbers.setdefault(key, len(self._numbers)) if key else -1

    def windowed(self, index: Bm25, terms: Sequence[str]) -> Scores:
        """Scores of the index's documents, shape (documents,), in which nearby words count by `SHARES`."""
        total = np.zeros(len(index))
        for term in sorted(set(terms)):  # sums of floats depend on their order
            places, scores = index.weighed(term)
            if not len(scores):
                continue
            best = np.zeros(len(index))
            best[places] = scores
            for distance, share in enumerate(SHARES, start=1):
                for step in (-distance, distance):
                    beside = self._stepped(step)
                    if beside is None:
                        continue
                    # A turn stands so far from one other at most, so that no place is met twice.
                    near = beside[places]
                    there = (near >= 0) & (scores > 0)
                    best[near[there]] = np.maximum(best[near[there]], share * scores[there])
            total += best
        return total

    def lifted(self, index: Bm25, hits: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
        """Hits by likeness, best first, in which each turn has at least its share of its neighbours'."""
        best: dict[int, float] = {}
        elsewhere: list[tuple[str, float]] = []
        for id, score in hits:
            place = index.place(id)
            if place is None:
                elsewhere.append((id, score))
            else:
                best[place] = max(0.0, score)
        places, scores = np.array(list(best), dtype=np.int64), np.array(list(best.values()))
        for distance, share in enumerate(LIKE_SHARES, start=1):
            for step in (-distance, distance):
                beside = self._stepped(step)
                if beside is None:
                    continue
                near = beside[places]
                there = (near >= 0) & (scores > 0)
                for place, score in zip(near[there].tolist(), (share * scores[there]).tolist(), strict=True):
                    if score > best.get(place, 0.0):
                        best[place] = score
        return best_first([*((index.ids[place], score) for place, score in best.items()), *elsewhere])

    def named_in(self, question: str, others: Collection[str] = ()) -> frozenset[str]:
        """Keys of the speakers whom a question names; `others` are keys of names that it means as well.

        Empty when it names all that there are: then it tells nothing apart.
        """
        if self._names is None:
            self._names = _table(self._spelled)
        met = {EntityId(key) for key in others if key in self._numbers}
        met |= {one.id for mention in self._names.mentions(question) for one in mention.entities}
        return frozenset(met) if len(met) < len(self._numbers) else frozenset()

    def about(self, keys: Collection[str]) -> tuple[Mask, Mask]:
        """Which turns tell of these speakers, and which of others; both of shape (turns,).

        Who says "I" tells of themselves; who says only "you" tells of whom they answer. What an assistant
        says is nobody else's story: it takes up what it is told.
        """
        if self._about is None:
            self._about = self._told_about()
        theirs = np.isin(self._about, self._numbered(keys))
        nobodys = np.isin(self._about, [-1, *self._numbered(self.assistants)])
        return theirs, ~theirs & ~nobodys

    def _numbered(self, keys: Collection[str]) -> list[int]:
        return [self._numbers[key] for key in sorted(keys) if key in self._numbers]

    def _told_about(self) -> Places:
        speakers = np.array(self._speakers, dtype=np.int64)
        padded = np.append(speakers, -1)  # place -1 is nobody
        nobody = np.full(len(self), -1, dtype=np.int64)
        before, after = (nobody if at is None else padded[at] for at in (self._stepped(-1), self._stepped(1)))
        other = np.where((before >= 0) & (before != speakers), before, after)
        of_you = np.array(self._of_you, dtype=np.bool_) & (other >= 0) & (other != speakers)
        return np.where(of_you, other, speakers)

    def are_by(self, places: Places, keys: Collection[str]) -> Mask:
        """Whether one of these speakers has said the turn at each place."""
        if not keys:
            return np.zeros(len(places), dtype=np.bool_)
        return np.isin(np.array(self._speakers)[places], self._numbered(keys))

    def ask(self, places: Places) -> Mask:
        """Whether the turn at each place is a question."""
        return np.array(self._asks, dtype=np.bool_)[places]

    def _stepped(self, step: int) -> Places | None:
        """For each place the place `step` turns further in its episode, -1 where there is none.

        None where there is none for any: each fact that somebody asserts is an episode of its own.
        """
        if step not in self._beside:
            at = np.array(self._at, dtype=np.int64)
            order = np.argsort(at, kind="stable")
            last = np.searchsorted(at[order], at + step, side="right") - 1
            near = order[last]
            places = np.where((last >= 0) & (at[near] == at + step), near, -1)
            self._beside[step] = places if (places >= 0).any() else None
        return self._beside[step]


def _is_of_you(text: str) -> bool:
    said = folded(text)
    if not any(word in said for word in _YOU_AT_LEAST):
        return False  # the cheap test first
    return bool(_YOU.search(said)) and not _SELF.search(said)


def _table(spelled: dict[str, str]) -> AliasTable:
    """Speakers by their names, and by their first names where nobody else has that."""
    aliases = [Alias(key, EntityType.PERSON, EntityId(key), name) for key, name in sorted(spelled.items())]
    first = [
        (name_key(name.split()[0]), key) for key, name in sorted(spelled.items()) if len(name.split()) > 1
    ]
    for short, key in first:
        if short and [one for one, _ in first].count(short) == 1 and short not in spelled:
            aliases.append(Alias(short, EntityType.PERSON, EntityId(key), spelled[key].split()[0]))
    return AliasTable(aliases)
