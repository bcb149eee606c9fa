"""Erasing in the resolver: what others' facts are without an entity, and writers who come too late."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from palimpsest.internal.v1 import erasing_pb2 as pb
from palimpsest.internal.v1 import resolver_carrying_pb2 as carrying_pb
from services.domain.errors import EntityNotFound
from services.domain.ids import EntityId, Revision
from services.preprocessor.index import PassageIndex
from services.preprocessor.mentions import MentionErasing
from services.stores.errors import ScopeErased, WriteConflict
from services.stores.vectors.port import Collection
from tests.builders import on
from tests.integration.resolving import World, a_world, said
from tests.integration.test_resolver import CLAIM, claim
from tests.integration.test_resolver_races import Meddled
from tests.integration.upkeeping import a_story, verify


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, single=["ceo", "lives_in"], graph_class=Meddled) as world:
        yield world


async def id_of(world: World, name: str) -> EntityId:
    current = await world.memory.revisions.current(world.scope)
    found = await world.graph.find_entities(world.scope, [name.casefold()], current)
    return found[name.casefold()][0].id


async def erase(world: World, name: str, commit: str = "erase") -> pb.Erased:
    """As the gateway's job does: whom, then text, then facts."""
    asked = pb.PlanEntityErasureRequest(entity_id=await id_of(world, name))
    erased = (await world.resolver.plan_entity_erasure(world.scope, asked)).erased
    index = PassageIndex(world.vectors, world.parts.embedder)
    mentions = MentionErasing(world.memory.text, world.memory, index)
    gone = await mentions(world.scope, pb.EraseMentionsRequest(erased=erased))
    request = pb.EraseEntityRequest(
        commit_id=commit, actor="key:k", erased=erased, passage_ids=[*erased.passage_ids, *gone.passage_ids]
    )
    await world.resolver.erase_entity(world.scope, request)
    again = pb.EraseMentionsRequest(erased=erased, count_only=True)
    assert not (await mentions(world.scope, again)).rows
    request.count_only = True
    left = await world.resolver.erase_entity(world.scope, request)
    assert not any(one.rows for one in left.stores)
    return erased


async def test_what_an_entity_had_ended_holds_again_and_the_past_has_no_such_entity(world: World) -> None:
    await claim(world, "one", ("Acme", "ceo", "Alice"), "2020-01-01")
    await claim(world, "two", ("Acme", "ceo", "Bob"), "2022-01-01")
    await claim(world, "three", ("Alice", "knows", "Ada"), "2022-02-01")
    before = await world.memory.revisions.current(world.scope)
    alice_until = (await world.timeline("acme", "ceo"))[0]
    assert alice_until == ("Alice", on("2020-01-01"), on("2022-01-01"))
    bob = await id_of(world, "Bob")
    await erase(world, "Bob")
    assert await world.memory.revisions.current(world.scope) == before + 1
    assert await world.timeline("acme", "ceo") == [("Alice", on("2020-01-01"), None)]
    assert [row[0] for row in await world.timeline("acme", "ceo", before)] == ["Alice"]
    assert await world.timeline("alice", "knows") == [("Ada", on("2022-02-01"), None)]
    assert await world.graph.entities(world.scope, [bob]) == []
    assert bob not in await world.vectors.fetch(world.scope, Collection.ENTITIES, [bob])
    request = pb.PlanEntityErasureRequest(entity_id=bob)
    with pytest.raises(EntityNotFound):
        await world.resolver.plan_entity_erasure(world.scope, request)


async def test_upkeep_finds_nothing_wrong_with_a_graph_that_lost_somebody(world: World) -> None:
    await a_story(world)
    assert (await verify(world)).differences == ()
    await erase(world, "Mara")
    assert (await verify(world)).differences == ()
    await erase(world, "Linz", "another")
    assert (await verify(world)).differences == ()
    assert {row[0] for row in await world.timeline("ivo", "lives_in")} == {"Graz"}


async def test_others_who_share_part_of_a_name_stay(world: World) -> None:
    await claim(world, "one", ("Alice", "owns", "Alice's dog"), "2020-01-01")
    await claim(world, "two", ("Bob", "lives_in", "Alice Springs"), "2020-02-01")
    await claim(world, "three", ("Bob", "knows", "Alice"), "2020-03-01")
    erased = await erase(world, "Alice")
    assert (list(erased.names), list(erased.others)) == (["alice", "alice's dog"], ["alice springs"])
    assert await world.timeline("bob", "lives_in") == [("Alice Springs", on("2020-02-01"), None)]
    assert await world.timeline("bob", "knows") == []
    scanned = await world.graph.aliases(world.scope, Revision(99))
    assert {one.name for one in scanned} & {"Alice", "Alice's dog"} == set()


async def test_a_writer_who_is_overtaken_by_an_erasure_leaves_nothing(world: World) -> None:
    episode = await world.episode("one", on("2020-01-01"))

    async def erased_meanwhile() -> Any:
        left = await world.another().erase_scope(world.scope, pb.EraseScopeRequest())
        assert not any(one.rows for one in left.stores)

    assert isinstance(world.graph, Meddled)
    world.graph.before_apply = erased_meanwhile
    triple = said(CLAIM, ("Ada", "likes", "rum"), on("2020-01-01"), episode)
    with pytest.raises(ScopeErased):
        await world.tell("late", triple)
    assert await world.graph.rows(world.scope) == {}
    assert await world.memory.rows(world.scope) == {}
    assert [await world.vectors.count(world.scope, one) for one in Collection] == [0] * len(Collection)
    with pytest.raises(ScopeErased):
        await world.episode("two", on("2020-01-02"))
    await world.resolver.open_scope(world.scope, pb.OpenScopeRequest())
    # Made anew under the same ids, its revisions count from 1 and nothing of before is known.
    await claim(world, "one", ("Ada", "likes", "tea"), "2021-01-01")
    assert await world.memory.revisions.current(world.scope) == 1
    assert [row[0] for row in await world.timeline("ada", "likes")] == ["tea"]


async def test_a_call_that_slept_through_an_erasure_or_an_import_does_nothing(world: World) -> None:
    """Whoever sent it had read the generation before; its process slept between that and the call."""
    scope, resolver = world.scope, world.resolver
    index = PassageIndex(world.vectors, world.parts.embedder)
    mentions = MentionErasing(world.memory.text, world.memory, index)
    read = (await resolver.read_generation(scope, pb.ReadGenerationRequest())).generation
    await resolver.erase_scope(scope, pb.EraseScopeRequest(generation=read))
    await resolver.open_scope(scope, pb.OpenScopeRequest(generation=read | 1))
    await claim(world, "one", ("Ada", "likes", "tea"), "2021-01-01")
    ada = pb.Erased(entity_ids=[await id_of(world, "Ada")], names=["ada"])
    asked: list[tuple[Any, Any]] = [
        (resolver.erase_scope, pb.EraseScopeRequest(generation=read)),
        (resolver.erase_entity, pb.EraseEntityRequest(commit_id="e", erased=ada, generation=read)),
        (mentions, pb.EraseMentionsRequest(erased=ada, generation=read)),
        (resolver.import_, carrying_pb.ImportRequest(revision=9, lines=b"{}", generation=read)),
        (resolver.discard_import, carrying_pb.DiscardImportRequest(generation=read)),
    ]
    for call, request in asked:
        with pytest.raises(WriteConflict):
            await call(scope, request)
    assert [row[0] for row in await world.timeline("ada", "likes")] == ["tea"]
    now = (await resolver.read_generation(scope, pb.ReadGenerationRequest())).generation
    discarded = await resolver.discard_import(scope, carrying_pb.DiscardImportRequest(generation=now))
    assert discarded.generation > now
    with pytest.raises(WriteConflict):
        await resolver.import_(scope, carrying_pb.ImportRequest(revision=9, lines=b"{}", generation=now))
