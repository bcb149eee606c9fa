"""Talks: turns of a conversation with the index of their words, for tests."""

from services.domain.ids import EpisodeId, PassageId
from services.domain.memory import Passage
from services.recall.bm25 import Bm25
from services.recall.terms import terms
from services.recall.turns import Turns


def talk(*lines: tuple[str, str], episodes: int = 1) -> tuple[Bm25, Turns]:
    """An index of (speaker, text) lines, dealt to so many episodes in equal runs."""
    index, turns = Bm25(), Turns()
    each = -(-len(lines) // episodes)
    for at, (speaker, text) in enumerate(lines):
        episode = EpisodeId(f"episode-{at // each}")
        turns.add(Passage(PassageId(str(at)), episode, at % each, text, 0, len(text), str(at), speaker))
        index.add(str(at), terms(text))
    return index, turns
