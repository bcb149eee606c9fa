"""Report: of every record of the files exactly one line, with what it became or why it did not."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from palimpsest.chats import Unreadable
from palimpsest.dates import Dated
from palimpsest.importing.fitting import spelt
from palimpsest.importing.sending import Result
from palimpsest.importing.values import Fact, Fate, Item, Key, Named, Reading, Record, marked
from palimpsest.v1 import common_pb2

NOTHING_SAID = "nothing is said of it: an entity comes with its first fact"
# Of a record that becomes several: the first of these that one of them had.
_WORST_FIRST = (Fate.REFUSED, Fate.FAILED, Fate.UNSENT, Fate.IMPORTED, Fate.READY)


@dataclass(frozen=True, slots=True)
class Line:
    """A record with what came of it. `why` is told wherever it was not taken in whole."""

    record: Record
    fate: Fate
    why: str = ""


class Report:
    """What came of a reading. Results are added as they come; without one, an item was not sent."""

    def __init__(self, reading: Reading, graph: str, dry_run: bool = False) -> None:
        self._reading = reading
        self._graph = graph
        self._without = Result(Fate.READY if dry_run else Fate.UNSENT)
        self._results: dict[Key, Result] = {}

    def add(self, key: Key, result: Result) -> None:
        self._results[key] = result

    def known_from(self, reports: Iterable[str]) -> None:
        """Takes what lines of earlier reports of the same graph tell as taken in. Raises Unreadable."""
        marks: set[str] = set()
        for number, line in enumerate(reports, 1):
            try:
                marks.update(json.loads(line).get("marks", ()))
            except (ValueError, AttributeError, TypeError) as error:
                raise Unreadable(f"line {number} is none of a report") from error
        for key in self._reading.items:
            if marked(self._graph, key) in marks:
                self.add(key, Result(Fate.KNOWN))

    def left(self) -> dict[Key, Item]:
        """Facts and texts of which nothing is known yet."""
        return {key: item for key, item in self._reading.items.items() if key not in self._results}

    @property
    def spent_micros(self) -> int:
        return sum(one.spent_micros for one in self._results.values())

    def lines(self) -> Iterator[Line]:
        """One for each record, in the order in which they were read."""
        return map(self._line, self._reading.records)

    def fates(self) -> Mapping[str, Counter[Fate]]:
        """How many records of each kind came to what; together as many as there are records."""
        counts: dict[str, Counter[Fate]] = {}
        for line in self.lines():
            counts.setdefault(line.record.kind, Counter())[line.fate] += 1
        return counts

    def becomes(self) -> Counter[str]:
        """Facts and texts by what they are, each counted once."""
        return Counter(one.form.value if isinstance(one, Fact) else "text" for one in self._items())

    def predicates(self) -> Counter[str]:
        """Facts by how the server spells their predicate."""
        return Counter(spelt(one.predicate) for one in self._items() if isinstance(one, Fact))

    def notes(self) -> Counter[str]:
        """What is not carried of records that are."""
        return Counter(note for one in self._reading.records for note in one.notes)

    def total(self) -> Counter[Fate]:
        return sum(self.fates().values(), Counter())

    def _is_there(self, key: Key) -> bool:
        return self._results.get(key, self._without).fate in (Fate.IMPORTED, Fate.KNOWN)

    def _items(self) -> Iterator[Item]:
        return iter(self._reading.items.values())

    def _line(self, record: Record) -> Line:
        if record.why:
            return Line(record, Fate.LEFT_OUT if record.left_out else Fate.REFUSED, record.why)
        keys = record.items or record.rests_on
        if not keys:
            return Line(record, Fate.LEFT_OUT, NOTHING_SAID)
        results = [self._results.get(key, self._without) for key in keys]
        if not record.items:  # it is there when one of the facts that speak of it is
            results.sort(key=lambda one: one.fate in (Fate.REFUSED, Fate.FAILED, Fate.UNSENT))
            results = results[:1]
        had = {one.fate for one in results}
        fate = next((one for one in _WORST_FIRST if one in had), Fate.KNOWN)
        why = next((one.why for one in results if one.fate is fate), "")
        short = sum(one.fate is fate for one in results)
        if why and len(results) > 1:
            why = f"{short} of the {len(results)} facts that it becomes: {why}"
        if record.same_as and fate in (Fate.IMPORTED, Fate.KNOWN, Fate.READY):
            fate = Fate.SAME
        return Line(record, fate, why)

    def to_json(self) -> dict[str, Any]:
        """Everything, as one object."""
        return {
            "records": len(self._reading.records),
            "fates": _named(self.total()),
            "kinds": {kind: _named(counts) for kind, counts in sorted(self.fates().items())},
            "becomes": dict(sorted(self.becomes().items())),
            "predicates": dict(self.predicates().most_common()),
            "notCarried": dict(self.notes().most_common()),
            "spentMicros": str(self.spent_micros),
            "lines": [self.line_to_json(line) for line in self.lines()],
        }

    def line_to_json(self, line: Line) -> dict[str, Any]:
        record = line.record
        told: dict[str, Any] = {
            "place": record.place,
            "kind": record.kind,
            "fate": line.fate.value,
            "why": line.why,
            "sameAs": record.same_as,
            "becomes": [_item(self._reading.items[key]) for key in record.items],
            "notCarried": record.notes,
            "marks": [marked(self._graph, key) for key in record.items if self._is_there(key)],
        }
        return {name: value for name, value in told.items() if value}


def _named(counts: Mapping[Fate, int]) -> dict[str, int]:
    return {fate.value: counts[fate] for fate in Fate if counts.get(fate)}


def _item(item: Item) -> dict[str, Any]:
    told: dict[str, Any] = {"form": "text", "said": item.said.at.isoformat()}
    if isinstance(item, Fact):
        told |= {
            "form": item.form.value,
            "subject": item.subject.name,
            "predicate": spelt(item.predicate),
            "object": _object(item),
            "start": _date(item.start),
            "end": _date(item.end),
        }
    return {name: value for name, value in told.items() if value != ""}


def _object(fact: Fact) -> str | float | bool:
    if isinstance(fact.object, Named):
        return fact.object.name
    literal = fact.object
    match literal.WhichOneof("value"):
        case "number_value":
            return literal.number_value
        case "bool_value":
            return literal.bool_value
        case "time_value":
            return literal.time_value.ToJsonString()
        case _:
            return literal.string_value


def _date(date: Dated | None) -> str:
    """A day, or an instant; a coarser one with what it is: `2025-01-01 (year)`."""
    if date is None:
        return ""
    if date.precision == common_pb2.PRECISION_INSTANT:
        return date.at.isoformat()
    word = common_pb2.Precision.Name(date.precision).removeprefix("PRECISION_").lower()
    day = date.at.date().isoformat()
    return day if date.precision == common_pb2.PRECISION_DAY else f"{day} ({word})"
