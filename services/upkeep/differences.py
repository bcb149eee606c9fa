"""Differences: what a verification can find, what was done about each, and the report."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from services.domain.scope import Scope


class Kind(StrEnum):
    """What differs, in the order in which it is mended: what others rest on comes first."""

    REVISION_NOT_PUBLISHED = "revision not published"
    """Begun long ago; whoever began it is gone."""
    REVISION_NOT_IN_LOG = "revision not in log"
    """The graph holds what no revision of the log wrote: its log is older. Stores can't mend it."""
    EDGE_WITHOUT_END = "edge without end"
    """A statement or an alias names an entity that is not there, or a record a statement that is not."""
    EVIDENCE_WITHOUT_EPISODE = "evidence without episode"
    """Records that count, of an episode that is not there or deleted."""
    VOICE_WITHOUT_PASSAGE = "voice without passage"
    """A claim of a voice aspect that counts, of a passage that is not there."""
    STATEMENT_WITHOUT_CLAIMS = "statement without claims"
    """It has text, and no record that counts."""
    SPANS_DIFFER = "spans differ"
    """What is believed is not what follows from the records."""
    HULL_TOO_NARROW = "hull too narrow"
    """The graph store would sieve out a statement that a span makes visible."""
    STATEMENT_WITHOUT_VECTOR = "statement without vector"
    ARCHIVED_WITHOUT_VECTOR = "archived statement without vector"
    ENTITY_WITHOUT_VECTOR = "entity without vector"
    PASSAGE_WITHOUT_VECTOR = "passage without vector"
    VOICE_WITHOUT_VECTOR = "voice without vector"
    VECTOR_DIFFERS = "vector differs"
    """Its filter columns, or the hull of a statement."""
    VECTOR_WITHOUT_STATEMENT = "vector without statement"
    """Or of one that is archived."""
    VECTOR_WITHOUT_ARCHIVED = "vector without archived statement"
    VECTOR_WITHOUT_ENTITY = "vector without entity"
    VECTOR_WITHOUT_PASSAGE = "vector without passage"
    VECTOR_WITHOUT_VOICE = "vector without voice"


class Done(StrEnum):
    """What came of a difference."""

    LEFT = "left"
    """Nothing was done, or it is still there."""
    REPAIRED = "repaired"
    UNDECIDED = "undecided"
    """The graph was being written whenever it was looked at again."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it should be: `id` names it in the store where it is, or should be.

    `unit` is what was looked at when it was found. Ids and names of columns only, never text of users.
    """

    kind: Kind
    scope: Scope
    id: str
    what: str = ""
    unit: str = ""
    done: Done = Done.LEFT

    @property
    def same(self) -> tuple[Kind, str, str]:
        """Equal for two sightings of one difference."""
        return self.kind, self.id, self.what


@dataclass(frozen=True, slots=True)
class Report:
    """What a verification of one graph found, and how much it looked at."""

    scope: Scope
    differences: Sequence[Difference]
    looked_at: int

    @property
    def left(self) -> int:
        """How many differences there still are, or may be."""
        return sum(difference.done is not Done.REPAIRED for difference in self.differences)
