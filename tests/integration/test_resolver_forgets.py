"""What a deletion takes back and what it forgets: verdicts on either side, words of episodes, vectors."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.ids import PassageId
from services.domain.instants import Instant
from services.domain.memory import Episode
from services.domain.records import VerdictKind
from services.llm.tasks import PairVerdict, VoiceVerdict
from services.stores.paging import Page
from services.stores.vectors.port import Collection
from tests.builders import on
from tests.integration.resolving import World, a_world, said
from tests.integration.test_resolver import CLAIM, END, claim, fact, resolve, voice

PAGE = Page(1000)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


async def delete(world: World, episode: Episode, commit_id: str = "delete") -> pb.RevokeResponse:
    """As the gateway does: the text, then what it said."""
    await world.memory.text.delete_episode(world.scope, episode.id, Instant(episode.created_at + 1))
    request = pb.RevokeRequest(commit_id=commit_id, episode_id=episode.id, actor="user")
    return await world.resolver.revoke(world.scope, request)


async def every_text(world: World) -> str:
    """All text that the graph and the voice aspects hold."""
    current = await world.memory.revisions.current(world.scope)
    ids = (await world.graph.scan(world.scope, PAGE)).items
    records = await world.graph.records(world.scope, ids)
    nodes = {node for one in records.statements for node in (one.subject, one.predicate, one.object)}
    entities = await world.graph.entities(world.scope, [node for node in nodes if isinstance(node, str)])
    aliases = await world.graph.aliases(world.scope, current)
    listed = await world.memory.voice.list_aspects(world.scope, [], current, PAGE)
    return f"{records} {entities} {aliases} {listed.items}"


@pytest.mark.parametrize("thing", ["tea", "rum", "jam", "figs", "oats", "rye"])
async def test_what_a_verdict_struck_out_comes_back_whichever_id_sorts_first(
    world: World, thing: str
) -> None:
    await claim(world, "a", ("Fay", "likes", "milk"), "2023-01-01")
    world.engine.judge = lambda _: [PairVerdict(0, 0, VerdictKind.CONTRADICTS)]
    episode = await world.episode("b", on("2024-01-01"), ["I went off milk."])
    await resolve(world, episode, fact(("Fay", "likes", thing), "passage-b-0", "I went off milk."))
    assert {name: end for name, _, end in await world.timeline("Fay", "likes")}["milk"] is not None
    answer = await delete(world, episode)
    assert await world.timeline("Fay", "likes") == [("milk", on("2023-01-01"), None)]
    assert len(answer.outcome.statements_restored) == 1


async def test_words_of_a_deleted_episode_go_where_others_support_the_fact(world: World) -> None:
    lines = ["I drink tea with my canary."]
    first = await world.episode("first", on("2023-01-01"), lines)
    told = fact(("Fay", "likes", "tea"), "passage-first-0", lines[0])
    told.fact = "Fay likes tea, and so does her canary."
    told.start.text = "since the canary came"
    spoken = voice("Fay prefers tea, as her canary does.", "passage-first-0")
    await resolve(world, first, told, spoken)
    world.engine.judge_of_voice = lambda _: [VoiceVerdict(0, 0, duplicate=True, why="canary")]
    second = await world.episode("second", on("2024-01-01"), ["Tea is what I like."])
    quote = "Tea is what I like."
    again = voice("Fay prefers tea, as her parrot does.", "passage-second-0")
    again.quote = quote
    await resolve(world, second, fact(("Fay", "likes", "tea"), "passage-second-0", quote), again)
    row = await world.vectors.fetch(world.scope, Collection.STATEMENTS, await statements(world))
    assert "canary" in await every_text(world)

    await delete(world, first)
    text = await every_text(world)
    assert "canary" not in text
    assert text.count(quote) == 3  # the claim's, the voice claim's, and the aspect that is told by it now
    ((view, span),) = await world.spans("Fay", "likes")
    assert (view.statement.fact, span.valid_at) == ("Fay likes tea", on("2024-01-01"))
    now = await world.vectors.fetch(world.scope, Collection.STATEMENTS, [view.statement.id])
    assert list(now[view.statement.id].vector) != list(row[view.statement.id].vector)
    assert await world.vectors.count(world.scope, Collection.VOICE) == 1


async def statements(world: World) -> list[str]:
    return list((await world.graph.scan(world.scope, PAGE)).items)


async def test_a_sentence_that_another_episode_wrote_stays(world: World) -> None:
    first = await world.episode("first", on("2023-01-01"), ["I like tea a lot."])
    told = fact(("Fay", "likes", "tea"), "passage-first-0", "I like tea a lot.")
    told.fact = "Fay likes tea a lot."
    await resolve(world, first, told)
    second = await claim(world, "second", ("Fay", "likes", "tea"), "2024-01-01")
    await delete(world, second)
    ((view, _),) = await world.spans("Fay", "likes")
    assert view.statement.fact == "Fay likes tea a lot."


async def test_reasons_that_quote_a_deleted_fact_go(world: World) -> None:
    first = await claim(world, "first", ("Fay", "likes", "canaries"), "2023-01-01")
    world.engine.judge = lambda _: [PairVerdict(0, 0, VerdictKind.CONTRADICTS, "no more canaries")]
    second = await world.episode("second", on("2024-01-01"), ["I like cats."])
    await resolve(world, second, fact(("Fay", "likes", "cats"), "passage-second-0", "I like cats."))
    await delete(world, first)
    assert "canaries" not in await every_text(world)


async def test_one_request_id_deletes_each_episode_that_it_is_used_for(world: World) -> None:
    """A tenant may use a request id again once it is forgotten, or when the first call failed."""
    first = await claim(world, "a", ("Fay", "likes", "tea"), "2023-01-01")
    second = await claim(world, "b", ("Fay", "likes", "rum"), "2023-01-01")
    await delete(world, first, "same")
    await delete(world, second, "same")
    assert await world.timeline("Fay", "likes") == []


async def test_deleting_an_episode_that_said_nothing_is_a_revision_once(world: World) -> None:
    episode = await world.episode("a", on("2024-01-01"))
    first = await delete(world, episode, "one")
    again = await delete(world, episode, "two")
    assert (first.revision, again.revision, again.claims) == (1, 1, 0)
    listed = await world.memory.decisions.list_decisions(world.scope, episode.id, PAGE)
    assert [(one.action, one.actor) for one in listed.items] == [("delete_episode", "user")]


async def test_what_was_over_already_expires_with_its_episode(world: World) -> None:
    episode = await world.episode("a", on("2024-01-01"))
    past = said(CLAIM, ("Fay", "works_at", "Atlas"), on("2024-01-01"), episode, start=on("2020-01-01"))
    past.end = on("2021-01-01")
    await world.tell("a", past)
    answer = await delete(world, episode)
    assert (len(answer.outcome.statements_ended), len(answer.outcome.statements_expired)) == (0, 1)


async def test_a_removed_source_ends_again_what_the_deletion_of_its_version_gave_back(world: World) -> None:
    await claim(world, "v1", ("Atlas", "uses", "Redis"), "2024-01-01")
    at = on("2024-03-01")
    for version in ("v2", "v3"):
        episode = await world.episode(version, at)
        request = pb.EndUnsupportedRequest(
            commit_id=version, removed_passage_ids=["passage-v1-0"], at=at, episode_id=episode.id
        )
        await world.resolver.end_unsupported(world.scope, request)
        assert await world.timeline("Atlas", "uses") == [("Redis", on("2024-01-01"), at)]
        if version == "v2":
            await delete(world, episode)
            assert await world.timeline("Atlas", "uses") == [("Redis", on("2024-01-01"), None)]


async def test_a_later_version_does_not_move_an_end_that_an_earlier_one_made(world: World) -> None:
    await claim(world, "v1", ("Atlas", "uses", "Redis"), "2024-01-01")
    for version, day in (("v2", "2024-03-01"), ("v3", "2024-06-01")):
        episode = await world.episode(version, on(day))
        request = pb.EndUnsupportedRequest(
            commit_id=version, removed_passage_ids=["passage-v1-0"], at=on(day), episode_id=episode.id
        )
        await world.resolver.end_unsupported(world.scope, request)
    assert await world.timeline("Atlas", "uses") == [("Redis", on("2024-01-01"), on("2024-03-01"))]
    assert await world.memory.revisions.current(world.scope) == 2


async def test_a_backslash_before_u0000_is_only_text(world: World) -> None:
    await claim(world, "a", ("Fay", "likes", "a \\u0000 in JSON"), "2023-01-01")
    assert [name for name, _, _ in await world.timeline("Fay", "likes")] == ["a \\u0000 in JSON"]


async def test_a_repeated_assertion_is_told_what_it_recorded_even_once_that_is_deleted(world: World) -> None:
    episode = await world.episode("a", on("2024-01-01"))
    triples = [said(CLAIM, ("Fay", "likes", "tea"), on("2024-01-01"), episode)]
    first = await world.tell("same", *triples)
    await delete(world, episode)
    assert await world.tell("same") == await world.tell("same", *triples) == first
    assert list(first.episode_ids) == [episode.id]
    assert await world.timeline("Fay", "likes") == []


async def test_resolving_again_tells_what_it_cost_and_dropped_the_first_time(world: World) -> None:
    await claim(world, "old", ("Fay", "likes", "tea"), "2023-01-01")
    episode = await world.episode("a", on("2024-01-01"), ["I like rum."])
    good = fact(("Fay", "likes", "rum"), "passage-a-0", "I like rum.")
    stray = fact(("Fay", "likes", "gin"), str(PassageId("passage-of-nobody")), "I like gin.", turn=3)
    first = await resolve(world, episode, good, stray, voice("I like rum.", "passage-of-nobody"))
    assert [one.turn for one in first.dropped] == [3, 0]
    assert [receipt.stage for receipt in first.receipts] == ["judge_statements"]
    assert await world.resolver.resolve(world.scope, pb.ResolveRequest(episode_id=episode.id)) == first


async def test_a_sentence_without_a_known_kind_is_dropped_and_named(world: World) -> None:
    episode = await world.episode("a", on("2024-01-01"), ["I like rum."])
    spoken = [voice("I like rum.", "passage-a-0") for _ in range(3)]
    spoken[0].kind, spoken[1].kind = "", "Mood"
    answer = await resolve(world, episode, *spoken)
    assert [one.reason for one in answer.dropped] == ["UNCLASSIFIED_VOICE", "INVALID"]
    assert len(answer.outcome.voice_added) == 1


async def test_a_verdict_outlives_its_episode_where_others_say_the_same(world: World) -> None:
    await claim(world, "tea", ("Fay", "likes", "tea"), "2022-01-01")
    world.engine.judge = lambda _: [PairVerdict(0, 0, VerdictKind.CONTRADICTS)]
    quote = "Rum it is, not tea."
    for name, said_at in (("one", "2023-01-01"), ("two", "2024-01-01")):
        episode = await world.episode(name, on(said_at), [quote])
        told = fact(("Fay", "likes", "rum"), f"passage-{name}-0", quote)
        await resolve(world, episode, told)
        if name == "one":
            first = episode
    await delete(world, first)
    assert await world.timeline("Fay", "likes") == [
        ("tea", on("2022-01-01"), on("2024-01-01")),
        ("rum", on("2024-01-01"), None),
    ]


async def test_what_was_first_said_to_be_over_is_judged_when_it_is_claimed(world: World) -> None:
    await claim(world, "tea", ("Fay", "likes", "tea"), "2022-01-01")
    ended = await world.episode("over", on("2021-01-01"), ["No more rum."])
    over = fact(("Fay", "likes", "rum"), "passage-over-0", "No more rum.")
    over.kind = END
    await resolve(world, ended, over)
    world.engine.judge = lambda task: [
        PairVerdict(pair.new, pair.candidate, VerdictKind.CONTRADICTS) for pair in task.pairs
    ]
    episode = await world.episode("rum", on("2024-01-01"), ["Rum again, not tea."])
    await resolve(world, episode, fact(("Fay", "likes", "rum"), "passage-rum-0", "Rum again, not tea."))
    ends = {name: end for name, _, end in await world.timeline("Fay", "likes") if end is None}
    assert set(ends) == {"rum"}


async def test_an_end_in_other_words_is_judged_and_ends_what_it_means(world: World) -> None:
    await claim(world, "tea", ("Fay", "likes", "tea"), "2022-01-01")
    world.engine.judge = lambda task: [
        PairVerdict(pair.new, pair.candidate, VerdictKind.DUPLICATE) for pair in task.pairs
    ]
    episode = await world.episode("over", on("2024-01-01"), ["No more cups of tea."])
    over = fact(("Fay", "likes", "cups of tea"), "passage-over-0", "No more cups of tea.")
    over.kind, over.end.at = END, on("2023-01-01")
    await resolve(world, episode, over)
    assert await world.timeline("Fay", "likes") == [("tea", on("2022-01-01"), on("2023-01-01"))]


async def test_an_end_may_name_loosely_what_the_same_breath_began(world: World) -> None:
    lines = ["I bought a Honda Civic in April and sold the Honda in July."]
    episode = await world.episode("a", on("2025-08-01"), lines)
    bought = fact(("Ann", "owns", "Honda Civic"), "passage-a-0", lines[0])
    bought.start.at = on("2025-04-01")
    sold = fact(("Ann", "owns", "the Honda"), "passage-a-0", lines[0])
    sold.kind, sold.end.at = END, on("2025-07-01")
    await resolve(world, episode, sold, bought)
    assert await world.timeline("Ann", "owns") == [("Honda Civic", on("2025-04-01"), on("2025-07-01"))]
