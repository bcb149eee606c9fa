"""Faults of NebulaGraph at every call of a write and of a read: repeated, or told; never a state of its own.

A write is struck at its n-th sentence, for every n and all kinds of faults: by one blow, which its own
attempts bear, and by an outage from there on, after which the write is applied again. In the end the space
holds what it holds without faults, to the last edge at both of its ends.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from services.domain.graph import GraphAspect
from services.domain.ids import Revision
from services.domain.instants import Instant
from services.stores.errors import StoreUnavailable
from services.stores.graph.nebula.bootstrap import bootstrap
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.store import NebulaGraphStore
from services.stores.graph.port import AsOf, Commit, EntityFilter, Forgetting, GraphStore, StatementFilter
from services.stores.paging import Page
from tests.builders import Maker, a_scope, closing, on, revoking, text, together
from tests.doubles.graphd import Fault, FaultKind, Graphd
from tests.doubles.graphd.space import Contents
from tests.examples import sampled

SPACE = "faults"
MAKE = Maker(a_scope("struck"))
LATEST = Revision(9)
FOR_EVER = 10**6

NOTHING_DONE = (
    FaultKind.LEADER_CHANGED,
    FaultKind.SESSION_LOST,
    FaultKind.CONFLICT,
    FaultKind.DROPPED_BEFORE,
)
ALL_DONE = (FaultKind.DROPPED_AFTER, FaultKind.RPC_FAILURE)
PART_DONE = (FaultKind.PARTIAL,)

Write = Callable[[GraphStore], Awaitable[None]]
Read = Callable[[GraphStore], Awaitable[object]]


def _facts() -> Commit:
    return together(
        [
            MAKE.fact("Mara", "works at", "Initech", on("2020-01-01"), aspect=GraphAspect.RELATIONSHIP),
            MAKE.fact("Mara", "lives in", "Berlin", episode="e2"),
            MAKE.fact("Mara", "age", text("41")),
        ]
    )


FACTS = _facts()
WORKS, LIVES, AGE = FACTS.statements


def _change() -> Commit:
    """Ends, denies and revokes; a span ends in belief, another begins; two statements are judged."""
    old, end = FACTS.opened[0], MAKE.end(WORKS, on("2021-01-01"), episode="e3", revision=2)
    new = MAKE.span(WORKS, on("2020-01-01"), on("2021-01-01"), 2, started_by=old.started_by, ended_by=end.id)
    more = MAKE.fact("Mara", "works at", "Globex", on("2021-01-01"), episode="e3", revision=2)
    return Commit(
        revision=Revision(2),
        entities=more.entities,
        aliases=more.aliases,
        statements=more.statements,
        claims=[*more.claims, MAKE.claim(WORKS, "e3", revision=2)],
        ends=[end],
        denials=[MAKE.denial(LIVES, on("2022-01-01"), episode="e3", revision=2)],
        verdicts=[MAKE.verdict(WORKS, LIVES, episode="e3", revision=2)],
        revocations=[revoking(FACTS.claims[1])],
        opened=[*more.opened, new],
        closed=[closing(old)],
    )


WORDS = ("Mara", "mara", "Initech", "initech", "Berlin", "berlin", "Globex", "globex", "works", "lives", "41")
FORGETTING = Forgetting(
    Revision(3),
    statements=[LIVES.id],
    entities=[MAKE.entity("Berlin").id],
    records=[revoking(FACTS.claims[0])],
    retold=[(AGE.id, "Mara is forty-one")],
)
AGAIN = MAKE.fact("Mara", "lives in", "Berlin", episode="e4", revision=4)


async def _erase(store: GraphStore) -> None:
    await store.erase(MAKE.scope)


WRITES: Mapping[str, Write] = {
    "first": lambda store: store.apply(MAKE.scope, FACTS),
    "change": lambda store: store.apply(MAKE.scope, _change()),
    "forget": lambda store: store.forget(MAKE.scope, FORGETTING),
    "restore": lambda store: store.apply(MAKE.scope, AGAIN),
}

READS: Mapping[str, Read] = {
    "find_entities": lambda store: store.find_entities(MAKE.scope, ["mara", "globex"], LATEST),
    "entities": lambda store: store.entities(MAKE.scope, [one.id for one in FACTS.entities]),
    "aliases": lambda store: store.aliases(MAKE.scope, LATEST),
    "aliases_of": lambda store: store.aliases_of(MAKE.scope, [WORKS.subject], LATEST),
    "list_entities": lambda store: store.list_entities(MAKE.scope, EntityFilter((), "m"), LATEST, Page(2)),
    "degrees": lambda store: store.degrees(MAKE.scope, [[WORKS.subject, LIVES.subject]], AsOf(LATEST)),
    "views": lambda store: store.views(MAKE.scope, [WORKS.id, LIVES.id], AsOf(LATEST)),
    "records": lambda store: store.records(MAKE.scope, [WORKS.id, LIVES.id, AGE.id]),
    "slot": lambda store: store.slot(MAKE.scope, WORKS.subject, WORKS.predicate),
    "between": lambda store: store.between(MAKE.scope, [(WORKS.subject, FACTS.entities[2].id)]),
    "naming": lambda store: store.naming(MAKE.scope, [WORKS.subject], Page(2)),
    "of_episode": lambda store: store.of_episode(MAKE.scope, MAKE.episode("e3")),
    "list_statements": lambda store: store.list_statements(
        MAKE.scope, StatementFilter(include_ended=True), AsOf(LATEST), Page(2)
    ),
    "walk": lambda store: store.walk(
        MAKE.scope, [WORKS.subject], AsOf(LATEST, valid_at=Instant(on("2020-06-01"))), 2, 10
    ),
    "scan": lambda store: store.scan(MAKE.scope, Page(2)),
    "counts": lambda store: store.counts(MAKE.scope, LATEST),
    "orphans": lambda store: store.orphans(MAKE.scope, [one.id for one in FACTS.entities], LATEST),
}


@dataclass(frozen=True, slots=True)
class Stage:
    """A write: what the space holds before it and after it, and how many sentences it takes."""

    write: Write
    before: Contents
    after: Contents
    calls: int


@pytest.fixture(scope="module")
def double() -> Iterator[Graphd]:
    with Graphd() as double:
        asyncio.run(bootstrap(settings(double, attempts=6)))
        yield double


def settings(double: Graphd, attempts: int, timeout_ms: int = 20_000) -> NebulaSettings:
    return NebulaSettings(
        addresses=double.address,
        space=SPACE,
        partitions=4,
        sessions=1,  # so that the n-th sentence is always the same
        call_timeout_ms=timeout_ms,
        max_attempts=attempts,
        retry_first_wait_seconds=0,
        retry_longest_wait_seconds=0,
    )


@pytest.fixture(scope="module")
def stages(double: Graphd) -> Mapping[str, Stage]:
    """All writes once, without faults."""

    async def play() -> dict[str, Stage]:
        store = NebulaGraphStore(settings(double, attempts=1))
        found = {}
        for name, write in {**WRITES, "erase": _erase}.items():
            before = double.engine.contents(SPACE)
            await arm(double, store)
            await write(store)
            found[name] = Stage(write, before, double.engine.contents(SPACE), double.faults.calls)
        await store.close()
        return found

    return asyncio.run(play())


@pytest.fixture
async def patient(double: Graphd) -> AsyncIterator[GraphStore]:
    """Bears a fault or two."""
    store = NebulaGraphStore(settings(double, attempts=3))
    yield store
    await store.close()


@pytest.fixture
async def hasty(double: Graphd) -> AsyncIterator[GraphStore]:
    """Tells the first fault."""
    store = NebulaGraphStore(settings(double, attempts=1))
    yield store
    await store.close()


async def arm(double: Graphd, store: GraphStore, *faults: Fault) -> None:
    """Arms faults (and counts calls) from the next call of the store on, which has a session then."""
    double.faults.clear()
    await store.entities(MAKE.scope, [WORKS.subject])
    double.faults.arm(*faults)


def outage(call: int) -> Fault:
    return Fault(FaultKind.LEADER_CHANGED, at=call, times=FOR_EVER)


def halves(contents: Contents) -> dict[tuple[object, ...], object]:
    """Every half of an edge: where it lies, its type, its rank and its other end, with what it says."""
    return {
        (side, *end, *other): props.get("body", b"")
        for side, ends in (("forth", contents.forth), ("back", contents.back))
        for end, found in ends.items()
        for other, props in found.items()
    }


def assert_same(now: Contents, wanted: Contents, call: int, *, halves_may_stay: bool) -> None:
    """`halves_may_stay`: of deleted edges, and they say nothing."""
    assert now.vertices == wanted.vertices, f"call {call}"
    there, needed = halves(now), halves(wanted)
    assert {half: there.get(half) for half in needed} == needed, f"call {call}"
    left = {half: body for half, body in there.items() if half not in needed}
    assert halves_may_stay or not left, f"call {call}"
    telling = {half: body for half, body in left.items() if any(word in str(body) for word in WORDS)}
    assert not telling, f"call {call}"


def kind_at(kinds: tuple[FaultKind, ...], call: int) -> FaultKind:
    return kinds[call % len(kinds)]


@pytest.mark.parametrize("kinds", [NOTHING_DONE, ALL_DONE, PART_DONE], ids=["nothing", "all", "part"])
@pytest.mark.parametrize("name", sampled(WRITES))
async def test_a_write_bears_a_fault(
    double: Graphd, stages: Mapping[str, Stage], patient: GraphStore, name: str, kinds: tuple[FaultKind, ...]
) -> None:
    stage = stages[name]
    for call in range(1, stage.calls + 1):
        double.engine.restore(SPACE, stage.before)
        await arm(double, patient, Fault(kind_at(kinds, call), at=call))
        await stage.write(patient)
        assert double.faults.struck == 1
        assert double.engine.contents(SPACE) == stage.after, f"call {call}"


@pytest.mark.parametrize("kinds", [NOTHING_DONE, ALL_DONE, PART_DONE], ids=["nothing", "all", "part"])
@pytest.mark.parametrize("name", sampled([*WRITES, "erase"]))
async def test_a_write_that_an_outage_cut_off_is_completed_when_applied_again(
    double: Graphd, stages: Mapping[str, Stage], hasty: GraphStore, name: str, kinds: tuple[FaultKind, ...]
) -> None:
    """Of an edge whose deletion was cut off a half can stay that no read finds; texts were emptied before."""
    stage = stages[name]
    sparse = name == "erase" and kinds is not PART_DONE  # which takes long, and says little then
    for call in range(1, stage.calls + 1, 5 if sparse else 1):
        double.engine.restore(SPACE, stage.before)
        kind = kind_at(kinds, call)
        await arm(double, hasty, Fault(kind, at=call), outage(call))
        with pytest.raises(StoreUnavailable):
            await stage.write(hasty)
        double.faults.clear()
        await stage.write(hasty)
        now, deletes = double.engine.contents(SPACE), name in {"forget", "erase"}
        assert_same(now, stage.after, call, halves_may_stay=deletes and kind is FaultKind.PARTIAL)


@pytest.mark.parametrize("name", sampled(READS))
async def test_a_read_bears_a_fault_or_tells_it(
    double: Graphd, stages: Mapping[str, Stage], patient: GraphStore, hasty: GraphStore, name: str
) -> None:
    read = READS[name]
    double.engine.restore(SPACE, stages["restore"].after)
    await arm(double, patient)
    expected = await read(patient)
    calls = double.faults.calls
    assert calls
    for call in range(1, calls + 1):
        for kind in (*NOTHING_DONE, *ALL_DONE, *PART_DONE):
            await arm(double, patient, Fault(kind, at=call))
            assert await read(patient) == expected
            assert double.faults.struck == 1
            await arm(double, hasty, Fault(kind, at=call))
            with pytest.raises(StoreUnavailable):
                await read(hasty)


async def test_silence_is_ended_by_the_callers_own_clock(double: Graphd, stages: Mapping[str, Stage]) -> None:
    stage = stages["change"]
    store = NebulaGraphStore(settings(double, attempts=1, timeout_ms=300))
    double.engine.restore(SPACE, stage.before)
    double.faults.arm(Fault(FaultKind.SILENT, at=5))
    with pytest.raises(StoreUnavailable):
        await stage.write(store)
    await store.close()
    double.faults.clear()
    store = NebulaGraphStore(settings(double, attempts=1))
    await stage.write(store)
    await store.close()
    assert double.engine.contents(SPACE) == stage.after


async def test_a_server_that_was_started_anew_is_found_again(
    double: Graphd, stages: Mapping[str, Stage], patient: GraphStore
) -> None:
    double.engine.restore(SPACE, stages["restore"].after)
    expected = await READS["walk"](patient)
    double.sessions.lose_all()
    double.hang_up_all()
    assert await READS["walk"](patient) == expected


async def test_a_server_that_is_away_is_told(double: Graphd, stages: Mapping[str, Stage]) -> None:
    with Graphd() as other:
        away = settings(other, attempts=2)
    store = NebulaGraphStore(away)
    for act in (*READS.values(), *(stage.write for stage in stages.values())):
        with pytest.raises(StoreUnavailable):
            await act(store)
    await store.close()
