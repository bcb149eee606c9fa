"""Copies: what is restored of a backup, and what is moved, answers as it did, on other stores."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.ids import EpisodeId, JobId, Revision
from services.domain.instants import Instant
from services.domain.memory import Episode, EpisodeKind
from services.domain.scope import Scope
from services.resolver.publish import Stores as Resolving
from services.resolver.service import Resolver
from services.stores.graph.sql import SqlGraphStore
from services.stores.memory.port import Decision
from services.stores.memory.sql import SqlMemory
from services.stores.memory.sql.decisions import SqlDecisionLog
from services.stores.paging import Listed, Page
from services.stores.sql.engine import engine_for
from services.stores.vectors.port import Collection
from services.upkeep.archive import (
    ArchiveDamaged,
    ArchiveExists,
    ArchiveIn,
    ArchiveOut,
    ArchiveUnknown,
    GraphEntry,
    Manifest,
)
from services.upkeep.backup import (
    KeepsChanging,
    NotTheSame,
    StoresNotEmpty,
    WritersActive,
    back_up_graph,
    point_at,
    restore_graph,
)
from services.upkeep.intake import EVERYTHING, Into
from services.upkeep.items import Point
from services.upkeep.move import Move
from services.upkeep.parts import Stores
from services.upkeep.verify import Verifier
from tests.builders import on
from tests.contracts.memory_base import full_episode, passage, version
from tests.doubles.embedder import HashEmbedder
from tests.doubles.vectors import ArrayVectorStore
from tests.examples import one_in, sampled
from tests.integration.resolving import TODAY, World, a_world, said
from tests.integration.test_resolver import CLAIM, END
from tests.integration.test_upkeep_laws import Saying, generated, sayings
from tests.integration.upkeeping import AT_ONCE, a_story, answers, delete, episode, harm, stores_of

DAY = 86_400_000_000
_folders = count()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


@asynccontextmanager
async def empty_stores(world: World, url: str, dimension: int = 128) -> AsyncIterator[Stores]:
    """Other stores, with nothing in them, on one database."""
    graph = await SqlGraphStore.open(engine_for(url))
    memory = await SqlMemory.open(engine_for(url))
    embedder = HashEmbedder(dimension)
    try:
        yield Stores(
            graph,
            memory.text,
            memory.voice,
            memory.revisions,
            memory.decisions,
            memory.readings,
            memory.archive,
            memory.summaries,
            memory.snapshots,
            ArrayVectorStore(dimension),
            embedder,
            world.clock,
        )
    finally:
        await memory.close()
        await graph.close()


async def back_up(
    stores: Stores, scope: Scope, folder: Path, until: Instant, with_vectors: bool = True
) -> GraphEntry:
    with ArchiveOut(folder) as archive:
        entry = await back_up_graph(stores, scope, until, archive, with_vectors=with_vectors)
        by = stores.embedder
        archive.finish(Manifest(until, "test", by.name, by.dimension, with_vectors, (entry,), archive.files))
    return entry


async def restored(target: Stores, folder: Path) -> int:
    archive = ArchiveIn(folder)
    [entry] = archive.manifest.graphs
    return await restore_graph(target, archive, entry, keep_vectors=True)


def over(world: World, stores: Stores) -> World:
    """The world's resolver over other stores; its `parts` name them, `graph` and `memory` do not."""
    written = Resolving(
        stores.graph, stores.revisions, stores.voice, stores.decisions, stores.readings, stores.archive,
        stores.summaries,
    )  # fmt: skip
    parts = replace(world.parts, stores=written, text=stores.text, vectors=stores.vectors)
    return replace(world, resolver=Resolver(parts), parts=parts)


async def whole(world: World, stores: Stores, scope: Scope) -> bool:
    report = await Verifier(stores, world.parts.vocabulary, None, AT_ONCE).verify(scope)
    return not report.differences


async def test_what_is_restored_answers_as_at_the_point(world: World, tmp_path: Path, sql_url: str) -> None:
    await a_story(world)
    await world.memory.text.save(world.scope, [], [], version(1))
    before = await answers(stores_of(world), world.scope)
    point = world.clock.at
    world.clock.at = Instant(point + DAY)
    late = replace(full_episode("late"), created_at=world.clock.at)
    await world.memory.text.save(world.scope, [late], [passage("of-late", "late")], None)
    late_version = replace(version(2), created_at=world.clock.at)
    await world.memory.text.save(world.scope, [], [], late_version)
    one = said(CLAIM, ("Ivo", "lives_in", "Wels"), on("2026-01-01"), late)
    over = said(END, ("Ivo", "knows", "Mara"), on("2026-01-01"), late, end=on("2025-12-01"))
    await world.tell("late", one, over)
    entry = await back_up(stores_of(world), world.scope, tmp_path / "backup", point)
    assert (entry.revision, entry.until) == (5, point)
    async with empty_stores(world, sql_url) as target:
        assert await restored(target, tmp_path / "backup") > 20
        assert await answers(target, world.scope) == before
        assert await whole(world, target, world.scope)
        for collection in (Collection.STATEMENTS, Collection.VOICE, Collection.PASSAGES):
            ids = (await target.vectors.scan(world.scope, collection, Page(1000))).items
            rows = await target.vectors.fetch(world.scope, collection, ids)
            kept = await world.vectors.fetch(world.scope, collection, ids)
            assert ids
            assert {id: row.vector.tobytes() for id, row in rows.items()} == {
                id: row.vector.tobytes() for id, row in kept.items()
            }


@pytest.mark.slow
async def test_a_restored_graph_goes_on_as_the_first(world: World, tmp_path: Path, sql_url: str) -> None:
    await a_story(world)
    await back_up(stores_of(world), world.scope, tmp_path / "backup", world.clock.at)
    async with empty_stores(world, sql_url) as target:
        await restored(target, tmp_path / "backup")
        on_target = over(world, target)
        for one in (world, on_target):
            # Gus was forgotten with the deleted episode, and is named again; Linz is deleted.
            kept = Episode(EpisodeId("again"), JobId("job"), EpisodeKind.CONVERSATION, "x", TODAY, TODAY, 1)
            await one.parts.text.save(one.scope, [kept], [], None)
            await one.tell("again", said(CLAIM, ("Ivo", "knows", "Gus"), on("2026-02-01"), kept))
            [two] = await one.parts.text.episodes(one.scope, [EpisodeId("episode-two")])
            await one.parts.text.delete_episode(one.scope, two.id, one.clock())
            request = pb.RevokeRequest(commit_id="delete two", episode_id=two.id)
            await one.resolver.revoke(one.scope, request)
        assert await answers(target, world.scope) == await answers(stores_of(world), world.scope)
        told_again = await world.tell("three")  # a repeated call has its first answer
        assert await on_target.tell("three") == told_again


@pytest.mark.slow
async def test_a_backup_is_of_its_point_amid_writes(world: World, tmp_path: Path, sql_url: str) -> None:
    await a_story(world)
    before = await answers(stores_of(world), world.scope)
    point, going, stop = world.clock.at, asyncio.Event(), asyncio.Event()
    world.clock.at = Instant(point + DAY)

    async def write() -> int:
        for number in range(10_000):
            late = replace(full_episode(f"w{number}"), created_at=world.clock.at)
            await world.memory.text.save(world.scope, [late], [passage(f"p{number}", late.id)], None)
            triple = ("Ivo", ("knows", "lives_in")[number % 2], f"thing {number % 5}")
            await world.tell(f"w{number}", said(CLAIM, triple, on("2026-01-01"), late))
            if number == 3:
                going.set()
            if stop.is_set():
                return number
        raise AssertionError("never stopped")

    writing = asyncio.create_task(write())
    await going.wait()
    await back_up(stores_of(world), world.scope, tmp_path / "backup", point)
    stop.set()
    assert await writing > 3
    async with empty_stores(world, sql_url) as target:
        await restored(target, tmp_path / "backup")
        assert await answers(target, world.scope) == before
        assert await whole(world, target, world.scope)


async def test_what_was_deleted_since_the_point_is_in_no_file(world: World, tmp_path: Path) -> None:
    await a_story(world)
    point = world.clock.at
    world.clock.at = Instant(point + DAY)
    [two] = await world.memory.text.episodes(world.scope, [EpisodeId("episode-two")])
    await delete(world, two, "delete two")
    world.clock.at = Instant(point + 2 * DAY)
    entry = await back_up(stores_of(world), world.scope, tmp_path / "backup", point)
    assert (entry.revision, entry.until) == (6, world.clock.at)
    text = "".join(file.read_text() for file in (tmp_path / "backup").rglob("*.jsonl"))
    assert "Graz" in text
    assert "Linz" not in text
    async with empty_stores(world, f"sqlite:///{tmp_path / 'target.db'}") as target:
        await restored(target, tmp_path / "backup")
        assert await answers(target, world.scope) == await answers(stores_of(world), world.scope)


async def test_a_revision_known_to_be_published_is_in_whatever_clocks_say(
    world: World, tmp_path: Path
) -> None:
    await a_story(world)
    early = Instant(world.clock.at - DAY)
    assert await point_at(stores_of(world), world.scope, early) == Point(Revision(0), early)
    with ArchiveOut(tmp_path / "backup") as archive:
        entry = await back_up_graph(stores_of(world), world.scope, early, archive, at_least=Revision(5))
    assert (entry.revision, entry.until) == (5, world.clock.at)


async def test_deletions_that_never_stop_end_a_backup(world: World, tmp_path: Path) -> None:
    await a_story(world)
    point = world.clock.at
    world.clock.at = Instant(point + DAY)
    [two] = await world.memory.text.episodes(world.scope, [EpisodeId("episode-two")])
    await delete(world, two, "delete two")
    world.clock.at = point  # whenever it looks, the deletion is later
    with pytest.raises(KeepsChanging):
        await back_up(stores_of(world), world.scope, tmp_path / "backup", point)
    assert not list((tmp_path / "backup").rglob("*.json*"))


@pytest.mark.parametrize("dimension", sampled([128, 64]))
async def test_vectors_that_are_not_kept_are_made_anew(world: World, tmp_path: Path, dimension: int) -> None:
    await a_story(world)
    stores = stores_of(world)
    await back_up(stores, world.scope, tmp_path / "backup", world.clock.at, with_vectors=dimension != 128)
    async with empty_stores(world, f"sqlite:///{tmp_path / 'target.db'}", dimension) as target:
        await restored(target, tmp_path / "backup")
        assert await whole(world, target, world.scope)
        [row] = (await target.vectors.fetch(world.scope, Collection.PASSAGES, ["passage-five-0"])).values()
        assert row.vector.shape == (dimension,)


async def test_only_empty_stores_are_restored_into(world: World, tmp_path: Path) -> None:
    await a_story(world)
    stores = stores_of(world)
    await back_up(stores, world.scope, tmp_path / "backup", world.clock.at)
    async with empty_stores(world, f"sqlite:///{tmp_path / 'target.db'}") as target:
        for held, into in (
            ("graph", replace(target, graph=stores.graph)),
            ("memory", replace(target, text=stores.text, revisions=stores.revisions)),
            ("vectors", replace(target, vectors=stores.vectors)),
        ):
            with pytest.raises(StoresNotEmpty, match=rf"\({held}\) hold something of acme/notes"):
                await restored(into, tmp_path / "backup")
        before = await answers(target, world.scope)
        await restored(target, tmp_path / "backup")
        assert await answers(target, world.scope) != before
        with pytest.raises(StoresNotEmpty, match="graph, memory, vectors"):
            await restored(target, tmp_path / "backup")


async def test_a_damaged_backup_is_refused_before_anything_is_written(world: World, tmp_path: Path) -> None:
    await a_story(world)
    folder = tmp_path / "backup"
    entry = await back_up(stores_of(world), world.scope, folder, world.clock.at)
    with pytest.raises(ArchiveExists):
        ArchiveOut(folder)
    statements = folder / entry.folder / "statements.jsonl"
    lines = statements.read_bytes()
    for changed in (lines.replace(b"Graz", b"Rome"), lines[:-1], b""):
        statements.write_bytes(changed)
        with pytest.raises(ArchiveDamaged, match="statements"):
            ArchiveIn(folder)
    statements.unlink()
    with pytest.raises(ArchiveDamaged, match="missing"):
        ArchiveIn(folder)
    statements.write_bytes(lines)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    with pytest.raises(ArchiveUnknown, match="99"):
        ArchiveIn(folder)
    outside = manifest | {"files": {"../x": {"lines": 0, "size": 0, "sha256": ""}}}
    (folder / "manifest.json").write_text(json.dumps(outside))
    with pytest.raises(ArchiveDamaged, match="outside"):
        ArchiveIn(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(ArchiveDamaged):
        ArchiveIn(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(ArchiveUnknown):
        ArchiveIn(folder)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=one_in(25), deadline=None)
@given(told=st.lists(sayings, min_size=1, max_size=5), data=st.data())
async def test_a_moved_graph_answers_alike_at_every_revision(
    world: World, tmp_path: Path, told: list[Saying], data: st.DataObject
) -> None:
    made = await generated(world, told)
    url = f"sqlite:///{tmp_path / f'target-{next(_folders)}.db'}"
    async with empty_stores(world, url) as target:
        source = stores_of(made)
        into = data.draw(st.sampled_from([EVERYTHING, *(frozenset([one]) for one in Into)]), label="into")
        if Into.MEMORY not in into:
            target = replace(
                target,
                text=source.text,
                voice=source.voice,
                revisions=source.revisions,
                decisions=source.decisions,
                readings=source.readings,
                archive=source.archive,
                summaries=source.summaries,
            )
        if Into.GRAPH not in into:
            target = replace(target, graph=source.graph)
        if Into.VECTORS not in into:
            target = replace(target, vectors=source.vectors)
        moved = await Move(source, target, into, world.parts.vocabulary, AT_ONCE)(made.scope)
        assert moved.revision == await source.revisions.current(made.scope)
        assert await answers(target, made.scope) == await answers(source, made.scope)


async def test_a_move_is_refused_while_writers_are_active(world: World, tmp_path: Path) -> None:
    await a_story(world)
    source = stores_of(world)
    async with empty_stores(world, f"sqlite:///{tmp_path / 'target.db'}") as target:
        move = Move(source, target, EVERYTHING, world.parts.vocabulary, AT_ONCE)
        current = await source.revisions.current(world.scope)
        await source.revisions.begin(world.scope, current, "busy", world.clock(), b"", "{}")
        with pytest.raises(WritersActive, match="under way"):
            await move(world.scope)
        await source.revisions.publish(world.scope, Revision(current + 1))
        writing = replace(source, decisions=Interrupted(world))
        with pytest.raises(WritersActive, match="while it was copied"):
            await Move(writing, target, EVERYTHING, world.parts.vocabulary, AT_ONCE)(world.scope)
        with pytest.raises(StoresNotEmpty):
            await move(world.scope)
        assert (await move(world.scope, resume=True)).items > 20
        assert await answers(target, world.scope) == await answers(source, world.scope)


class Interrupted(SqlDecisionLog):
    """A log of decisions that, when it is read, has somebody write to the graph."""

    def __init__(self, world: World) -> None:
        super().__init__(world.memory._database)
        self._world = world

    async def list_decisions(self, scope: Scope, target: str | None, page: Page) -> Listed[Decision]:
        kept = await episode(self._world, "between", "2026-01-01", "Ivo likes jam.")
        await self._world.tell("between", said(CLAIM, ("Ivo", "likes", "jam"), on("2026-01-01"), kept))
        return await super().list_decisions(scope, target, page)


async def test_a_copy_that_differs_is_told(world: World, tmp_path: Path) -> None:
    await a_story(world)
    harm(tmp_path / "graph.db", "DELETE FROM graph_spans WHERE known_to > 99")
    async with empty_stores(world, f"sqlite:///{tmp_path / 'target.db'}") as target:
        move = Move(stores_of(world), target, EVERYTHING, world.parts.vocabulary, AT_ONCE)
        with pytest.raises(NotTheSame, match="spans differ"):
            await move(world.scope)


async def test_a_line_that_is_no_item_is_told_by_its_number_and_not_quoted(
    world: World, tmp_path: Path
) -> None:
    await a_story(world)
    folder = tmp_path / "backup"
    entry = await back_up(stores_of(world), world.scope, folder, world.clock.at)
    manifest = ArchiveIn(folder).manifest
    with ArchiveOut(tmp_path / "other") as archive:
        archive.write(f"{entry.folder}/entities.jsonl", b'{"entity": "my cat is called Miso"}')
        archive.finish(replace(manifest, files=archive.files))
    async with empty_stores(world, f"sqlite:///{tmp_path / 'target.db'}") as target:
        with pytest.raises(ArchiveDamaged, match=r"line 1 of .*entities") as told:
            await restored(target, tmp_path / "other")
    assert told.value.__suppress_context__
    assert "Miso" not in str(told.value)
