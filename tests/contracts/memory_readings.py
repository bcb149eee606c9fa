"""What every store of readings must do. A store's test gives the fixture `memory`."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from services.domain.identity import Merge, MergeKind
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision
from services.domain.instants import Instant
from services.domain.predicates import Cardinality, Declaration, Declared
from services.domain.records import Judge
from services.domain.scope import Scope
from services.stores.errors import UnstorableText
from services.stores.memory.groups import all_merges, connected
from services.stores.memory.sql import SqlMemory
from services.stores.paging import Page
from tests.contracts.memory_base import SCOPE, TWINS, all_pages, hostile, unstorable


def merge(
    id: str,
    entity: str,
    into: str,
    kind: MergeKind = MergeKind.SAME,
    recorded: int = 1,
    revoked: int | None = None,
    why: str = "",
) -> Merge:
    return Merge(
        id=RecordId(id),
        entity=EntityId(entity),
        into=EntityId(into),
        kind=kind,
        judge=Judge.MODEL,
        attested_at=Instant(-70),
        why=why,
        recorded_at=Revision(recorded),
        revoked_at=None if revoked is None else Revision(revoked),
    )


def declared(id: str, name: str, recorded: int = 1, revoked: int | None = None) -> Declared:
    return Declared(
        RecordId(id),
        Declaration(name, Cardinality.SINGLE, ("one", "two"), "inverse"),
        Revision(recorded),
        None if revoked is None else Revision(revoked),
    )


async def apply(
    memory: SqlMemory,
    revision: int,
    merges: Sequence[Merge] = (),
    declared: Sequence[Declared] = (),
    revoked: Sequence[str] = (),
    scope: Scope = SCOPE,
) -> None:
    records = [RecordId(record) for record in revoked]
    await memory.readings.apply(scope, Revision(revision), merges, declared, records)


async def naming(memory: SqlMemory, *entities: str, scope: Scope = SCOPE) -> list[Merge]:
    return list(await memory.readings.merges(scope, [EntityId(id) for id in entities]))


async def group(memory: SqlMemory, *entities: str) -> list[str]:
    found = await connected(memory.readings, SCOPE, [EntityId(id) for id in entities])
    return [merge.id for merge in found]


class ReadingContract:
    """Merges and declarations, with their revisions."""

    async def test_a_graph_without_any_has_none(self, memory: SqlMemory) -> None:
        assert await naming(memory, "a") == await naming(memory) == []
        assert (await memory.readings.list_merges(SCOPE, Page())).items == []
        assert await memory.readings.declared(SCOPE) == []
        assert await group(memory) == []
        assert not (await memory.revisions.state(SCOPE, "any")).merged

    async def test_what_was_written_comes_back_whole(self, memory: SqlMemory) -> None:
        full = replace(
            merge("m", "a", "b", MergeKind.APART, why="two people"),
            judge=Judge.USER,
            model="model",
            prompt_version="v1",
            episode=EpisodeId("e"),
        )
        bare = declared("d", "knows")
        other = Declared(RecordId("x"), Declaration("likes"), Revision(1))
        await apply(memory, 1, [full], [bare, other])
        assert await naming(memory, "a") == await naming(memory, "b") == [full]
        assert (await memory.readings.list_merges(SCOPE, Page())).items == [full]
        assert await memory.readings.declared(SCOPE) == [bare, other]
        assert (await memory.revisions.state(SCOPE, "any")).merged

    async def test_a_merge_is_found_from_either_side_and_once(self, memory: SqlMemory) -> None:
        one, two, three = merge("1", "a", "b"), merge("2", "b", "c", recorded=2), merge("3", "x", "y")
        await apply(memory, 1, [three, one])
        await apply(memory, 2, [two])
        assert await naming(memory, "b") == [one, two]
        assert await naming(memory, "c", "b", "a", "a", "none") == [one, two]
        assert await naming(memory, "y", "a") == [one, three]
        many = [EntityId(f"other-{number}") for number in range(1200)]
        assert await memory.readings.merges(SCOPE, [*many, EntityId("x")]) == [three]

    async def test_those_of_predicates_are_told_from_those_of_entities(self, memory: SqlMemory) -> None:
        said = [merge(f"{kind:d}", "a", f"b{kind:d}", kind, recorded=9 - kind) for kind in MergeKind]
        for one in said:
            await apply(memory, one.recorded_at, [one])
        await apply(memory, 10, revoked=["4"])
        found = await memory.readings.predicate_merges(SCOPE)
        assert found == [replace(said[3], revoked_at=Revision(10)), said[2]]
        for twin in TWINS:
            assert await memory.readings.predicate_merges(twin) == []

    async def test_the_oldest_come_first_in_pages(self, memory: SqlMemory) -> None:
        made = [
            merge(f"{number % 3}-{number}", "a", f"b{number}", recorded=number // 3) for number in range(9)
        ]
        await apply(memory, 9, made)
        expected = sorted(made, key=lambda one: (one.recorded_at, one.id))
        for size in (1, 2, 9, 50):
            assert await all_pages(lambda page: memory.readings.list_merges(SCOPE, page), size) == expected
            assert await all_merges(memory.readings, SCOPE, size) == expected
        with pytest.raises(ValueError, match="position"):
            await memory.readings.list_merges(SCOPE, Page(1, "elsewhere"))
        names = [declared("b", "first", 1), declared("a", "second", 2), declared("c", "third", 2)]
        await apply(memory, 2, declared=names[::-1])
        assert await memory.readings.declared(SCOPE) == names

    async def test_those_of_an_episode_are_found(self, memory: SqlMemory) -> None:
        mine = [replace(merge(id, "a", id), episode=EpisodeId("e")) for id in ("x", "y")]
        other = replace(merge("z", "a", "z"), episode=EpisodeId("other"))
        await apply(memory, 1, [*mine, other, merge("w", "a", "w")])
        await apply(memory, 2, revoked=["y"])
        found = [mine[0], replace(mine[1], revoked_at=Revision(2))]
        assert await memory.readings.of_episode(SCOPE, EpisodeId("e")) == found
        for twin in TWINS:
            assert await memory.readings.of_episode(twin, EpisodeId("e")) == []
        for nothing in ("none", "nul \x00"):
            assert await memory.readings.of_episode(SCOPE, EpisodeId(nothing)) == []

    async def test_of_several_revocations_the_first_stands(self, memory: SqlMemory) -> None:
        await apply(memory, 1, [merge("m", "a", "b")], [declared("d", "knows")])
        await apply(memory, 3, revoked=["m", "d", "m"])
        await apply(memory, 5, revoked=["m", "d"])
        assert await naming(memory, "a") == [merge("m", "a", "b", revoked=3)]
        assert (await memory.readings.list_merges(SCOPE, Page())).items == [merge("m", "a", "b", revoked=3)]
        assert await memory.readings.declared(SCOPE) == [declared("d", "knows", revoked=3)]

    async def test_applying_again_changes_nothing(self, memory: SqlMemory) -> None:
        one, said = merge("m", "a", "b"), declared("d", "knows")
        for _ in range(2):
            await apply(memory, 1, [one], [said])
        await apply(memory, 4, [merge("m", "x", "y", recorded=4)], [declared("d", "other", 4)])
        await apply(memory, 5)
        assert await naming(memory, "a") == [one]
        assert await naming(memory, "x") == []
        assert await memory.readings.declared(SCOPE) == [said]

    async def test_a_group_is_read_to_its_ends(self, memory: SqlMemory) -> None:
        chain = [merge(f"{number}", f"e{number}", f"e{number + 1}") for number in range(5)]
        apart = merge("apart", "e1", "e4", MergeKind.APART)
        outside = merge("outside", "e2", "far", MergeKind.APART)
        far = merge("far", "far", "farther")
        await apply(memory, 1, [*chain, apart, outside, far])
        await apply(memory, 2, revoked=["3"])
        expected = ["0", "1", "2", "3", "4", "apart"]
        assert await group(memory, "e0") == await group(memory, "e5") == expected
        assert await group(memory, "far") == ["far"]
        assert await group(memory, "far", "e3") == [*expected, "far", "outside"]
        assert await group(memory, "nobody") == []

    async def test_a_circle_has_an_end(self, memory: SqlMemory) -> None:
        circle = [merge("1", "a", "b"), merge("2", "b", "c"), merge("3", "c", "a")]
        await apply(memory, 1, circle)
        assert await group(memory, "b") == ["1", "2", "3"]

    async def test_forgotten_reasons_stay_gone(self, memory: SqlMemory) -> None:
        told = [merge("m", "a", "b", why="secret"), merge("n", "a", "c", why="kept")]
        await apply(memory, 1, told)
        for _ in range(2):
            await memory.readings.forget_text(SCOPE, [RecordId("m"), RecordId("none")])
            assert await naming(memory, "a") == [replace(told[0], why=""), told[1]]
        await apply(memory, 1, told)
        assert await naming(memory, "a") == [replace(told[0], why=""), told[1]]
        await memory.readings.forget_text(SCOPE, [])

    async def test_twins_see_and_change_nothing_of_each_other(self, memory: SqlMemory) -> None:
        mine, said = merge("m", "a", "b", why="mine"), declared("d", "knows")
        await apply(memory, 1, [mine], [said])
        for twin in TWINS:
            assert await naming(memory, "a", "b", scope=twin) == []
            assert (await memory.readings.list_merges(twin, Page())).items == []
            assert await memory.readings.declared(twin) == []
            await apply(memory, 1, [merge("m", "x", "y")], [declared("d", "other")], ["m", "d"], twin)
            await memory.readings.forget_text(twin, [RecordId("m")])
            assert await naming(memory, "x", scope=twin) == [merge("m", "x", "y", revoked=1)]
            await memory.erase(twin)
            assert await naming(memory, "x", scope=twin) == []
            assert await memory.readings.declared(twin) == []
        assert await naming(memory, "a") == [mine]
        assert await memory.readings.declared(SCOPE) == [said]

    @hostile
    async def test_strange_text_comes_back_unchanged(self, memory: SqlMemory, text: str) -> None:
        made = replace(merge("m", "a", "b", why=text), model=text, prompt_version=text)
        said = Declared(RecordId("d"), Declaration(text, aliases=(text, "x"), inverse=text), Revision(1))
        await apply(memory, 1, [made], [said])
        assert await naming(memory, "a") == [made]
        assert await memory.readings.declared(SCOPE) == [said]

    @unstorable
    async def test_text_that_can_not_be_stored_is_refused_whole(self, memory: SqlMemory, text: str) -> None:
        good, fine = merge("m", "a", "b"), declared("d", "knows")
        for bad in (replace(good, id=RecordId("n"), why=text), replace(good, entity=EntityId(text))):
            with pytest.raises(UnstorableText):
                await apply(memory, 1, [good, bad], [fine])
        for bad_one in (Declaration(text), Declaration("x", aliases=(text,)), Declaration("x", inverse=text)):
            with pytest.raises(UnstorableText):
                await apply(memory, 1, [good], [fine, Declared(RecordId("x"), bad_one)])
        with pytest.raises(UnstorableText):
            await apply(memory, 1, [good], [fine], [text])
        assert await naming(memory, "a", text) == []
        assert await memory.readings.declared(SCOPE) == []
        await memory.readings.forget_text(SCOPE, [RecordId(text)])
