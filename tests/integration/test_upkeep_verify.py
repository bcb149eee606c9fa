"""Verify over real stores: a whole graph has no differences; every kind of harm is found and mended."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from services.domain.ids import EpisodeId
from services.domain.instants import BEGINNING, Instant
from services.domain.scope import Scope
from services.stores.errors import StoreUnavailable
from services.stores.graph.port import Commit
from services.stores.graph.sql import SqlGraphStore
from services.stores.paging import Page
from services.stores.vectors.port import Collection, VectorRow
from services.upkeep.differences import Done, Kind
from services.upkeep.verify import Patience
from tests.builders import a_scope, on
from tests.doubles.vectors import ArrayVectorStore
from tests.examples import sampled
from tests.integration.resolving import World, a_world, said
from tests.integration.test_resolver import CLAIM
from tests.integration.upkeeping import (
    a_story,
    answers,
    delete,
    episode,
    harm,
    memory_files,
    stores_of,
    told,
    verifier,
    verify,
)


@dataclass(frozen=True)
class Told:
    """The story told once, to be copied for each test."""

    folder: Path
    vectors: ArrayVectorStore
    at: Instant


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("story")

    async def tell() -> Told:
        async with a_world(folder) as world:
            await a_story(world)
            return Told(folder, world.vectors, world.clock.at)

    return asyncio.run(tell())


@pytest.fixture
async def world(story: Told, tmp_path: Path) -> AsyncIterator[World]:
    shutil.copytree(story.folder, tmp_path, dirs_exist_ok=True)
    async with a_world(tmp_path, vectors=story.vectors.copy()) as world:
        world.clock.at = Instant(story.at + 3_600_000_000)
        yield world


async def test_a_whole_graph_has_no_differences(world: World) -> None:
    report = await verify(world)
    assert told(report.differences) == []
    assert report.looked_at > 20
    assert told((await verify(replace(world, scope=a_scope("elsewhere")))).differences) == []


Harm = Callable[[World, Path], Awaitable[None]]


async def first(world: World, collection: Collection) -> str:
    return (await world.vectors.scan(world.scope, collection, Page())).items[0]


def vectors_lost(collection: Collection) -> Harm:
    async def lose(world: World, _folder: Path) -> None:
        await world.vectors.delete(world.scope, collection, [await first(world, collection)])

    return lose


def vectors_left(collection: Collection) -> Harm:
    async def leave(world: World, _folder: Path) -> None:
        id = await first(world, collection)
        row = (await world.vectors.fetch(world.scope, collection, [id]))[id]
        await world.vectors.upsert(world.scope, collection, [VectorRow("left-behind", row.vector)])

    return leave


def column_changed(collection: Collection, **columns: object) -> Harm:
    async def change(world: World, _folder: Path) -> None:
        id = await first(world, collection)
        row = (await world.vectors.fetch(world.scope, collection, [id]))[id]
        await world.vectors.upsert(world.scope, collection, [replace(row, **columns)])  # type: ignore[arg-type] # of a row

    return change


def sql(store: int, statement: str) -> Harm:
    async def run(_world: World, folder: Path) -> None:
        harm(memory_files(folder)[store], statement)

    return run


GRAPH, MEMORY = 0, 1
OF_GRAZ = "(SELECT id FROM graph_statements WHERE fact LIKE '%Graz%')"

HARMS: dict[str, tuple[Harm, set[Kind]]] = {
    "a statement lost its vector": (vectors_lost(Collection.STATEMENTS), {Kind.STATEMENT_WITHOUT_VECTOR}),
    "an entity lost its vector": (vectors_lost(Collection.ENTITIES), {Kind.ENTITY_WITHOUT_VECTOR}),
    "a passage lost its vector": (vectors_lost(Collection.PASSAGES), {Kind.PASSAGE_WITHOUT_VECTOR}),
    "an aspect lost its vector": (vectors_lost(Collection.VOICE), {Kind.VOICE_WITHOUT_VECTOR}),
    "a vector without statement": (vectors_left(Collection.STATEMENTS), {Kind.VECTOR_WITHOUT_STATEMENT}),
    "a vector without entity": (vectors_left(Collection.ENTITIES), {Kind.VECTOR_WITHOUT_ENTITY}),
    "a vector without passage": (vectors_left(Collection.PASSAGES), {Kind.VECTOR_WITHOUT_PASSAGE}),
    "a vector without voice": (vectors_left(Collection.VOICE), {Kind.VECTOR_WITHOUT_VOICE}),
    "a vector's subject is another": (
        column_changed(Collection.STATEMENTS, subject="other"),
        {Kind.VECTOR_DIFFERS},
    ),
    "a vector's hull is too narrow": (
        column_changed(Collection.STATEMENTS, valid_at=on("2026-01-01"), invalid_at=on("2026-01-02")),
        {Kind.VECTOR_DIFFERS},
    ),
    "a vector's hull is too wide": (
        column_changed(Collection.STATEMENTS, valid_at=BEGINNING),
        {Kind.VECTOR_DIFFERS},
    ),
    "a passage's date is another": (
        column_changed(Collection.PASSAGES, created_at=5),
        {Kind.VECTOR_DIFFERS},
    ),
    "an aspect's kind is another": (column_changed(Collection.VOICE, aspect="Habit"), {Kind.VECTOR_DIFFERS}),
    "a hull is too narrow": (
        sql(GRAPH, f"UPDATE graph_statements SET hull_to = hull_from + 1 WHERE id IN {OF_GRAZ}"),
        {Kind.HULL_TOO_NARROW},
    ),
    "a hull is empty": (
        sql(GRAPH, f"UPDATE graph_statements SET hull_from = {2**63 - 1}, hull_to = 0 WHERE id IN {OF_GRAZ}"),
        {Kind.HULL_TOO_NARROW},
    ),
    "a span ends too early": (
        sql(
            GRAPH,
            "UPDATE graph_spans SET invalid_at = invalid_at - 1 "
            f"WHERE statement IN {OF_GRAZ} AND known_to = {2**63 - 1}",
        ),
        {Kind.SPANS_DIFFER},
    ),
    "a border of a span is another's": (
        sql(
            GRAPH,
            "UPDATE graph_spans SET start_precision = 4 "
            f"WHERE statement IN {OF_GRAZ} AND known_to = {2**63 - 1}",
        ),
        {Kind.SPANS_DIFFER},
    ),
    "a span is lost": (
        sql(GRAPH, f"DELETE FROM graph_spans WHERE statement IN {OF_GRAZ} AND known_to = {2**63 - 1}"),
        {Kind.SPANS_DIFFER},
    ),
    "a span is believed too long": (
        sql(GRAPH, f"UPDATE graph_spans SET known_to = {2**63 - 1} WHERE statement IN {OF_GRAZ}"),
        {Kind.SPANS_DIFFER},
    ),
    "a claim is lost": (
        sql(GRAPH, f"DELETE FROM graph_claims WHERE statement IN {OF_GRAZ}"),
        {Kind.STATEMENT_WITHOUT_CLAIMS, Kind.SPANS_DIFFER},
    ),
    "an entity is lost": (
        sql(GRAPH, "DELETE FROM graph_entities WHERE key = 'mara'"),
        {Kind.EDGE_WITHOUT_END, Kind.VECTOR_WITHOUT_ENTITY},
    ),
    "a predicate is lost": (
        sql(GRAPH, "DELETE FROM graph_entities WHERE key = 'lives_in'"),
        {Kind.EDGE_WITHOUT_END},
    ),
    "a statement is lost": (
        sql(GRAPH, f"DELETE FROM graph_statements WHERE id IN {OF_GRAZ}"),
        {Kind.EDGE_WITHOUT_END, Kind.VECTOR_WITHOUT_STATEMENT, Kind.SPANS_DIFFER},
    ),
    "an episode is lost": (
        sql(MEMORY, "DELETE FROM memory_episodes WHERE id = 'episode-three'"),
        {Kind.EVIDENCE_WITHOUT_EPISODE},
    ),
    "a passage of an aspect is lost": (
        sql(MEMORY, "DELETE FROM memory_passages WHERE id = 'passage-two-1'"),
        {Kind.VOICE_WITHOUT_PASSAGE, Kind.VECTOR_WITHOUT_PASSAGE},
    ),
}


@pytest.mark.parametrize("name", sampled(HARMS, 4))
async def test_a_harm_is_found_mended_and_gone(world: World, tmp_path: Path, name: str) -> None:
    inflict, expected = HARMS[name]
    await inflict(world, tmp_path)
    found = await verify(world)
    kinds = {one.kind for one in found.differences}
    assert kinds <= expected
    assert kinds & expected
    assert {one.done for one in found.differences} == {Done.LEFT}
    assert found.left == len(found.differences)
    mended = await verify(world, repair=True)
    assert {one.done for one in mended.differences} == {Done.REPAIRED}
    assert mended.left == 0
    kinds = {one.kind for one in mended.differences}
    assert kinds
    assert kinds <= expected
    assert told((await verify(world)).differences) == []


async def test_spans_of_before_they_told_how_fine_they_are_are_right(world: World, tmp_path: Path) -> None:
    harm(tmp_path / "graph.db", "UPDATE graph_spans SET start_precision = NULL, end_precision = NULL")
    harm(tmp_path / "graph.db", "UPDATE graph_spans SET assumed = NULL")
    assert told((await verify(world)).differences) == []
    cut = f"UPDATE graph_spans SET invalid_at = invalid_at - 1 WHERE statement IN {OF_GRAZ}"
    harm(tmp_path / "graph.db", cut + f" AND known_to = {2**63 - 1}")
    assert {one.kind for one in (await verify(world, repair=True)).differences} == {Kind.SPANS_DIFFER}
    assert told((await verify(world)).differences) == []


async def test_a_lost_entity_gets_its_name_back_from_its_alias(world: World, tmp_path: Path) -> None:
    before = await world.timeline("Ivo", "lives_in")
    harm(tmp_path / "graph.db", "DELETE FROM graph_entities WHERE key IN ('graz', 'lives_in')")
    assert (await verify(world, repair=True)).left == 0
    assert await world.timeline("Ivo", "lives_in") == before


async def test_a_lost_entity_without_alias_is_as_if_forgotten(world: World, tmp_path: Path) -> None:
    harm(tmp_path / "graph.db", "DELETE FROM graph_aliases WHERE key = 'graz'")
    harm(tmp_path / "graph.db", "DELETE FROM graph_entities WHERE key = 'graz'")
    assert (await verify(world, repair=True)).left == 0
    assert [row[0] for row in await world.timeline("Ivo", "lives_in")] == ["", "Linz"]
    again = await episode(world, "again", "2026-01-01", "Ivo has seen Graz.")
    await world.tell("again", said(CLAIM, ("Ivo", "has_seen", "Graz"), on("2026-01-01"), again))
    assert [row[0] for row in await world.timeline("Ivo", "lives_in")] == ["Graz", "Linz"]
    assert told((await verify(world)).differences) == []


async def test_a_lost_node_hides_nothing_of_other_statements(world: World, tmp_path: Path) -> None:
    harm(tmp_path / "graph.db", "DELETE FROM graph_entities WHERE key = 'mara'")
    harm(tmp_path / "graph.db", f"DELETE FROM graph_spans WHERE statement IN {OF_GRAZ} AND known_to > 99")
    found = {one.kind for one in (await verify(world)).differences}
    assert {Kind.EDGE_WITHOUT_END, Kind.SPANS_DIFFER} <= found
    assert (await verify(world, repair=True)).left == 0
    assert told((await verify(world)).differences) == []


async def test_mended_spans_are_a_revision_with_a_decision(world: World, tmp_path: Path) -> None:
    revision = await world.memory.revisions.current(world.scope)
    before = await world.timeline("Ivo", "lives_in")
    harm(tmp_path / "graph.db", f"DELETE FROM graph_spans WHERE statement IN {OF_GRAZ} AND known_to > 99")
    assert (await verify(world, repair=True)).left == 0
    assert await world.timeline("Ivo", "lives_in") == before
    assert await world.memory.revisions.current(world.scope) == revision + 1
    [decision] = (await world.memory.decisions.list_decisions(world.scope, None, Page(1))).items
    assert (decision.action, decision.actor, decision.revision) == ("mend_spans", "upkeep", revision + 1)


class Falls(SqlGraphStore):
    """A graph store that is not there while `down`."""

    down = False

    async def apply(self, scope: Scope, commit: Commit) -> None:
        if self.down:
            raise StoreUnavailable("graph")
        await super().apply(scope, commit)


async def test_a_revision_that_was_left_begun_is_completed_once_it_is_old(tmp_path: Path) -> None:
    async with a_world(tmp_path, graph_class=Falls) as world:
        await a_story(world)
        assert isinstance(world.graph, Falls)
        kept = await episode(world, "late", "2026-01-01", "Ivo likes rum.")
        world.graph.down = True
        with pytest.raises(StoreUnavailable):
            await world.tell("late", said(CLAIM, ("Ivo", "likes", "rum"), on("2026-01-01"), kept))
        world.graph.down = False
        assert told((await verify(world)).differences) == []  # it may be under way
        world.clock.at = Instant(world.clock.at + 3_600_000_000)
        assert told((await verify(world)).differences) == ["revision not published: left"]
        assert await world.memory.revisions.pending(world.scope) is not None
        assert (await verify(world, repair=True)).left == 0
        assert [row[0] for row in await world.timeline("Ivo", "likes")] == ["tea", "rum"]
        assert told((await verify(world)).differences) == []


async def test_a_deletion_that_stopped_half_way_is_completed_once_it_is_old(world: World) -> None:
    await world.memory.text.delete_episode(world.scope, EpisodeId("episode-two"), world.clock())
    for passage in ("passage-two-0", "passage-two-1"):
        await world.vectors.delete(world.scope, Collection.PASSAGES, [passage])
    assert told((await verify(world)).differences) == []
    world.clock.at = Instant(world.clock.at + 3_600_000_000)
    assert told((await verify(world)).differences) == ["evidence without episode: left"]
    assert (await verify(world, repair=True)).left == 0
    assert [row[0] for row in await world.timeline("Ivo", "lives_in")] == ["Graz"]
    assert told((await verify(world)).differences) == []


async def test_text_that_is_young_may_still_get_its_vectors(world: World) -> None:
    kept = await world.episode("young", world.clock(), ["just said"])
    assert told((await verify(world)).differences) == []
    world.clock.at = Instant(kept.created_at + 3_600_000_000)
    assert told((await verify(world)).differences) == ["passage without vector: left"]


async def test_a_log_older_than_its_graph_is_told_and_left(world: World, tmp_path: Path) -> None:
    harm(tmp_path / "memory.db", "DELETE FROM memory_revisions WHERE revision > 2")
    found = await verify(world, repair=True)
    beyond = [one for one in found.differences if one.kind is Kind.REVISION_NOT_IN_LOG]
    assert beyond
    assert {one.done for one in beyond} == {Done.LEFT}
    assert await world.memory.revisions.current(world.scope) == 2


async def test_a_graph_that_is_written_all_the_time_has_no_false_alarms(world: World) -> None:
    stop, written = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        for number in range(10_000):
            kept = await episode(world, f"w{number}", "2026-01-01", f"Ivo has {number}.")
            triple = ("Ivo", ("has", "lives_in")[number % 2], f"thing {number % 7}")
            await world.tell(f"w{number}", said(CLAIM, triple, on("2026-01-01"), kept))
            if number % 5 == 4:
                await delete(world, kept, f"d{number}")
            if number == 4:
                written.set()
            if stop.is_set():
                return
        raise AssertionError("never stopped")

    writing = asyncio.create_task(write())
    waiting = verifier(world, Patience(settled_seconds=60, pause_seconds=0.02, tries=200))
    reports = [await waiting.verify(world.scope) for _ in range(3)]
    while not (written.is_set() or writing.done()):
        reports.append(await waiting.verify(world.scope))
    stop.set()
    await writing
    assert not any(told(report.differences) for report in reports)


async def test_what_no_quiet_moment_confirms_is_undecided(world: World, tmp_path: Path) -> None:
    await world.vectors.delete(world.scope, Collection.VOICE, [await first(world, Collection.VOICE)])
    current = await world.memory.revisions.current(world.scope)
    await world.memory.revisions.begin(world.scope, current, "busy", world.clock(), b"{}", "")
    found = await verify(world, repair=True)
    assert told(found.differences) == ["voice without vector: undecided"]
    assert found.left == 1


async def test_an_unreachable_store_is_said(world: World) -> None:
    world.vectors.down = True
    with pytest.raises(StoreUnavailable):
        await verify(world)


async def test_a_twin_is_not_looked_at_nor_touched(world: World) -> None:
    twin = replace(world, scope=a_scope(world.scope.graph, "twin"))
    await a_story(twin)
    twin.clock.at = Instant(twin.clock.at + 3_600_000_000)
    before = await answers(stores_of(twin), twin.scope)
    for collection in Collection:
        ids = (await world.vectors.scan(world.scope, collection, Page(1000))).items
        await world.vectors.delete(world.scope, collection, ids)
    assert told((await verify(twin)).differences) == []
    assert len((await verify(world, repair=True)).differences) > 9
    assert told((await verify(world)).differences) == []
    assert await answers(stores_of(twin), twin.scope) == before
    assert told((await verify(twin)).differences) == []


async def test_a_repair_that_is_cut_off_is_completed_by_the_next(tmp_path: Path) -> None:
    async with a_world(tmp_path, graph_class=Falls) as world:
        await a_story(world)
        assert isinstance(world.graph, Falls)
        before = await world.timeline("Ivo", "lives_in")
        harm(tmp_path / "graph.db", f"DELETE FROM graph_spans WHERE statement IN {OF_GRAZ} AND known_to > 99")
        world.graph.down = True
        with pytest.raises(StoreUnavailable):
            await verify(world, repair=True)
        world.graph.down = False
        world.clock.at = Instant(world.clock.at + 3_600_000_000)
        assert (await verify(world, repair=True)).left == 0
        assert await world.timeline("Ivo", "lives_in") == before
        assert told((await verify(world)).differences) == []
