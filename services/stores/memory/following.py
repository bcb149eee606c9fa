"""The port of who keeps a graph's texts in memory: what tells that they changed, and what came since."""

from collections.abc import Sequence
from typing import NamedTuple, NewType, Protocol

from services.domain.ids import DocumentId, EpisodeId, PassageId, SessionId
from services.domain.instants import Instant
from services.domain.memory import Episode, Passage, Role
from services.domain.scope import Scope

TextChanges = NewType("TextChanges", int)
"""How often episodes or passages of a graph came, moved or went: where two of one generation of the graph are
equal, these are the same."""

UNCHANGED = TextChanges(0)


class Said(NamedTuple):
    """When a passage was said, and of its episode, which is not deleted: what an answer tells of it."""

    at: Instant
    episode: EpisodeId
    saved_at: Instant
    session: SessionId | None = None
    document: DocumentId | None = None


def said_of(passage: Passage, episode: Episode) -> Said:
    """What is told of a passage of an episode: its own time, or where it has none that of its episode."""
    at = episode.reference_time if passage.said_at is None else passage.said_at
    return Said(at, episode.id, episode.created_at, episode.session, episode.document)


class PlainPassage(NamedTuple):
    """A Passage, which see, as a tuple: of a whole graph's few are shown, and all are read."""

    id: PassageId
    episode: EpisodeId
    position: int
    text: str
    start: int
    end: int
    hash: str
    speaker: str
    role: str
    """The value of a Role."""
    message_id: str
    said_at: Instant | None
    held: bool


def plain_passage(one: Passage) -> PlainPassage:
    where = one.id, one.episode, one.position, one.text, one.start, one.end
    who = one.hash, one.speaker, str(one.role.value)
    return PlainPassage(*where, *who, one.message_id, one.said_at, one.held)


def passage_of(one: PlainPassage) -> Passage:
    where = one.id, one.episode, one.position, one.text, one.start, one.end
    return Passage(*where, one.hash, one.speaker, Role(one.role), one.message_id, one.said_at, one.held)


class FollowedTexts(Protocol):
    """Part of TextStore, which see."""

    async def kept(self, scope: Scope) -> Sequence[EpisodeId]:
        """The id of every episode, deleted ones left out; by id."""
        ...

    async def passages_in(
        self, scope: Scope, episodes: Sequence[EpisodeId]
    ) -> Sequence[tuple[PlainPassage, Said]]:
        """The passages of some episodes, by episode as asked, then by position; a deleted one has none."""
        ...
