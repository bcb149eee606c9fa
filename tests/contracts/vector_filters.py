"""Filters on a store, held to arrays. A store's test gives the fixture `store`, of dimension 8."""

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.domain.instants import BEGINNING, FOREVER, Instant
from services.stores.vectors.port import VectorFilter, VectorRow, VectorStore
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


class VectorFiltersContract:
    """Subclasses give the fixture `store`."""

    @settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        rows=st.lists(a_row(), max_size=30),
        filters=st.lists(WHERE, min_size=25, max_size=25),
        flushed=st.booleans(),
        seed=st.integers(0, 2**32 - 1),
    )
    async def test_any_filter_finds_what_it_finds_in_arrays(
        self,
        store: VectorStore,
        rows: list[VectorRow],
        filters: list[VectorFilter],
        flushed: bool,
        seed: int,
    ) -> None:
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
