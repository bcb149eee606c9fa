"""How far services/domain/dates agrees with the Recognizers-Text specs for English, at day grain.

    python -m benchmarks.dates [--misses]

Reads ../shared/data/dates/recognizers-text. The past reading of each spec is compared: `exact` counts equal
dates (for periods both ends), `inside` also those where our coarser period holds the day (for periods: the
first day alone). Specs that read "last Friday" as "Friday of last week" or round "two weeks ago" to a day
differ from us on purpose: in a conversation both are coarser or nearer.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from services.domain.dates import Relation, TimeExpression, find
from services.domain.instants import instant, moment

SPECS = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "dates" / "recognizers-text"
NOWHERE = "0001-01-01"
"""What a spec says of a day that does not exist; there we must find nothing."""


@dataclass(frozen=True, slots=True)
class Spec:
    text: str
    reference: datetime
    expression: str
    dates: tuple[str, ...]


def specs(name: str) -> Iterator[Spec]:
    for entry in json.loads((SPECS / f"{name}.json").read_text("utf-8-sig")):
        for result in entry["Results"]:
            past = (result.get("Value") or {}).get("PastResolution") or {}
            if "Context" in entry and past:
                reference = datetime.fromisoformat(entry["Context"]["ReferenceDateTime"]).replace(tzinfo=UTC)
                yield Spec(entry["Input"], reference, result["Text"], tuple(past.values()))


def day_of(at: int | None) -> str:
    return "" if at is None else str(moment(at).date())  # type: ignore[arg-type]  # a plain int is an Instant


def grade(spec: Spec, found: list[TimeExpression]) -> str:
    begin = spec.text.lower().find(spec.expression.lower())
    near = [item for item in found if item.begin < begin + len(spec.expression) and begin < item.finish]
    if NOWHERE in spec.dates:
        return "wrong" if near else "exact"
    if not near:
        return "nothing"
    ours = near[0]
    start, end = day_of(ours.start), day_of(ours.end)
    if spec.dates in {(start,), (start, end)} or (ours.relation is not Relation.AT and spec.dates == (end,)):
        return "exact" if len(spec.dates) == 2 or ours.precision <= 1 else "inside"
    if len(spec.dates) == 1 and start and end and start <= spec.dates[0] < end:
        return "inside"
    return "inside" if len(spec.dates) == 2 and spec.dates[0] == start else "wrong"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misses", action="store_true", help="print what does not agree")
    show = parser.parse_args(arguments).misses
    for name in ("English-DateParser", "English-DatePeriodParser"):
        counts = dict.fromkeys(("exact", "inside", "wrong", "nothing"), 0)
        began = time.perf_counter()
        for spec in specs(name):
            found = find(spec.text, instant(spec.reference))
            verdict = grade(spec, found)
            counts[verdict] += 1
            if show and verdict in {"wrong", "nothing"}:
                got = [(item.text, day_of(item.start), day_of(item.end)) for item in found]
                print(
                    f"  {verdict}: {spec.text!r} [{spec.expression}] {spec.dates} at "
                    f"{spec.reference:%F}: {got}"
                )
        total, seconds = sum(counts.values()), time.perf_counter() - began
        agree = 100 * (counts["exact"] + counts["inside"]) / total
        print(f"{name}: {total} specs, {agree:.0f} % agree, {counts}, {total / seconds:.0f} texts a second")


if __name__ == "__main__":
    main()
