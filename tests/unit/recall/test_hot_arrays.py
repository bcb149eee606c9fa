"""Arrays of hot scopes: what they answer of some rows is what they answer of all."""

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.recall.behind import Behind
from services.recall.hot.arrays import Matrix
from services.recall.hot.spans import Columns, HotSpans
from services.recall.hot.vectors import HotVectors
from services.stores.errors import StoreError
from services.stores.graph.plain import OPEN
from services.stores.graph.port import AsOf
from services.stores.vectors.port import Collection, VectorFilter, VectorRow
from tests.builders import a_scope
from tests.doubles.vectors import ArrayVectorStore

Row = tuple[int, int, int, int, int]
SMALL = st.integers(0, 6)
ROWS = st.lists(st.tuples(SMALL, SMALL, SMALL | st.just(OPEN), SMALL, SMALL | st.just(OPEN)), max_size=20)
TIMES = st.builds(AsOf, SMALL.map(Revision), st.none() | SMALL.map(Instant), st.none() | SMALL.map(Instant))


@given(ROWS, ROWS, st.sets(SMALL), TIMES, st.booleans(), st.sets(SMALL))
def test_spans_of_some_statements_are_seen_as_among_all(
    first: list[Row], then: list[Row], replaced: set[int], at: AsOf, open_only: bool, asked: set[int]
) -> None:
    spans = HotSpans()
    spans.put(_columns(first), np.zeros(0, dtype=np.int64))
    spans.put(_columns(then), np.array(sorted(replaced), dtype=np.int64))
    every = spans.seen(7, at, open_only=open_only)
    places = np.array(sorted(asked), dtype=np.int64)
    assert spans.seen_of(places, at, open_only=open_only).tolist() == every[places].tolist()
    kept = [row for row in first if row[0] not in replaced] + then
    begun = [place for place, _, _, known_from, known_to in kept if known_from <= at.known_at < known_to]
    if at.valid_at is None and at.since is None and not open_only:
        assert every.tolist() == [place in begun for place in range(7)]


def _columns(rows: list[Row]) -> Columns:
    return np.array(rows, dtype=np.int64).reshape(-1, 5).T


def test_cosines_are_rounded_as_the_store_rounds_them() -> None:
    vectors = np.random.default_rng(3).standard_normal((200, 8)).astype(np.float32)
    matrix, ids = Matrix(8), [f"{number:03}" for number in range(200)]
    matrix.put(range(200), list(vectors))
    asked = vectors[7] / np.linalg.norm(vectors[7])
    found = matrix.rows(np.ones(200, dtype=np.bool_)).nearest(asked, 200, ids, 2)
    held = np.vecdot(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), asked)
    told = [(id, round(min(1.0, max(-1.0, float(cosine))), 2)) for id, cosine in zip(ids, held, strict=True)]
    assert found == sorted(told, key=lambda hit: (-hit[1], hit[0]))
    assert matrix.rows(np.ones(200, dtype=np.bool_)).nearest(asked, 30, ids, 2) == found[:30]


def test_rows_that_are_being_read_stay_what_they_were() -> None:
    one, other = np.eye(4, dtype=np.float32)[:2]
    matrix, ids, every = Matrix(4), ["a", "b"], np.ones(2, dtype=np.bool_)
    matrix.put([0], [one])
    before = matrix.rows(every)
    matrix.drop(0)
    matrix.put([0, 1], [other, one])
    assert before.nearest(one, 2, ids, 2) == [("a", 1.0)]
    assert matrix.rows(every).nearest(one, 2, ids, 2) == [("b", 1.0), ("a", 0.0)]


async def test_a_search_beside_the_event_loop_finds_the_same() -> None:
    scope, store, ids = a_scope(), ArrayVectorStore(8), [f"{number:02}" for number in range(30)]
    vectors = np.random.default_rng(5).standard_normal((30, 8)).astype(np.float32)
    rows = [VectorRow(id, vector) for id, vector in zip(ids, vectors, strict=True)]
    await store.upsert(scope, Collection.STATEMENTS, rows)
    mask = np.arange(30) % 3 > 0
    found = []
    for apart in (0, 31):
        near = HotVectors(store, Behind(), scope, Collection.STATEMENTS, lambda _: "", apart=apart)
        await near.follow(ids, mask)
        assert near.whole
        found.append(await near.search(ids, list(vectors[:2]), 12, mask))
    wanted = VectorFilter(ids=[id for id, wanted in zip(ids, mask, strict=True) if wanted])
    stored = await store.search(scope, Collection.STATEMENTS, list(vectors[:2]), 12, wanted)
    assert found[0] == found[1]
    assert [[hit.id for hit in hits] for hits in found[0]] == [[hit.id for hit in hits] for hits in stored]


class Closed(ArrayVectorStore):
    """As a store that was closed."""

    async def fetch(
        self, scope: Scope, collection: Collection, ids: Sequence[str]
    ) -> Mapping[str, VectorRow]:
        raise StoreError("closed")


async def test_vectors_that_a_store_refuses_are_left_to_it() -> None:
    near = HotVectors(Closed(8), Behind(), a_scope(), Collection.STATEMENTS, lambda _: "")
    await near.follow(["a"], np.ones(1, dtype=np.bool_))
    assert not near.whole


async def test_vectors_of_the_same_texts_are_taken_over_and_not_read_again() -> None:
    scope, store, chance = a_scope(), ArrayVectorStore(8), np.random.default_rng(7)
    vectors = chance.standard_normal((5, 8)).astype(np.float32)
    told = {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"}

    async def write(texts: dict[str, str]) -> None:
        rows = [VectorRow(id, vectors[at], digest=texts[id]) for at, id in enumerate(texts)]
        await store.upsert(scope, Collection.STATEMENTS, rows)

    def near_of(ids: list[str], texts: dict[str, str]) -> HotVectors:
        return HotVectors(store, Behind(), scope, Collection.STATEMENTS, lambda place: texts[ids[place]])

    await write(told)
    before = ["a", "b", "c", "d"]
    old = near_of(before, told)
    await old.follow(before, np.array([True, True, True, False]))
    store.fetched.clear()
    retold, now = told | {"c": "other"}, ["e", "d", "c", "b", "a"]
    await write(retold)
    new, fresh, wanted = near_of(now, retold), near_of(now, retold), np.ones(5, dtype=np.bool_)
    await new.take_over(now, old, before)
    assert not new.whole
    await new.follow(now, wanted)
    assert sorted(store.fetched) == ["c", "d", "e"], "new, told otherwise, and not there before"
    await fresh.follow(now, wanted)
    asked = list(vectors)
    assert await new.search(now, asked, 5, wanted) == await fresh.search(now, asked, 5, wanted)
