"""A text that is read anew: what it said is replaced by what it says now, and stays known as of before."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palimpsest.internal.v1 import resolver_judging_pb2 as judging_pb
from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.ids import EpisodeId, Revision
from services.domain.memory import Episode
from services.domain.records import VerdictKind
from services.domain.voice import held
from services.llm.tasks import PairVerdict, VoiceVerdict
from services.stores.paging import Page
from tests.builders import a_scope, on
from tests.examples import one_in
from tests.integration.resolving import Row, World, a_world
from tests.integration.test_resolver import fact, resolve, voice
from tests.integration.test_resolver_forgets import delete, every_text
from tests.integration.test_resolver_laws import Telling, believed, judged, tell, tellings
from tests.integration.upkeeping import episode as an_episode
from tests.integration.upkeeping import told as differences_of
from tests.integration.upkeeping import verify

PAGE = Page(1000)
_graphs = count()

Fact = values.WorldFact | values.VoiceFact


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


async def read_anew(
    world: World,
    episode: Episode,
    *facts: Fact,
    commit: str = "anew",
    left_out: Mapping[str, str] | None = None,
) -> pb.ResolveAnewResponse:
    """`left_out`: passages that a later version leaves out, on which day."""
    setting = values.Setting(kind="conversation", reference_time=episode.reference_time)
    request = pb.ResolveAnewRequest(
        commit_id=commit,
        actor="key:1",
        facts=pb.StoreFactsRequest(
            episode_id=episode.id,
            world=[one for one in facts if isinstance(one, values.WorldFact)],
            voice=[one for one in facts if isinstance(one, values.VoiceFact)],
            setting=setting,
        ),
        withdrawals=[
            values.Withdrawal(passage_id=passage, at=on(day)) for passage, day in (left_out or {}).items()
        ],
    )
    return await world.resolver.resolve_anew(world.scope, request)


def lives_in(place: str, passage: str = "passage-a-0", quote: str = "I am in Graz now.") -> values.WorldFact:
    return fact(("Ana", "lives_in", place), passage, quote)


async def test_what_only_the_old_reading_said_goes_and_is_known_as_of_before(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.")
    before = Revision((await resolve(world, text, lives_in("Grazz"))).revision)
    done = await read_anew(world, text, lives_in("Graz"))
    assert [row[0] for row in await world.timeline("Ana", "lives_in")] == ["Graz"]
    assert await world.timeline("Ana", "lives_in", before) == [("Grazz", on("2024-01-01"), None)]
    ((view, _),) = await world.spans("Ana", "lives_in", before)
    assert view.statement.fact == "Ana lives in Grazz."
    assert (done.claims_revoked, done.outcome.claims) == (1, 1)
    assert (len(done.outcome.statements_added), len(done.outcome.statements_expired)) == (1, 1)


async def test_the_same_reading_changes_nothing(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.", "I like tea.")
    both = lives_in("Graz"), voice("I like tea.", "passage-a-1")
    before = (await resolve(world, text, *both)).revision
    assert (await read_anew(world, text, *both)).revision == before
    assert await world.memory.revisions.current(world.scope) == before


async def test_it_is_done_once_for_a_commit(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.")
    await resolve(world, text, lives_in("Grazz"))
    first = await read_anew(world, text, lives_in("Graz"))
    assert await read_anew(world, text, lives_in("Graz")) == first
    assert await read_anew(world, text, lives_in("Linz")) == first


async def test_a_reading_of_nothing_takes_all_back(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.", "I like tea.")
    await resolve(world, text, lives_in("Graz"), voice("I like tea.", "passage-a-1"))
    done = await read_anew(world, text)
    assert await world.timeline("Ana", "lives_in") == []
    assert (done.claims_revoked, done.voice_revoked) == (1, 1)
    assert await sentences(world) == set()


async def test_what_others_say_as_well_stays(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.")
    other = await an_episode(world, "b", "2024-02-01", "Ana is in Graz.")
    await resolve(world, text, lives_in("Graz"))
    await resolve(world, other, lives_in("Graz", "passage-b-0", "Ana is in Graz."))
    await read_anew(world, text)
    assert await world.timeline("Ana", "lives_in") == [("Graz", on("2024-02-01"), None)]


async def test_a_reading_may_come_back(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.", "I like tea.")
    first = lives_in("Graz"), voice("I like tea.", "passage-a-1")
    await resolve(world, text, *first)
    believed_first = await world.timeline("Ana", "lives_in")
    for commit, facts in (("2", [lives_in("Linz")]), ("3", first), ("4", []), ("5", first)):
        await read_anew(world, text, *facts, commit=commit)
        expected = {"2": ["Linz"], "4": []}.get(commit, ["Graz"])
        assert [row[0] for row in await world.timeline("Ana", "lives_in")] == expected
        assert await sentences(world) == ({"I like tea."} if commit in "35" else set())
    assert await world.timeline("Ana", "lives_in") == believed_first
    assert differences_of((await verify(world)).differences) == []


async def test_what_a_user_said_of_a_fact_outlives_its_readings(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.")
    await resolve(world, text, lives_in("Graz"))
    ((view, _),) = await world.spans("Ana", "lives_in")
    asker = judging_pb.Asker(commit_id="deny", actor="key:1")
    request = judging_pb.DenyStatementRequest(asker=asker, statement_id=view.statement.id)
    await world.resolver.deny_statement(world.scope, request)
    await read_anew(world, text, lives_in("Linz"), commit="2")
    await read_anew(world, text, lives_in("Graz"), commit="3")
    assert await world.timeline("Ana", "lives_in") == []


async def test_the_voice_is_replaced_with_what_it_had_ended(world: World) -> None:
    world.engine.judge_of_voice = lambda task: [
        VoiceVerdict(pair.new, pair.candidate, duplicate=False) for pair in task.pairs
    ]
    earlier = await an_episode(world, "a", "2024-01-01", "I like tea.")
    await resolve(world, earlier, voice("I like tea.", "passage-a-0"))
    later = await an_episode(world, "b", "2024-02-01", "No tea for me.")
    no_tea = voice("I never drink tea.", "passage-b-0")
    no_tea.quote, no_tea.ends_earlier = "No tea for me.", True
    await resolve(world, later, no_tea)
    assert await sentences(world) == {"I never drink tea."}
    mild = voice("I skipped tea today.", "passage-b-0")
    mild.quote = "No tea for me."
    world.engine.judge_of_voice = lambda _: ()
    await read_anew(world, later, mild)
    assert await sentences(world) == {"I like tea.", "I skipped tea today."}


async def test_nobody_is_asked_how_a_fact_stands_to_what_is_about_to_go(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I like green tea.")
    await resolve(world, text, fact(("Ana", "likes", "tea"), "passage-a-0", "I like green tea."))
    world.engine.judge = lambda task: [
        PairVerdict(pair.new, pair.candidate, VerdictKind.CONTRADICTS) for pair in task.pairs
    ]
    world.engine.asked.clear()
    await read_anew(world, text, fact(("Ana", "likes", "green tea"), "passage-a-0", "I like green tea."))
    assert world.engine.asked == []
    assert [row[0] for row in await world.timeline("Ana", "likes")] == ["green tea"]


async def test_what_a_model_says_anew_of_a_pair_replaces_what_it_said(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I like tea.")
    other = await an_episode(world, "b", "2024-02-01", "I like rum.")
    tea, rum = (("Ana", "likes", "tea"), ("Ana", "likes", "rum"))
    await resolve(world, text, fact(tea, "passage-a-0", "I like tea."))
    verdict = VerdictKind.CONTRADICTS
    world.engine.judge = lambda task: [PairVerdict(one.new, one.candidate, verdict) for one in task.pairs]
    await resolve(world, other, fact(rum, "passage-b-0", "I like rum."))
    assert [row[2] for row in await world.timeline("Ana", "likes")] == [on("2024-02-01"), None]
    await read_anew(world, other, commit="nothing")
    verdict = VerdictKind.COMPATIBLE
    await read_anew(world, other, fact(rum, "passage-b-0", "I like rum."), commit="again")
    assert [row[2] for row in await world.timeline("Ana", "likes")] == [None, None]


async def test_what_later_versions_leave_out_is_left_out_of_a_new_reading(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "Ana runs it.", "Gus runs that.")
    ana, gus = (
        (("Ana", "runs", "it"), "passage-a-0", "Ana runs it."),
        (
            ("Gus", "runs", "that"),
            "passage-a-1",
            "Gus runs that.",
        ),
    )
    await resolve(world, text, fact(*ana))
    await read_anew(world, text, fact(*ana), fact(*gus), left_out={"passage-a-1": "2024-06-01"})
    assert await world.timeline("Ana", "runs") == [("it", on("2024-01-01"), None)]
    assert await world.timeline("Gus", "runs") == [("that", on("2024-01-01"), on("2024-06-01"))]
    await read_anew(world, text, fact(*ana), commit="2", left_out={"passage-a-1": "2024-06-01"})
    assert await world.timeline("Gus", "runs") == []


SECRETS = ("Grazz", "Zorro", "mint tea", "quote of Grazz", "quote of mint")


async def test_deleting_a_text_forgets_what_its_earlier_readings_said(world: World) -> None:
    text = await world.episode("a", on("2024-01-01"), ["quote of Grazz", "quote of mint"])
    mint = voice("I like mint tea.", "passage-a-1")
    mint.quote = "quote of mint"
    grazz = fact(("Zorro", "lives_in", "Grazz"), "passage-a-0", "quote of Grazz")
    await resolve(world, text, grazz, mint)
    await read_anew(world, text)
    assert await sentences(world) == set()
    kept = await every_text(world)
    assert all(secret in kept for secret in ("Grazz", "Zorro", "quote of Grazz")), "known as of before"
    await delete(world, text)
    left = await every_text(world) + str((await world.memory.voice.scan(world.scope, PAGE)).items)
    assert [secret for secret in SECRETS if secret in left] == []
    assert differences_of((await verify(world)).differences) == []
    before = await world.memory.revisions.current(world.scope)
    await delete(world, text, "again")
    assert await world.memory.revisions.current(world.scope) == before


async def test_deleting_a_text_keeps_what_others_say_in_their_words(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "in Graz, alas")
    other = await an_episode(world, "b", "2024-02-01", "Ana is in Graz.")
    alas = lives_in("Graz", quote="in Graz, alas")
    alas.fact = "Ana lives in Graz, alas."
    await resolve(world, text, alas)
    await resolve(world, other, lives_in("Graz", "passage-b-0", "Ana is in Graz."))
    await read_anew(world, text)
    await delete(world, text)
    assert "alas" not in await every_text(world)
    assert await world.timeline("Ana", "lives_in") == [("Graz", on("2024-02-01"), None)]


async def test_a_user_s_word_on_a_fact_of_an_earlier_reading_goes_with_its_text(world: World) -> None:
    text = await world.episode("a", on("2024-01-01"), ["I am in Graz now."])
    await resolve(world, text, lives_in("Grazz"))
    ((view, _),) = await world.spans("Ana", "lives_in")
    asker = judging_pb.Asker(commit_id="deny", actor="key:1")
    request = judging_pb.DenyStatementRequest(asker=asker, statement_id=view.statement.id)
    await world.resolver.deny_statement(world.scope, request)
    await read_anew(world, text, lives_in("Graz"))
    await delete(world, text)
    assert "Grazz" not in await every_text(world)
    assert differences_of((await verify(world)).differences) == []


async def test_verifying_a_graph_that_was_read_anew_finds_nothing_and_takes_nothing(world: World) -> None:
    text = await an_episode(world, "a", "2024-01-01", "I am in Graz now.", "I like tea.")
    first = await resolve(world, text, lives_in("Grazz"), voice("I like tea.", "passage-a-1"))
    before = Revision(first.revision)
    await read_anew(world, text, lives_in("Graz"))
    assert differences_of((await verify(world, repair=True)).differences) == []
    ((view, _),) = await world.spans("Ana", "lives_in", before)
    assert view.statement.fact == "Ana lives in Grazz."


async def sentences(world: World) -> set[str]:
    """What the user's voice holds now."""
    current = await world.memory.revisions.current(world.scope)
    listed = await world.memory.voice.list_aspects(world.scope, [], current, PAGE)
    held_now = [(one.text, held(one, current)) for one in listed.items]
    return {text for text, interval in held_now if interval is not None and interval.end is None}


async def story(
    world: World, said_first: Sequence[Telling], anew: Mapping[int, Telling]
) -> dict[str, list[Row]]:
    """What a new graph believes after all was told, and some of it read anew."""
    told = replace(world, scope=replace(a_scope(f"anew {next(_graphs)}"), origin="as one"))
    told.engine.judge = judged
    for at, telling in enumerate(said_first):
        await tell(told, str(at), telling)
    for at, telling in anew.items():
        (episode,) = await told.memory.text.episodes(told.scope, [EpisodeId(f"episode-{at}")])
        await read_anew(told, episode, telling.fact(f"passage-{at}-0"), commit=f"anew {at}")
    return await believed(told)


@pytest.mark.timeout(600)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=one_in(40), deadline=None)
@given(told=st.lists(tellings, min_size=1, max_size=5), data=st.data())
async def test_a_text_read_anew_might_as_well_have_been_read_so_at_first(
    world: World, told: list[Telling], data: st.DataObject
) -> None:
    """Whatever a model judges, and however many of the texts are read anew."""
    places = st.sets(st.integers(0, len(told) - 1), min_size=1, max_size=3)
    anew: dict[int, Telling] = {}
    for at in sorted(data.draw(places, label="which")):
        # A text was said when it was said, whoever reads it.
        anew[at] = replace(data.draw(tellings, label="reading"), said=told[at].said)
    at_first = [anew.get(at, telling) for at, telling in enumerate(told)]
    assert await story(world, told, anew) == await story(world, at_first, {})
