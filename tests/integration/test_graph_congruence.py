"""The graph in SQL and in NebulaGraph answer alike: the same operations on both, drawn at random, some torn.

On the double of graphd, or on the cluster of PALIMPSEST_TEST_NEBULA.
"""

import contextlib
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, product
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.domain.graph import Statement
from services.domain.ids import EntityId, Revision, StatementId
from services.domain.instants import Interval
from services.stores.errors import StoreUnavailable
from services.stores.graph.nebula.bootstrap import bootstrap, drop
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.store import NebulaGraphStore
from services.stores.graph.port import AsOf, Commit, KeepsHulls
from services.stores.graph.sql import SqlGraphStore
from services.stores.paging import Page
from services.stores.sql.engine import sqlite_engine
from tests.builders import SAID, Maker, a_scope, closing, revoking, text
from tests.contracts.graph_model import (
    Comparison,
    History,
    asked,
    entity_filters,
    filters,
    forgettings,
    histories,
)
from tests.doubles.graphd import Fault, FaultKind, Graphd
from tests.doubles.sqlite_files import laid
from tests.examples import one_in

SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow]
_GRAPHS = count()
Pair = tuple[SqlGraphStore, NebulaGraphStore]


@pytest.fixture
async def pair(graphd: str, tmp_path: Path) -> AsyncIterator[Pair]:
    nebula_settings = NebulaSettings(
        addresses=graphd, space=f"test_{uuid4().hex[:12]}", partitions=4, sessions=2
    )
    await bootstrap(nebula_settings)
    both = (
        await SqlGraphStore.open(sqlite_engine(laid(tmp_path / "graph.db"))),
        NebulaGraphStore(nebula_settings),
    )
    yield both
    for store in both:
        await store.close()
    await drop(nebula_settings)


class Congruence(Comparison):
    """Two stores in one scope; the second is held to the first."""

    def __init__(self, make: Maker, one: SqlGraphStore, other: NebulaGraphStore) -> None:
        super().__init__(make, other, one)
        self._one, self._other = one, other

    async def scan(self, size: int) -> None:
        """Page by page, to the end; positions of one continue the other."""
        after = ""
        while True:
            pages = [await store.scan(self._scope, Page(size, after)) for store in (self._one, self._other)]
            assert pages[0] == pages[1]
            after = pages[0].after
            if not after:
                return

    async def hulls(self, statements: Sequence[Statement]) -> None:
        ids = [statement.id for statement in statements]
        assert await _hulls(self._one, self._make, ids) == await _hulls(self._other, self._make, ids)

    async def nodes(self, at: AsOf) -> None:
        nodes = [self._make.entity(name).id for name in "abc"]
        found = [await store.aliases(self._scope, at.known_at) for store in (self._one, self._other)]
        assert found[0] == found[1]
        assert [one.recorded_at for one in found[0]] == [one.recorded_at for one in found[1]]
        unknown = [EntityId("unknown"), *nodes, EntityId("\x00")]
        assert await self._one.entities(self._scope, unknown) == await self._other.entities(
            self._scope, unknown
        )


async def _hulls(
    store: KeepsHulls, make: Maker, ids: Sequence[StatementId]
) -> Mapping[StatementId, Interval]:
    return await store.hulls(make.scope, ids)


@st.composite
def torn(draw: st.DrawFn, commit: Commit) -> Commit:
    """What a crash may have left of a commit: some of each part."""
    parts = {
        name: tuple(item for item in getattr(commit, name) if draw(st.booleans()))
        for name in ("aliases", "claims", "ends", "denials", "verdicts", "revocations", "opened", "closed")
    }
    return replace(commit, **parts)  # type: ignore[arg-type] # fields by name


@pytest.mark.timeout(600)
@settings(max_examples=one_in(40), suppress_health_check=SLOW)
@given(data=st.data())
async def test_the_same_history_reads_the_same(pair: Pair, data: st.DataObject) -> None:
    make = Maker(a_scope("history"))
    history: History = data.draw(histories(make))
    for store in pair:
        await store.erase(make.scope)
    both = Congruence(make, *pair)
    for commit in history.commits:
        if data.draw(st.booleans()):
            await both.apply(data.draw(torn(commit)))
        await both.apply(commit)
    for position in history.repeats:
        await both.apply(history.commits[position])
    for _ in range(2):
        at = data.draw(asked(len(history.commits)))
        await both.look(history.statements, at)
        await both.nodes(at)
        await both.list(data.draw(filters(make)), at, data.draw(st.integers(1, 4)))
        await both.list_entities(data.draw(entity_filters(make)), at.known_at, data.draw(st.integers(1, 3)))
        group = data.draw(st.sampled_from(["", "ab", "bc"]))
        await both.walk(at, data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4)), group)
    await both.scan(data.draw(st.integers(1, 3)))
    await both.hulls(history.statements)
    await both.forget(data.draw(forgettings(history)), history)
    await both.look(history.statements, at)
    await both.apply(replace(history.commits[-1], revision=Revision(len(history.commits) + 1)))
    await both.look(history.statements, at)
    for store in pair:
        await store.erase(make.scope)
    await both.look(history.statements, at)
    await both.scan(3)


async def _fill(make: Maker, nebula: NebulaGraphStore) -> None:
    """Something of every kind."""
    fact, other = make.fact("Mara", "says", text("hello")), make.fact("Mara", "likes", "tea", revision=600)
    verdict = make.verdict(fact.statements[0], other.statements[0], episode="e1", revision=600)
    more = Commit(
        Revision(600),
        ends=[replace(make.end(fact.statements[0], SAID), source=fact.claims[0].source)],
        verdicts=[replace(verdict, why="as was said")],
        revocations=[revoking(fact.claims[0]), revoking(verdict)],
        closed=[closing(fact.opened[0])],
    )
    for commit in (fact, other, more):
        await nebula.apply(make.scope, commit)


async def test_erasing_leaves_nothing_at_all(faulty: tuple[Graphd, Pair]) -> None:
    graphd, (_, nebula) = faulty
    make = Maker(a_scope())
    assert graphd.engine.remains("palimpsest") == []
    await _fill(make, nebula)
    assert len(graphd.engine.remains("palimpsest")) > 40
    assert _texts(graphd)
    await nebula.erase(make.scope)
    assert graphd.engine.remains("palimpsest") == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
async def test_an_erasure_torn_at_any_call_leaves_nothing_that_joins(
    faulty: tuple[Graphd, Pair], number: int
) -> None:
    graphd, (_, nebula) = faulty
    make = Maker(a_scope(f"torn-{number}"))
    fact = make.fact("Mara", "knows", "Mara")
    node, predicate = fact.statements[0].subject, fact.statements[0].predicate
    asked = AsOf(Revision(600), SAID)
    for at in count(1):
        await nebula.apply(make.scope, fact)
        graphd.faults.arm(Fault(FaultKind.PARTIAL, at=at))
        with contextlib.suppress(StoreUnavailable):
            await nebula.erase(make.scope)
        struck = graphd.faults.struck
        graphd.faults.clear()
        await nebula.erase(make.scope)
        assert await nebula.between(make.scope, [(node, node)]) == {}
        assert await nebula.slots(make.scope, [(node, predicate)]) == {}
        assert (await nebula.naming(make.scope, [node, predicate], Page(4))).items == []
        assert await nebula.degrees(make.scope, [[node]], asked) == [0]
        if not struck:
            break
    assert at > 10


@pytest.mark.slow
async def test_an_erasure_torn_at_any_call_leaves_no_text(faulty: tuple[Graphd, Pair]) -> None:
    graphd, (_, nebula) = faulty
    make = Maker(a_scope())
    for at in count(1):
        await _fill(make, nebula)
        graphd.faults.arm(Fault(FaultKind.PARTIAL, at=at))
        with contextlib.suppress(StoreUnavailable):
            await nebula.erase(make.scope)
        struck = graphd.faults.struck
        graphd.faults.clear()
        await nebula.erase(make.scope)
        assert _texts(graphd) == []
        assert (await nebula.scan(make.scope, Page())).items == []
        if not struck:
            break
    assert at > 20


async def test_an_erasure_torn_where_records_go_leaves_none_to_their_episode(
    faulty: tuple[Graphd, Pair],
) -> None:
    graphd, (_, nebula) = faulty
    for number, edge in product(range(5), ("claim", "judged")):
        make = Maker(a_scope(f"torn-{number}-{edge}"))  # which half goes is by the hash of both ends
        await _fill(make, nebula)
        graphd.faults.arm(Fault(FaultKind.PARTIAL, statement=f"DELETE EDGE {edge}"))
        with pytest.raises(StoreUnavailable):
            await nebula.erase(make.scope)
        graphd.faults.clear()
        await nebula.erase(make.scope)
        found = await nebula.of_episode(make.scope, make.episode("e1"))
        assert (list(found.claims), list(found.verdicts)) == ([], [])


TEXT = re.compile(r'"(quote|time_text|why|fact|name)":"[^"]')
KINDS = [kind for kind in FaultKind if kind is not FaultKind.SILENT]


def faults(latest: int) -> st.SearchStrategy[Fault]:
    """A fault at one of the next `latest` calls."""
    return st.builds(Fault, st.sampled_from(KINDS), at=st.integers(1, latest))


@pytest.fixture
async def faulty(graphd_double: Graphd, tmp_path: Path) -> AsyncIterator[tuple[Graphd, Pair]]:
    """A store that tries nothing twice, and a server of its own."""
    nebula_settings = NebulaSettings(
        addresses=graphd_double.address, partitions=2, sessions=1, max_attempts=1, call_timeout_ms=30_000
    )
    await bootstrap(nebula_settings)
    both = (
        await SqlGraphStore.open(sqlite_engine(laid(tmp_path / "graph.db"))),
        NebulaGraphStore(nebula_settings),
    )
    yield graphd_double, both
    graphd_double.faults.clear()
    for store in both:
        await store.close()


@pytest.mark.timeout(600)
@settings(max_examples=one_in(40), suppress_health_check=SLOW)
@given(data=st.data())
async def test_a_fault_at_any_call_of_a_write_is_repaired_by_repeating_it(
    faulty: tuple[Graphd, Pair], data: st.DataObject
) -> None:
    graphd, pair = faulty
    graphd.faults.clear()
    # Half an edge that an example left would be an edge of the next one's, were their graph the same.
    make = Maker(a_scope(f"history-{next(_GRAPHS)}"))
    history: History = data.draw(histories(make))
    for store in pair:
        await store.erase(make.scope)
    both = Congruence(make, *pair)
    _, nebula = pair
    drawn = data.draw(forgettings(history))
    at = data.draw(asked(len(history.commits)))
    strikes = [data.draw(faults(25)) for _ in history.commits]
    in_forget, in_erase = data.draw(faults(12)), data.draw(faults(25))
    for commit, strike in zip(history.commits, strikes, strict=True):
        graphd.faults.arm(strike)
        with _unavailable_or_done():
            await nebula.apply(make.scope, commit)
        graphd.faults.clear()
        await both.apply(commit)
    await both.look(history.statements, at)
    await both.hulls(history.statements)

    graphd.faults.arm(in_forget)
    with _unavailable_or_done():
        await both.forget(drawn, history)
    graphd.faults.clear()
    await both.forget(drawn, history)
    await both.look(history.statements, at)

    graphd.faults.arm(in_erase)
    with _unavailable_or_done():
        await nebula.erase(make.scope)
    graphd.faults.clear()
    for store in pair:
        await store.erase(make.scope)
    await both.look(history.statements, at)
    await both.scan(3)
    # A half of an edge may be left that nothing leads to, and no text of it.
    assert _texts(graphd) == []


def _texts(graphd: Graphd) -> list[str]:
    """What the space holds that has texts."""
    remains = [str(value) for row in graphd.engine.remains("palimpsest") for value in row.values()]
    return [told for told in remains if TEXT.search(told)]


def _unavailable_or_done() -> contextlib.suppress:
    return contextlib.suppress(StoreUnavailable)
