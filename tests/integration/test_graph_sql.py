"""What is special to the graph in SQL: every read goes by an index, and a lost server is said by its name."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

from services.domain.graph import EntityType, GraphAspect
from services.domain.ids import EntityId, Revision
from services.stores.errors import StoreUnavailable
from services.stores.graph.port import AsOf, Commit, EntityFilter, Forgetting, GraphStore, StatementFilter
from services.stores.graph.sql import SqlGraphStore
from services.stores.paging import Page
from services.stores.sql.engine import postgres_engine, sqlite_engine
from tests.builders import Maker, a_scope, on, revoking, together

MAKE = Maker(a_scope())
FACT = MAKE.fact("Mara", "likes", "tea", on("2020-01-01"))
NODES = [node.id for node in FACT.entities]
IDS = [FACT.statements[0].id]
EPISODE = MAKE.episode("e1")
AT = AsOf(Revision(9), valid_at=on("2024-01-01"))
PAIRS = [(NODES[0], NODES[1]), (NODES[0], NODES[2]), (NODES[1], NODES[2])]
FORGETTING = Forgetting(Revision(9), IDS, NODES, [revoking(FACT.claims[0])], [(IDS[0], "anew")])

FILTERS = [
    StatementFilter(),
    StatementFilter(subjects=NODES),
    StatementFilter(subjects=[NODES[0]], predicates=[NODES[1]]),
    StatementFilter(objects=NODES[2:], aspects=[GraphAspect.EVENT]),
    StatementFilter(predicates=[NODES[1]], contested=False),
    StatementFilter(predicates=[EntityId(f"unknown {n}") for n in range(9)]),
    StatementFilter(episodes=[EPISODE]),
    StatementFilter(invalidated_by=EPISODE),
    StatementFilter(aspects=[GraphAspect.EVENT], include_ended=True),
]

Call = Callable[[GraphStore], Awaitable[Any]]
CALLS: dict[str, list[Call]] = {
    "apply": [lambda store: store.apply(MAKE.scope, FACT)],
    "find_entities": [lambda store: store.find_entities(MAKE.scope, ["mara"], Revision(9))],
    "entities": [lambda store: store.entities(MAKE.scope, NODES)],
    "aliases": [lambda store: store.aliases(MAKE.scope, Revision(9))],
    "aliases_of": [lambda store: store.aliases_of(MAKE.scope, NODES, Revision(9))],
    "list_entities": [
        lambda store, where=where: store.list_entities(MAKE.scope, where, Revision(9), Page(2))  # type: ignore[misc] # defaults bind the loop's values
        for where in (EntityFilter(), EntityFilter([EntityType.CONCEPT], "ma", NODES))
    ],
    "degrees": [lambda store: store.degrees(MAKE.scope, [NODES[:2], NODES[2:]], AT)],
    "views": [lambda store: store.views(MAKE.scope, IDS, AT)],
    "records": [lambda store: store.records(MAKE.scope, IDS)],
    "slot": [lambda store: store.slot(MAKE.scope, NODES[0], NODES[1])],
    "slots": [lambda store: store.slots(MAKE.scope, PAIRS)],
    "between": [lambda store: store.between(MAKE.scope, PAIRS)],
    "naming": [
        lambda store, nodes=nodes, page=page: store.naming(MAKE.scope, nodes, page)  # type: ignore[misc] # defaults bind the loop's values
        for nodes in (NODES, [EntityId(f"unknown {n}") for n in range(9)])
        for page in (Page(), Page(10, f"1.{IDS[0]}"))
    ],
    "of_predicate": [
        lambda store, target=target: store.of_predicate(MAKE.scope, NODES[1], target, Page(10, f"1.{IDS[0]}"))  # type: ignore[misc] # defaults bind the loop's values
        for target in (None, NODES[2])
    ],
    "of_episode": [lambda store: store.of_episode(MAKE.scope, EPISODE)],
    "list_statements": [
        lambda store, where=where, page=page: store.list_statements(MAKE.scope, where, AT, page)  # type: ignore[misc] # defaults bind the loop's values
        for where in FILTERS
        for page in (Page(), Page(10, f"1.{IDS[0]}"))
    ],
    "walk": [lambda store: store.walk(MAKE.scope, NODES, AT, 3, 10)],
    "scan": [lambda store: store.scan(MAKE.scope, Page(10, f"1.{IDS[0]}"))],
    "counts": [lambda store: store.counts(MAKE.scope, Revision(9))],
    "orphans": [lambda store: store.orphans(MAKE.scope, NODES, Revision(9))],
    "forget": [lambda store: store.forget(MAKE.scope, FORGETTING)],
    "rows": [lambda store: store.rows(MAKE.scope)],
    "purge": [lambda store: store.purge(MAKE.scope, IDS, NODES)],
    "erase": [lambda store: store.erase(MAKE.scope)],
}


WHOLE_GRAPHS = {"aliases", "list_entities", "counts", "rows", "purge", "erase"}
"""What looks at a whole graph by its nature, or as rarely as an erasure; all else at what it is asked for."""


def test_every_method_of_the_port_has_a_call_here() -> None:
    methods = {name for name, _ in inspect.getmembers(GraphStore, inspect.isfunction) if name[0] != "_"}
    assert CALLS.keys() == methods - {"close"}


class Plans:
    """Every query that an engine sends, and how SQLite would carry it out."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._sent: dict[str, Any] = {}
        event.listen(engine.sync_engine, "before_cursor_execute", self._note)

    def _note(
        self, connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
    ) -> None:
        if statement.startswith(("SELECT", "UPDATE", "DELETE", "WITH")):
            self._sent[statement] = parameters[0] if many else parameters

    async def steps(self) -> list[str]:
        sent, self._sent = self._sent, {}
        found: list[str] = []
        async with self._engine.connect() as connection:
            for statement, parameters in sent.items():
                rows = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                found += [row[-1] for row in rows]
        assert found, "nothing was sent"
        return [step for step in found if "graph_" in step]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    engine = sqlite_engine(tmp_path / "graph.db")
    yield engine
    await engine.dispose()


@pytest.mark.parametrize("method", CALLS)
async def test_every_access_goes_by_an_index(engine: AsyncEngine, method: str) -> None:
    store = await SqlGraphStore.open(engine)
    await store.apply(MAKE.scope, FACT)
    end = MAKE.end(FACT.statements[0], on("2024-01-01"))
    closing = Commit(Revision(2), ends=[end], revocations=[revoking(end)])
    await store.apply(MAKE.scope, closing)
    plans = Plans(engine)
    for call in CALLS[method]:
        await call(store)
        steps = await plans.steps()
        assert all(step.startswith("SEARCH") and "(scope=?" in step for step in steps), steps
        if method not in WHOLE_GRAPHS:
            assert not [step for step in steps if "(scope=?)" in step]


async def test_a_walk_reads_its_nodes_and_not_the_graph(engine: AsyncEngine) -> None:
    store = await SqlGraphStore.open(engine)
    await store.apply(MAKE.scope, together([MAKE.fact("hub", "has", f"part {n}") for n in range(30)]))
    plans = Plans(engine)
    assert len(await store.walk(MAKE.scope, [MAKE.entity("hub").id], AT, 3, 20)) == 20
    starts = [step for step in await plans.steps() if "graph_statements " in step and "id=?" not in step]
    assert {step.split(" USING ")[1].split("(")[1] for step in starts} == {
        "scope=? AND subject=? AND created_at<?)",
        "scope=? AND object=? AND created_at<?)",
    }


@pytest.mark.parametrize("method", CALLS)
async def test_a_lost_server_is_said_by_its_name(unused_tcp_port: int, method: str) -> None:
    store = SqlGraphStore(postgres_engine(f"postgresql://nobody@127.0.0.1:{unused_tcp_port}/none"))
    with pytest.raises(StoreUnavailable, match="graph"):
        await CALLS[method][0](store)
    await store.close()
