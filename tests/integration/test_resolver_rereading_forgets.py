"""Deleting texts after readings anew: no word of theirs stays, whoever's record it lies in."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from palimpsest.internal.v1 import resolver_archiving_pb2 as archiving_pb
from palimpsest.internal.v1 import resolver_judging_pb2 as judging_pb
from services.domain.ids import Revision
from services.domain.records import VerdictKind
from services.llm.tasks import EntityVerdict, PairVerdict, VoiceVerdict
from services.stores.paging import Page
from services.stores.vectors.port import Collection
from tests.builders import on
from tests.examples import sampled
from tests.integration.resolving import World, a_world
from tests.integration.test_carrying import elsewhere, exported, imported
from tests.integration.test_declaring import declare
from tests.integration.test_erasing_entities import erase
from tests.integration.test_resolver import fact, resolve, voice
from tests.integration.test_resolver_forgets import delete, every_text
from tests.integration.test_resolver_rereading import lives_in, read_anew
from tests.integration.upkeeping import episode as an_episode
from tests.integration.upkeeping import told as differences_of
from tests.integration.upkeeping import verify

PAGE = Page(1000)
SAID = "as it was said"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


async def all_words(world: World) -> str:
    merges = await world.memory.readings.list_merges(world.scope, PAGE)
    voices = await world.memory.voice.scan(world.scope, PAGE)
    decisions = await world.memory.decisions.list_decisions(world.scope, None, PAGE)
    return f"{await every_text(world)} {merges.items} {voices.items} {decisions.items}"


async def test_reasons_that_an_earlier_reading_gave_go_with_what_they_quote(world: World) -> None:
    first = await an_episode(world, "first", "2023-01-01", SAID)
    await resolve(world, first, fact(("Fay", "likes", "canaries"), "passage-first-0", SAID))
    world.engine.judge = lambda _: [PairVerdict(0, 0, VerdictKind.CONTRADICTS, "no more canaries")]
    second = await an_episode(world, "second", "2024-01-01", SAID)
    await resolve(world, second, fact(("Fay", "likes", "cats"), "passage-second-0", SAID))
    await read_anew(world, second)
    await delete(world, first)
    assert "canaries" not in await all_words(world)


async def test_reasons_for_ends_of_the_voice_go_with_what_they_quote(world: World) -> None:
    first = await an_episode(world, "first", "2023-01-01", SAID)
    await resolve(world, first, voice("I like canaries.", "passage-first-0"))
    world.engine.judge_of_voice = lambda task: [
        VoiceVerdict(pair.new, pair.candidate, duplicate=False, why="no more canaries") for pair in task.pairs
    ]
    second = await an_episode(world, "second", "2024-01-01", SAID)
    cats = voice("I like cats.", "passage-second-0")
    cats.ends_earlier = True
    await resolve(world, second, cats)
    await read_anew(world, second)
    await delete(world, first)
    assert "canaries" not in await all_words(world)


@pytest.mark.slow
async def test_a_user_s_end_of_a_sentence_that_only_an_earlier_reading_told_goes_too(world: World) -> None:
    text = await an_episode(world, "first", "2023-01-01", SAID)
    await resolve(world, text, voice("I like canaries.", "passage-first-0"))
    (aspect,) = (await world.memory.voice.scan(world.scope, PAGE)).items
    asker = judging_pb.Asker(commit_id="end", actor="key:1", why="no more")
    request = judging_pb.EndVoiceAspectRequest(asker=asker, voice_id=aspect.id)
    await world.resolver.end_voice_aspect(world.scope, request)
    await read_anew(world, text)
    await delete(world, text)
    assert "canaries" not in await all_words(world)


async def test_reasons_for_merges_go_with_what_they_quote(world: World) -> None:
    world.engine.judge_of_entities = lambda task: [
        EntityVerdict(pair.new, pair.candidate, same=True, why="the canary woman") for pair in task.pairs
    ]
    for name, who in (("a", "Katarina Holz"), ("b", "Katharina Holz")):
        text = await an_episode(world, name, "2024-01-01", SAID)
        await resolve(world, text, fact(("Ana", "knows", who), f"passage-{name}-0", SAID))
    await read_anew(world, text)
    assert "canary" in await all_words(world)
    await delete(world, text)
    assert "canary" not in await all_words(world)


@pytest.mark.slow
async def test_a_name_that_only_an_earlier_reading_knew_can_be_erased(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "Ana knows somebody.")
    await resolve(world, text, fact(("Ana", "knows", "Zorro"), "passage-a-0", "Zorro it is"))
    await read_anew(world, text, fact(("Ana", "knows", "Diego"), "passage-a-0", SAID))
    await erase(world, "Zorro")
    assert "Zorro" not in await all_words(world)
    assert [row[0] for row in await world.timeline("Ana", "knows")] == ["Diego"]
    assert differences_of((await verify(world)).differences) == []


@pytest.mark.parametrize("again", sampled([True, False]))
async def test_an_archived_fact_that_is_told_again_or_dropped(world: World, again: bool) -> None:
    text = await an_episode(world, "a", "2020-01-01", SAID)
    old = lives_in("Grazz")
    old.end.at = on("2021-01-01")
    await resolve(world, text, old)
    rules = [archiving_pb.ArchiveRule(ended_by=on("2024-01-01"))]
    request = archiving_pb.ArchiveRequest(commit_id="archive", rules=rules, actor="retention")
    assert (await world.resolver.archive(world.scope, request)).archived == 1
    new = lives_in("Grazz" if again else "Graz")
    new.end.at = on("2022-01-01")
    await read_anew(world, text, new)
    expected = [("Grazz" if again else "Graz", on("2020-01-01"), on("2022-01-01"))]
    assert await world.timeline("Ana", "lives_in") == expected
    assert differences_of((await verify(world, repair=True)).differences) == []
    await delete(world, text)
    assert "Graz" not in await all_words(world)
    for collection in (Collection.STATEMENTS, Collection.ARCHIVE):
        assert await world.vectors.count(world.scope, collection) == 0


@pytest.mark.slow
async def test_what_a_user_denied_stays_denied_by_whatever_name_its_predicate_is_read(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", SAID)
    await resolve(world, text, fact(("Ana", "dwells_at", "Graz"), "passage-a-0", SAID))
    ((view, _),) = await world.spans("Ana", "dwells_at")
    asker = judging_pb.Asker(commit_id="deny", actor="key:1")
    request = judging_pb.DenyStatementRequest(asker=asker, statement_id=view.statement.id)
    await world.resolver.deny_statement(world.scope, request)
    await declare(world, "lives_in", "single", ["dwells_at"])
    await read_anew(world, text, fact(("Ana", "dwells_at", "Graz"), "passage-a-0", SAID), commit="2")
    assert await world.timeline("Ana", "lives_in") == []


async def test_what_is_exported_after_a_reading_forgets_elsewhere_as_well(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", SAID)
    before = Revision((await resolve(world, text, lives_in("Grazz"))).revision)
    await read_anew(world, text, lives_in("Graz"))
    begun, pieces, _ = await exported(world, world.scope)
    there = replace(world, scope=elsewhere(world.scope))
    assert not (await imported(there, there.scope, begun, pieces)).differences
    assert [row[0] for row in await there.timeline("Ana", "lives_in", before)] == ["Grazz"]
    assert [row[0] for row in await there.timeline("Ana", "lives_in")] == ["Graz"]
    await delete(there, text)
    left = await all_words(there)
    assert "Graz" not in left
    assert "Grazz" in await all_words(world)


async def test_names_of_earlier_readings_go_with_their_text(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", SAID)
    await resolve(world, text, lives_in("Grazz"))
    await read_anew(world, text, lives_in("Graz"))
    await delete(world, text)
    assert "Graz" not in await all_words(world)


async def test_a_name_that_another_text_knew_by_an_earlier_reading_stays(world: World) -> None:
    first = await an_episode(world, "first", "2023-01-01", SAID)
    second = await an_episode(world, "second", "2024-01-01", SAID)
    before = Revision((await resolve(world, first, lives_in("Grazz", "passage-first-0"))).revision)
    await resolve(world, second, fact(("Bob", "likes", "Grazz"), "passage-second-0", SAID))
    await read_anew(world, first, lives_in("Graz", "passage-first-0"))
    await delete(world, second)
    assert [row[0] for row in await world.timeline("Ana", "lives_in", before)] == ["Grazz"]
