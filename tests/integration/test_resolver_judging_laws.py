"""Laws of what users decide: taken back, it might as well not have been said; the past stays as it was."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import EndStated, ValidationFailed
from services.domain.graph import Span
from services.domain.ids import Revision, StatementId
from services.domain.records import VerdictKind
from tests.builders import a_scope
from tests.examples import one_in
from tests.integration.resolving import Row, World, a_world
from tests.integration.test_resolver_judging import CLAIM, DENIAL, END, deny, end, judge, restore, tell

_numbers = count()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, single=["lives_in"]) as world:
        yield world


@dataclass(frozen=True)
class Telling:
    """What one episode says of where Hana lives, or what she likes; years."""

    predicate: str
    target: str
    said: int
    start: int | None
    end: int | None
    kind: values.FactKind.ValueType


def _ordered(telling: Telling) -> bool:
    return telling.start is None or telling.end is None or telling.start < telling.end


tellings = st.builds(
    Telling,
    predicate=st.sampled_from(("lives_in", "likes")),
    target=st.sampled_from(("tea", "rum", "jam")),
    said=st.integers(2015, 2019),
    start=st.none() | st.integers(2010, 2019),
    end=st.none() | st.none() | st.integers(2011, 2022),
    kind=st.sampled_from((CLAIM, CLAIM, CLAIM, END, DENIAL)),
).filter(_ordered)
years = st.integers(2008, 2027)


async def told(world: World, all_said: Sequence[Telling]) -> tuple[World, list[StatementId]]:
    """A graph of its own in which all was told, and its statements."""
    fresh = replace(world, scope=a_scope(f"graph {next(_numbers)}"))
    ids = [
        await tell(
            fresh,
            one.target,
            f"{one.said}-06-01",
            f"{one.start}-01-01" if one.start and one.kind != END else "",
            f"{one.end}-01-01" if one.end else "",
            one.kind,
            one.predicate,
        )
        for one in all_said
    ]
    return fresh, list(dict.fromkeys(ids))


async def believed(world: World) -> list[tuple[str, Row, bool]]:
    """All that is believed now."""
    return [
        (predicate, (view.object.name if view.object else "", span.valid_at, span.invalid_at), span.contested)
        for predicate in ("lives_in", "likes")
        for view, span in await world.spans("Hana", predicate)
    ]


async def known_before(world: World, until: Revision) -> list[list[Row]]:
    """What was believed at each revision up to one."""
    return [
        await world.timeline("Hana", predicate, Revision(revision))
        for revision in range(1, until + 1)
        for predicate in ("lives_in", "likes")
    ]


async def spans_of(world: World, id: StatementId) -> list[Span]:
    records = await world.graph.records(world.scope, [id])
    return [span for span in records.spans if span.known_to is None]


def is_open(spans: Sequence[Span]) -> bool:
    last = max(spans, key=lambda span: span.valid_at or 0, default=None)
    return last is not None and last.invalid_at is None


_laws = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=one_in(30), deadline=None
)


@pytest.mark.timeout(600)
@_laws
@given(
    all_said=st.lists(tellings, min_size=1, max_size=5),
    which=st.integers(0, 4),
    times=st.tuples(years, years),
    by_end=st.booleans(),
)
async def test_ended_or_denied_and_restored_is_as_before(
    world: World, all_said: list[Telling], which: int, times: tuple[int, int], by_end: bool
) -> None:
    """Of a statement that held; and whatever it was, past beliefs stay, and at the end it holds."""
    fresh, ids = await told(world, all_said)
    id = ids[which % len(ids)]
    held_before, before = is_open(await spans_of(fresh, id)), await believed(fresh)
    known = await fresh.memory.revisions.current(fresh.scope)
    past = await known_before(fresh, known)
    try:
        if by_end:
            await end(fresh, id, f"{times[0]}-01-01")
        else:
            assume(times[0] < times[1])
            await deny(fresh, id, f"{times[0]}-01-01", f"{times[1]}-01-01")
    except ValidationFailed:
        return  # before it began
    try:
        await restore(fresh, id)
    except EndStated:
        assert not held_before
        return
    if held_before:
        assert await believed(fresh) == before
    assert await known_before(fresh, known) == past


@pytest.mark.timeout(600)
@_laws
@given(
    all_said=st.lists(tellings, min_size=2, max_size=5),
    pair=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    kinds=st.lists(st.sampled_from(list(VerdictKind)), min_size=1, max_size=3),
)
async def test_judged_and_judged_back_is_as_before(
    world: World, all_said: list[Telling], pair: tuple[int, int], kinds: list[VerdictKind]
) -> None:
    fresh, ids = await told(world, all_said)
    one, other = (ids[at % len(ids)] for at in pair)
    assume(one != other)
    before, known = await believed(fresh), await fresh.memory.revisions.current(fresh.scope)
    past = await known_before(fresh, known)
    statements = {each.id: each for each in (await fresh.graph.records(fresh.scope, [one, other])).statements}
    lives = {each.predicate for each in statements.values()}
    names = await fresh.graph.entities(fresh.scope, sorted(lives))
    rivals = [node.key for node in names] == ["lives_in"]
    for kind in kinds:
        await judge(fresh, one, other, kind)
    await judge(fresh, other, one, VerdictKind.CONTRADICTS if rivals else VerdictKind.COMPATIBLE)
    assert await believed(fresh) == before
    assert await known_before(fresh, known) == past
