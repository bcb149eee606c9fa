"""The port of who keeps a graph's texts in memory: what tells that they changed, and what came since."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.domain.ids import EpisodeId
from services.domain.memory import Passage
from services.domain.scope import Scope


@dataclass(frozen=True, slots=True)
class TextState:
    """How many episodes were ever saved, and how many passages there are.

    Two equal states of one generation of a graph are the same texts: the first number never falls, and where
    it stays nothing comes, so that whatever goes lowers the second.
    """

    saved: int = 0
    passages: int = 0


NO_TEXTS = TextState()


class FollowedTexts(Protocol):
    """Part of TextStore, which see."""

    async def kept(self, scope: Scope) -> Sequence[EpisodeId]:
        """The id of every episode, deleted ones left out; by id."""
        ...

    async def passages_in(self, scope: Scope, episodes: Sequence[EpisodeId]) -> Sequence[Passage]:
        """The passages of some episodes; by episode as asked, then by position."""
        ...
