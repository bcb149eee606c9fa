"""Facts as an engine draws them from text, before the resolver gives them ids.

Turns, facts and candidates are referred to by their position in the list that was sent (small integers),
never by re-typed text; whoever reads an engine's answer checks the positions and the quotes.
"""

from dataclasses import dataclass
from enum import StrEnum

from services.domain.graph import EntityType, GraphAspect, Literal
from services.domain.instants import Instant, Precision
from services.domain.memory import Role, VoiceKind


class NothingReason(StrEnum):
    """Why a chunk leaves nothing to remember. Names as in palimpsest.v1.NothingReason."""

    SMALL_TALK = "SMALL_TALK"
    NO_DURABLE_FACT = "NO_DURABLE_FACT"
    DUPLICATE_CONTENT = "DUPLICATE_CONTENT"
    UNCHANGED_DOCUMENT = "UNCHANGED_DOCUMENT"
    RECALLED_TEXT = "RECALLED_TEXT"
    QUARANTINED = "QUARANTINED"


class DropReason(StrEnum):
    """Why a fact that an engine proposed was not believed."""

    QUOTE_NOT_FOUND = "QUOTE_NOT_FOUND"
    UNCONFIRMED_ASSISTANT = "UNCONFIRMED_ASSISTANT"
    INSTRUCTION_SHAPED = "INSTRUCTION_SHAPED"
    RECALLED_TEXT = "RECALLED_TEXT"
    UNKNOWN_TURN = "UNKNOWN_TURN"
    NOT_DURABLE = "NOT_DURABLE"
    UNCLASSIFIED_VOICE = "UNCLASSIFIED_VOICE"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True)
class Turn:
    """A passage as engines see it: its position in the chunk, who spoke, what was said and when."""

    position: int
    text: str
    speaker: str = ""
    role: Role = Role.NONE
    said_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class StatedTime:
    """A time as text says it. `at` is None when `text` could not be read as a date."""

    text: str
    at: Instant | None = None
    precision: Precision = Precision.INSTANT


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity as a text names it; with an `id`, as a caller does, who knows it."""

    name: str
    type: EntityType = EntityType.UNKNOWN
    id: str = ""


class FactKind(StrEnum):
    """What a text says of a triple: that it holds, stopped, or did not hold."""

    CLAIM = "claim"
    END = "end"
    DENIAL = "denial"


@dataclass(frozen=True, slots=True)
class WorldFact:
    """One triple drawn from one turn. An end uses `end` alone; a denial's period is [start, end).

    `confirmed_by` is the user's turn that confirms what an assistant's turn says. `seen` as in 02-time:
    None means the attesting time (the text speaks of the present).
    """

    kind: FactKind
    subject: Mention
    predicate: str
    object: Mention | Literal
    fact: str
    turn: int
    quote: str
    start: StatedTime | None = None
    end: StatedTime | None = None
    seen: StatedTime | None = None
    confidence: float = 1.0
    confirmed_by: int | None = None
    aspect: GraphAspect | None = None
    event_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class VoiceFact:
    """One whole sentence of the user's voice."""

    text: str
    turn: int
    quote: str
    kind: VoiceKind | None = None
    ends_earlier: bool = False
