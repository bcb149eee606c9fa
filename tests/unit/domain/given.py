"""What the tests of time are given: records in few words, and the shared timelines as records."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from services.domain.ids import EpisodeId, RecordId, StatementId
from services.domain.instants import Instant, Precision, instant, moment
from services.domain.records import Claim, Denial, End, Source
from services.domain.timeline import DerivedSpan, timeline
from tests import yaml_files

CASES = Path(__file__).parents[2] / "cases"
BROTHERS = Path(__file__).parents[2] / "data" / "brothers_of_timelines.yaml"

Shown = list[Any]
"""[object, valid_at, invalid_at], as the cases write a span."""


def day(value: str | date) -> Instant:
    found = date.fromisoformat(value) if isinstance(value, str) else value
    return instant(datetime(found.year, found.month, found.day, tzinfo=UTC))


def maybe_day(value: str | date | None) -> Instant | None:
    return None if value is None else day(value)


def claim(
    id: str,
    statement: str,
    start: str | date | None,
    end: str | date | None,
    attested: str | date,
    seen: str | date | None = None,
    start_precision: Precision = Precision.INSTANT,
    end_precision: Precision = Precision.INSTANT,
) -> Claim:
    return Claim(
        RecordId(id),
        StatementId(statement),
        maybe_day(start),
        maybe_day(end),
        day(attested),
        day(attested if seen is None else seen),
        Source(EpisodeId(f"episode of {id}")),
        start_precision,
        end_precision,
    )


def end(
    id: str, statement: str, at: str | date, attested: str | date, precision: Precision = Precision.INSTANT
) -> End:
    source = Source(EpisodeId(f"episode of {id}"))
    return End(RecordId(id), StatementId(statement), day(at), day(attested), source, precision)


def denial(
    id: str, statement: str, start: str | date | None, until: str | date | None, attested: str | date
) -> Denial:
    source = Source(EpisodeId(f"episode of {id}"))
    return Denial(
        RecordId(id), StatementId(statement), maybe_day(start), maybe_day(until), day(attested), source
    )


@dataclass(frozen=True)
class Timeline:
    """A case of timelines.yaml: its records in the listed order of arrival, and what must hold."""

    id: str
    predicate: str
    single: bool
    records: tuple[Claim | End | Denial, ...]
    expected: dict[str, Any]


def timelines() -> list[Timeline]:
    """The cases that give records rather than steps, and their brothers."""
    cases = [*yaml_files.read(CASES / "timelines.yaml"), *yaml_files.read(BROTHERS)]
    return [_case(case) for case in cases if "steps" not in case]


def steps() -> dict[str, list[str]]:
    """The cases that tell steps in words, by id."""
    cases = yaml_files.read(CASES / "timelines.yaml")
    return {case["id"]: case["steps"] for case in cases if "steps" in case}


def _case(case: dict[str, Any]) -> Timeline:
    records: list[Claim | End | Denial] = []
    predicate = case.get("slot", "")
    for number, row in enumerate(case.get("assert", [])):
        extra = row[-1] if isinstance(row[-1], dict) else {}
        unknown = extra.keys() - {"seen", "precision", "end_precision"}
        assert not unknown, f"{case['id']}: the reader of cases does not know {unknown}"
        predicate = row[1]
        records.append(
            claim(
                f"claim {number}",
                row[2],
                row[3],
                row[4],
                row[5],
                seen=extra.get("seen"),
                start_precision=Precision[extra.get("precision", "INSTANT")],
                end_precision=Precision[extra.get("end_precision", "INSTANT")],
            )
        )
    for number, row in enumerate(case.get("end", [])):
        records.append(end(f"end {number}", row[2], *row[3:5]))
    for number, row in enumerate(case.get("deny", [])):
        records.append(denial(f"denial {number}", row[2], *row[3:6]))
    return Timeline(case["id"], predicate, "slot" in case, tuple(records), case)


Record = Claim | End | Denial
R = TypeVar("R", Claim, End, Denial)


def of_kind(records: Iterable[Claim | End | Denial], kind: type[R]) -> list[R]:
    return [record for record in records if isinstance(record, kind)]


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


def shown(spans: tuple[DerivedSpan, ...]) -> list[Shown]:
    """Spans as the cases write them."""

    def on(at: Instant | None) -> date | None:
        return None if at is None else moment(at).date()

    return [[span.statement, on(span.valid_at), on(span.invalid_at)] for span in spans]


def current(spans: tuple[DerivedSpan, ...], at: Instant) -> set[str]:
    return {
        span.statement
        for span in spans
        if (span.valid_at is None or span.valid_at <= at)
        and (span.invalid_at is None or at < span.invalid_at)
    }
