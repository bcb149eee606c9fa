"""What was found of undeclared predicates under declarations, deletes, copies, and without a model."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.domain.records import Judge
from services.llm.offline import OfflineEngine
from services.upkeep.differences import Kind
from tests.builders import on
from tests.doubles.meanings import MeaningEmbedder
from tests.integration.likening import (
    BOTH_OPEN,
    GLOBEX_ENDED,
    all_same,
    delete,
    globex_then_initech,
    merges,
    reads,
    tell,
    with_engine,
)
from tests.integration.resolving import World, a_world
from tests.integration.test_declaring import believed, declare
from tests.integration.test_upkeep_copies import back_up, empty_stores, restored
from tests.integration.upkeeping import answers, stores_of, verify


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield with_engine(world, world.engine)


async def test_a_tenants_alias_wins_over_a_models_word_and_past_beliefs_stay(world: World) -> None:
    world.engine.judge_of_predicates = all_same
    await globex_then_initech(world)
    await declare(world, "labours_at", "multi", ["toils_at"])
    assert await believed(world) == BOTH_OPEN
    assert await reads(world) == {"toils_at": "labours_at"}
    assert (await believed(world, 2), await reads(world, 2)) == (GLOBEX_ENDED, {"toils_at": "works_at"})


async def test_declaring_the_name_itself_undoes_a_models_word(world: World) -> None:
    world.engine.judge_of_predicates = all_same
    await globex_then_initech(world)
    done = await declare(world, "toils_at")
    assert len(done.outcome.statements_restored) == 1
    assert (await believed(world), await reads(world)) == (BOTH_OPEN, {})
    await tell(world, "c", "2023-01-01", ("Ann", "works_at", "Hooli"))
    assert ("Ann toils at Initech", on("2022-01-01"), None) in await believed(world)


async def test_an_alias_of_the_known_one_takes_its_synonyms_along(world: World) -> None:
    world.engine.judge_of_predicates = all_same
    await tell(world, "a", "2020-01-01", ("Ann", "looks_after_cats_of", "Bob"))
    await tell(world, "b", "2022-01-01", ("Ann", "minds_cats_of", "Tom"))
    await declare(world, "cat_keeper_of", "single", ["looks_after_cats_of"])
    assert await reads(world) == {
        "minds_cats_of": "cat_keeper_of",
        "looks_after_cats_of": "cat_keeper_of",
    }
    assert ("Ann looks after cats of Bob", on("2020-01-01"), on("2022-01-01")) in await believed(world)


async def test_a_word_goes_with_the_last_text_that_uses_it(world: World) -> None:
    world.engine.judge_of_predicates = all_same
    await globex_then_initech(world)
    await tell(world, "c", "2023-01-01", ("Bob", "toils_at", "Hooli"))
    await delete(world, "b")
    (merge,) = await merges(world)
    assert (merge.revoked_at, merge.why) == (None, ""), "the reason that a deleted text gave goes"
    assert await reads(world) == {"toils_at": "works_at"}
    assert ("Ann works at Globex", on("2020-01-01"), None) in await believed(world)
    await delete(world, "c")
    (merge,) = await merges(world)
    assert merge.revoked_at == await world.memory.revisions.current(world.scope)
    assert await reads(world) == {}


async def test_what_ships_needs_no_text_to_be_read_as(world: World) -> None:
    world.engine.judge_of_predicates = all_same
    await globex_then_initech(world)
    await tell(world, "c", "2023-01-01", ("Ann", "toils_at", "Hooli"))
    await delete(world, "a")
    assert await reads(world) == {"toils_at": "works_at"}
    assert await believed(world) == {
        ("Ann toils at Initech", on("2022-01-01"), on("2023-01-01")),
        ("Ann toils at Hooli", on("2023-01-01"), None),
    }


async def test_a_word_of_a_graph_that_is_forgotten_leaves_the_other_as_itself(world: World) -> None:
    world.engine.judge_of_predicates = all_same
    await tell(world, "a", "2020-01-01", ("Ann", "looks_after_cats_of", "Bob"))
    await tell(world, "b", "2022-01-01", ("Ann", "minds_cats_of", "Bob"))
    await delete(world, "a")
    assert await reads(world) == {}
    assert await believed(world) == {("Ann minds cats of Bob", on("2022-01-01"), None)}


async def test_without_a_model_words_for_the_present_fall_away_and_nothing_else(world: World) -> None:
    there = with_engine(world, OfflineEngine())
    await tell(there, "a", "2020-01-01", ("Ann", "works_at", "Globex"), ("安娜", "就职于", "环球"))
    await tell(
        there, "b", "2022-01-01", ("Ann", "still_works_for", "Initech"), ("安娜", "目前就职于", "首创")
    )
    assert await believed(there) == {
        ("Ann works at Globex", on("2020-01-01"), on("2022-01-01")),
        ("Ann still works for Initech", on("2022-01-01"), None),
        ("安娜 就职于 环球", on("2020-01-01"), on("2022-01-01")),
        ("安娜 目前就职于 首创", on("2022-01-01"), None),
    }
    assert {(merge.judge, merge.model) for merge in await merges(there)} == {(Judge.RULE, "")}
    await tell(there, "c", "2023-01-01", ("Ann", "toils_at", "Hooli"))
    assert ("Ann still works for Initech", on("2022-01-01"), None) in await believed(there)
    embedder = there.parts.embedder
    assert isinstance(embedder, MeaningEmbedder)
    assert "works at" not in embedder.embedded, "where no model is asked, no names are embedded"


async def test_what_ships_is_embedded_once(world: World) -> None:
    await tell(world, "a", "2020-01-01", ("Ann", "toils_at", "Globex"))
    await tell(world, "b", "2022-01-01", ("Ann", "dwells_in", "Graz"))
    embedder = world.parts.embedder
    assert isinstance(embedder, MeaningEmbedder)
    assert embedder.embedded.count("works at") == 1


async def test_what_synonyms_make_of_a_graph_is_verified_and_copied_whole(
    world: World, tmp_path: Path
) -> None:
    world.engine.judge_of_predicates = all_same
    await globex_then_initech(world)
    await tell(world, "c", "2023-01-01", ("Ann", "looks_after_cats_of", "Bob"))
    await tell(world, "d", "2024-01-01", ("Ann", "minds_cats_of", "Bob"))
    found = {one.kind for one in (await verify(world)).differences}
    assert found == {Kind.PASSAGE_WITHOUT_VECTOR}, "whose vectors another service writes"
    await back_up(stores_of(world), world.scope, tmp_path / "backup", world.clock.at)
    async with empty_stores(world, f"sqlite:///{tmp_path / 'target.db'}") as target:
        await restored(target, tmp_path / "backup")
        assert await target.readings.predicate_merges(world.scope) == await merges(world)
        assert await answers(target, world.scope) == await answers(stores_of(world), world.scope)
