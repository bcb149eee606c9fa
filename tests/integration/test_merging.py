"""Merge and Split through the resolver: what reads as one derives as one, and a split restores it all."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from palimpsest.internal.v1 import resolver_entities_pb2 as entities_pb
from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import EntityNotFound, NotMerged, ValidationFailed
from services.domain.identity import Merge, MergeKind, merged
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision
from services.domain.instants import Instant
from services.domain.records import Judge
from services.resolver.change import Draft
from services.resolver.publish import Publisher
from services.resolver.readings import Readings
from services.stores.graph.port import AsOf, StatementFilter
from services.stores.memory.groups import all_merges
from services.stores.paging import Page
from tests.builders import a_scope, on
from tests.integration.resolving import World, a_world, said

CLAIM, END = values.FACT_KIND_CLAIM, values.FACT_KIND_END
_graphs = count()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, single=["lives_in"]) as world:
        yield world


async def tell(
    world: World, name: str, triple: tuple[str, str, str], day: str, start: str = "", kind: str = ""
) -> None:
    episode = await world.episode(f"{name}", on(day))
    one = said(CLAIM, triple, on(day), episode, start=on(start) if start else None)
    if ":" in kind:
        type_of_subject, type_of_object = kind.split(":")
        one.subject.type, one.object.mention.type = type_of_subject, type_of_object
    await world.tell(f"tell {name}", one)


async def entity(world: World, name: str) -> EntityId:
    known = await world.memory.revisions.current(world.scope)
    (found,) = (await world.graph.find_entities(world.scope, [name.casefold()], known))[name.casefold()]
    return found.id


async def merge(world: World, into: str, *names: str, commit: str = "merge", why: str = "") -> str:
    request = entities_pb.MergeRequest(
        commit_id=commit,
        into_id=await entity(world, into),
        entity_ids=[await entity(world, name) for name in names],
        actor="key:k",
        why=why,
    )
    answer = await world.resolver.merge(world.scope, request)
    return answer.entity_id


async def split(world: World, name: str, commit: str = "split") -> str:
    request = entities_pb.SplitRequest(
        commit_id=commit, entity_id=await entity(world, name), actor="key:k", why="two"
    )
    return (await world.resolver.split(world.scope, request)).former_id


async def reading(world: World, known_at: int | None = None) -> dict[str, str]:
    """Names by what they read as."""
    known = await world.memory.revisions.current(world.scope) if known_at is None else Revision(known_at)
    merges = await all_merges(world.memory.readings, world.scope)
    counting = [
        one
        for one in merges
        if one.recorded_at <= known and (one.revoked_at is None or known < one.revoked_at)
    ]
    reads = merged(counting)
    ids = sorted({*reads.keys(), *reads.values()})
    names = {one.id: one.name for one in await world.graph.entities(world.scope, ids)}
    return {names[one]: names[into] for one, into in reads.items()}


async def believed(
    world: World, known_at: int | None = None
) -> set[tuple[str, Instant | None, Instant | None]]:
    known = await world.memory.revisions.current(world.scope) if known_at is None else Revision(known_at)
    where = StatementFilter(include_ended=True)
    listed = await world.graph.list_statements(world.scope, where, AsOf(known), Page(1000))
    assert not listed.after
    return {
        (view.statement.fact, span.valid_at, span.invalid_at) for view in listed.items for span in view.spans
    }


async def test_what_reads_as_one_competes_and_a_split_restores_it(world: World) -> None:
    await tell(world, "1", ("Maya K.", "lives_in", "Berlin"), "2022-01-01", "2022-01-01")
    await tell(world, "2", ("Maya Kapoor", "lives_in", "Lisbon"), "2024-01-01", "2024-01-01")
    await tell(world, "3", ("Maya Kapoor", "likes", "tea"), "2024-02-01", "2024-02-01")
    apart = await believed(world)
    assert {end for _, _, end in apart} == {None}
    before = await world.memory.revisions.current(world.scope)

    assert await merge(world, "Maya Kapoor", "Maya K.") == await entity(world, "Maya Kapoor")
    assert await reading(world) == {"Maya K.": "Maya Kapoor"}
    one = await believed(world)
    assert ("Maya K. lives in Berlin", on("2022-01-01"), on("2024-01-01")) in one
    assert ("Maya Kapoor lives in Lisbon", on("2024-01-01"), None) in one
    assert ("Maya Kapoor likes tea", on("2024-02-01"), None) in one
    assert await believed(world, before) == apart

    assert await split(world, "Maya K.") == await entity(world, "Maya Kapoor")
    assert await believed(world) == apart
    assert await believed(world, before + 1) == one
    assert await reading(world) == {}
    assert await reading(world, before + 1) == {"Maya K.": "Maya Kapoor"}
    with pytest.raises(NotMerged):
        await split(world, "Maya K.", "again")
    with pytest.raises(NotMerged):
        await split(world, "Maya Kapoor", "the other")


async def test_the_same_triple_is_one_statement_whatever_was_merged(world: World) -> None:
    """Subjects, predicates and objects; an end of the one ends the other."""
    await tell(world, "1", ("Kim", "likes", "green tea"), "2022-01-01", "2022-01-01")
    await tell(world, "2", ("Kimberly", "is_devoted_to", "sencha"), "2023-01-01", "2023-01-01")
    episode = await world.episode("3", on("2024-01-01"))
    over = said(END, ("Kimberly", "is_devoted_to", "sencha"), on("2024-01-01"), episode, end=on("2024-01-01"))
    await world.tell("over", over)
    apart = await believed(world)
    for at, (into, name) in enumerate(
        [("Kim", "Kimberly"), ("likes", "is_devoted_to"), ("green tea", "sencha")]
    ):
        await merge(world, into, name, commit=f"m{at}")
        assert (("Kim likes green tea", on("2022-01-01"), None) in await believed(world)) == (at < 2)
    assert await believed(world) == {("Kim likes green tea", on("2022-01-01"), on("2024-01-01"))}
    # What is said anew finds what it is.
    await tell(world, "4", ("Kimberly", "is_devoted_to", "green tea"), "2025-01-01", "2025-01-01")
    assert ("Kim likes green tea", on("2025-01-01"), None) in await believed(world)
    await world.resolver.revoke(
        world.scope, pb.RevokeRequest(commit_id="d", episode_id="episode-4", actor="key:k")
    )
    for at, name in enumerate(["Kimberly", "is_devoted_to", "sencha"]):
        await split(world, name, commit=f"s{at}")
    assert await believed(world) == apart


async def test_a_literal_is_one_whoever_has_it(world: World) -> None:
    episode = await world.episode("1", on("2022-01-01"))
    for at, (name, start) in enumerate([("Kim", "2021-01-01"), ("Kimberly", "2020-01-01")]):
        one = said(CLAIM, (name, "lives_in", ""), on("2022-01-01"), episode, start=on(start))
        one.object.literal.kind, one.object.literal.text = "string", "a boat"
        await world.tell(str(at), one)
    await merge(world, "Kim", "Kimberly")
    assert len(await believed(world)) == 1


async def test_into_what_it_reads_as(world: World) -> None:
    for name in ("Ana", "Anna", "Annie", "Nan"):
        await tell(world, name, (name, "likes", "tea"), "2022-01-01")
    assert await merge(world, "Ana", "Anna", commit="1") == await entity(world, "Ana")
    assert await merge(world, "Anna", "Annie", commit="2") == await entity(world, "Ana")
    assert await reading(world) == {"Anna": "Ana", "Annie": "Ana"}
    # One that others read as takes them along.
    assert await merge(world, "Nan", "Ana", commit="3") == await entity(world, "Nan")
    assert await reading(world) == {"Anna": "Nan", "Annie": "Nan", "Ana": "Nan"}
    # And goes with those that were merged into it.
    assert await split(world, "Ana", commit="4") == await entity(world, "Nan")
    assert await reading(world) == {"Anna": "Ana", "Annie": "Ana"}


async def test_a_merge_again_changes_nothing_and_a_commit_is_one(world: World) -> None:
    for name in ("Ana", "Anna"):
        await tell(world, name, (name, "likes", "tea"), "2022-01-01")
    await merge(world, "Ana", "Anna")
    done = await world.memory.revisions.current(world.scope)
    assert await merge(world, "Ana", "Anna") == await entity(world, "Ana")
    assert await merge(world, "Ana", "Anna", commit="other") == await entity(world, "Ana")
    assert await merge(world, "Anna", "Ana", commit="turned") == await entity(world, "Ana")
    assert await world.memory.revisions.current(world.scope) == done
    await split(world, "Anna")
    assert await split(world, "Anna") == await entity(world, "Ana")
    assert await world.memory.revisions.current(world.scope) == done + 1
    # A merge of the time before the split is not asked for again by its repetition.
    assert await merge(world, "Ana", "Anna") == await entity(world, "Ana")
    assert await reading(world) == {}
    assert await merge(world, "Ana", "Anna", commit="anew") == await entity(world, "Ana")
    assert await reading(world) == {"Anna": "Ana"}


async def test_what_can_not_be_one_is_refused_whole(world: World) -> None:
    await tell(world, "1", ("Apple", "makes", "apple"), "2022-01-01", kind="Organization:Product")
    await tell(world, "2", ("Maya", "likes", "Rome"), "2022-01-01", kind="Person:Place")
    await tell(world, "3", ("thing", "likes", "thing two"), "2022-01-01")
    known = await world.memory.revisions.current(world.scope)
    with pytest.raises(ValidationFailed) as refused:
        await merge(world, "Maya", "thing", "Rome", "likes")
    fields = [violation.field for violation in refused.value.violations]
    assert fields == ["entity_ids[1]", "entity_ids[2]"]
    with pytest.raises(ValidationFailed):
        await merge(world, "Maya", "thing two", "Maya")
    assert await world.memory.revisions.current(world.scope) == known
    # What is of unknown type is no bridge between those that are not.
    await merge(world, "Maya", "thing", commit="fine")
    for into, name in (("thing", "Rome"), ("Rome", "thing")):
        with pytest.raises(ValidationFailed):
            await merge(world, into, name, commit="bridge")


async def test_what_is_not_there_is_not_found(world: World) -> None:
    await tell(world, "1", ("Maya", "likes", "Rome"), "2022-01-01")
    maya = await entity(world, "Maya")
    unknown = "00000000-0000-0000-0000-000000000000"
    for ids in ((maya, [unknown]), (unknown, [maya])):
        request = entities_pb.MergeRequest(commit_id="m", into_id=ids[0], entity_ids=ids[1])
        with pytest.raises(EntityNotFound):
            await world.resolver.merge(world.scope, request)
        with pytest.raises(EntityNotFound):
            await world.resolver.merge(a_scope("other"), request)
    with pytest.raises(EntityNotFound):
        await world.resolver.split(world.scope, entities_pb.SplitRequest(commit_id="s", entity_id=unknown))


async def test_who_merged_and_split_is_known(world: World) -> None:
    for name in ("Ana", "Anna", "Nan"):
        await tell(world, name, (name, "likes", "tea"), "2022-01-01")
    await merge(world, "Ana", "Anna", "Nan", why="one woman")
    await split(world, "Nan")
    listed = await world.memory.decisions.list_decisions(world.scope, None, Page(10))
    ids = {await entity(world, name): name for name in ("Anna", "Nan")}
    told = [
        (one.action, ids[EntityId(one.target)], one.actor, one.why)
        for one in listed.items
        if one.actor == "key:k"
    ]
    assert told[0] == ("split_entity", "Nan", "key:k", "two")
    assert sorted(told[1:]) == [
        ("merge_entities", "Anna", "key:k", "one woman"),
        ("merge_entities", "Nan", "key:k", "one woman"),
    ]


async def test_a_users_merge_takes_back_what_kept_them_apart(world: World) -> None:
    for name in ("Ana", "Anna", "Nan"):
        await tell(world, name, (name, "likes", "tea"), "2022-01-01")
    await merge(world, "Ana", "Anna", commit="1")
    await split(world, "Anna", commit="2")
    await merge(world, "Nan", "Anna", commit="3")
    await merge(world, "Nan", "Ana", commit="4")
    assert await reading(world) == {"Ana": "Nan", "Anna": "Nan"}


async def test_fifty_at_once(world: World) -> None:
    names = [f"name {at}" for at in range(50)]
    episode = await world.episode("1", on("2022-01-01"))
    every = [
        said(
            CLAIM, (name, "lives_in", f"town {at}"), on("2022-01-01"), episode, start=on(f"20{at + 10}-01-01")
        )
        for at, name in enumerate(names)
    ]
    await world.tell("all", *every, said(CLAIM, ("the one", "likes", "tea"), on("2022-01-01"), episode))
    await merge(world, "the one", *names)
    assert set((await reading(world)).values()) == {"the one"}
    assert len([end for _, _, end in await believed(world) if end is None]) == 2


def model_merge(id: str, one: EntityId, into: EntityId, episode: str, why: str = "both are M") -> Merge:
    return Merge(
        RecordId(id),
        one,
        into,
        MergeKind.SAME,
        Judge.MODEL,
        on("2023-01-01"),
        why,
        episode=EpisodeId(episode),
    )


async def draft_merges(world: World, commit: str, *merges: Merge) -> None:
    """What another part of the resolver does when a model answers."""
    publisher: Publisher = world.resolver._publisher

    async def build(_known: Revision, revision: Revision) -> Draft:
        return Draft(revision, merges={one.id: replace(one, recorded_at=revision) for one in merges})

    await publisher.publish(world.scope, commit, build)


async def test_deleting_an_episode_takes_a_models_merge_along(world: World) -> None:
    await tell(world, "1", ("Maya K.", "lives_in", "Berlin"), "2022-01-01", "2022-01-01")
    await tell(world, "2", ("Maya Kapoor", "lives_in", "Lisbon"), "2024-01-01", "2024-01-01")
    await tell(world, "3", ("Maya", "likes", "tea"), "2024-01-01")
    apart = await believed(world)
    short, full, maya = [await entity(world, name) for name in ("Maya K.", "Maya Kapoor", "Maya")]
    asked = model_merge("m", short, full, "episode-2")
    await draft_merges(world, "model", asked, model_merge("n", maya, full, "episode-3"))
    assert await reading(world) == {"Maya K.": "Maya Kapoor", "Maya": "Maya Kapoor"}
    assert await believed(world) != apart

    async def delete(name: str) -> None:
        request = pb.RevokeRequest(commit_id=name, episode_id=f"episode-{name}", actor="key:k")
        await world.memory.text.delete_episode(world.scope, EpisodeId(f"episode-{name}"), Instant(1))
        await world.resolver.revoke(world.scope, request)

    await delete("2")
    assert await reading(world) == {}
    kept = {one.id: one.why for one in await world.memory.readings.merges(world.scope, [full])}
    assert kept == {"m": "", "n": "both are M"}
    assert ("Maya K. lives in Berlin", on("2022-01-01"), None) in await believed(world)
    current = await world.memory.revisions.current(world.scope)
    await delete("2")
    assert await world.memory.revisions.current(world.scope) == current


async def test_a_supported_merge_stays_without_the_words_of_the_deleted(world: World) -> None:
    await tell(world, "1", ("Maya K.", "likes", "tea"), "2022-01-01")
    await tell(world, "2", ("Maya Kapoor", "likes", "tea"), "2024-01-01")
    await tell(world, "3", ("Maya Kapoor", "likes", "rum"), "2024-01-01")
    short, full = await entity(world, "Maya K."), await entity(world, "Maya Kapoor")
    await draft_merges(world, "model", model_merge("m", short, full, "episode-2"))
    request = pb.RevokeRequest(commit_id="d", episode_id="episode-2", actor="key:k")
    await world.resolver.revoke(world.scope, request)
    assert await reading(world) == {"Maya K.": "Maya Kapoor"}
    assert [one.why for one in await world.memory.readings.merges(world.scope, [full])] == [""]


async def test_a_users_merge_outlives_what_it_was_about(world: World) -> None:
    await tell(world, "1", ("Maya K.", "likes", "tea"), "2022-01-01")
    await tell(world, "2", ("Maya Kapoor", "likes", "rum"), "2024-01-01")
    await merge(world, "Maya Kapoor", "Maya K.")
    request = pb.RevokeRequest(commit_id="d", episode_id="episode-1", actor="key:k")
    await world.resolver.revoke(world.scope, request)
    await tell(world, "3", ("Maya K.", "likes", "jam"), "2024-01-01")
    assert await reading(world) == {"Maya K.": "Maya Kapoor"}


async def test_readings_of_many_merges_are_those_of_few(world: World) -> None:
    """Asked group by group, as for a graph with more merges than are read at once."""
    for name in ("Ana", "Anna", "Nan", "Ben", "Bee"):
        await tell(world, name, (name, "likes", "tea"), "2022-01-01")
    await merge(world, "Ana", "Anna", commit="1")
    await merge(world, "Ben", "Bee", commit="2")
    ana, anna, nan, ben, bee = [await entity(world, name) for name in ("Ana", "Anna", "Nan", "Ben", "Bee")]
    revision = Revision(await world.memory.revisions.current(world.scope) + 1)
    draft = Draft(revision, merges={RecordId("x"): model_merge("x", nan, anna, "e")})
    for few in (1, 200):
        readings = Readings(world.memory.readings, world.scope, draft, few)
        assert await readings.changed() == {nan}
        await readings.learn([bee, nan])
        assert readings.before == {anna: ana, bee: ben}
        assert readings.after == {anna: ana, nan: ana, bee: ben}
        assert readings.alike(nan) == {nan, anna, ana}
        assert readings.alike(ben) == {bee, ben}
