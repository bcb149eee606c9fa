"""Upkeep of merges and declarations: copied with their revisions, and what is wrong with them is found."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palimpsest.internal.v1 import resolver_entities_pb2 as entities_pb
from services.domain.ids import RecordId, Revision
from services.domain.instants import Instant
from services.domain.predicates import Declaration, Declared
from services.upkeep.differences import Done, Kind
from tests.builders import on
from tests.integration.resolving import World, a_world, said
from tests.integration.test_resolver import CLAIM
from tests.integration.test_upkeep_copies import DAY, back_up, empty_stores, restored, whole
from tests.integration.upkeeping import answers, episode, harm, memory_files, stores_of, told, verify


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, single=["lives_in"]) as world:
        await a_story(world)
        yield world


async def a_story(world: World) -> None:
    """Mara reads as Ivy, whose home she shares; rum read as tea, and does so no more."""
    for name, triple, day in (
        ("1", ("Ivy", "lives_in", "Graz"), "2020-01-01"),
        ("2", ("Mara", "lives_in", "Linz"), "2023-01-01"),
        ("3", ("Ivy", "likes", "tea"), "2024-01-01"),
        ("4", ("Ivy", "likes", "rum"), "2024-02-01"),
    ):
        kept = await episode(world, name, day, "As it was said.")
        await world.tell(name, said(CLAIM, triple, on(day), kept, start=on(day)))
    known = await world.memory.revisions.current(world.scope)
    found = await world.graph.find_entities(world.scope, ["mara", "ivy", "rum", "tea"], known)
    mara, ivy, rum, tea = [found[key][0].id for key in ("mara", "ivy", "rum", "tea")]
    for into, one in ((ivy, mara), (tea, rum)):
        asked = entities_pb.MergeRequest(commit_id=one, into_id=into, entity_ids=[one], why="one")
        await world.resolver.merge(world.scope, asked)
    await world.resolver.split(world.scope, entities_pb.SplitRequest(commit_id="part", entity_id=rum))


async def declare(world: World) -> None:
    """As a call would write it."""
    log, current = world.memory.revisions, await world.memory.revisions.current(world.scope)
    revision = Revision(current + 1)
    one = Declared(RecordId("d"), Declaration("fancies", aliases=("is_fond_of",)), revision)
    await log.begin(world.scope, current, "declare", world.clock(), b"", "{}")
    await world.memory.readings.apply(world.scope, revision, [], [one], [])
    await log.publish(world.scope, revision)


async def test_readings_are_restored_with_their_revisions(world: World, tmp_path: Path) -> None:
    await declare(world)
    await back_up(stores_of(world), world.scope, tmp_path / "backup", world.clock.at)
    async with empty_stores(world, f"sqlite:///{tmp_path / 'target.db'}") as target:
        await restored(target, tmp_path / "backup")
        assert len(await target.readings.declared(world.scope)) == 1
        assert await answers(target, world.scope) == await answers(stores_of(world), world.scope)
        assert await whole(world, target, world.scope)


async def test_a_copy_of_an_earlier_point_knows_no_later_merge(world: World, tmp_path: Path) -> None:
    before = await answers(stores_of(world), world.scope)
    point = world.clock.at
    world.clock.at = Instant(point + DAY)
    known = await world.memory.revisions.current(world.scope)
    found = await world.graph.find_entities(world.scope, ["mara", "rum", "tea"], known)
    mara, rum, tea = [found[key][0].id for key in ("mara", "rum", "tea")]
    await world.resolver.split(world.scope, entities_pb.SplitRequest(commit_id="late", entity_id=mara))
    late = entities_pb.MergeRequest(commit_id="later", into_id=rum, entity_ids=[tea])
    await world.resolver.merge(world.scope, late)
    await back_up(stores_of(world), world.scope, tmp_path / "backup", point)
    async with empty_stores(world, f"sqlite:///{tmp_path / 'target.db'}") as target:
        await restored(target, tmp_path / "backup")
        assert await answers(target, world.scope) == before
        assert await whole(world, target, world.scope)


async def test_spans_are_verified_as_entities_read(world: World, tmp_path: Path) -> None:
    assert told((await verify(world)).differences) == []
    _, memory = memory_files(tmp_path)
    harm(
        memory,
        "DELETE FROM memory_merges WHERE kind = 1 "
        "AND id NOT IN (SELECT record FROM memory_reading_revocations)",
    )
    found = (await verify(world)).differences
    assert {one.kind for one in found} == {Kind.SPANS_DIFFER}
    assert {one.done for one in (await verify(world, repair=True)).differences} == {Done.REPAIRED}
    assert [row[2] for row in await world.timeline("Ivy", "lives_in")] == [None]
    assert told((await verify(world)).differences) == []


async def test_a_merge_of_what_is_not_there_is_found_and_mended(world: World, tmp_path: Path) -> None:
    _, memory = memory_files(tmp_path)
    harm(memory, "UPDATE memory_merges SET \"into\" = '00000000-0000-0000-0000-000000000000' WHERE kind = 2")
    (found,) = (await verify(world)).differences
    assert (found.kind, found.what) == (Kind.EDGE_WITHOUT_END, "entity of a merge")
    assert (await verify(world, repair=True)).left == 0
    assert told((await verify(world)).differences) == []


async def test_merges_beyond_the_log_are_told(world: World, tmp_path: Path) -> None:
    _, memory = memory_files(tmp_path)
    harm(memory, "UPDATE memory_merges SET recorded_at = 99 WHERE kind = 2")
    kinds = {one.kind for one in (await verify(world)).differences}
    assert Kind.REVISION_NOT_IN_LOG in kinds
