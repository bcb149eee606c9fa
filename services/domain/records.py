"""Records: the immutable things that episodes and users say of a statement. Spans follow from them.

A record is never changed; it is *revoked* by a later revision. `recorded_at` and `revoked_at` are
revisions of the graph (system time); all other times are world time.
"""

from dataclasses import dataclass
from enum import IntEnum

from services.domain.ids import EpisodeId, PassageId, RecordId, Revision, StatementId
from services.domain.instants import Instant, Precision


class EndReason(IntEnum):
    """Why something stopped."""

    STATED = 1
    USER = 2
    SOURCE_REMOVED = 3


class VerdictKind(IntEnum):
    """How two statements stand to each other."""

    DUPLICATE = 1
    CONTRADICTS = 2
    COMPATIBLE = 3


class Judge(IntEnum):
    """Who decided a verdict."""

    RULE = 1
    MODEL = 2
    USER = 3


@dataclass(frozen=True, slots=True)
class Source:
    """Where a record comes from. `episode` is None only for what a user did by hand without text."""

    episode: EpisodeId | None
    passage: PassageId | None = None
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """One episode says that a statement holds.

    `start` is None when no start was stated: it is then ASSUMED to be `attested_at`.
    `seen` is the last instant the source vouches for. `time_text` keeps a date that could not be parsed.
    """

    id: RecordId
    statement: StatementId
    start: Instant | None
    end: Instant | None
    attested_at: Instant
    seen: Instant
    source: Source
    start_precision: Precision = Precision.INSTANT
    end_precision: Precision = Precision.INSTANT
    confidence: float = 1.0
    time_text: str = ""
    recorded_at: Revision = Revision(0)
    revoked_at: Revision | None = None


@dataclass(frozen=True, slots=True)
class End:
    """One episode, a user or a removed source says that a statement stopped holding at `at`."""

    id: RecordId
    statement: StatementId
    at: Instant
    attested_at: Instant
    source: Source
    precision: Precision = Precision.INSTANT
    reason: EndReason = EndReason.STATED
    confidence: float = 1.0
    recorded_at: Revision = Revision(0)
    revoked_at: Revision | None = None


@dataclass(frozen=True, slots=True)
class Denial:
    """One episode or a user says that a statement did not hold in `[start, until)`; None is open."""

    id: RecordId
    statement: StatementId
    start: Instant | None
    until: Instant | None
    attested_at: Instant
    source: Source
    confidence: float = 1.0
    recorded_at: Revision = Revision(0)
    revoked_at: Revision | None = None


Evidence = Claim | End | Denial
"""What is said of one statement."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How `left` and `right` (left < right, as ids sort) stand to each other, and who said so."""

    id: RecordId
    left: StatementId
    right: StatementId
    kind: VerdictKind
    judge: Judge
    attested_at: Instant
    why: str = ""
    model: str = ""
    prompt_version: str = ""
    episode: EpisodeId | None = None
    recorded_at: Revision = Revision(0)
    revoked_at: Revision | None = None


Record = Claim | End | Denial | Verdict
