"""The laws of system time, over random commits: records, revocations, verdicts, merges, replays.

One history is held to every law, so that each gets all examples: to draw and to replay it costs more than to
hold it to one of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from services.domain.beliefs import Said, believed, changes, hull, said_by
from services.domain.graph import Span
from services.domain.ids import EntityId, RecordId, Revision
from services.domain.instants import Interval, Precision
from services.domain.records import Judge, Verdict, VerdictKind
from services.domain.slots import competition
from services.domain.timeline import DerivedSpan
from tests.builders import without_precisions
from tests.unit.domain.given import claim
from tests.unit.domain.ledger import SCOPE, Ledger, Record, statement
from tests.unit.domain.worlds import DAYS, records_of

STATEMENTS = [
    statement(predicate, target)
    for predicate, targets in (("lives_in", "Oslo Paris Rome"), ("loves", "Oslo Paris"), ("hates", "Oslo"))
    for target in targets.split()
]
IDS = [each.id for each in STATEMENTS]


@dataclass(frozen=True)
class Commit:
    added: tuple[Record, ...] = ()
    revoked: tuple[RecordId, ...] = ()


@dataclass
class History:
    """A ledger with what was believed and derived right after each revision."""

    ledger: Ledger
    seen: dict[Revision, list[Span]] = field(default_factory=dict)

    def commit(self, commit: Commit) -> None:
        self.ledger.commit(*commit.added, revoke=commit.revoked)
        self.seen[self.ledger.revision] = self.ledger.believed()


def new_ledger() -> Ledger:
    ledger = Ledger(single=["lives_in"])
    ledger.knows(*STATEMENTS)
    return ledger


JUDGED = st.sampled_from(list(product(combinations(sorted(IDS), 2), VerdictKind, Judge, DAYS)))


@st.composite
def verdicts(draw: st.DrawFn, id: str) -> Verdict:
    (left, right), kind, judge, attested = draw(JUDGED)
    return Verdict(RecordId(id), left, right, kind, judge, attested)


@st.composite
def commits(draw: st.DrawFn) -> list[Commit]:
    """Up to 8 commits; a record may be revoked once, later than it came."""
    made: list[Commit] = []
    live: list[RecordId] = []
    for number in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from("ccccceedvvr"))
        if kind == "r" and live:
            gone = draw(st.sampled_from(live))
            live.remove(gone)
            made.append(Commit(revoked=(gone,)))
            continue
        id = f"{kind}{number}"
        record: Record
        if kind == "v":
            record = draw(verdicts(id))
        else:
            record = draw(records_of(kind, id, IDS))
        live.append(record.id)
        made.append(Commit(added=(record,)))
    return made


def said(spans: Iterable[Span | DerivedSpan]) -> set[Said]:
    """What spans say, without when it was believed."""
    return set(map(said_by, spans))


def replayed(commits: list[Commit]) -> History:
    history = History(new_ledger())
    for commit in commits:
        history.commit(commit)
    return history


@given(commits(), st.sampled_from(["Paris", "Rome"]), st.randoms(use_true_random=True))
def test_the_laws_of_belief_hold(commits: list[Commit], other: str, random: Random) -> None:
    history = replayed(commits)
    assert said(history.ledger.believed()) == said(history.ledger.derived())
    past_beliefs_never_change_as_more_arrives(history)
    every_believed_span_has_a_cause_that_counts(history.ledger)
    believed_spans_of_contradicting_statements_never_overlap(history.ledger)
    the_hull_covers_all_spans(history.ledger)
    replay_changes_nothing(history.ledger)
    merge_then_split_restores(history.ledger, other)
    a_half_written_revision_is_repaired_by_the_same_changes(commits, random)
    kept = [commit for commit in commits if commit.added]
    there = any_order_of_commits_ends_with_the_same_beliefs(kept)
    if kept:
        ingested_then_deleted_is_never_ingested(there, kept, random.choice(kept))


def past_beliefs_never_change_as_more_arrives(history: History) -> None:
    """And stored spans are the derived spans, then and ever after."""
    for revision, then in history.seen.items():
        now = history.ledger.believed(revision)
        assert [replace(span, known_to=None) for span in now] == [
            replace(span, known_to=None) for span in then
        ]
        assert said(now) == said(history.ledger.derived(known_at=revision))


def test_a_border_known_finer_is_another_belief() -> None:
    ledger = new_ledger()
    coarse, fine = (
        claim(id, IDS[0], "2023-01-01", None, attested, start_precision=precision)
        for id, attested, precision in (
            ("c", "2023-05-01", Precision.YEAR),
            ("f", "2023-06-01", Precision.DAY),
        )
    )
    ledger.commit(coarse)
    [first] = ledger.believed()
    done = ledger.commit(fine)
    assert done.closed == (first,)
    [second] = done.opened
    assert (first.start_precision, second.start_precision) == (Precision.YEAR, Precision.DAY)
    assert (second.valid_at, second.started_by) == (first.valid_at, first.started_by)
    assert ledger.believed(Revision(1)) == [replace(first, known_to=second.known_from)]


def test_a_span_of_before_precisions_is_written_anew() -> None:
    ledger = new_ledger()
    ledger.commit(claim("c", IDS[0], None, None, "2023-05-01"))
    [span] = ledger.believed()
    ledger.spans[span.id] = without_precisions(span)
    done = ledger.rederive()
    assert done.closed == (without_precisions(span),)
    assert [(each.start_precision, each.assumed) for each in done.opened] == [(Precision.INSTANT, True)]


def replay_changes_nothing(ledger: Ledger) -> None:
    before = dict(ledger.spans)
    nothing = ledger.rederive()
    assert (nothing.opened, nothing.closed) == ((), ())
    assert ledger.spans == before


def a_half_written_revision_is_repaired_by_the_same_changes(commits: list[Commit], random: Random) -> None:
    *earlier, last = commits
    ledger = replayed(earlier).ledger
    before = dict(ledger.spans)
    made = ledger.commit(*last.added, revoke=last.revoked)
    # Any part of what the revision writes may be there when it is tried again.
    opened = [span for span in made.opened if random.random() < 0.5]
    closed = [replace(span, known_to=ledger.revision) for span in made.closed if random.random() < 0.5]
    half: dict[str, Span] = dict(before)
    half.update((span.id, span) for span in (*opened, *closed))
    again = changes(SCOPE, ledger.revision, half.values(), ledger.derived())
    touched = {span.statement for span in (*made.opened, *made.closed)}
    assert set(again.opened) == set(made.opened)
    assert {span.id for span in again.closed} == {span.id for span in made.closed}
    assert {span.statement for span in again.opened} <= touched


def any_order_of_commits_ends_with_the_same_beliefs(added: list[Commit]) -> Ledger:
    """Answers what they end with."""
    forth, back = replayed(added).ledger, replayed(added[::-1]).ledger
    assert said(forth.believed()) == said(back.believed())
    return forth


def ingested_then_deleted_is_never_ingested(ledger: Ledger, kept: list[Commit], gone: Commit) -> None:
    ledger.commit(revoke=[record.id for record in gone.added])
    without = replayed([commit for commit in kept if commit is not gone])
    assert said(ledger.believed()) == said(without.ledger.believed())


def believed_spans_of_contradicting_statements_never_overlap(ledger: Ledger) -> None:
    everything = ledger.slot(IDS)
    among = competition(
        everything.statements,
        [record for record in everything.claims if record.revoked_at is None],
        [record for record in everything.verdicts if record.revoked_at is None],
        ledger.cardinality,
    )
    for one, other in combinations(ledger.believed(), 2):
        if one.statement == other.statement or among.rivals(one.statement, other.statement):
            assert not Interval(one.valid_at, one.invalid_at).meets(
                Interval(other.valid_at, other.invalid_at)
            )


def every_believed_span_has_a_cause_that_counts(ledger: Ledger) -> None:
    for span in ledger.believed():
        assert ledger.records[span.started_by].revoked_at is None
        assert (span.ended_by is None) == (span.invalid_at is None)
        assert span.ended_by is None or ledger.records[span.ended_by].revoked_at is None


def merge_then_split_restores(ledger: Ledger, other: str) -> None:
    before = said(ledger.believed())
    ledger.merged = {EntityId(other): EntityId("Oslo")}
    ledger.rederive()
    assert said(ledger.believed()) == said(ledger.derived())
    ledger.merged = {}
    ledger.rederive()
    assert said(ledger.believed()) == before


def the_hull_covers_all_spans(ledger: Ledger) -> None:
    spans = ledger.spans.values()
    whole = hull(spans)
    assert (whole is None) == (not spans)
    for span in spans:
        assert whole is not None
        assert whole.start is None or (span.valid_at is not None and whole.start <= span.valid_at)
        assert whole.end is None or (span.invalid_at is not None and span.invalid_at <= whole.end)


def test_a_believed_span_is_open_before_the_revision_that_closes_it() -> None:
    ledger = new_ledger()
    ledger.commit(claim("a", IDS[0], "2023-01-01", None, "2023-01-01"))
    ledger.commit(claim("b", IDS[1], "2024-01-01", None, "2024-01-01"))
    first, closing = Revision(1), ledger.revision
    assert [span.invalid_at for span in believed(ledger.spans.values(), first)] == [None]
    assert [span.known_to for span in ledger.spans.values() if span.known_from == first] == [closing]
