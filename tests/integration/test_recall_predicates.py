"""Predicates in reads: asked from either end, by any alias, as known then; and their list."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palimpsest.internal.v1 import recall_lists_pb2 as lists
from palimpsest.internal.v1 import recall_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import PredicateNotFound
from services.domain.identity import Merge, MergeKind
from services.domain.ids import RecordId, Revision
from services.domain.lexicon import predicate_id
from services.domain.records import Judge
from services.recall.parts import Parts
from services.recall.service import Recall
from tests.builders import on
from tests.integration.resolving import World, a_world
from tests.integration.test_declaring import declare
from tests.integration.test_resolver import claim

NOW = on("2026-06-01")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


def recall_of(world: World) -> Recall:
    memory = world.memory
    return Recall(
        Parts(
            graph=world.graph,
            text=memory.text,
            voice=memory.voice,
            readings=memory.readings,
            archive=memory.archive,
            revisions=memory.revisions,
            decisions=memory.decisions,
            snapshots=memory.snapshots,
            summaries=memory.summaries,
            vectors=world.vectors,
            embedder=world.parts.embedder,
            vocabulary=world.parts.vocabulary,
        )
    )


async def timeline(world: World, subject: str, predicate: str, known_at: int = 0) -> pb.ReadTimelineResponse:
    known = values.KnownAt(revision=known_at) if known_at else None
    request = pb.ReadTimelineRequest(subject=subject, predicate=predicate, now=NOW, known_at=known)
    return await recall_of(world).read_timeline(world.scope, request)


async def listed(world: World, size: int = 0, **asked: str) -> list[str]:
    """The sentences of a list, read page by page."""
    request = pb.ListStatementsRequest(now=NOW, include_ended=True, page_size=size, **asked)  # type: ignore[arg-type]  # names of its fields
    facts: list[str] = []
    while True:
        answer = await recall_of(world).list_statements(world.scope, request)
        facts += [one.fact for one in answer.statements]
        request.after = answer.after
        if not answer.after:
            return facts


async def test_a_synonym_is_asked_by_either_name_as_known_then(world: World) -> None:
    await claim(world, "a", ("Ann", "lives_in", "Graz"), "2020-01-01")
    await claim(world, "b", ("Ann", "haunts", "Linz"), "2022-01-01")
    haunts, lives_in = predicate_id(world.scope, "haunts"), predicate_id(world.scope, "lives_in")
    found = Merge(
        RecordId("found"), haunts, lives_in, MergeKind.SYNONYM, Judge.MODEL, NOW, recorded_at=Revision(3)
    )
    await world.memory.readings.apply(world.scope, Revision(3), [found], [], [])
    await claim(world, "c", ("Ann", "lives_in", "Rome"), "2023-01-01")
    for name in ("lives in", "haunts", haunts):
        answer = await timeline(world, "Ann", name)
        assert answer.predicate.name == "lives_in"
        assert {entry.statement.entity.name for entry in answer.entries} == {"Graz", "Linz", "Rome"}
        assert {entry.statement.predicate.name for entry in answer.entries} == {"lives_in"}
    before = await timeline(world, "Ann", "haunts", 2)
    assert [entry.statement.predicate.name for entry in before.entries] == ["haunts"]
    request = lists.ListPredicatesRequest(page_size=1_000)
    listed_now = (await recall_of(world).list_predicates(world.scope, request)).predicates
    (shown,) = [one for one in listed_now if one.name == "lives_in"]
    assert "haunts" in shown.aliases
    assert "haunts" not in {one.name for one in listed_now}


async def test_a_timeline_is_asked_from_either_end(world: World) -> None:
    await claim(world, "a", ("Bob", "reports_to", "Alice"), "2020-01-01")
    await claim(world, "b", ("Alice", "manages", "Carl"), "2021-01-01")
    below = await timeline(world, "Alice", "manages")
    assert [entry.statement.subject.name for entry in below.entries] == ["Bob", "Carl"]
    assert (below.subject.name, below.predicate.name, below.predicate.cardinality) == (
        "Alice",
        "manages",
        "multi",
    )
    above = await timeline(world, "Carl", "has manager")
    assert [entry.statement.entity.name for entry in above.entries] == ["Alice"]
    assert (above.predicate.cardinality, above.predicate.inverse) == ("single", "manages")
    by_id = await timeline(world, "Alice", below.predicate.id)
    assert len(by_id.entries) == 2
    with pytest.raises(PredicateNotFound):
        await timeline(world, "Alice", "mentors")


async def test_a_timeline_knows_what_was_declared_then(world: World) -> None:
    await claim(world, "a", ("Ann", "works_at", "Globex"), "2020-01-01")
    await claim(world, "b", ("Ann", "toils_at", "Initech"), "2022-01-01")
    await declare(world, "works_at", "single", ["toils at"])
    both = await timeline(world, "Ann", "toils at")
    assert [(e.statement.entity.name, e.statement.spans[0].invalid_at) for e in both.entries] == [
        ("Globex", on("2022-01-01")),
        ("Initech", 0),
    ]
    assert both.predicate.name == "works_at"
    then = await timeline(world, "Ann", "toils at", 2)
    assert [entry.statement.entity.name for entry in then.entries] == ["Initech"]


async def test_lists_are_filtered_from_either_end(world: World) -> None:
    await claim(world, "a", ("Bob", "mentored_by", "Alice"), "2020-01-01")
    await claim(world, "b", ("Alice", "mentors", "Carl"), "2021-01-01")
    await claim(world, "c", ("Dora", "mentored_by", "Alice"), "2022-01-01")
    await claim(world, "d", ("Alice", "mentors", "Eve"), "2023-01-01")
    await claim(world, "e", ("Alice", "likes", "tea"), "2023-01-01")
    assert len(await listed(world, subject="Alice", predicate="mentors")) == 2
    await declare(world, "mentors", "multi", inverse="mentored_by")
    every = ["Bob mentored by Alice", "Alice mentors Carl", "Dora mentored by Alice", "Alice mentors Eve"]
    for size in (1, 2, 3, 10):
        assert await listed(world, size, subject="Alice", predicate="mentors") == every
    assert await listed(world, object="Alice", predicate="mentored_by") == every
    assert await listed(world, subject="Alice", predicate="mentors", object="Dora") == [every[2]]
    assert await listed(world, predicate="likes") == ["Alice likes tea"]


async def test_predicates_are_listed_by_name(world: World) -> None:
    await claim(world, "a", ("Ann", "mascot", "Otter"), "2020-01-01")
    await declare(world, "Call sign", "single", ["radio name"], "sign of")
    recall = recall_of(world)
    everything: list[values.Predicate] = []
    request = lists.ListPredicatesRequest(page_size=30)
    while True:
        answer = await recall.list_predicates(world.scope, request)
        everything += answer.predicates
        request.after = answer.after
        if not answer.after:
            break
    names = [one.name for one in everything]
    assert names == sorted(set(names))
    by_name = {one.name: one for one in everything}
    sign, mascot, lives = by_name["call_sign"], by_name["mascot"], by_name["lives_in"]
    assert (sign.cardinality, list(sign.aliases), sign.inverse, sign.declared, sign.since) == (
        "single",
        ["radio_name"],
        "sign_of",
        True,
        2,
    )
    assert (mascot.declared, mascot.since, mascot.cardinality) == (False, 1, "multi")
    assert (lives.declared, lives.since, lives.cardinality) == (False, 0, "single")
    assert "resides_in" in lives.aliases
    own = await recall.list_predicates(world.scope, lists.ListPredicatesRequest(declared_only=True))
    assert [one.name for one in own.predicates] == ["call_sign"]
    before = lists.ListPredicatesRequest(declared_only=True, known_at=values.KnownAt(revision=1))
    assert not (await recall.list_predicates(world.scope, before)).predicates
