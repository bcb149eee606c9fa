"""Change: everything that one revision writes, in one value that survives a crash.

The revision log keeps it as JSON until the revision is published, so whoever comes next can complete it.
"""

from dataclasses import dataclass, field

from pydantic import TypeAdapter

from services.domain.facts import DropReason
from services.domain.graph import Entity, Statement
from services.domain.identity import Merge
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision, StatementId, VoiceId
from services.domain.memory import VoiceAspect, VoiceClaim, VoiceEnd
from services.domain.predicates import Declared
from services.domain.records import Claim, Denial, End, Verdict
from services.llm.port import Receipt
from services.stores.graph.port import Alias, Commit, Records, Revocation
from services.stores.memory.port import Decision


@dataclass(frozen=True, slots=True)
class Revoked:
    """How many records of each kind a revision revoked."""

    claims: int = 0
    ends: int = 0
    denials: int = 0
    voice: int = 0


@dataclass(frozen=True, slots=True)
class Asserted:
    """Which statement a triple given directly is, and the episode that keeps it."""

    statement: StatementId
    episode: EpisodeId


@dataclass(frozen=True, slots=True)
class Dropped:
    """A staged fact of a turn that was not believed."""

    reason: DropReason
    turn: int


NOTHING = Records((), (), (), (), (), ())


@dataclass
class Draft:
    """What a command wants to record at a revision, before the spans that follow are derived.

    Built up by the parts of the resolver; everything in it carries `revision` where it has one. `read` and
    `stored` are the statements whose records were looked up, and what the store had of them; `keys` the keys
    of entities that were met: whoever derives the spans need not look these up again.
    """

    revision: Revision
    entities: dict[EntityId, Entity] = field(default_factory=dict)
    aliases: dict[tuple[str, str, EntityId], Alias] = field(default_factory=dict)
    statements: dict[StatementId, Statement] = field(default_factory=dict)
    claims: dict[RecordId, Claim] = field(default_factory=dict)
    ends: dict[RecordId, End] = field(default_factory=dict)
    denials: dict[RecordId, Denial] = field(default_factory=dict)
    verdicts: dict[RecordId, Verdict] = field(default_factory=dict)
    revocations: dict[RecordId, Revocation] = field(default_factory=dict)
    emptied: dict[RecordId, Revocation] = field(default_factory=dict)
    """Records whose words go, since their episode is deleted."""
    retold: dict[StatementId, str] = field(default_factory=dict)
    """Sentences in place of those that a deleted episode wrote."""
    voice: dict[VoiceId, VoiceAspect] = field(default_factory=dict)
    voice_claims: dict[RecordId, VoiceClaim] = field(default_factory=dict)
    voice_ends: dict[RecordId, VoiceEnd] = field(default_factory=dict)
    voice_revoked: dict[RecordId, VoiceId] = field(default_factory=dict)
    voice_undone: dict[RecordId, VoiceId] = field(default_factory=dict)
    """Ends of the voice that a user takes back: revoked, and their words stay."""
    voice_emptied: dict[RecordId, VoiceId] = field(default_factory=dict)
    """Records of the voice that were revoked earlier, and whose words go now."""
    voice_unsupported: set[VoiceId] = field(default_factory=set)
    voice_retold: dict[VoiceId, str] = field(default_factory=dict)
    merges: dict[RecordId, Merge] = field(default_factory=dict)
    declared: dict[RecordId, Declared] = field(default_factory=dict)
    readings_revoked: set[RecordId] = field(default_factory=set)
    """Merges and declarations that count no more: see `part`."""
    merges_emptied: set[RecordId] = field(default_factory=set)
    """Merges whose reasons go, since their episode is deleted."""
    parted: set[EntityId] = field(default_factory=set)
    """Whom merges named that count no more."""
    reads_as: EntityId | None = None
    """What merged entities read as with the draft; of a split one, before it."""
    revoked: Revoked = Revoked()
    decisions: list[Decision] = field(default_factory=list)
    undone: list[RecordId] = field(default_factory=list)
    """Ends and denials that a user's call revokes."""
    judged: list[RecordId] = field(default_factory=list)
    """Verdicts that a user's call records."""
    episodes: tuple[EpisodeId, ...] = ()
    """Episodes that the draft revokes."""
    archived: set[StatementId] = field(default_factory=set)
    restored: set[StatementId] = field(default_factory=set)
    """Statements that go to the archive, or come back: nothing else of them changes."""
    context: tuple[StatementId, ...] = ()
    """Known facts that the draft's episode was understood with."""
    asserted: list[Asserted] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    read: set[StatementId] = field(default_factory=set)
    stored: Records = NOTHING
    keys: dict[EntityId, str] = field(default_factory=dict)
    again: set[StatementId] = field(default_factory=set)
    """Statements whose spans are derived again though nothing new is said of them."""
    forgotten: set[StatementId] = field(default_factory=set)
    """Likewise; and their words go unless something supports them."""
    keeps_words: bool = False
    """What the draft revokes was known until then, and its text is there: no words go with it."""

    @property
    def empty(self) -> bool:
        """True when nothing would be recorded."""
        return not (
            self.claims
            or self.ends
            or self.denials
            or self.verdicts
            or self.revocations
            or self.voice_claims
            or self.voice_ends
            or self.voice_revoked
            or self.voice_undone
            or self.again
            or self.forgotten
            or self.voice_emptied
            or self.merges
            or self.declared
            or self.readings_revoked
            or self.archived
            or self.restored
            or self.decisions
        )

    def part(self, merge: Merge) -> None:
        """From the draft's revision on, a merge counts no more."""
        self.readings_revoked.add(merge.id)
        self.parted |= {merge.entity, merge.into}

    def touched(self) -> set[StatementId]:
        """Statements whose spans may change by their records; merges touch others: see closure.py."""
        touched = self.again | self.forgotten | {claim.statement for claim in self.claims.values()}
        touched |= {end.statement for end in self.ends.values()}
        touched |= {denial.statement for denial in self.denials.values()}
        touched |= {revocation.statement for revocation in self.revocations.values()}
        return touched | {side for pair in self.verdicts.values() for side in (pair.left, pair.right)}


@dataclass(frozen=True, slots=True)
class Touched:
    """What reads otherwise since a revision, beside what it added: see services/recall/hot/changes.py."""

    statements: tuple[StatementId, ...] = ()
    entities: tuple[EntityId, ...] = ()
    voice: tuple[VoiceId, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a revision changed, by id, and what making it cost. Kept for ever with the revision; no text."""

    entities_added: tuple[EntityId, ...] = ()
    statements_added: tuple[StatementId, ...] = ()
    statements_ended: tuple[StatementId, ...] = ()
    statements_restored: tuple[StatementId, ...] = ()
    voice_added: tuple[VoiceId, ...] = ()
    voice_ended: tuple[VoiceId, ...] = ()
    claims: int = 0
    ends: int = 0
    denials: int = 0
    revoked: Revoked = Revoked()
    statements_moved: tuple[StatementId, ...] = ()
    """Those made earlier whose spans or sentence are others since: what was written of them is old."""
    voice_moved: tuple[VoiceId, ...] = ()
    """Likewise, of the voice."""
    episodes: tuple[EpisodeId, ...] = ()
    """Of a revocation: those that were deleted."""
    statements_expired: tuple[StatementId, ...] = ()
    """Believed before, at any world time, and not at all any more."""
    undone: tuple[RecordId, ...] = ()
    judged: tuple[RecordId, ...] = ()
    """Of a user's call: what it revoked, and the verdicts that it recorded."""
    asserted: tuple[Asserted, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    reads_as: EntityId | None = None
    """What entities that were merged read as since; of one that was split, before."""
    archived: int = 0
    unarchived: int = 0
    """How many statements a call put into the archive, or brought back."""
    context: tuple[StatementId, ...] = ()
    """Known facts that the episode was understood with: what recall reads of it, by this name, to tell what
    relied on them. It is told here, with the revision, so that it is written, exported and erased with it."""
    touched: Touched | None = None
    """None in revisions of before this was told: whoever follows the log then reads the graph anew."""


@dataclass(frozen=True, slots=True)
class Change:
    """A draft with the spans that follow from it: what the stores are given."""

    commit: Commit
    voice: tuple[VoiceAspect, ...] = ()
    voice_claims: tuple[VoiceClaim, ...] = ()
    voice_ends: tuple[VoiceEnd, ...] = ()
    voice_revoked: tuple[tuple[VoiceId, RecordId], ...] = ()
    voice_undone: tuple[RecordId, ...] = ()
    voice_emptied: tuple[tuple[VoiceId, RecordId], ...] | None = None
    """Whose words go; None, in changes of an earlier release: those that are revoked."""
    decisions: tuple[Decision, ...] = ()
    unsupported: tuple[StatementId, ...] = ()
    """Statements that no record supports any more: their text goes."""
    unsupported_voice: tuple[VoiceId, ...] = ()
    emptied: tuple[Revocation, ...] = ()
    retold: tuple[tuple[StatementId, str], ...] = ()
    voice_retold: tuple[tuple[VoiceId, str], ...] = ()
    merges: tuple[Merge, ...] = ()
    declared: tuple[Declared, ...] = ()
    readings_revoked: tuple[RecordId, ...] = ()
    merges_emptied: tuple[RecordId, ...] = ()
    archived: tuple[StatementId, ...] = ()
    restored: tuple[StatementId, ...] = ()
    """Statements whose rows move to the archive, or back; whatever else the change touches comes back too."""
    orphans: tuple[EntityId, ...] = ()
    """Entities that may be named by nothing any more: checked once the commit is applied."""

    @property
    def words_revoked(self) -> tuple[tuple[VoiceId, RecordId], ...]:
        """Records of the voice whose words go."""
        return self.voice_revoked if self.voice_emptied is None else self.voice_emptied

    @property
    def forgets(self) -> bool:
        """Whether words go with it, from any store. Told by the change alone: whoever completes it knows."""
        return bool(
            self.unsupported
            or self.orphans
            or self.emptied
            or self.retold
            or self.merges_emptied
            or self.unsupported_voice
            or self.words_revoked
            or self.voice_retold
        )


@dataclass(frozen=True, slots=True)
class Published:
    """A published revision and what it changed."""

    revision: Revision
    outcome: Outcome = Outcome()


_CHANGE = TypeAdapter(Change)
_OUTCOME = TypeAdapter(Outcome)


def change_to_json(change: Change) -> bytes:
    return _CHANGE.dump_json(change)


def change_from_json(data: bytes) -> Change:
    return _CHANGE.validate_json(data)


def outcome_to_json(outcome: Outcome) -> str:
    return _OUTCOME.dump_json(outcome).decode()


def outcome_from_json(text: str) -> Outcome:
    return _OUTCOME.validate_json(text)
