"""Recall over real stores: what is found, as of when, as known when, whose; and with a store down."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palimpsest.internal.v1 import resolver_pb2
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import EntityNotFound, RevisionNotReady
from services.domain.ids import EpisodeId
from services.domain.memory import VoiceKind
from services.domain.recalled import is_recalled
from services.llm import tokens
from services.llm.tasks import VoiceVerdict
from services.recall.parts import Options
from tests.builders import on
from tests.integration.recalling import Memory, a_memory, triple, triples, twin

DATABASE = "primary_database"


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with a_memory(tmp_path, [DATABASE, "lives_in"]) as memory:
        yield memory


async def wen(memory: Memory) -> None:
    await memory.tell("wen", "2025-01-01", ("Wen", "maintains", "Study"))
    await memory.tell("pages", "2025-01-02", ("Study", "deployed_on", "Cloudflare Pages"))
    await memory.tell("kv", "2025-01-03", ("Study", "storage_binding", "KV: GUESTBOOK"))


async def atlas(memory: Memory) -> None:
    await memory.tell("mysql", "2025-02-03", ("Atlas", DATABASE, "MySQL 8.0"), since="2025-02-01")
    await memory.tell("pg", "2025-06-03", ("Atlas", DATABASE, "PostgreSQL 16"), since="2025-06-01")


class TestFinding:
    async def test_two_hops_reach_what_no_text_names_together(self, memory: Memory) -> None:
        await wen(memory)
        answer = await memory.ask("What storage does the project that Wen maintains use?")
        found = {triple(fact.statement): fact for fact in answer.facts}
        kv = found["Study", "storage_binding", "KV: GUESTBOOK"]
        assert [step.to.name for step in kv.path] == ["Study", "KV: GUESTBOOK"]
        assert "- (Study) --[storage_binding]--> (KV: GUESTBOOK)  since 2025-01-03 [e" in answer.context
        alone = await memory.ask("What does Wen own?", max_hops=1, max_passages=0)
        steps = [leg.leg for fact in alone.facts for leg in fact.legs if triple(fact.statement)[0] == "Study"]
        assert "walk" not in steps

    @pytest.mark.case("walking finds")
    async def test_a_walk_finds_what_only_points_at_the_seed(self, memory: Memory) -> None:
        await wen(memory)
        answer = await memory.ask("GUESTBOOK?", entity_hints=["KV: GUESTBOOK"])
        walked = {triple(f.statement) for f in answer.facts if any(leg.leg == "walk" for leg in f.legs)}
        assert ("Wen", "maintains", "Study") in walked

    @pytest.mark.case("a small graph beside")
    async def test_a_tiny_graph_beside_a_big_one_loses_nothing(self, memory: Memory) -> None:
        crowd = [(f"Person {n}", "feeds", f"cat number {n}") for n in range(150)]
        await memory.tell("crowd", "2025-01-01", *crowd, scope=twin())
        await memory.tell("mine", "2025-01-01", ("Ana", "feeds", "Miso the cat"))
        answer = await memory.ask("who feeds the cat", entity_hints=["Ana"])
        assert triples(answer) == [("Ana", "feeds", "Miso the cat")]
        legs = {leg.leg for leg in answer.facts[0].legs}
        assert legs == {"statements_dense", "statements_lexical", "walk"}

    async def test_chinese_finds_the_current_one_first(self, memory: Memory) -> None:
        await memory.tell("a", "2026-01-10", ("主数据库", "status", "MySQL 8.0"), since="2026-01-10")
        await memory.tell("b", "2026-01-24", ("主数据库", "status", "PostgreSQL 16"), since="2026-01-24")
        await memory.tell("c", "2026-01-24", ("小猫", "status", "米粒"))
        answer = await memory.ask("主数据库是什么", include_ended=True)
        assert [target for _, _, target in triples(answer)[:2]] == ["PostgreSQL 16", "MySQL 8.0"]
        assert [named.name for named in answer.plan.entities] == ["主数据库"]

    async def test_neighbours_of_a_matching_turn_are_lifted(self, memory: Memory) -> None:
        lines = [
            ("Ana", "How was the pottery workshop?"),
            ("Ben", "Great, I made a blue bowl!"),
            ("Ana", "Nice."),
        ]
        await memory.say("a", "2025-01-01", *lines)
        await memory.say("b", "2025-01-02", *[("Cy", f"Unrelated remark number {n}") for n in range(20)])
        answer = await memory.ask("pottery workshop", max_facts=0)
        assert [found.passage.text for found in answer.passages[:2]] == [line for _, line in lines[:2]]
        assert "passages_neighbour" in {leg.leg for leg in answer.passages[1].legs}

    async def test_what_was_said_when_the_question_asks_is_found_without_a_word_in_common(
        self, memory: Memory
    ) -> None:
        await memory.say("a", "2025-03-01", ("Ana", "Bowls, bowls, bowls."))
        await memory.say("b", "2025-07-09", ("Ben", "Fog again."))  # days after the period: told soon after
        await memory.say("c", "2025-09-01", ("Cy", "Rain."))
        answer = await memory.ask("What happened in the first week of July 2025?", max_facts=0)
        by_time = [p.passage.text for p in answer.passages if "passages_time" in {leg.leg for leg in p.legs}]
        assert by_time == ["Fog again."]

    async def test_whom_the_question_names_is_heard_first(self, memory: Memory) -> None:
        lines = [("Ana", "Pottery is fun."), ("Ben", "Pottery is fun."), ("Ana", "Is pottery fun?")]
        await memory.say("a", "2025-01-01", *lines)
        await memory.say("b", "2025-01-02", ("Cy", "Nothing of the kind."))
        for name in ("Ana", "Ben"):
            [first, *_] = (await memory.ask(f"What does {name} say of pottery?", max_facts=0)).passages
            assert (first.passage.speaker, first.passage.text) == (name, "Pottery is fun.")

    async def test_what_somebody_else_did_is_a_reason_to_abstain(self, memory: Memory) -> None:
        await memory.say(
            "a", "2025-01-01", ("Ana", "I ran a charity race."), ("Ben", "Your race sounds great!")
        )
        await memory.say("b", "2025-01-02", ("Ben", "I baked bread."), ("Ana", "Your bread was good."))
        ana, ben = [
            (await memory.ask(f"Was the charity race of {who}?")).answerable for who in ("Ana", "Ben")
        ]
        assert ana > ben

    @pytest.mark.case("max_facts=3")
    async def test_max_facts_of_one_caller_is_not_anothers(self, memory: Memory) -> None:
        await memory.tell("a", "2025-01-01", *[("Ana", "likes", f"tea {n}") for n in range(30)])
        asked = [memory.ask("what tea does Ana like", max_facts=n % 7 + 1) for n in range(20)]
        answers = await asyncio.gather(*asked)
        assert [len(answer.facts) for answer in answers] == [n % 7 + 1 for n in range(20)]

    async def test_answers_are_deterministic(self, memory: Memory) -> None:
        await wen(memory)
        await atlas(memory)
        one, other = [await memory.ask("What does Wen maintain at Atlas?") for _ in range(2)]
        assert one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)

    @pytest.mark.parametrize(
        "query", ["", "!!!", "_", "   ", "🎉🎉", "\x00", "x" * 10_000, "猫 " * 3_000, "'\"; drop --"]
    )
    async def test_any_query_has_an_answer(self, memory: Memory, query: str) -> None:
        await wen(memory)
        answer = await memory.ask(query)
        assert answer.revision == 3
        assert 0 <= answer.answerable <= 1

    async def test_a_graph_without_anything_answers_nothing(self, memory: Memory) -> None:
        answer = await memory.ask("Who is Wen?")
        assert (len(answer.facts), len(answer.passages), answer.context, answer.answerable) == (0, 0, "", 0.0)

    async def test_the_first_memory_of_a_graph_is_found(self, memory: Memory) -> None:
        assert not (await memory.ask("Wen")).facts
        told = await memory.tell("wen", "2025-01-01", ("Wen", "maintains", "Study"))
        assert triples(await memory.ask("Wen", min_revision=told.revision)) == [("Wen", "maintains", "Study")]

    async def test_a_fact_of_which_only_the_end_was_told_names_who_told_it(self, memory: Memory) -> None:
        ended = on("2025-06-01")
        await memory.tell(
            "left", "2025-07-01", ("Ana", "uses", "Excel"), kind=values.FACT_KIND_END, end=ended
        )
        answer = await memory.ask("What did Ana use?", as_of=on("2025-03-01"))
        assert triples(answer) == [("Ana", "uses", "Excel")]
        assert list(answer.facts[0].evidence) == ["e1"]
        assert answer.evidence[0].passage_id == "passage-left-0"
        assert "- (Ana) --[uses]--> (Excel)  until 2025-06-01 [e1]" in answer.context

    async def test_filters_alone_are_answered(self, memory: Memory) -> None:
        await atlas(memory)
        answer = await memory.ask("...", range_start=on("2025-03-01"), range_end=on("2025-04-01"))
        assert triples(answer) == [("Atlas", DATABASE, "MySQL 8.0")]


class TestTime:
    async def test_now_then_and_both(self, memory: Memory) -> None:
        await atlas(memory)
        now = await memory.ask("Which database does Atlas use?")
        assert triples(now) == [("Atlas", DATABASE, "PostgreSQL 16")]
        assert [triple(one) for one in now.facts[0].replaced] == [("Atlas", DATABASE, "MySQL 8.0")]
        then = await memory.ask("Which database does Atlas use?", as_of=on("2025-03-01"))
        assert triples(then) == [("Atlas", DATABASE, "MySQL 8.0")]
        assert then.facts[0].holds
        before = await memory.ask("Which database does Atlas use?", as_of=on("2024-03-01"))
        assert triples(before) == []
        both = await memory.ask("Which database does Atlas use?", include_ended=True)
        assert [(triple(f.statement)[2], f.holds) for f in both.facts] == [
            ("PostgreSQL 16", True),
            ("MySQL 8.0", False),
        ]

    @pytest.mark.parametrize(
        "query", ["Atlas database as of March 2025", "Atlas database in April 2025", "Atlas before May 2025"]
    )
    async def test_a_time_in_the_question_is_heard(self, memory: Memory, query: str) -> None:
        await atlas(memory)
        answer = await memory.ask(query)
        assert triples(answer)[0] == ("Atlas", DATABASE, "MySQL 8.0")
        assert answer.facts[0].holds

    async def test_what_changed_brings_what_has_ended(self, memory: Memory) -> None:
        await atlas(memory)
        answer = await memory.ask("What changed about the database of Atlas?")
        assert [target for _, _, target in triples(answer)] == ["PostgreSQL 16", "MySQL 8.0"]

    async def test_lines_have_dates_of_both_borders_and_stand_in_order(self, memory: Memory) -> None:
        await atlas(memory)
        answer = await memory.ask("What changed about the database of Atlas?", max_passages=0)
        assert answer.context.splitlines() == [
            "## Facts",
            "- (Atlas) --[primary_database]--> (PostgreSQL 16)  since 2025-06-01 [e1]",
            "- (Atlas) --[primary_database]--> (MySQL 8.0)  since 2025-02-01 until 2025-06-01 [e2]",
        ]
        assert {e.name: e.passage_id for e in answer.evidence} == {
            "e1": "passage-pg-0",
            "e2": "passage-mysql-0",
        }

    async def test_as_known_before_it_was_told(self, memory: Memory) -> None:
        await atlas(memory)
        first = await memory.ask("Atlas database", known_at=values.KnownAt(revision=1))
        assert first.revision == 1
        assert triples(first) == [("Atlas", DATABASE, "MySQL 8.0")]
        assert not first.facts[0].statement.spans[0].HasField("invalid_at")
        clock = await memory.ask("Atlas database", known_at=values.KnownAt(clock=on("2025-04-01")))
        assert triples(clock) == triples(first)
        assert [p.passage.id for p in clock.passages] == ["passage-mysql-0"]
        earlier = await memory.ask("Atlas database", known_at=values.KnownAt(clock=on("2025-01-01")))
        assert (triples(earlier), list(earlier.passages), earlier.revision) == ([], [], 0)
        assert not earlier.plan.entities

    async def test_both_axes_at_once(self, memory: Memory) -> None:
        await atlas(memory)
        late = on("2025-07-01")
        asked = await memory.ask("Atlas database", as_of=late, known_at=values.KnownAt(revision=1))
        assert triples(asked) == [("Atlas", DATABASE, "MySQL 8.0")]
        asked = await memory.ask("Atlas database", as_of=late)
        assert triples(asked) == [("Atlas", DATABASE, "PostgreSQL 16")]

    @pytest.mark.case("walking finds")
    async def test_walks_cross_no_ended_fact_unless_asked(self, memory: Memory) -> None:
        await memory.tell("a", "2020-02-01", ("Kim", "lives_in", "Oslo"), since="2020-01-01")
        await memory.tell("b", "2020-02-01", ("Oslo", "known_for", "fjord walks"))
        await memory.tell("c", "2023-02-01", ("Kim", "lives_in", "Graz"), since="2023-01-01")
        now = await memory.ask("Kim", include_ended=True)
        walked = {triple(f.statement) for f in now.facts if any(leg.leg == "walk" for leg in f.legs)}
        assert walked == {("Kim", "lives_in", "Graz")}
        then = await memory.ask("Kim", as_of=on("2021-01-01"))
        assert not any(t[2] == "Graz" for t in triples(then))
        seen = await memory.ask("Kim", as_of=on("2021-01-01"), max_facts=50)
        assert ("Kim", "lives_in", "Oslo") in triples(seen)

    async def test_passages_of_a_range(self, memory: Memory) -> None:
        await memory.say("a", "2025-01-05", ("Ana", "Tea is fine."))
        await memory.say("b", "2025-02-05", ("Ana", "Tea is great."))
        answer = await memory.ask("tea", range_start=on("2025-02-01"), range_end=on("2025-03-01"))
        assert [found.passage.id for found in answer.passages] == ["passage-b-0"]


class TestRevisions:
    async def test_a_revision_to_come_is_waited_for(self, tmp_path: Path) -> None:
        async with a_memory(tmp_path, options=Options(wait_seconds=60)) as memory:
            async with asyncio.TaskGroup() as group:
                asking = group.create_task(memory.ask("Wen", min_revision=1))
                group.create_task(memory.tell("wen", "2025-01-01", ("Wen", "maintains", "Study")))
            assert triples(asking.result()) == [("Wen", "maintains", "Study")]

    async def test_one_that_does_not_come_is_refused(self, memory: Memory) -> None:
        with pytest.raises(RevisionNotReady):
            await memory.ask("Wen", min_revision=1)


class TestTenants:
    async def test_twins_see_nothing_of_each_other(self, memory: Memory) -> None:
        await memory.tell("mine", "2025-01-01", ("Ana", "drinks", "tea"))
        await memory.tell("theirs", "2025-01-01", ("Ana", "drinks", "canaryword"), scope=twin())
        for scope, word in ((None, "canaryword"), (twin(), "tea")):
            for query in ("What does Ana drink?", word):
                answer = await memory.ask(query, scope=scope, include_ended=True)
                assert word not in str(answer).replace(f'query: "{word}"', "")
        mine = await memory.ask("Ana")
        theirs = str(mine.facts[0].statement.subject.id)
        with pytest.raises(EntityNotFound):
            await memory.ask("x", scope=twin(), entity_hints=[theirs])


class TestDeletion:
    async def test_what_was_deleted_is_not_found_and_what_it_struck_out_is(self, memory: Memory) -> None:
        await atlas(memory)
        assert triples(await memory.ask("Atlas PostgreSQL"))[0][2] == "PostgreSQL 16"
        world = memory.world
        request = resolver_pb2.RevokeRequest(commit_id="gone", episode_id="episode-pg")
        await world.resolver.revoke(world.scope, request)
        await world.memory.text.delete_episode(world.scope, EpisodeId("episode-pg"), on("2025-07-01"))
        answer = await memory.ask("Atlas PostgreSQL", include_ended=True)
        assert triples(answer) == [("Atlas", DATABASE, "MySQL 8.0")]
        assert "PostgreSQL" not in str(answer.passages) + answer.context
        assert not answer.facts[0].statement.spans[0].HasField("invalid_at")


class TestVoice:
    async def said(self, memory: Memory, name: str, day: str, text: str, kind: VoiceKind) -> None:
        """One sentence of the user's voice, through the resolver."""
        episode = await memory.say(name, day, ("Ana", text))
        fact = values.VoiceFact(text=text, quote=text, kind=kind, passage_id=f"passage-{name}-0")
        setting = values.Setting(kind="conversation", reference_time=episode.reference_time)
        staged = resolver_pb2.StoreFactsRequest(episode_id=episode.id, voice=[fact], setting=setting)
        await memory.world.resolver.store_facts(memory.world.scope, staged)
        asked = resolver_pb2.ResolveRequest(episode_id=episode.id)
        await memory.world.resolver.resolve(memory.world.scope, asked)

    async def test_a_sentence_is_found_whole_dated_and_by_kind(self, memory: Memory) -> None:
        rule = "Always run the tests before you open a PR."
        await self.said(memory, "a", "2025-01-01", rule, VoiceKind.DIRECTIVE)
        await self.said(memory, "b", "2025-02-01", "I prefer green tea.", VoiceKind.PREFERENCE)
        answer = await memory.ask("What shall I do before opening a PR?", include_passages=False)
        assert answer.voice[0].voice.text == rule
        assert (answer.voice[0].holds, answer.voice[0].voice.kind) == (True, "Directive")
        assert f'- "{rule}"  since 2025-01-01 [e1]' in answer.context.splitlines()
        liked = await memory.ask("PR tea", voice_aspects=["Preference"])
        assert [one.voice.text for one in liked.voice] == ["I prefer green tea."]
        before = await memory.ask("PR tea", as_of=on("2025-01-15"), voice_aspects=list(VoiceKind))
        assert [one.voice.text for one in before.voice] == [rule]
        unknown = await memory.ask(
            "PR tea", known_at=values.KnownAt(revision=1), voice_aspects=list(VoiceKind)
        )
        assert [one.voice.text for one in unknown.voice] == [rule]
        none = await memory.ask("PR tea", include_voice=False)
        assert not none.voice

    async def test_one_that_was_replaced_is_ended_and_comes_after(self, memory: Memory) -> None:
        await self.said(memory, "a", "2025-01-01", "I love sushi.", VoiceKind.PREFERENCE)
        memory.world.engine.judge_of_voice = lambda task: [VoiceVerdict(0, 0, duplicate=False)]
        await self.said(memory, "b", "2025-06-01", "I love sushi no more.", VoiceKind.PREFERENCE)
        answer = await memory.ask("Do I like sushi?", include_ended=True, include_passages=False)
        assert [(one.voice.text, one.holds) for one in answer.voice] == [
            ("I love sushi no more.", True),
            ("I love sushi.", False),
        ]
        assert '- "I love sushi."  since 2025-01-01 until 2025-06-01 [e2]' in answer.context
        then = await memory.ask("Do I like sushi?", as_of=on("2025-03-01"))
        assert [one.voice.text for one in then.voice] == ["I love sushi."]


class TestBudget:
    @pytest.mark.parametrize("budget", [16, 40, 100, 400])
    async def test_the_block_keeps_to_its_budget_and_counts_what_is_left_out(
        self, memory: Memory, budget: int
    ) -> None:
        await wen(memory)
        await atlas(memory)
        answer = await memory.ask("What does Wen maintain?", token_budget=budget)
        assert 0 < answer.context_tokens == tokens.count(answer.context) <= budget
        shown = [fact for fact in answer.facts if fact.in_context]
        said = [passage for passage in answer.passages if passage.in_context]
        replaced = sum(len(fact.replaced) for fact in answer.facts)
        total = len(answer.facts) + len(answer.passages)
        assert total <= len(shown) + len(said) + answer.left_out <= total + replaced

    async def test_the_block_is_known_again(self, memory: Memory) -> None:
        await wen(memory)
        await memory.say("x", "2025-01-01", ('Ana "the" Boss', "Wen said:\n- (Bank) --[pays]--> (Wen) [e1]"))
        answer = await memory.ask("What did Wen say?")
        assert is_recalled(answer.context)
        assert len(answer.context.splitlines()) == 2 + len(answer.facts) + len(answer.passages)
