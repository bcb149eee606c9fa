"""The resolver's promises: one entity for fifty writers, deletes that restore, harmless verdicts."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import EntityNotFound, EpisodeNotFound, ValidationFailed
from services.domain.graph import EntityType
from services.domain.ids import Revision
from services.domain.memory import Episode, VoiceKind
from services.domain.records import VerdictKind
from services.domain.voice import held
from services.llm.tasks import PairVerdict, VoiceVerdict
from services.stores.errors import StoreUnavailable
from services.stores.graph.port import AsOf, Commit, StatementFilter
from services.stores.graph.sql import SqlGraphStore
from services.stores.paging import Page
from services.stores.vectors.port import Collection
from tests.builders import on
from tests.integration.resolving import World, a_world, said

CLAIM, END = values.FACT_KIND_CLAIM, values.FACT_KIND_END


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


async def claim(
    world: World, name: str, triple: tuple[str, str, str], start: str, said_at: str = ""
) -> Episode:
    """Asserts one dated triple from an episode of its own."""
    attested = on(said_at or start)
    episode = await world.episode(name, attested)
    await world.tell(name, said(CLAIM, triple, attested, episode, start=on(start)))
    return episode


def fact(triple: tuple[str, str, str], passage: str, quote: str, **more: object) -> values.WorldFact:
    subject, predicate, target = triple
    return values.WorldFact(
        kind=CLAIM,
        subject=values.Mention(name=subject),
        predicate=predicate,
        object=values.Target(mention=values.Mention(name=target)),
        fact=f"{subject} {predicate.replace('_', ' ')} {target}.",
        quote=quote,
        confidence=0.9,
        passage_id=passage,
        **more,  # type: ignore[arg-type]  # named as the message's own fields
    )


def voice(text: str, passage: str, kind: VoiceKind = VoiceKind.PREFERENCE) -> values.VoiceFact:
    return values.VoiceFact(text=text, quote=text, kind=kind, passage_id=passage)


async def resolve(
    world: World, episode: Episode, *facts: values.WorldFact | values.VoiceFact
) -> pb.ResolveResponse:
    """Stages facts of an episode and resolves them."""
    await stage(world, episode, *facts)
    return await world.resolver.resolve(world.scope, pb.ResolveRequest(episode_id=episode.id))


async def stage(world: World, episode: Episode, *facts: values.WorldFact | values.VoiceFact) -> None:
    request = pb.StoreFactsRequest(
        episode_id=episode.id,
        world=[one for one in facts if isinstance(one, values.WorldFact)],
        voice=[one for one in facts if isinstance(one, values.VoiceFact)],
        setting=values.Setting(kind="conversation", reference_time=episode.reference_time),
    )
    await world.resolver.store_facts(world.scope, request)


async def test_a_deleted_episode_gives_back_what_it_struck_out(world: World) -> None:
    await claim(world, "graz", ("Ivo", "lives_in", "Graz"), "2020-01-01")
    linz = await claim(world, "linz", ("Ivo", "lives_in", "Linz"), "2023-01-01")
    before = await world.memory.revisions.current(world.scope)
    answer = await world.resolver.revoke(
        world.scope, pb.RevokeRequest(commit_id="d", episode_id=linz.id, actor="user")
    )
    assert await world.timeline("Ivo", "lives_in") == [("Graz", on("2020-01-01"), None)]
    assert (answer.claims, len(answer.outcome.statements_restored)) == (1, 1)
    # The belief log keeps ids and dates of what was believed before, not its text.
    past = await world.spans("Ivo", "lives_in", before)
    assert [(span.valid_at, span.invalid_at) for _, span in past] == [
        (on("2020-01-01"), on("2023-01-01")),
        (on("2023-01-01"), None),
    ]
    assert "Linz" not in str(past)
    assert await world.vectors.count(world.scope, Collection.STATEMENTS) == 1


async def test_a_deleted_fact_that_is_told_again_is_whole_again(world: World) -> None:
    first = await claim(world, "a", ("Ivo", "lives_in", "Linz"), "2023-01-01")
    await world.resolver.revoke(world.scope, pb.RevokeRequest(commit_id="d", episode_id=first.id))
    assert await world.timeline("Ivo", "lives_in") == []
    await claim(world, "b", ("Ivo", "lives_in", "Linz"), "2024-01-01")
    assert await world.timeline("Ivo", "lives_in") == [("Linz", on("2024-01-01"), None)]
    assert await world.vectors.count(world.scope, Collection.STATEMENTS) == 1


async def test_deleting_twice_changes_nothing_more(world: World) -> None:
    episode = await claim(world, "a", ("Ivo", "lives_in", "Linz"), "2023-01-01")
    request = pb.RevokeRequest(commit_id="d", episode_id=episode.id)
    first = await world.resolver.revoke(world.scope, request)
    assert await world.resolver.revoke(world.scope, request) == first
    again = await world.resolver.revoke(world.scope, pb.RevokeRequest(commit_id="e", episode_id=episode.id))
    assert (again.revision, again.claims) == (first.revision, 0)


async def test_fifty_writers_of_one_new_entity_leave_one_node(world: World) -> None:
    names = ["Maya Kapoor", "maya  kapoor", "MAYA KAPOOR"]
    await asyncio.gather(
        *(claim(world, f"{n}", (names[n % 3], "knows", f"Friend {n}"), "2024-01-01") for n in range(50))
    )
    current = await world.memory.revisions.current(world.scope)
    found = await world.graph.find_entities(world.scope, ["maya kapoor"], current)
    assert len(found["maya kapoor"]) == 1
    assert len(await world.timeline("maya kapoor", "knows")) == 50
    assert current == 50


async def test_the_same_assertion_under_the_same_id_is_recorded_once(world: World) -> None:
    episode = await world.episode("a", on("2024-01-01"))
    assertion = said(CLAIM, ("Fay", "likes", "tea"), on("2024-01-01"), episode)
    first = await world.tell("same", assertion)
    assert await world.tell("same", assertion) == first
    assert first.revision == 1


async def test_types_keep_namesakes_apart(world: World) -> None:
    episode = await world.episode("a", on("2024-01-01"))
    for name, kind in (("Apple", EntityType.ORGANIZATION), ("apple", EntityType.PRODUCT)):
        assertion = said(CLAIM, ("Fay", "likes", name), on("2024-01-01"), episode)
        assertion.object.mention.type = kind
        await world.tell(f"{kind}", assertion)
    current = await world.memory.revisions.current(world.scope)
    found = await world.graph.find_entities(world.scope, ["apple"], current)
    assert {entity.type for entity in found["apple"]} == {EntityType.ORGANIZATION, EntityType.PRODUCT}
    assert len(await world.timeline("Fay", "likes")) == 2


async def test_an_end_may_name_its_object_loosely(world: World) -> None:
    await claim(world, "buy", ("Ann", "owns", "Honda Civic"), "2025-04-01")
    episode = await world.episode("sell", on("2025-08-01"), ["I sold the Honda."])
    sold = fact(("Ann", "owns", "the Honda"), "passage-sell-0", "I sold the Honda.")
    sold.kind, sold.end.at = END, on("2025-07-21")
    await resolve(world, episode, sold)
    assert await world.timeline("Ann", "owns") == [("Honda Civic", on("2025-04-01"), on("2025-07-21"))]


async def test_staged_facts_are_invisible_until_their_revision(world: World) -> None:
    episode = await world.episode("a", on("2024-01-01"), ["I like tea."])
    await stage(world, episode, fact(("Fay", "likes", "tea"), "passage-a-0", "I like tea."))
    assert await world.memory.revisions.current(world.scope) == 0
    assert await world.timeline("Fay", "likes") == []
    answer = await world.resolver.resolve(world.scope, pb.ResolveRequest(episode_id=episode.id))
    assert answer.revision == 1
    assert len(await world.timeline("Fay", "likes")) == 1
    assert await world.resolver.resolve(world.scope, pb.ResolveRequest(episode_id=episode.id)) == answer


async def test_two_quotes_of_one_fact_leave_one_statement_with_both(world: World) -> None:
    episode = await world.episode("a", on("2024-01-01"), ["I like tea.", "Tea is what I like."])
    one = fact(("Fay", "likes", "tea"), "passage-a-0", "I like tea.")
    other = fact(("Fay", "likes", "Tea"), "passage-a-1", "Tea is what I like.")
    await resolve(world, episode, one, other)
    ((view, _),) = await world.spans("Fay", "likes")
    records = await world.graph.records(world.scope, [view.statement.id])
    assert {record.source.quote for record in records.claims} == {one.quote, other.quote}


async def test_verdicts_of_unknown_positions_change_nothing(world: World) -> None:
    await claim(world, "a", ("Fay", "likes", "tea"), "2024-01-01")
    world.engine.judge = lambda _: [
        PairVerdict(0, 99, VerdictKind.CONTRADICTS),
        PairVerdict(7, 0, VerdictKind.DUPLICATE),
    ]
    episode = await world.episode("b", on("2024-02-01"), ["I like coffee."])
    await resolve(world, episode, fact(("Fay", "likes", "coffee"), "passage-b-0", "I like coffee."))
    assert [end for _, _, end in await world.timeline("Fay", "likes")] == [None, None]


async def test_contradictions_both_ways_cannot_leave_both_without_spans(world: World) -> None:
    world.engine.judge = lambda task: [
        PairVerdict(pair.new, pair.candidate, VerdictKind.CONTRADICTS) for pair in task.pairs
    ]
    episode = await world.episode("a", on("2024-01-01"), ["I love sushi.", "I hate sushi."])
    await resolve(
        world,
        episode,
        fact(("Fay", "loves", "sushi"), "passage-a-0", "I love sushi."),
        fact(("Fay", "hates", "sushi"), "passage-a-1", "I hate sushi."),
    )
    spans = await world.timeline("Fay", "loves") + await world.timeline("Fay", "hates")
    assert len(spans) == 1


async def test_a_later_contradiction_ends_the_earlier_and_deleting_it_undoes_that(world: World) -> None:
    world.engine.judge = lambda task: [
        PairVerdict(pair.new, pair.candidate, VerdictKind.CONTRADICTS) for pair in task.pairs
    ]
    first = await world.episode("a", on("2025-01-01"), ["I love sushi."])
    await resolve(world, first, fact(("Fay", "loves", "sushi"), "passage-a-0", "I love sushi."))
    second = await world.episode("b", on("2025-06-01"), ["I hate sushi now."])
    await resolve(world, second, fact(("Fay", "hates", "sushi"), "passage-b-0", "I hate sushi now."))
    assert await world.timeline("Fay", "loves") == [("sushi", on("2025-01-01"), on("2025-06-01"))]
    assert await world.timeline("Fay", "hates") == [("sushi", on("2025-06-01"), None)]
    await world.resolver.revoke(world.scope, pb.RevokeRequest(commit_id="d", episode_id=second.id))
    assert await world.timeline("Fay", "loves") == [("sushi", on("2025-01-01"), None)]


async def test_facts_without_a_key_are_dropped_by_name_and_the_rest_is_kept(world: World) -> None:
    episode = await world.episode("a", on("2024-01-01"), ["I like tea."])
    answer = await resolve(
        world,
        episode,
        fact(("Fay", "!!", "tea"), "passage-a-0", "tea"),
        fact(("", "likes", "tea"), "passage-a-0", "tea"),
        fact(("Fay", "likes", "milk"), "passage-of-nobody", "milk"),
        fact(("Fay", "likes", "tea"), "passage-a-0", "I like tea."),
    )
    assert [drop.reason for drop in answer.dropped] == ["INVALID", "INVALID", "UNKNOWN_TURN"]
    assert [name for name, _, _ in await world.timeline("Fay", "likes")] == ["tea"]


async def test_voice_is_new_then_a_duplicate_then_replaced(world: World) -> None:
    say = "I prefer short answers."
    first = await world.episode("a", on("2025-01-01"), [say])
    await resolve(world, first, voice(say, "passage-a-0"))
    again = await world.episode("b", on("2025-02-01"), [say])
    duplicate = await resolve(world, again, voice(say, "passage-b-0"))
    assert not duplicate.outcome.voice_added
    world.engine.judge_of_voice = lambda task: [
        VoiceVerdict(pair.new, pair.candidate, duplicate=False) for pair in task.pairs
    ]
    later = await world.episode("c", on("2025-03-01"), ["I prefer short answers with sources."])
    changed = await resolve(world, later, voice("I prefer short answers with sources.", "passage-c-0"))
    assert len(changed.outcome.voice_ended) == 1
    current = await world.memory.revisions.current(world.scope)
    listed = await world.memory.voice.list_aspects(world.scope, [VoiceKind.PREFERENCE], current, Page())
    holding = {aspect.text: held(aspect, current) for aspect in listed.items}
    old, new = holding[say], holding["I prefer short answers with sources."]
    assert old is not None
    assert (old.start, old.end) == (on("2025-01-01"), on("2025-03-01"))
    assert new is not None
    assert new.end is None
    await world.resolver.revoke(world.scope, pb.RevokeRequest(commit_id="d", episode_id=later.id))
    current = await world.memory.revisions.current(world.scope)
    listed = await world.memory.voice.list_aspects(world.scope, [], current, Page())
    (left,) = [held(aspect, current) for aspect in listed.items]
    assert left is not None
    assert left.end is None


async def test_what_a_document_no_longer_says_ends_unless_something_else_says_it(world: World) -> None:
    document = await world.episode("doc", on("2024-01-01"), ["Atlas uses Redis.", "Atlas uses Kafka."])
    await resolve(
        world,
        document,
        fact(("Atlas", "uses", "Redis"), "passage-doc-0", "Atlas uses Redis."),
        fact(("Atlas", "uses", "Kafka"), "passage-doc-1", "Atlas uses Kafka."),
    )
    chat = await world.episode("chat", on("2024-02-01"), ["Atlas uses Kafka."])
    await resolve(world, chat, fact(("Atlas", "uses", "Kafka"), "passage-chat-0", "Atlas uses Kafka."))
    request = pb.EndUnsupportedRequest(
        commit_id="v2", removed_passage_ids=["passage-doc-0", "passage-doc-1"], at=on("2024-03-01")
    )
    answer = await world.resolver.end_unsupported(world.scope, request)
    assert len(answer.outcome.statements_ended) == 1
    assert {name: end for name, _, end in await world.timeline("Atlas", "uses")} == {
        "Redis": on("2024-03-01"),
        "Kafka": None,
    }
    assert await world.resolver.end_unsupported(world.scope, request) == answer


async def test_unknown_things_are_told(world: World) -> None:
    with pytest.raises(EpisodeNotFound):
        await world.resolver.store_facts(world.scope, pb.StoreFactsRequest(episode_id="nobody"))
    episode = await world.episode("a", on("2024-01-01"))
    nameless = said(CLAIM, ("Fay", "likes", "tea"), on("2024-01-01"), episode)
    nameless.ClearField("object")
    with pytest.raises(ValidationFailed):
        await world.tell("a", nameless)
    by_id = said(CLAIM, ("Fay", "likes", "tea"), on("2024-01-01"), episode)
    by_id.subject.id = "nobody"
    with pytest.raises(EntityNotFound):
        await world.tell("b", by_id)
    assert await world.memory.revisions.current(world.scope) == 0


class Falling(SqlGraphStore):
    """A graph store that can't be reached for some of its applies."""

    falls = 0

    async def apply(self, scope: object, commit: Commit) -> None:
        if self.falls:
            self.falls -= 1
            raise StoreUnavailable("graph")
        await super().apply(scope, commit)  # type: ignore[arg-type]


async def test_a_revision_that_a_crash_left_begun_is_completed_by_the_next_writer(tmp_path: Path) -> None:
    async with a_world(tmp_path, graph_class=Falling) as world:
        assert isinstance(world.graph, Falling)
        world.graph.falls = 1
        episode = await world.episode("a", on("2024-01-01"))
        assertion = said(CLAIM, ("Fay", "likes", "tea"), on("2024-01-01"), episode)
        with pytest.raises(StoreUnavailable):
            await world.tell("first", assertion)
        assert await world.memory.revisions.current(world.scope) == 0
        assert await world.memory.revisions.pending(world.scope) is not None
        await claim(world, "b", ("Fay", "likes", "coffee"), "2024-02-01")
        assert await world.memory.revisions.current(world.scope) == 2
        assert [name for name, _, _ in await world.timeline("Fay", "likes")] == ["tea", "coffee"]
        # And who began it is told what it came to, without a second revision.
        assert (await world.tell("first", assertion)).revision == 1


async def test_reads_as_of_a_past_revision_do_not_change_as_more_arrives(world: World) -> None:
    await claim(world, "a", ("Jo", "works_at", "Google"), "2024-02-01")
    first = await world.timeline("Jo", "works_at")
    await claim(world, "b", ("Jo", "works_at", "Meta"), "2026-03-01")
    assert await world.timeline("Jo", "works_at", Revision(1)) == first
    views = await world.graph.list_statements(
        world.scope, StatementFilter(), AsOf(Revision(2), valid_at=on("2025-01-01")), Page()
    )
    assert [view.object.name for view in views.items if view.object] == ["Google"]
