"""The shared timelines, in every order of arrival, by the kernel and by beliefs; and their brothers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import permutations
from random import Random

import pytest

from services.domain.graph import Span
from services.domain.ids import RecordId, Revision
from services.domain.instants import Instant, Precision, moment
from services.domain.records import Claim, Denial, End, Judge, Verdict, VerdictKind
from services.domain.timeline import DerivedSpan, timeline
from tests.unit.domain.given import (
    Timeline,
    claim,
    current,
    day,
    denial,
    end,
    of_kind,
    shown,
    steps,
    timelines,
)
from tests.unit.domain.ledger import Ledger, said, statement

Record = Claim | End | Denial
MONTH, YEAR, DAY, WEEK = Precision.MONTH, Precision.YEAR, Precision.DAY, Precision.WEEK


def orders(records: Sequence[Record]) -> Iterator[tuple[Record, ...]]:
    """Every order of up to 6 records; of more, 500 drawn ones."""
    if len(records) <= 6:
        yield from permutations(records)
        return
    random = Random(7)
    for _ in range(500):
        yield tuple(random.sample(records, len(records)))


def derived(records: Sequence[Record], single: bool = True) -> tuple[DerivedSpan, ...]:
    return timeline(
        of_kind(records, Claim),
        of_kind(records, End),
        of_kind(records, Denial),
        lambda one, other: single and one != other,
    )


def with_ids(case: Timeline) -> tuple[Ledger, list[Record]]:
    """The case's records on statements of one subject."""
    ledger = Ledger(single=[case.predicate] if case.single else [])
    records: list[Record] = []
    for record in case.records:
        about = statement(case.predicate, record.statement)
        ledger.knows(about)
        records.append(replace(record, statement=about.id))
    return ledger, records


@pytest.mark.parametrize("case", timelines(), ids=lambda case: case.id)
def test_every_order_of_arrival_gives_the_timeline(case: Timeline) -> None:
    checked = {"timeline", "current_on", "both_current"} & case.expected.keys()
    assert checked, "a case that expects nothing"
    first = derived(case.records, case.single)
    for records in orders(case.records):
        spans = derived(records, case.single)
        assert spans == first
        if "timeline" in case.expected:
            assert shown(spans) == case.expected["timeline"]
        for on, holds in case.expected.get("current_on", {}).items():
            assert current(spans, day(on)) == {holds}
        if "both_current" in case.expected:
            assert {span.statement for span in spans if span.invalid_at is None} == set(
                case.expected["both_current"]
            )


@pytest.mark.parametrize("case", timelines(), ids=lambda case: case.id)
def test_beliefs_end_at_the_same_timeline_in_every_order(case: Timeline) -> None:
    _, records = with_ids(case)
    for order in orders(records):
        ledger, _ = with_ids(case)
        for record in order:
            ledger.commit(record)
        if "timeline" in case.expected:
            assert as_shown(ledger, ledger.believed()) == case.expected["timeline"]


@pytest.mark.parametrize(
    "case", [case for case in timelines() if "known_at" in case.expected], ids=lambda case: case.id
)
def test_what_was_known_at_a_date_is_still_known(case: Timeline) -> None:
    ledger, records = with_ids(case)
    revisions: dict[date, Revision] = {}
    for record in records:
        ledger.commit(record)
        revisions[moment(record.attested_at).date()] = ledger.revision
    for on, expected in case.expected["known_at"].items():
        known = max((r for when, r in revisions.items() if when <= on), default=Revision(0))
        assert as_shown(ledger, ledger.believed(known)) == expected
        assert as_shown(ledger, ledger.derived(known_at=known)) == expected


def as_shown(ledger: Ledger, spans: Sequence[Span | DerivedSpan]) -> list[list[object]]:
    def on(at: Instant | None) -> date | None:
        return None if at is None else moment(at).date()

    return [[of, on(start), on(end)] for of, start, end in said(spans, ledger.statements)]


def words(case: str) -> list[list[str]]:
    return [step.split() for step in steps()[case]]


def asserted(ledger: Ledger, case: str) -> None:
    """Commits the steps of a case that assert something, as records `claim 0`, `claim 1` and so on."""
    for number, step in enumerate(words(case)):
        if step[0] == "assert":
            _, subject, predicate, target, on = step[:5]
            about = statement(predicate, target, subject)
            ledger.knows(about)
            ledger.commit(claim(f"claim {number}", about.id, on, None, on))


def test_undo() -> None:
    ledger = Ledger(single=["lives_in"])
    asserted(ledger, "undo")
    before, kyoto, osaka = ledger.believed(), *sorted(ledger.statements)
    restored = Verdict(
        RecordId("verdict"), kyoto, osaka, VerdictKind.COMPATIBLE, Judge.USER, attested_at=day("2023-02-01")
    )
    ledger.commit(restored)
    assert as_shown(ledger, ledger.believed()) == [
        ["Kyoto", date(2020, 1, 1), None],
        ["Osaka", date(2023, 1, 1), None],
    ]
    assert all(span.contested for span in ledger.believed())
    assert not any(span.contested for span in before)
    ended = [span for span in ledger.spans.values() if span.invalid_at is not None]
    assert [span.known_to for span in ended] == [ledger.revision], "history shows what it replaced"
    ledger.commit(revoke=[RecordId("verdict")])
    assert as_shown(ledger, ledger.believed()) == as_shown(ledger, before)


def test_delete_restores() -> None:
    ledger = Ledger(single=["lives_in"])
    asserted(ledger, "delete-restores")
    with_linz = ledger.revision
    assert len(ledger.believed()) == 2
    ledger.commit(revoke=[RecordId("claim 1")])
    assert as_shown(ledger, ledger.believed()) == [["Graz", date(2020, 1, 1), None]]
    assert as_shown(ledger, ledger.believed(with_linz)) == [
        ["Graz", date(2020, 1, 1), date(2023, 1, 1)],
        ["Linz", date(2023, 1, 1), None],
    ]


# Brothers of the shared cases: the readings of docs/adr/0005-time.md, one by one.
BROTHERS: dict[str, tuple[list[Record], list[list[str | None]]]] = {
    "three stays told as ends alone": (
        [
            claim("a", "Paris", None, "2010-01-01", "2016-01-01"),
            claim("b", "Rome", None, "2013-01-01", "2016-01-01"),
            claim("c", "Paris", None, "2015-01-01", "2016-01-01"),
        ],
        [
            ["Paris", None, "2010-01-01"],
            ["Rome", "2010-01-01", "2013-01-01"],
            ["Paris", "2013-01-01", "2015-01-01"],
        ],
    ),
    "a later word on an end without start": (
        [
            end("a", "Google", "2025-05-10", "2025-06-01"),
            end("b", "Google", "2025-05-01", "2025-07-01"),
        ],
        [["Google", None, "2025-05-01"]],
    ),
    "an end without start after a rival": (
        [
            claim("a", "Meta", "2020-01-01", None, "2021-01-01"),
            end("b", "Google", "2025-05-01", "2025-06-01"),
        ],
        [["Meta", "2020-01-01", "2021-01-01"], ["Google", "2021-01-01", "2025-05-01"]],
    ),
    "a mention does not lose the known start": (
        [
            claim("a", "Google", "2022-01-01", None, "2022-01-02"),
            claim("b", "Google", None, None, "2024-06-01"),
            end("c", "Google", "2024-05-01", "2024-06-10"),
        ],
        [["Google", "2022-01-01", "2024-05-01"]],
    ),
    "a stale mention yields to what followed": (
        [
            claim("a", "Google", None, None, "2024-06-01"),
            claim("b", "Meta", "2024-05-10", None, "2024-05-12"),
            end("c", "Google", "2024-05-01", "2024-06-10"),
        ],
        [["Google", None, "2024-05-01"], ["Meta", "2024-05-10", None]],
    ),
    "the end was told before the beginning": (
        [
            end("a", "Acme", "2022-01-01", "2023-01-01"),
            claim("b", "Acme", "2020-01-01", None, "2026-01-01", seen="2020-01-01"),
        ],
        [["Acme", "2020-01-01", "2022-01-01"]],
    ),
    "seen since the end was told": (
        [
            end("a", "Acme", "2022-01-01", "2023-01-01"),
            claim("b", "Acme", "2020-01-01", None, "2026-01-01"),
        ],
        [["Acme", "2020-01-01", None]],
    ),
    "in a year": (
        [claim("a", "Acme", "2023-01-01", "2023-01-01", "2025-01-01", None, YEAR, YEAR)],
        [["Acme", "2023-01-01", "2024-01-01"]],
    ),
    "since a year is no stay of one year": (
        [claim("a", "Acme", "2023-06-15", None, "2025-01-01", None, YEAR)],
        [["Acme", "2023-01-01", None]],
    ),
    "a finer start of the same object": (
        [
            claim("a", "Acme", "2023-01-01", None, "2025-01-01", None, YEAR),
            claim("b", "Acme", "2023-03-01", None, "2025-02-01", None, MONTH),
            claim("c", "Acme", "2023-03-14", None, "2024-01-01", None, DAY),
        ],
        [["Acme", "2023-03-14", None]],
    ),
    "a mention is no finer start": (
        [
            claim("a", "Acme", "2023-01-01", None, "2025-01-01", None, YEAR),
            claim("b", "Acme", None, None, "2023-06-01"),
        ],
        [["Acme", "2023-01-01", None]],
    ),
    "a finer start after the stay's own end is of another stay": (
        [
            claim("a", "Acme", "2023-01-01", "2023-03-01", "2025-01-01", None, YEAR, DAY),
            claim("b", "Acme", "2023-09-01", None, "2025-01-01", None, DAY),
        ],
        [["Acme", "2023-01-01", "2023-03-01"], ["Acme", "2023-09-01", None]],
    ),
    "a coarse end before a second stay of that year": (
        [
            claim("a", "Acme", "2020-01-01", "2023-01-01", "2025-01-01", None, YEAR, YEAR),
            claim("b", "Acme", "2023-10-01", None, "2025-01-01", None, MONTH),
        ],
        [["Acme", "2020-01-01", "2023-01-01"], ["Acme", "2023-10-01", None]],
    ),
    "sold last week, mentioned that week": (
        [
            claim("a", "Honda", None, None, "2025-07-23"),
            end("b", "Honda", "2025-07-21", "2025-08-01", WEEK),
        ],
        [["Honda", "2025-07-23", "2025-07-28"]],
    ),
    "sold last week": (
        [
            claim("a", "Honda", None, None, "2025-04-01"),
            end("b", "Honda", "2025-07-21", "2025-08-01", WEEK),
        ],
        [["Honda", "2025-04-01", "2025-07-21"]],
    ),
    "a denial spares what is said after it": (
        [
            claim("a", "Paris", "2020-01-01", None, "2021-01-01"),
            denial("b", "Paris", None, None, "2022-01-01"),
            claim("c", "Paris", "2023-01-01", None, "2023-01-02"),
        ],
        [["Paris", "2023-01-01", None]],
    ),
    "a denied stretch": (
        [
            claim("a", "Paris", "2020-01-01", None, "2024-01-01"),
            denial("b", "Paris", "2021-01-01", "2022-01-01", "2024-01-02"),
        ],
        [["Paris", "2020-01-01", "2021-01-01"], ["Paris", "2022-01-01", None]],
    ),
    "a denied rival leaves no room to an end without start": (
        [
            claim("a", "Rome", "2020-01-01", None, "2021-01-01"),
            denial("b", "Rome", None, None, "2022-01-01"),
            end("c", "Paris", "2023-01-01", "2023-02-01"),
        ],
        [["Paris", None, "2023-01-01"]],
    ),
    "a stay that ends before it starts says nothing": (
        [
            claim("a", "Rome", "2020-01-01", None, "2021-01-01"),
            claim("b", "Paris", "2022-01-01", "2019-01-01", "2022-01-01"),
        ],
        [["Rome", "2020-01-01", None]],
    ),
    "told at once of the same start: content decides": (
        [
            claim("a", "MySQL", "2025-06-01", None, "2025-06-02"),
            claim("b", "MariaDB", "2025-06-01", None, "2025-06-02"),
        ],
        [["MySQL", "2025-06-01", None]],
    ),
}


@pytest.mark.parametrize("name", BROTHERS)
def test_brothers(name: str) -> None:
    records, expected = BROTHERS[name]
    rows = [
        [of, *(None if at is None else date.fromisoformat(at) for at in borders)]
        for of, *borders in expected
        if of
    ]
    for order in orders(records):
        assert shown(derived(order)) == rows


def test_causes_and_precision_of_borders() -> None:
    records: list[Record] = [
        claim("first", "Google", "2022-01-01", None, "2022-02-01", None, MONTH),
        claim("again", "Google", "2022-01-01", None, "2023-02-01", None, YEAR),
        claim("mention", "Meta", None, None, "2024-03-05"),
        end("left", "Meta", "2025-01-01", "2025-06-01", YEAR),
        end("left, again", "Meta", "2025-01-01", "2025-07-01", YEAR),
    ]
    google, meta = derived(records)
    assert (google.started_by, google.ended_by) == ("first", "mention"), "repetition re-points nothing"
    assert (google.start_precision, google.end_precision) == (MONTH, Precision.INSTANT)
    assert (meta.started_by, meta.ended_by, meta.end_precision) == ("mention", "left", YEAR)
    assert not google.assumed
    assert meta.assumed
    restarted = derived([*records, denial("no", "Meta", "2024-01-01", "2024-06-01", "2026-01-01")])
    assert [(span.started_by, span.ended_by) for span in restarted] == [
        ("first", "mention"),
        ("mention", "left"),
    ]
