"""What is kept of a graph: who starts cold reads that, and nothing of it outlives what it is of."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palimpsest.internal.v1 import resolver_pb2
from palimpsest.internal.v1.summaries_pb2 import ReadChangesRequest
from services.domain.ids import EpisodeId, Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.recall.hot.changes import MOST
from services.recall.hot.kept import layout
from services.recall.parts import Options
from services.recall.service import Recall
from services.recall.states import from_parts
from services.stores.errors import StoreUnavailable
from services.stores.graph.plain import PlainPage
from services.stores.graph.port import GraphStore
from services.stores.memory.snapshots import Snapshot, SnapshotKind
from services.stores.paging import Page
from services.stores.vectors.port import Collection
from tests.doubles.snapshots import FullSnapshots, SlowSnapshots, UnreadableSnapshots
from tests.integration.recalling import KEEPING, Memory, a_memory, triples, twin
from tests.integration.test_recall_hot import Counting

TEA = "what does Ana drink"
TEA_FOUND = [("Ana", "drinks", "tea")]


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with a_memory(tmp_path, options=KEEPING) as memory:
        yield memory


@pytest.fixture
async def kept(memory: Memory) -> Memory:
    """A memory of one fact, of which all that a question needs is kept."""
    await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
    await memory.ask(TEA)
    await memory.recall.settled()
    return memory


class Scans(Counting):
    """A graph store that counts how often it is scanned; not while it is `down`, nor before it `may` be."""

    def __init__(self, graph: GraphStore) -> None:
        super().__init__(graph)
        self.down, self.may = False, asyncio.Event()
        self.may.set()

    async def scan_plain(self, scope: Scope, page: Page) -> PlainPage:
        found = await super().scan_plain(scope, page)
        await self.may.wait()
        if self.down:
            raise StoreUnavailable("graph")
        return found


def restarted(memory: Memory, **parts: Any) -> Scans:
    """Another process with nothing in memory; answers its graph store."""
    scans = Scans(memory.world.graph)
    passing_on: Any = scans
    memory.recall = Recall(replace(memory.parts, graph=passing_on, **parts))
    return scans


async def snapshots(memory: Memory, scope: Scope | None = None) -> dict[SnapshotKind, Snapshot]:
    store, of = memory.parts.snapshots, scope or memory.world.scope
    found = {kind: await store.kept(of, kind, layout()) for kind in SnapshotKind}
    return {kind: snapshot for kind, snapshot in found.items() if snapshot is not None}


class TestCold:
    async def test_a_process_that_starts_cold_reads_what_is_kept(self, kept: Memory) -> None:
        scans = restarted(kept)
        answer = await kept.ask(TEA)
        assert triples(answer) == TEA_FOUND
        assert [one.passage.text for one in answer.passages] == ["Ana drinks tea"]
        assert scans.calls == 0
        assert await snapshots(kept)

    async def test_what_came_since_is_followed(self, kept: Memory) -> None:
        told = await kept.tell("b", "2025-02-01", ("Ana", "drinks", "mate"))
        scans = restarted(kept)
        answer = await kept.ask(TEA, min_revision=told.revision)
        assert sorted(triples(answer)) == [("Ana", "drinks", "mate"), *TEA_FOUND]
        assert scans.calls == 0
        assert {one.passage.text for one in answer.passages} == {"Ana drinks tea", "Ana drinks mate"}

    async def test_what_is_too_far_behind_is_read_from_the_stores_and_kept_anew(self, kept: Memory) -> None:
        before = await snapshots(kept)
        log, scope = kept.world.memory.revisions, kept.world.scope
        current = await log.current(scope)
        for number in range(current, current + MOST + 1):
            await log.begin(scope, Revision(number), f"n{number}", Instant(1), b"", '{"touched": {}}')
            await log.publish(scope, Revision(number + 1))
        scans = restarted(kept)
        assert triples(await kept.ask(TEA)) == TEA_FOUND
        assert scans.calls == 1
        await kept.recall.settled()
        assert (await snapshots(kept))[SnapshotKind.FACTS] != before[SnapshotKind.FACTS]

    async def test_a_small_graph_is_not_kept(self, memory: Memory) -> None:
        restarted(memory, options=Options())
        await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
        assert triples(await memory.ask(TEA)) == TEA_FOUND
        await memory.recall.settled()
        assert await snapshots(memory) == {}

    async def test_a_graph_that_has_no_room_in_memory_is_not_kept(self, memory: Memory) -> None:
        restarted(memory, options=replace(KEEPING, facts_bytes=1, texts_bytes=1))
        await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
        assert triples(await memory.ask(TEA)) == TEA_FOUND
        await memory.recall.settled()
        assert await snapshots(memory) == {}

    async def test_graphs_of_two_tenants_are_kept_apart(self, kept: Memory) -> None:
        await kept.tell("theirs", "2025-01-01", ("Ana", "drinks", "mate"), scope=twin())
        for _ in range(2):
            restarted(kept)
            assert triples(await kept.ask(TEA, scope=twin())) == [("Ana", "drinks", "mate")]
            await kept.recall.settled()
            assert triples(await kept.ask(TEA)) == TEA_FOUND
        mine, theirs = await snapshots(kept), await snapshots(kept, twin())
        assert mine.keys() == theirs.keys()
        assert all(mine[kind].parts != theirs[kind].parts for kind in mine)


class TestUnusable:
    async def test_another_layout_is_read_from_the_stores(self, kept: Memory) -> None:
        for kind, snapshot in (await snapshots(kept)).items():
            await put(kept, kind, replace(snapshot, layout="0", parts=[b"whatever"]))
        scans = restarted(kept)
        assert triples(await kept.ask(TEA)) == TEA_FOUND
        assert scans.calls == 1

    @pytest.mark.parametrize(
        "parts",
        [[], [b""], [b"nonsense"], [zlib.compress(b"nonsense")]],
        ids=["none", "empty", "nonsense", "odd"],
    )
    async def test_a_damaged_one_is_read_from_the_stores_and_replaced(
        self, kept: Memory, parts: list[bytes]
    ) -> None:
        for kind, snapshot in (await snapshots(kept)).items():
            await put(kept, kind, replace(snapshot, parts=parts))
        scans = restarted(kept)
        assert triples(await kept.ask(TEA)) == TEA_FOUND
        assert scans.calls == 1
        await kept.recall.settled()
        scans = restarted(kept)
        assert triples(await kept.ask(TEA)) == TEA_FOUND
        assert scans.calls == 0

    async def test_what_can_not_be_kept_is_asked_all_the_same(self, memory: Memory) -> None:
        await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
        restarted(memory, snapshots=FullSnapshots(memory.parts.snapshots))
        for _ in range(2):
            assert triples(await memory.ask(TEA)) == TEA_FOUND
            await memory.recall.settled()
        assert await snapshots(memory) == {}

    async def test_what_can_not_be_read_is_read_from_the_stores(self, kept: Memory) -> None:
        scans = restarted(kept, snapshots=UnreadableSnapshots(kept.parts.snapshots))
        assert triples(await kept.ask(TEA)) == TEA_FOUND
        assert scans.calls == 1


class TestForgetting:
    async def test_what_is_deleted_goes_from_what_is_kept(self, kept: Memory) -> None:
        world, scope = kept.world, kept.world.scope
        await kept.tell("b", "2025-01-02", ("Ana", "drinks", "quinoa milk"))
        restarted(kept, snapshots=UnreadableSnapshots(kept.parts.snapshots))
        assert len((await kept.ask("quinoa")).facts) == 2
        await kept.recall.settled()
        assert "quinoa" in await words_kept(kept)
        await world.memory.text.delete_episode(scope, EpisodeId("episode-b"), Instant(1))
        await world.vectors.delete(scope, Collection.PASSAGES, ["passage-b-0"])
        assert await snapshots(kept) == {}, "text goes with what is kept of it"
        request = resolver_pb2.RevokeRequest(commit_id="d", episode_id="episode-b", actor="user")
        await world.resolver.revoke(scope, request)
        restarted(kept)
        assert triples(await kept.ask("quinoa")) == TEA_FOUND
        await kept.recall.settled()
        assert await snapshots(kept)
        assert "quinoa" not in await words_kept(kept)

    async def test_what_was_read_before_a_deletion_is_not_kept_after_it(self, memory: Memory) -> None:
        await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
        await memory.tell("b", "2025-01-02", ("Ana", "drinks", "quinoa milk"))
        slow = SlowSnapshots(memory.parts.snapshots)
        restarted(memory, snapshots=slow)
        await memory.ask(TEA)
        await slow.reached.wait()
        world, scope = memory.world, memory.world.scope
        await world.memory.text.delete_episode(scope, EpisodeId("episode-b"), Instant(1))
        slow.go.set()
        await memory.recall.settled()
        assert await snapshots(memory) == {}

    async def test_an_erased_graph_keeps_nothing(self, kept: Memory) -> None:
        world, scope = kept.world, kept.world.scope
        await world.memory.fences.put_up(scope)
        await world.memory.erase(scope)
        await world.graph.erase(scope)
        assert await world.memory.rows(scope) == {}
        await world.memory.fences.take_down(scope)
        answer = await kept.ask(TEA)
        assert not answer.facts
        assert not answer.passages
        await kept.recall.settled()
        restarted(kept)
        assert not (await kept.ask(TEA)).passages


class TestBehind:
    async def test_what_is_being_kept_ends_with_the_service(self, memory: Memory) -> None:
        await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
        slow = SlowSnapshots(memory.parts.snapshots)
        restarted(memory, snapshots=slow)
        await memory.ask(TEA)
        await slow.reached.wait()
        await memory.recall.close()
        slow.go.set()
        await memory.recall.settled()
        assert await snapshots(memory) == {}
        await memory.recall.close()

    async def test_snapshots_that_are_turned_off_are_neither_kept_nor_read(self, kept: Memory) -> None:
        before = await snapshots(kept)
        scans = restarted(kept, options=replace(KEEPING, snapshots=False))
        assert triples(await kept.ask(TEA)) == TEA_FOUND
        await kept.recall.settled()
        assert scans.calls == 1
        assert await snapshots(kept) == before

    async def test_a_deletion_reads_no_vectors_of_other_texts_again(self, kept: Memory) -> None:
        world, scope = kept.world, kept.world.scope
        await kept.tell("b", "2025-01-02", ("Ana", "drinks", "quinoa milk"))
        assert len((await kept.ask(TEA)).passages) == 2
        world.vectors.fetched.clear()
        await world.memory.text.delete_episode(scope, EpisodeId("episode-b"), Instant(1))
        await world.vectors.delete(scope, Collection.PASSAGES, ["passage-b-0"])
        assert len((await kept.ask(TEA)).passages) == 1
        assert world.vectors.fetched == []


class TestUnasked:
    """A graph that is quiet after a change is kept, though nobody asked."""

    async def quiet(self, memory: Memory) -> None:
        scope = memory.world.scope
        known = await memory.world.memory.revisions.current(scope)
        await memory.world.memory.summaries.follow(scope, known)
        answer = await memory.recall.read_changes(scope, ReadChangesRequest())
        assert answer.nothing
        await memory.recall.settled()

    async def test_it_is_kept(self, memory: Memory) -> None:
        await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
        await self.quiet(memory)
        assert set(await snapshots(memory)) == {SnapshotKind.FACTS, SnapshotKind.TEXTS}
        scans = restarted(memory)
        assert triples(await memory.ask(TEA)) == TEA_FOUND
        assert scans.calls == 0

    async def test_what_was_just_kept_is_left(self, kept: Memory) -> None:
        before = await snapshots(kept)
        await kept.tell("b", "2025-02-01", ("Ana", "drinks", "mate"))
        await self.quiet(kept)
        assert await snapshots(kept) == before

    async def test_what_was_kept_a_while_ago_is_kept_anew(self, kept: Memory) -> None:
        for kind, snapshot in (await snapshots(kept)).items():
            await put(kept, kind, replace(snapshot, taken_at=Instant(1)))
        await self.quiet(kept)
        assert all(found.taken_at > 1 for found in (await snapshots(kept)).values())

    async def test_a_small_graph_is_left(self, memory: Memory) -> None:
        await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
        scans = restarted(memory, options=replace(KEEPING, least_kept_rows=2))
        await self.quiet(memory)
        assert scans.calls == 0
        assert await snapshots(memory) == {}

    @pytest.mark.parametrize("options", [{"snapshots": False}, {"hot": False}], ids=str)
    async def test_what_is_turned_off_is_left(self, memory: Memory, options: dict[str, Any]) -> None:
        await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
        scans = restarted(memory, options=replace(KEEPING, **options))
        await self.quiet(memory)
        assert scans.calls == 0

    async def test_one_without_room_is_read_once(self, memory: Memory) -> None:
        await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
        scans = restarted(memory, options=replace(KEEPING, facts_bytes=1, texts_bytes=1))
        for _ in range(3):
            await self.quiet(memory)
        assert scans.calls == 1
        assert await snapshots(memory) == {}

    async def test_one_whose_store_is_down_is_kept_after_another_change(self, memory: Memory) -> None:
        await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
        scans = restarted(memory)
        scans.down = True
        await self.quiet(memory)
        assert await snapshots(memory) == {}
        scans.down = False
        await self.quiet(memory)
        assert await snapshots(memory)


class TestOld:
    async def test_what_was_kept_long_ago_answers_and_is_read_anew_behind_the_answer(
        self, kept: Memory
    ) -> None:
        long_ago = Instant(1)
        for kind, snapshot in (await snapshots(kept)).items():
            await put(kept, kind, replace(snapshot, taken_at=long_ago))
        scans = restarted(kept)
        scans.may.clear()
        for _ in range(3):
            assert triples(await kept.ask(TEA)) == TEA_FOUND
        scans.may.set()
        for _ in range(2):
            await kept.recall.settled()
        assert scans.calls == 1
        assert all(found.taken_at > long_ago for found in (await snapshots(kept)).values())
        assert triples(await kept.ask(TEA)) == TEA_FOUND
        await kept.recall.settled()
        assert scans.calls == 1, "once"

    async def test_without_its_stores_what_is_old_goes_on_answering(self, kept: Memory) -> None:
        for kind, snapshot in (await snapshots(kept)).items():
            await put(kept, kind, replace(snapshot, taken_at=Instant(1)))
        scans = restarted(kept)
        scans.down = True
        for _ in range(3):
            assert triples(await kept.ask(TEA)) == TEA_FOUND
            await kept.recall.settled()
        assert scans.calls == 1, "it is tried again after a while"


async def words_kept(memory: Memory) -> str:
    """All that is kept of a graph, unpacked."""
    found = (await snapshots(memory)).values()
    return str([from_parts(snapshot.parts) for snapshot in found])


async def put(memory: Memory, kind: SnapshotKind, snapshot: Snapshot) -> None:
    store, scope = memory.parts.snapshots, memory.world.scope
    assert await store.keep(scope, kind, await store.mark(scope), snapshot)
