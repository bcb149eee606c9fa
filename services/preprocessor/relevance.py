"""Relevance: why a chunk leaves nothing to understand, as far as no model is needed to tell."""

from collections.abc import Sequence

from services.domain.facts import NothingReason
from services.domain.memory import Episode, EpisodeKind, Passage
from services.domain.recalled import is_recalled
from services.llm.offline.relevance import is_small_talk


def why_nothing_in(episode: Episode, passages: Sequence[Passage], *, gate: bool) -> str:
    """As `why_not_understood`; with `gate` what is plainly small talk, too."""
    nothing = why_not_understood(passages)
    if not nothing and gate and episode.kind is EpisodeKind.CONVERSATION:
        small = all(is_small_talk(one.text) for one in passages if one.text.strip())
        nothing = NothingReason.SMALL_TALK if small else ""
    return nothing


def why_not_understood(passages: Sequence[Passage]) -> str:
    """It was recalled from here, is held back, or was deleted since; "" when there is something."""
    if not passages:
        return NothingReason.NO_DURABLE_FACT
    if any(one.held for one in passages):
        return NothingReason.QUARANTINED
    return NothingReason.RECALLED_TEXT if all(is_recalled(one.text) for one in passages) else ""
