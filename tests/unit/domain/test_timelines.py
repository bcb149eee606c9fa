"""The shared timelines and their brothers, in every order of arrival, by the kernel and by beliefs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

import pytest

from services.domain.graph import Span
from services.domain.ids import RecordId, Revision
from services.domain.instants import Instant, moment
from services.domain.records import Judge, Verdict, VerdictKind
from services.domain.timeline import DerivedSpan
from tests import yaml_files
from tests.unit.domain.given import (
    BROTHERS,
    CASES,
    Record,
    Timeline,
    claim,
    current,
    day,
    derived,
    orders,
    shown,
    steps,
    timelines,
)
from tests.unit.domain.ledger import Ledger, said, statement


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


def test_each_kind_has_a_brother() -> None:
    kinds = {case["id"] for case in yaml_files.read(CASES / "timelines.yaml") if "steps" not in case}
    brothers = yaml_files.read(BROTHERS)
    assert {case["brother_of"] for case in brothers} == kinds
    assert not {case["id"] for case in brothers} & kinds
