"""What every vector store must do. A store's test gives the fixture `store`, of dimension 8."""

import asyncio
import uuid
from typing import Any

import numpy as np
import pytest

from services.domain.instants import BEGINNING, FOREVER, Instant
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.paging import Page
from services.stores.vectors.port import (
    Collection,
    Consistency,
    Vector,
    VectorFilter,
    VectorRow,
    VectorStore,
)

DIMENSION = 8
FACTS = Collection.STATEMENTS


def fresh_scope(graph: str = "g") -> Scope:
    """A scope that no other test has: stores of several tests may be one."""
    return Scope(TenantId(f"tenant-{uuid.uuid4().hex}"), GraphId(graph))


def axis(index: int, lean: float = 0.0) -> Vector:
    """The unit vector along an axis, leaning towards the next one."""
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[index], vector[(index + 1) % DIMENSION] = 1.0, lean
    return vector / np.linalg.norm(vector)


def row(id: str, **columns: Any) -> VectorRow:
    return VectorRow(id, axis(0), **columns)


def where(**fields: Any) -> VectorFilter:
    return VectorFilter(**fields)


def at(number: int) -> Instant:
    return Instant(number * 1_000_000)


class VectorStoreContract:
    """Subclasses give the fixture `store`."""

    @pytest.fixture
    def scope(self) -> Scope:
        return fresh_scope()

    async def ids(
        self, store: VectorStore, scope: Scope, where: VectorFilter | None = None, limit: int = 100
    ) -> set[str]:
        [hits] = await store.search(scope, FACTS, [axis(0, 0.5)], limit, where or VectorFilter())
        return {hit.id for hit in hits}

    async def test_the_nearest_come_first_scored_by_cosine(self, store: VectorStore, scope: Scope) -> None:
        near, far, opposite = VectorRow("near", axis(0, 0.5)), VectorRow("far", axis(3)), -axis(0)
        await store.upsert(scope, FACTS, [far, VectorRow("opposite", opposite), near])
        [hits] = await store.search(scope, FACTS, [axis(0)], 10)
        assert [hit.id for hit in hits] == ["near", "far", "opposite"]
        assert [hit.score for hit in hits] == pytest.approx([1 / np.sqrt(1.25), 0.0, -1.0], abs=1e-5)

    async def test_a_search_gives_at_most_its_limit(self, store: VectorStore, scope: Scope) -> None:
        await store.upsert(scope, FACTS, [VectorRow(f"r{i}", axis(0, i / 10)) for i in range(9)])
        [hits] = await store.search(scope, FACTS, [axis(0)], 3)
        assert [hit.id for hit in hits] == ["r0", "r1", "r2"]

    async def test_equal_scores_are_ordered_by_id(self, store: VectorStore, scope: Scope) -> None:
        ids = ["d", "a", "c", "b", "e"]
        await store.upsert(scope, FACTS, [VectorRow(id, axis(2)) for id in ids])
        await store.flush()
        await store.upsert(scope, FACTS, [VectorRow("0", axis(2))])
        [hits] = await store.search(scope, FACTS, [axis(2, 0.3)], 10)
        assert [hit.id for hit in hits] == ["0", *sorted(ids)]
        assert len({hit.score for hit in hits}) == 1

    async def test_many_vectors_are_searched_in_one_call(self, store: VectorStore, scope: Scope) -> None:
        await store.upsert(scope, FACTS, [VectorRow(f"r{i}", axis(i)) for i in range(DIMENSION)])
        asked = [axis(i % DIMENSION) for i in range(300)]
        answers = await store.search(scope, FACTS, asked, 1)
        assert [[hit.id for hit in hits] for hits in answers] == [[f"r{i % DIMENSION}"] for i in range(300)]
        assert await store.search(scope, FACTS, [], 1) == []

    async def test_an_empty_scope_has_nothing(self, store: VectorStore, scope: Scope) -> None:
        assert await store.search(scope, FACTS, [axis(0), axis(1)], 5) == [[], []]
        assert await store.fetch(scope, FACTS, ["x"]) == {}
        assert await store.count(scope, FACTS) == 0

    async def test_an_upsert_replaces_and_repeats_alike(self, store: VectorStore, scope: Scope) -> None:
        await store.upsert(scope, FACTS, [VectorRow("x", axis(0), aspect="Event"), VectorRow("y", axis(1))])
        full = VectorRow("x", axis(3), at(1), at(2), 7, "Task", "subject", "object", "session", "digest")
        for _ in range(2):
            await store.upsert(scope, FACTS, [VectorRow("x", axis(5)), full])
        assert await store.count(scope, FACTS) == 2
        found = (await store.fetch(scope, FACTS, ["x"]))["x"]
        assert np.allclose(found.vector, full.vector)
        assert [getattr(found, name) for name in COLUMNS] == [getattr(full, name) for name in COLUMNS]
        [[best]] = await store.search(scope, FACTS, [axis(3)], 1)
        assert best.id == "x"
        assert best.score == pytest.approx(1.0, abs=1e-5)

    async def test_fetch_leaves_out_what_is_absent(self, store: VectorStore, scope: Scope) -> None:
        await store.upsert(scope, FACTS, [VectorRow("a", axis(0)), VectorRow("b", axis(1))])
        assert list(await store.fetch(scope, FACTS, ["b", "x", "a", "b"])) == ["b", "a"]
        assert await store.fetch(scope, FACTS, []) == {}

    async def test_a_deleted_row_is_gone(self, store: VectorStore, scope: Scope) -> None:
        await store.upsert(scope, FACTS, [VectorRow(id, axis(0)) for id in ("a", "b", "c")])
        await store.flush()
        for _ in range(2):
            await store.delete(scope, FACTS, ["a", "c", "absent"])
            assert await self.ids(store, scope) == {"b"}
            assert list(await store.fetch(scope, FACTS, ["a", "b", "c"])) == ["b"]
            assert await store.count(scope, FACTS) == 1
        await store.upsert(scope, FACTS, [VectorRow("a", axis(0))])
        assert await self.ids(store, scope) == {"a", "b"}

    async def test_large_batches_are_whole(self, store: VectorStore, scope: Scope) -> None:
        rows = [VectorRow(f"r{i}", axis(i % DIMENSION, i / 2_500)) for i in range(2_500)]
        await store.upsert(scope, FACTS, rows)
        assert await store.count(scope, FACTS) == 2_500
        assert len(await store.fetch(scope, FACTS, [row.id for row in rows])) == 2_500
        await store.delete(scope, FACTS, [row.id for row in rows[1:]])
        assert await self.ids(store, scope, limit=16_384) == {"r0"}

    @pytest.mark.parametrize(
        ("field", "column"), [("aspects", "aspect"), ("subjects", "subject"), ("sessions", "session")]
    )
    async def test_a_column_filters(self, store: VectorStore, scope: Scope, field: str, column: str) -> None:
        rows = [row(value or "none", **{column: value}) for value in ("one", "two", "")]
        await store.upsert(scope, FACTS, rows)
        assert await self.ids(store, scope, where(**{field: ["one"]})) == {"one"}
        assert await self.ids(store, scope, where(**{field: ["one", "two"]})) == {"one", "two"}
        assert await self.ids(store, scope, where(**{field: ["three"]})) == set()
        assert await self.ids(store, scope, VectorFilter()) == {"one", "two", "none"}

    async def test_ids_filter(self, store: VectorStore, scope: Scope) -> None:
        await store.upsert(scope, FACTS, [VectorRow(id, axis(0)) for id in ("a", "b", "c")])
        assert await self.ids(store, scope, VectorFilter(ids=["a", "c", "x"])) == {"a", "c"}

    async def test_every_filter_must_match(self, store: VectorStore, scope: Scope) -> None:
        rows = [
            VectorRow("both", axis(0), subject="s", aspect="Event"),
            VectorRow("subject", axis(0), subject="s"),
            VectorRow("aspect", axis(0), aspect="Event"),
        ]
        await store.upsert(scope, FACTS, rows)
        both = VectorFilter(subjects=["s"], aspects=["Event"], holds_at=at(0))
        assert await self.ids(store, scope, both) == {"both"}

    @pytest.mark.parametrize(
        ("instant", "expected"),
        [
            (at(-1), {"ever", "until"}),
            (at(9) + 999_999, {"ever", "until"}),
            (at(10), {"ever", "until", "from", "between"}),
            (at(20) - 1, {"ever", "until", "from", "between"}),
            (at(20), {"ever", "from"}),
            (BEGINNING, {"ever", "until"}),
            (FOREVER, {"ever", "from"}),
        ],
    )
    async def test_a_hull_holds_from_its_start_until_before_its_end(
        self, store: VectorStore, scope: Scope, instant: int, expected: set[str]
    ) -> None:
        await store.upsert(scope, FACTS, HULLS)
        assert await self.ids(store, scope, VectorFilter(holds_at=Instant(instant))) == expected

    @pytest.mark.parametrize(
        ("since", "until", "expected"),
        [
            (at(20), None, {"ever", "from"}),
            (at(20) - 1, None, {"ever", "until", "from", "between"}),
            (None, at(10), {"ever", "until"}),
            (None, at(10) + 1, {"ever", "until", "from", "between"}),
            (at(5), at(10), {"ever", "until"}),
            (at(19), at(30), {"ever", "until", "from", "between"}),
            (at(20), at(30), {"ever", "from"}),
            (FOREVER, None, {"ever", "from"}),
            (None, BEGINNING, {"ever", "until"}),
        ],
    )
    async def test_a_hull_meets_a_half_open_period(
        self, store: VectorStore, scope: Scope, since: int | None, until: int | None, expected: set[str]
    ) -> None:
        await store.upsert(scope, FACTS, HULLS)
        assert await self.ids(store, scope, where(since=since, until=until)) == expected

    async def test_twin_scopes_with_the_same_ids_see_nothing_of_each_other(
        self, store: VectorStore, scope: Scope
    ) -> None:
        twins = [fresh_scope(), Scope(scope.tenant, GraphId("other"))]
        await store.upsert(scope, FACTS, [VectorRow("x", axis(0), aspect="Event")])
        for twin in twins:
            assert await self.ids(store, twin) == set()
            await store.upsert(twin, FACTS, [VectorRow("x", axis(4), aspect="Task")])
            await store.delete(twin, FACTS, ["x"])
            await store.erase(twin)
            assert await store.fetch(twin, FACTS, ["x"]) == {}
        [[hit]] = await store.search(scope, FACTS, [axis(0)], 10)
        assert hit.id == "x"
        assert hit.score == pytest.approx(1.0, abs=1e-5)
        assert (await store.fetch(scope, FACTS, ["x"]))["x"].aspect == "Event"

    async def test_collections_are_apart(self, store: VectorStore, scope: Scope) -> None:
        for index, collection in enumerate(Collection):
            await store.upsert(scope, collection, [VectorRow("x", axis(index))])
        for index, collection in enumerate(Collection):
            row = (await store.fetch(scope, collection, ["x"]))["x"]
            assert np.allclose(row.vector, axis(index))
            assert await store.count(scope, collection) == 1

    async def test_a_scan_meets_every_id_once_and_in_order(self, store: VectorStore, scope: Scope) -> None:
        ids = [str(uuid.uuid4()) for _ in range(150)] + ["named-1", "named-2", "0", "z"]
        await store.upsert(scope, FACTS, [row(id) for id in ids])
        await store.upsert(fresh_scope(), FACTS, [row(str(uuid.uuid4())) for _ in range(20)])
        await store.upsert(scope, Collection.VOICE, [row("another")])
        await store.delete(scope, FACTS, ids[:10])
        for size in (40, 1000):
            found: list[str] = []
            after = ""
            while True:
                page = await store.scan(scope, FACTS, Page(size, after))
                assert len(page.items) <= size
                found += page.items
                if not (after := page.after):
                    break
            assert found == sorted(ids[10:])
        assert (await store.scan(fresh_scope(), FACTS, Page())).items == []

    async def test_an_erased_scope_is_gone_from_every_collection(
        self, store: VectorStore, scope: Scope
    ) -> None:
        other = fresh_scope()
        for collection in Collection:
            for owner in (scope, other):
                await store.upsert(owner, collection, [VectorRow(f"r{i}", axis(i)) for i in range(5)])
        await store.flush()
        await store.upsert(scope, FACTS, [VectorRow("late", axis(0))])
        for _ in range(2):
            await store.erase(scope)
        for collection in Collection:
            assert await store.count(scope, collection, Consistency.STRONG) == 0
            assert await store.count(other, collection, Consistency.STRONG) == 5
        assert await store.search(scope, FACTS, [axis(0)], 9, consistency=Consistency.STRONG) == [[]]

    async def test_every_write_is_read_at_once(self, store: VectorStore, scope: Scope) -> None:
        for turn in range(20):
            await store.upsert(scope, FACTS, [VectorRow(f"r{turn}", axis(turn % DIMENSION))])
            assert await store.count(scope, FACTS) == turn + 1
            assert f"r{turn}" in await self.ids(store, scope)
            if turn % 5 == 4:
                await store.flush()

    async def test_concurrent_writes_and_flushes_lose_nothing(self, store: VectorStore, scope: Scope) -> None:
        async def write(writer: int) -> None:
            for turn in range(5):
                rows = [VectorRow(f"w{writer}-{turn}-{i}", axis(i % DIMENSION)) for i in range(20)]
                await store.upsert(scope, FACTS, rows)
                assert rows[0].id in await store.fetch(scope, FACTS, [rows[0].id])

        async def flush() -> None:
            for _ in range(10):
                await store.flush()
                await asyncio.sleep(0)

        await asyncio.gather(flush(), *(write(writer) for writer in range(10)))
        assert await store.count(scope, FACTS) == 1_000
        assert len(await self.ids(store, scope, limit=2_000)) == 1_000

    @pytest.mark.parametrize(
        "vector",
        [
            np.zeros(DIMENSION, dtype=np.float32),
            np.full(DIMENSION, np.nan, dtype=np.float32),
            np.full(DIMENSION, np.inf, dtype=np.float32),
            np.ones(DIMENSION + 1, dtype=np.float32),
            np.ones((1, DIMENSION), dtype=np.float32),
        ],
        ids=["zero", "nan", "infinite", "long", "matrix"],
    )
    async def test_a_vector_without_direction_or_of_another_shape_is_refused(
        self, store: VectorStore, scope: Scope, vector: Vector
    ) -> None:
        good = VectorRow("good", axis(0))
        with pytest.raises(ValueError, match="a vector"):
            await store.upsert(scope, FACTS, [good, VectorRow("bad", vector)])
        with pytest.raises(ValueError, match="a vector"):
            await store.search(scope, FACTS, [vector], 1)
        assert await store.count(scope, FACTS) == 0

    @pytest.mark.parametrize("text", ['a" or scope != "', "ключ", "a b", "", "a" * 65, "a:b", "a\n", "a'"])
    async def test_foreign_text_is_refused_wherever_an_id_stands(
        self, store: VectorStore, scope: Scope, text: str
    ) -> None:
        with pytest.raises(ValueError, match="alphabet"):
            await store.upsert(scope, FACTS, [VectorRow(text, axis(0))])
        with pytest.raises(ValueError, match="alphabet"):
            await store.fetch(scope, FACTS, [text])
        with pytest.raises(ValueError, match="alphabet"):
            await store.delete(scope, FACTS, [text])
        for field in ("ids", "aspects", "subjects", "sessions"):
            with pytest.raises(ValueError, match="alphabet"):
                await store.search(scope, FACTS, [axis(0)], 1, where(**{field: [text]}))
        if text:
            for column in ("aspect", "subject", "object", "session", "digest"):
                with pytest.raises(ValueError, match="alphabet"):
                    await store.upsert(scope, FACTS, [row("x", **{column: text})])

    @pytest.mark.parametrize("limit", [0, -1, 16_385])
    async def test_a_limit_that_servers_refuse_is_refused(
        self, store: VectorStore, scope: Scope, limit: int
    ) -> None:
        with pytest.raises(ValueError, match="16384"):
            await store.search(scope, FACTS, [axis(0)], limit)


COLUMNS = ("id", "valid_at", "invalid_at", "created_at", "aspect", "subject", "object", "session", "digest")

HULLS = [
    VectorRow("ever", axis(0)),
    VectorRow("until", axis(0), invalid_at=at(20)),
    VectorRow("from", axis(0), valid_at=at(10)),
    VectorRow("between", axis(0), valid_at=at(10), invalid_at=at(20)),
]
