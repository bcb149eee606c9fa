"""Text as values: documents and their versions, episodes, passages, and voice aspects."""

from dataclasses import dataclass
from enum import StrEnum

from services.domain.ids import (
    DocumentId,
    EpisodeId,
    JobId,
    PassageId,
    RecordId,
    Revision,
    SessionId,
    VoiceId,
)
from services.domain.instants import Instant


class EpisodeKind(StrEnum):
    """What an ingested text is."""

    CONVERSATION = "conversation"
    DOCUMENT = "document"
    COMPACTED_SESSION = "compacted_session"
    ASSERTION = "assertion"


class Role(StrEnum):
    """Whose turn a message is; a document's passages have none."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    NONE = ""


class VoiceKind(StrEnum):
    """What a sentence of the user's voice is."""

    DIRECTIVE = "Directive"
    PREFERENCE = "Preference"
    HABIT = "Habit"
    BELIEF = "Belief"
    GOAL = "Goal"
    TASK = "Task"


def spoken(speaker: str, text: str) -> str:
    """A text after who said it; "" where nobody in particular did."""
    return f"{speaker}: {text}" if speaker else text


@dataclass(frozen=True, slots=True)
class Passage:
    """One message or paragraph. `start` and `end` are code-point offsets into the episode's text.

    `hash` is of speaker, text and reference time; in a document of the text alone. `held`: its episode is
    held back for review, and nobody but who reviews it is shown its words.
    """

    id: PassageId
    episode: EpisodeId
    position: int
    text: str
    start: int
    end: int
    hash: str
    speaker: str = ""
    role: Role = Role.NONE
    message_id: str = ""
    said_at: Instant | None = None
    held: bool = False

    @property
    def with_speaker(self) -> str:
        """The text after who said it: what a passage is searched by. Questions name people, turns say I."""
        return spoken(self.speaker, self.text)


@dataclass(frozen=True, slots=True)
class Episode:
    """One ingested chunk: what evidence is counted by.

    `reference_time` is when it was said, `created_at` the clock's time of saving. `heading` is the path of
    headings above a document's chunk, `metadata` the tenant's own notes. Of a deleted episode `text` and
    `metadata` are empty. `unlearned_at` is when understanding it failed: what it says is no known text then.
    `held`: its text is held back for review, and nothing is learned of it.
    """

    id: EpisodeId
    job: JobId
    kind: EpisodeKind
    text: str
    reference_time: Instant
    created_at: Instant
    tokens: int
    position: int = 0
    session: SessionId | None = None
    document: DocumentId | None = None
    version: int | None = None
    heading: tuple[str, ...] = ()
    title: str = ""
    source: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    deleted_at: Instant | None = None
    unlearned_at: Instant | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """One whole text of a document, kept and readable. `version` counts from 1; `tokens` 0: not counted."""

    document: DocumentId
    version: int
    hash: str
    text: str
    reference_time: Instant
    created_at: Instant
    job: JobId
    title: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class VersionHead:
    """A document's version without its text; `size` in bytes of UTF-8."""

    version: int
    hash: str
    size: int
    tokens: int
    reference_time: Instant
    created_at: Instant
    job: JobId
    title: str


@dataclass(frozen=True, slots=True)
class VoiceClaim:
    """One episode has the user saying a voice aspect."""

    id: RecordId
    voice: VoiceId
    episode: EpisodeId
    passage: PassageId | None
    quote: str
    attested_at: Instant
    recorded_at: Revision = Revision(0)
    revoked_at: Revision | None = None


@dataclass(frozen=True, slots=True)
class VoiceEnd:
    """A later voice aspect (`by`), an episode or a user ended a voice aspect at `at`."""

    id: RecordId
    voice: VoiceId
    at: Instant
    by: VoiceId | None
    episode: EpisodeId | None
    why: str = ""
    recorded_at: Revision = Revision(0)
    revoked_at: Revision | None = None


@dataclass(frozen=True, slots=True)
class VoiceAspect:
    """A whole sentence of the user's voice, never decomposed. Holds from its first claim to its first end."""

    id: VoiceId
    kind: VoiceKind
    text: str
    claims: tuple[VoiceClaim, ...] = ()
    ends: tuple[VoiceEnd, ...] = ()
    created_at: Revision = Revision(0)
