"""What a store answers, held to arrays: any filter, and operations in any order. Of dimension 8."""

import itertools
from typing import Any

import numpy as np
from hypothesis import strategies as st

from services.domain.instants import BEGINNING, FOREVER, Instant
from services.domain.scope import Scope
from services.stores.vectors.port import Vector, VectorFilter, VectorRow, VectorStore
from tests.contracts.vector_store import DIMENSION, FACTS, fresh_scope
from tests.doubles.vectors import ArrayVectorStore

INSTANTS = st.sampled_from([BEGINNING, Instant(-5), Instant(0), Instant(7), Instant(50), FOREVER])
NAMES = st.sampled_from(["", "one", "two"])
SOME = st.lists(st.sampled_from(["one", "two", "three"]), max_size=2, unique=True)
IDS = [f"r{i}" for i in range(12)]


@st.composite
def a_row(draw: st.DrawFn) -> VectorRow:
    seed = draw(st.integers(0, 2**32 - 1))
    vector = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    columns: dict[str, Any] = {name: draw(NAMES) for name in ("aspect", "subject", "object", "session")}
    return VectorRow(draw(st.sampled_from(IDS)), vector, draw(INSTANTS), draw(INSTANTS), **columns)


WHERE = st.builds(
    VectorFilter,
    holds_at=st.none() | INSTANTS,
    since=st.none() | INSTANTS,
    until=st.none() | INSTANTS,
    aspects=SOME,
    subjects=SOME,
    sessions=SOME,
    ids=st.lists(st.sampled_from(IDS), max_size=6, unique=True),
)

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), st.lists(a_row(), min_size=1, max_size=6)),
        st.tuples(st.just("delete"), st.lists(st.sampled_from(IDS), min_size=1, max_size=4)),
        st.tuples(st.just("search"), WHERE),
        st.tuples(st.just("flush"), st.none()),
        st.tuples(st.just("erase"), st.none()),
    ),
    min_size=3,
    max_size=12,
)
Operations = list[tuple[str, object]]
ROWS = st.lists(a_row(), max_size=30)
FILTERS = st.lists(WHERE, min_size=25, max_size=25)
SEEDS = st.integers(0, 2**32 - 1)


async def agree(store: VectorStore, operations: Operations, last: VectorFilter, seed: int) -> None:
    """Does the same to a store and to arrays, and compares every answer."""
    scope, arrays = fresh_scope(), ArrayVectorStore(DIMENSION)
    query = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    for name, argument in itertools.chain(operations, [("search", last)]):
        match name, argument:
            case "upsert", list():
                await store.upsert(scope, FACTS, argument)
                await arrays.upsert(scope, FACTS, argument)
            case "delete", list():
                await store.delete(scope, FACTS, argument)
                await arrays.delete(scope, FACTS, argument)
            case "search", VectorFilter():
                await _compare(store, arrays, scope, query, argument)
            case "flush", _:
                await store.flush()
            case "erase", _:
                await store.erase(scope)
                await arrays.erase(scope)


async def _compare(
    store: VectorStore, arrays: ArrayVectorStore, scope: Scope, query: Vector, where: VectorFilter
) -> None:
    for limit in (2, 20):
        [found] = await store.search(scope, FACTS, [query], limit, where)
        [expected] = await arrays.search(scope, FACTS, [query], limit, where)
        assert [hit.id for hit in found] == [hit.id for hit in expected]
        assert np.allclose([hit.score for hit in found], [hit.score for hit in expected], atol=1e-5)
    assert await store.count(scope, FACTS) == await arrays.count(scope, FACTS)
    ours, theirs = await store.fetch(scope, FACTS, IDS), await arrays.fetch(scope, FACTS, IDS)
    assert list(ours) == list(theirs)


async def find_alike(
    store: VectorStore, rows: list[VectorRow], filters: list[VectorFilter], flushed: bool, seed: int
) -> None:
    """Any filter finds in a store what it finds in arrays of the same rows."""
    scope, arrays = fresh_scope(), ArrayVectorStore(DIMENSION)
    query = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    await store.upsert(scope, FACTS, rows)
    await arrays.upsert(scope, FACTS, rows)
    if flushed:
        await store.flush()
    for where in filters:
        [found] = await store.search(scope, FACTS, [query], 100, where)
        [expected] = await arrays.search(scope, FACTS, [query], 100, where)
        assert [hit.id for hit in found] == [hit.id for hit in expected]
