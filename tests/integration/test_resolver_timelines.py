"""The cases of timelines.yaml through the resolver and its stores."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.instants import Instant
from tests import yaml_files
from tests.builders import on
from tests.examples import sampled
from tests.integration.resolving import World, a_world, said

CASES = yaml_files.read(Path(__file__).parent.parent / "cases" / "timelines.yaml")
DATED = [case for case in CASES if "assert" in case]
BROTHERS = yaml_files.read(Path(__file__).parent.parent / "data" / "brothers_of_timelines.yaml")


@dataclass(frozen=True)
class Line:
    """One line of a case, with the time it was said."""

    kind: values.FactKind.ValueType
    triple: tuple[str, str, str]
    said_at: Instant
    times: dict[str, Instant | None]


def at(day: date | None) -> Instant | None:
    return None if day is None else on(day.isoformat())


def lines(case: dict[str, Any]) -> list[Line]:
    found = []
    for subject, predicate, target, start, end, *rest in case["assert"]:
        seen = at(rest[1]["seen"]) if len(rest) > 1 else None
        times = {"start": at(start), "end": at(end), "seen": seen}
        found.append(
            Line(values.FACT_KIND_CLAIM, (subject, predicate, target), on(rest[0].isoformat()), times)
        )
    for subject, predicate, target, stop, said_at in case.get("end", ()):
        triple = (subject, predicate, target)
        found.append(Line(values.FACT_KIND_END, triple, on(said_at.isoformat()), {"end": at(stop)}))
    for subject, predicate, target, start, until, said_at in case.get("deny", ()):
        times = {"start": at(start), "end": at(until)}
        found.append(
            Line(values.FACT_KIND_DENIAL, (subject, predicate, target), on(said_at.isoformat()), times)
        )
    return found


async def tell(world: World, told: Sequence[Line]) -> list[pb.AssertResponse]:
    """Each line in a revision of its own, recorded when it was said."""
    answers = []
    for position, line in enumerate(told):
        world.clock.at = line.said_at
        episode = await world.episode(f"{position}", line.said_at)
        assertion = said(line.kind, line.triple, line.said_at, episode, **line.times)
        answers.append(await world.tell(f"c{position}", assertion))
    return answers


@pytest.mark.parametrize("case", DATED, ids=lambda case: str(case["id"]))
async def test_a_case_comes_out_right(case: dict[str, Any], tmp_path: Path) -> None:
    told = lines(case)
    await check(case, [told, told[::-1]], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", DATED, ids=lambda case: str(case["id"]))
async def test_a_case_comes_out_right_whichever_line_comes_last(case: dict[str, Any], tmp_path: Path) -> None:
    """Every other order is the kernel's to prove."""
    told = lines(case)
    last = [told[:position] + told[position + 1 :] + [told[position]] for position in range(len(told))]
    await check(case, last, tmp_path)


@pytest.mark.parametrize("case", sampled(BROTHERS), ids=lambda case: str(case["id"]))
async def test_a_brother_comes_out_right(case: dict[str, Any], tmp_path: Path) -> None:
    await check(case, [lines(case)[::-1]], tmp_path)


async def check(case: dict[str, Any], orders: Sequence[Sequence[Line]], tmp_path: Path) -> None:
    subject, predicate, _ = orders[0][0].triple
    single = [case["slot"]] if "slot" in case else []
    for number, order in enumerate(orders):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with a_world(folder, single) as world:
            await tell(world, order)
            spans = await world.timeline(subject, predicate)
            for name, start, end in case.get("timeline", ()):
                assert (name, at(start), at(end)) in spans
            if "timeline" in case:
                assert len(spans) == len(case["timeline"])
            for day, name in case.get("current_on", {}).items():
                now = on(day.isoformat())
                holding = [n for n, s, e in spans if (s is None or s <= now) and (e is None or now < e)]
                assert holding == [name]
            if "both_current" in case:
                assert [name for name, _, end in spans if end is None] == case["both_current"]


@pytest.mark.parametrize("case", [c for c in DATED if "known_at" in c], ids=lambda case: str(case["id"]))
async def test_what_was_believed_in_between_stays(case: dict[str, Any], tmp_path: Path) -> None:
    told = lines(case)
    subject, predicate, _ = told[0].triple
    async with a_world(tmp_path, [case["slot"]]) as world:
        await tell(world, told)
        for day, expected in case["known_at"].items():
            known = await world.memory.revisions.at(world.scope, on(day.isoformat()))
            spans = await world.timeline(subject, predicate, known)
            assert spans == [(name, at(start), at(end)) for name, start, end in expected]
