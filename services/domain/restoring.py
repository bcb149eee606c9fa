"""Restoring: what has to be undone so that a statement holds again. Pure; the resolver records what follows.

A user's own ends and denials go first, the newest first, as far as they bear on where the statement stands.
Then, from its last stay on, whatever closed it: ends and denials of any source are revoked, and a statement
that took over is exempted. What a statement's own claim states as its end is its evidence and stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.domain.beliefs import Records, SlotRecords, derive, in_force, said_in_force
from services.domain.ids import RecordId, StatementId
from services.domain.instants import FOREVER, Instant, Interval
from services.domain.records import Claim, Denial, End, EndReason, Judge, Verdict, VerdictKind
from services.domain.slots import AS_WRITTEN, CardinalityOf, Reading, competition
from services.domain.timeline import DerivedSpan

MOST_STEPS = 100
"""Statements that took over one after the other, at the most; each costs a derivation of the slot."""


@dataclass(frozen=True, slots=True)
class Restoring:
    """`revoked`: ends and denials, in the order in which they go. `exempted`: statements that took over.

    `holds` tells whether the statement holds at the time asked about, or will, once that is done.
    """

    revoked: tuple[End | Denial, ...] = ()
    exempted: tuple[StatementId, ...] = ()
    holds: bool = True

    @property
    def nothing(self) -> bool:
        return not (self.revoked or self.exempted)


def of_user(record: End | Denial) -> bool:
    """Whether a user made it by hand: an end or a denial of his own, without text."""
    by_hand = record.source.episode is None
    return by_hand and (isinstance(record, Denial) or record.reason is EndReason.USER)


def restoring(
    records: Records,
    statement: StatementId,
    cardinality: CardinalityOf,
    now: Instant,
    reading: Reading = AS_WRITTEN,
) -> Restoring:
    """What to undo of a whole closure for one of its statements, and those that derive as one with it."""
    undoing = _Undoing(records, statement, cardinality, reading)
    mine = undoing.mine()
    if undoing.is_open():
        # It holds: what else can be meant is what the user himself took from it, elsewhere in time.
        for record in mine:
            before = undoing.every
            undoing.revoke(record)
            if undoing.every != before:
                break
            undoing.keep(record)
        return undoing.done(now)
    for record in mine:
        tail = undoing.spans[-1:]
        undoing.revoke(record)
        if undoing.spans[-1:] == tail:
            undoing.keep(record)
        if undoing.is_open():
            break
    steps = 0
    # Of what no claim says, an end is all the evidence that there is: nothing was closed by it.
    while undoing.claimed() and not undoing.is_open() and steps < MOST_STEPS and undoing.step():
        steps += 1
    return undoing.done(now)


class _Undoing:
    """The records of a closure as they would be, and the spans of one class of statements that follow."""

    def __init__(
        self, records: Records, statement: StatementId, cardinality: CardinalityOf, reading: Reading
    ) -> None:
        self._cardinality = cardinality
        self._reading = reading
        self._statement = statement
        self._records = SlotRecords(
            tuple(records.statements),
            tuple(in_force(records.claims)),
            tuple(in_force(records.ends)),
            tuple(in_force(records.denials)),
            tuple(in_force(records.verdicts)),
        )
        self._revoked: list[End | Denial] = []
        self._exempted: list[StatementId] = []
        self._derive()

    def is_open(self) -> bool:
        return bool(self.spans) and self.spans[-1].invalid_at is None

    def claimed(self) -> bool:
        """Whether anybody says that it holds, or held."""
        return any(self._in_class(claim.statement) for claim in self._records.claims)

    def done(self, now: Instant) -> Restoring:
        last = self.spans[-1].invalid_at if self.spans else BEFORE_ALL
        return Restoring(tuple(self._revoked), tuple(self._exempted), last is None or last > now)

    def mine(self) -> list[End | Denial]:
        """The user's own ends and denials of the class, the newest first."""
        found = [one for one in self._said() if of_user(one)]
        return sorted(found, key=lambda one: (one.recorded_at, one.attested_at, one.id), reverse=True)

    def revoke(self, *gone: End | Denial) -> None:
        ids = {one.id for one in gone}
        self._revoked += gone
        self._become(
            replace(
                self._records,
                ends=tuple(one for one in self._records.ends if one.id not in ids),
                denials=tuple(one for one in self._records.denials if one.id not in ids),
            )
        )

    def keep(self, record: End | Denial) -> None:
        """Takes the last revocation back: it bears on nothing."""
        self._revoked.remove(record)
        if isinstance(record, End):
            self._become(replace(self._records, ends=(*self._records.ends, record)))
        else:
            self._become(replace(self._records, denials=(*self._records.denials, record)))

    def step(self) -> bool:
        """Undoes the next thing that closed it; False when there is none that can be undone."""
        return self._reopen(self.spans[-1]) if self.spans else self._bring_back()

    def _reopen(self, last: DerivedSpan) -> bool:
        records = self._records
        every: list[Claim | End | Denial] = [*records.claims, *records.ends, *records.denials]
        cause = next((one for one in every if one.id == last.ended_by), None)
        if cause is None:
            return False
        if not self._in_class(cause.statement):
            return self._exempt([cause.statement])
        if isinstance(cause, Claim):
            return False
        self.revoke(cause)
        return True

    def _bring_back(self) -> bool:
        """One that holds at no time: denied whole, ended as it began, or corrected by others."""
        denials = [one for one in self._said() if isinstance(one, Denial)]
        if denials:
            self.revoke(*denials)
            return True
        alone = self._alone()
        if not alone:
            ends = [one for one in self._said() if isinstance(one, End)]
            self.revoke(*ends)
            return bool(ends)
        wanted = Interval(alone[-1].valid_at, alone[-1].invalid_at)
        rivals = [
            span.statement
            for span in self.every
            if self._rivals(self._class, span.statement)
            and wanted.meets(Interval(span.valid_at, span.invalid_at))
        ]
        return self._exempt(rivals)

    def _exempt(self, statements: Sequence[StatementId]) -> bool:
        fresh = [one for one in dict.fromkeys(statements) if one not in self._exempted]
        self._exempted += fresh
        verdicts = [self._compatible(one) for one in fresh]
        pairs = {(one.left, one.right) for one in verdicts}
        left = [
            one for one in self._records.verdicts if one.judge is not Judge.USER or _pair(one) not in pairs
        ]
        self._become(replace(self._records, verdicts=(*left, *verdicts)))
        return bool(fresh)

    def _compatible(self, other: StatementId) -> Verdict:
        left, right = sorted((self._statement, other))
        made = RecordId(f"to be recorded: {left} {right}")
        return Verdict(made, left, right, VerdictKind.COMPATIBLE, Judge.USER, FOREVER)

    def _said(self) -> list[End | Denial]:
        """The ends and denials of the class."""
        every: list[End | Denial] = [*self._records.ends, *self._records.denials]
        return [one for one in every if self._in_class(one.statement)]

    def _in_class(self, statement: StatementId) -> bool:
        return self._shown[statement] == self._class

    def _alone(self) -> tuple[DerivedSpan, ...]:
        """The spans that its class had if nothing contradicted it."""
        mine = [one for one in self._records.statements if self._in_class(one.id)]
        ids = {one.id for one in mine}
        records = replace(
            self._records,
            statements=tuple(mine),
            claims=tuple(one for one in self._records.claims if one.statement in ids),
            ends=tuple(one for one in self._records.ends if one.statement in ids),
            denials=tuple(one for one in self._records.denials if one.statement in ids),
        )
        return derive(records, self._cardinality, reading=self._reading)

    def _become(self, records: SlotRecords) -> None:
        self._records = records
        self._derive()

    def _derive(self) -> None:
        records = self._records
        among = competition(
            records.statements, said_in_force(records), records.verdicts, self._cardinality, self._reading
        )
        self._shown, self._rivals = among.shown, among.rivals
        self._class = self._shown[self._statement]
        self.every = derive(records, self._cardinality, reading=self._reading)
        self.spans = [span for span in self.every if span.statement == self._class]


BEFORE_ALL = Instant(-(2**62))


def _pair(verdict: Verdict) -> tuple[StatementId, StatementId]:
    return verdict.left, verdict.right
