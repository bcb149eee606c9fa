"""Carrying: what is exported and imported answers as it did, under another name and in other stores."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palimpsest.internal.v1 import resolver_carrying_pb2 as pb
from services.domain.errors import Conflict, ValidationFailed
from services.domain.scope import Scope
from services.stores.graph.port import AsOf, StatementFilter
from services.stores.paging import Page
from services.stores.vectors.port import Collection, Vector
from services.upkeep.items import StatementItem
from services.upkeep.lines import item_in, line_of
from services.upkeep.parts import Stores
from tests.builders import a_scope, on
from tests.examples import one_in
from tests.integration.resolving import World, a_world, said
from tests.integration.test_resolver import CLAIM
from tests.integration.test_upkeep_copies import empty_stores, over
from tests.integration.test_upkeep_laws import Saying, generated, sayings
from tests.integration.upkeeping import (
    AT_ONCE,
    a_story,
    answers,
    delete,
    episode,
    harm,
    memory_files,
    stores_of,
)

_names = count()
_ALL = Page(1000)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield at_once(world)


def at_once(world: World) -> World:
    world.resolver._carried = replace(world.resolver._carried, patience=AT_ONCE)
    return world


async def exported(world: World, scope: Scope) -> tuple[pb.ExportBegun, list[bytes], pb.ExportEnded]:
    """The head, every piece, the tail."""
    parts = [part async for part in world.resolver.export(scope, pb.ExportRequest(with_vectors=True))]
    return parts[0].begun, [part.lines for part in parts[1:-1]], parts[-1].ended


async def imported(
    world: World, scope: Scope, begun: pb.ExportBegun, pieces: list[bytes]
) -> pb.VerifyImportResponse:
    for lines in pieces:
        request = pb.ImportRequest(
            revision=begun.revision, lines=lines, embedder=begun.embedder, dimension=begun.dimension
        )
        await world.resolver.import_(scope, request)
    return await world.resolver.verify_import(scope, pb.VerifyImportRequest(revision=begun.revision))


def elsewhere(scope: Scope) -> Scope:
    """A scope into which a graph is imported."""
    return replace(a_scope(f"imported {next(_names)}"), origin=scope.root)


@asynccontextmanager
async def other_world(world: World, url: str, dimension: int = 128) -> AsyncIterator[tuple[World, Stores]]:
    async with empty_stores(world, url, dimension) as stores:
        there = over(world, stores)
        if dimension != 128:
            there = replace(there, parts=replace(there.parts, embedder=stores.embedder))  # type: ignore[arg-type]  # a double
        yield at_once(there), stores


async def test_what_is_imported_answers_as_what_was_exported(world: World, sql_url: str) -> None:
    await a_story(world)
    begun, pieces, ended = await exported(world, world.scope)
    assert ended.counts["statements"] >= 4
    async with other_world(world, sql_url) as (there, stores):
        scope = elsewhere(world.scope)
        assert not (await imported(there, scope, begun, pieces)).differences
        assert await answers(stores, scope) == await answers(stores_of(world), world.scope)
        assert (await exported(there, scope))[1] == pieces


@pytest.mark.slow
async def test_a_graph_and_its_twin_in_the_same_stores_are_apart(world: World) -> None:
    await a_story(world)
    begun, pieces, _ = await exported(world, world.scope)
    twin = elsewhere(world.scope)
    assert not (await imported(world, twin, begun, pieces)).differences
    assert (await exported(world, twin))[1] == pieces
    await world.resolver.discard_import(twin, pb.DiscardImportRequest())
    assert (await exported(world, world.scope))[1] == pieces
    nothing = await answers(stores_of(world), a_scope("nobody"))
    assert await answers(stores_of(world), twin) == nothing


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=one_in(25), deadline=None)
@given(told=st.lists(sayings, min_size=1, max_size=6))
async def test_export_import_export_gives_the_same_bytes(world: World, told: list[Saying]) -> None:
    made = await generated(world, told)
    begun, pieces, ended = await exported(made, made.scope)
    scope = elsewhere(made.scope)
    assert not (await imported(world, scope, begun, pieces)).differences
    again, same, counts = await exported(world, scope)
    assert (same, counts, again.revision) == (pieces, ended, begun.revision)
    assert await answers(stores_of(world), scope) == await answers(stores_of(made), made.scope)
    for line in b"".join(pieces).splitlines(keepends=True):
        assert line_of(item_in(line)) == line


async def test_an_imported_graph_recognises_what_it_knew(world: World) -> None:
    """Said again after the import, a fact is the statement that it was: ids go on from the origin."""
    await a_story(world)
    begun, pieces, _ = await exported(world, world.scope)
    scope = elsewhere(world.scope)
    await imported(world, scope, begun, pieces)
    there = replace(world, scope=scope)
    before = await statements(there)
    again = await episode(there, "again", "2026-02-01", "Ivo lives in Linz. Ivo keeps bees.")
    await there.tell(
        "again",
        said(CLAIM, ("Ivo", "lives_in", "Linz"), on("2026-02-01"), again),
        said(CLAIM, ("Ivo", "keeps", "bees"), on("2026-02-01"), again),
    )
    assert len(await statements(there)) == len(before) + 1
    assert before < await statements(there)


async def statements(world: World) -> set[str]:
    known = await world.memory.revisions.current(world.scope)
    listed = await world.graph.list_statements(
        world.scope, StatementFilter(include_ended=True), AsOf(known), _ALL
    )
    return {view.statement.id for view in listed.items}


@pytest.mark.slow
async def test_vectors_of_another_embedder_are_made_anew(world: World, tmp_path: Path) -> None:
    await a_story(world)
    begun, pieces, _ = await exported(world, world.scope)
    begun.embedder = "another"
    scope = elsewhere(world.scope)
    for row in await rows(world, world.scope):
        assert row.any()
    await imported(world, scope, begun, [piece.replace(b'"vector":"', b'"vector":"AAAA') for piece in pieces])
    assert [row.tobytes() for row in await rows(world, scope)] == [
        row.tobytes() for row in await rows(world, world.scope)
    ]


async def rows(world: World, scope: Scope) -> list[Vector]:
    found: list[Vector] = []
    for collection in Collection:
        ids = (await world.vectors.scan(scope, collection, _ALL)).items
        stored = await world.vectors.fetch(scope, collection, ids)
        found += [stored[id].vector for id in ids]
    return found


async def test_what_is_written_meanwhile_is_not_in_it_and_what_is_deleted_refuses_it(world: World) -> None:
    await a_story(world)
    _, whole, _ = await exported(world, world.scope)
    stream = world.resolver.export(world.scope, pb.ExportRequest(with_vectors=True))
    assert (await anext(stream)).begun.revision == 5
    late = await episode(world, "late", "2026-07-01", "Ivo moved to Wels.")
    await world.tell("late", said(CLAIM, ("Ivo", "lives_in", "Wels"), on("2026-07-01"), late))
    parts = [part async for part in stream]
    assert [part.lines for part in parts[:-1]] == whole
    stream = world.resolver.export(world.scope, pb.ExportRequest())
    await anext(stream)
    world.clock.at = on("2026-07-02")
    await delete(world, late, "gone")
    with pytest.raises(Conflict):
        async for _ in stream:
            pass


def garbled(pieces: list[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    text = b"".join(pieces)
    lines = text.splitlines(keepends=True)
    yield "a line cut short", [text[:-20]]
    yield "an unknown part", [text.replace(b'{"part":"voice"', b'{"part":"vices"')]
    yield "a foreign line", [b'{"hello":"world"}\n', text]
    yield "an id that is none", [text.replace(b'"subject":"', b'"subject":"\\"; DROP SPACE x;', 1)]
    yield "a number too large", [text.replace(b'"recorded_at":1', b'"recorded_at":99999999999999999999', 1)]
    yield "no history", [b"".join(line for line in lines if b'"part":"revisions"' not in line)]


async def test_what_is_no_export_is_refused(world: World) -> None:
    await a_story(world)
    begun, pieces, _ = await exported(world, world.scope)
    for what, broken in garbled(pieces):
        scope = elsewhere(world.scope)
        with pytest.raises(ValidationFailed):
            pytest.fail(f"{what}: {await imported(world, scope, begun, broken)}")
        await world.resolver.discard_import(scope, pb.DiscardImportRequest())
        assert await answers(stores_of(world), scope) == await answers(stores_of(world), a_scope("nobody"))


async def test_what_does_not_hang_together_is_told(world: World) -> None:
    await a_story(world)
    begun, pieces, _ = await exported(world, world.scope)
    lines = b"".join(pieces).splitlines(keepends=True)
    spanless = [_without_spans(line) for line in lines]
    found = await imported(world, elsewhere(world.scope), begun, [b"".join(spanless)])
    assert found.differences["spans differ"] >= 1


def _without_spans(line: bytes) -> bytes:
    if not line.startswith(b'{"part":"statements"'):
        return line
    item = item_in(line)
    assert isinstance(item, StatementItem)
    return line_of(replace(item, spans=()))


async def test_what_is_derived_is_made_anew(world: World, tmp_path: Path) -> None:
    await a_story(world)
    before = await answers(stores_of(world), world.scope)
    kept = await rows(world, world.scope)
    graph, _ = memory_files(tmp_path)
    harm(graph, "DELETE FROM graph_spans")
    for collection in (Collection.STATEMENTS, Collection.PASSAGES):
        ids = (await world.vectors.scan(world.scope, collection, _ALL)).items
        stored = await world.vectors.fetch(world.scope, collection, ids)
        # One is lost, of the others the vector is of something else.
        await world.vectors.delete(world.scope, collection, ids[:1])
        wrong = [replace(row, vector=stored[ids[0]].vector) for row in stored.values() if row.id != ids[0]]
        await world.vectors.upsert(world.scope, collection, wrong)
    told = await rebuilt(world)
    assert sum(one.vectors for one in told) == len(kept)
    assert {kind for one in told for kind in one.repaired} >= {"spans differ", "passage without vector"}
    assert not any(one.left for one in told)
    assert [one.tobytes() for one in await rows(world, world.scope)] == [one.tobytes() for one in kept]
    again = await rebuilt(world)
    assert not any(one.repaired or one.left for one in again)
    assert again[-1].revision == told[-1].revision
    assert len(before) <= len(await answers(stores_of(world), world.scope))


async def rebuilt(world: World, page_size: int = 2) -> list[pb.RebuildResponse]:
    told: list[pb.RebuildResponse] = []
    part, parts, after = 0, 1, ""
    while part < parts:
        request = pb.RebuildRequest(part=part, after=after, page_size=page_size)
        told.append(await world.resolver.rebuild(world.scope, request))
        parts, after = told[-1].parts, told[-1].after
        part += not after
    return told
