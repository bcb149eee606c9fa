"""How far services/domain/dates is right: Recognizers-Text specs, lists of our own, LoCoMo's grounding.

    python -m benchmarks.dates [--misses]

*Specs* (../shared/data/dates/recognizers-text), dates and periods, English and Chinese, at day grain. The
past reading of each is compared: `exact` counts equal dates (for periods both ends), `inside` also those
where our coarser period holds the day (for periods: the first day alone). Specs that read "last Friday" as
"Friday of last week" or round "two weeks ago" to a day differ from us on purpose: in a conversation both are
coarser or nearer. Those that take a date of the Chinese calendar for one of ours differ too.

*Lists* (tests/data/dates): relative expressions checked by hand.

*LoCoMo* (../shared/data/locomo): category-2 questions whose answer is date-like. What the evidence turns
name, read at their session's date, must overlap the answer by half, or be finer and inside; a turn that names
no time means the session's own day.
"""

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from services.domain.dates import Relation, TimeExpression, find, read
from services.domain.instants import Instant, Interval, Precision, instant, moment, period

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
SPECS = SHARED / "dates" / "recognizers-text"
LISTS = ROOT / "tests" / "data" / "dates"
LISTED_AT = instant(datetime(2026, 6, 30, 14, 5, tzinfo=UTC))
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


def day_of(at: Instant | None) -> str:
    return "" if at is None else str(moment(at).date())


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


def of_specs(*, show: bool) -> None:
    for name in (
        f"{tongue}-{kind}" for tongue in ("English", "Chinese") for kind in ("DateParser", "DatePeriodParser")
    ):
        counts = dict.fromkeys(("exact", "inside", "wrong", "nothing"), 0)
        began = time.perf_counter()
        for spec in specs(name):
            found = find(spec.text, instant(spec.reference))
            verdict = grade(spec, found)
            counts[verdict] += 1
            if show and verdict in {"wrong", "nothing"}:
                got = [(item.text, day_of(item.start), day_of(item.end)) for item in found]
                print(f"  {verdict}: {spec.text!r} [{spec.expression}] {spec.dates}", end=" ")
                print(f"at {spec.reference:%F}: {got}")
        total, seconds = sum(counts.values()), time.perf_counter() - began
        agree = 100 * (counts["exact"] + counts["inside"]) / total
        print(f"{name}: {total} specs, {agree:.0f} % agree, {counts}, {total / seconds:.0f} texts a second")


def of_lists(*, show: bool) -> None:
    for path in sorted(LISTS.glob("*.tsv")):
        rows = [
            line.split("\t") for line in path.read_text("utf-8").splitlines() if line[:1] not in {"", "#"}
        ]
        right = 0
        for text, expression, start, end, precision, relation in rows:
            found = [
                [item.text, day_of(item.start), day_of(item.end), item.precision.name, item.relation.value]
                for item in find(text, LISTED_AT)
            ]
            agrees = found == [[expression, start, end, precision, relation]]
            right += agrees
            if show and not agrees:
                print(f"  {text}: {found}")
        print(f"{path.stem}: {right} of {len(rows)} expressions checked by hand")


@dataclass(frozen=True, slots=True)
class Grounding:
    question: str
    answer: Interval
    said_at: Instant
    turns: tuple[str, ...]


def session_date(text: str) -> Instant:
    return instant(datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC))


def groundings() -> Iterator[Grounding]:
    for conversation in json.loads((SHARED / "locomo" / "conversations.json").read_text("utf-8")):
        said = conversation["conversation"]
        turns = {
            turn["dia_id"]: (key, turn["text"])
            for key, session in said.items()
            if re.fullmatch(r"session_\d+", key)
            for turn in session
        }
        for asked in conversation["qa"]:
            if asked["category"] == 2 and (grounding := _grounding(asked, said, turns)):
                yield grounding


def _grounding(
    asked: dict[str, Any], said: dict[str, Any], turns: dict[str, tuple[str, str]]
) -> Grounding | None:
    ids = [f"D{a}:{b}" for item in asked["evidence"] for a, b in re.findall(r"D:?(\d+):(\d+)", item)]
    met = [turns[id] for id in ids if id in turns]
    if not met:
        return None
    at = session_date(said[f"{met[0][0]}_date_time"])
    answer = read(str(asked["answer"]).rstrip("."), at)
    if answer is None or answer.relation is Relation.FOR:
        return None
    return Grounding(
        asked["question"], _interval(answer), at, tuple(text for key, text in met if key == met[0][0])
    )


def _interval(item: TimeExpression) -> Interval:
    """What a time covers; of a stretch up to now the period in which it began."""
    match item.relation:
        case Relation.AT:
            return Interval(item.start, item.end)
        case Relation.RANGE if item.end is not None:
            return Interval(item.start, period(item.end, item.end_precision).end)
    assert item.at is not None
    return period(item.at, item.precision)


def agrees(found: Interval, answer: Interval) -> bool:
    """True when the two share half of the longer... or the found one is finer and inside the answer."""
    assert found.start is not None
    assert found.end is not None
    assert answer.start is not None
    assert answer.end is not None
    shared = min(found.end, answer.end) - max(found.start, answer.start)
    if shared <= 0:
        return False
    inside = answer.start <= found.start and found.end <= answer.end
    return inside or 2 * shared >= max(found.end - found.start, answer.end - answer.start)


def of_locomo(*, show: bool) -> None:
    counts: Counter[str] = Counter()
    for one in groundings():
        found = [[_interval(item) for item in find(text, one.said_at)] for text in one.turns]
        told = [items for items in found if items] or [[period(one.said_at, Precision.DAY)]]
        right = any(agrees(item, one.answer) for items in told for item in items)
        counts["all"] += 1
        counts["any"] += right
        counts["first"] += agrees(told[0][0], one.answer)
        counts["named"] += any(found)
        counts["named and right"] += any(found) and right
        if show and not right:
            wanted = (day_of(one.answer.start), day_of(one.answer.end))
            print(f"  {one.question} {wanted} at {day_of(one.said_at)}: {one.turns}")
    total, named = counts["all"], counts["named"]
    print(
        f"LoCoMo: {total} dated answers, {100 * counts['any'] / total:.0f} % grounded, "
        f"{100 * counts['first'] / total:.0f} % by the first time of the evidence alone; "
        f"of {named} whose evidence names a time {100 * counts['named and right'] / named:.0f} %"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misses", action="store_true", help="print what does not agree")
    show = parser.parse_args(arguments).misses
    of_specs(show=show)
    of_lists(show=show)
    of_locomo(show=show)


if __name__ == "__main__":
    main()
