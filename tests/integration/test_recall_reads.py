"""The other reads of recall over real stores: statements, timelines, lists, walks, episodes, surroundings."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palimpsest.internal.v1 import recall_pb2 as pb
from palimpsest.internal.v1 import resolver_pb2
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import (
    EntityNotFound,
    EpisodeNotFound,
    PredicateNotFound,
    StatementNotFound,
    ValidationFailed,
)
from services.domain.ids import EpisodeId
from services.domain.instants import Instant
from services.recall.parts import Options
from services.recall.service import Recall
from services.stores.vectors.port import Consistency
from tests.builders import on
from tests.integration.recalling import Memory, a_memory, triple, twin
from tests.integration.resolving import TODAY

LIVES, END = "lives_in", values.FACT_KIND_END


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with a_memory(tmp_path, [LIVES]) as memory:
        yield memory


async def mara(memory: Memory) -> None:
    """Paris, then Rome, then Paris again: three revisions."""
    await memory.tell("paris", "2020-01-05", ("Mara", LIVES, "Paris"), since="2020-01-01")
    await memory.tell("rome", "2022-01-05", ("Mara", LIVES, "Rome"), since="2022-01-01")
    await memory.tell("back", "2024-01-05", ("Mara", LIVES, "Paris"), since="2024-01-01")


async def timeline(memory: Memory, **fields: Any) -> pb.ReadTimelineResponse:
    asked: dict[str, Any] = {"subject": "mara", "predicate": "lives in", "now": TODAY} | fields
    return await memory.recall.read_timeline(memory.world.scope, pb.ReadTimelineRequest(**asked))


Row = tuple[str, Instant | None, Instant | None]


def rows(answer: pb.ReadTimelineResponse) -> list[Row]:
    found: list[Row] = []
    for entry in answer.entries:
        [span] = entry.statement.spans
        start = Instant(span.valid_at) if span.HasField("valid_at") else None
        end = Instant(span.invalid_at) if span.HasField("invalid_at") else None
        found.append((triple(entry.statement)[2], start, end))
    return found


async def listed(memory: Memory, **fields: Any) -> list[tuple[str, str, str]]:
    asked: dict[str, Any] = {"now": TODAY} | fields
    answer = await memory.recall.list_statements(memory.world.scope, pb.ListStatementsRequest(**asked))
    return [triple(statement) for statement in answer.statements]


class TestTimelines:
    async def test_spans_stand_in_world_time_each_with_its_causes(self, memory: Memory) -> None:
        await mara(memory)
        answer = await timeline(memory)
        assert rows(answer) == [
            ("Paris", on("2020-01-01"), on("2022-01-01")),
            ("Rome", on("2022-01-01"), on("2024-01-01")),
            ("Paris", on("2024-01-01"), None),
        ]
        first, second, third = (entry.statement.spans[0] for entry in answer.entries)
        assert (first.started_by_episode, first.ended_by_episode) == ("episode-paris", "episode-rome")
        assert (second.started_by_episode, second.ended_by_episode) == ("episode-rome", "episode-back")
        assert first.ended_by_kind == values.FACT_KIND_CLAIM
        assert first.ended_by_statement == answer.entries[1].statement.id
        assert (third.ended_by, third.ended_by_kind) == ("", values.FACT_KIND_UNSPECIFIED)
        assert (answer.subject.name, answer.predicate.name, answer.revision) == ("Mara", LIVES, 3)
        assert first.known_from_at == on("2022-01-05")
        assert answer.entries[0].statement.created_at == on("2020-01-05")

    async def test_an_end_and_its_precision(self, memory: Memory) -> None:
        await memory.tell("oslo", "2020-01-05", ("Mara", LIVES, "Oslo"))
        await memory.tell("left", "2021-06-05", ("Mara", LIVES, "Oslo"), kind=END, end=on("2021-05-01"))
        [entry] = (await timeline(memory)).entries
        [span] = entry.statement.spans
        assert span.start_assumed
        assert (span.valid_at, span.invalid_at) == (on("2020-01-05"), on("2021-05-01"))
        assert (span.ended_by_kind, span.ended_by_episode) == (END, "episode-left")

    async def test_as_known_before_and_with_past_beliefs(self, memory: Memory) -> None:
        await mara(memory)
        known = values.KnownAt(revision=2)
        assert [row[0] for row in rows(await timeline(memory, known_at=known))] == ["Paris", "Rome"]
        past = await timeline(memory, include_past_beliefs=True)
        struck = [
            entry.statement.spans[0]
            for entry in past.entries
            if entry.statement.spans[0].HasField("known_to")
        ]
        assert len(past.entries) > 3
        assert all(span.known_to_at > span.known_from_at for span in struck)
        early = await timeline(memory, known_at=values.KnownAt(revision=1), include_past_beliefs=True)
        assert [entry.statement.spans[0].HasField("known_to") for entry in early.entries] == [False]

    async def test_names_that_are_not_here_are_told_apart(self, memory: Memory) -> None:
        await mara(memory)
        with pytest.raises(EntityNotFound):
            await timeline(memory, subject="Nobody")
        with pytest.raises(PredicateNotFound):
            await timeline(memory, predicate="paints")
        with pytest.raises(PredicateNotFound):
            await timeline(memory, predicate="!!!")
        with pytest.raises(EntityNotFound):
            await timeline(memory, subject_type="Predicate")

    async def test_ids_and_aliases_of_predicates_name_the_same_slot(self, memory: Memory) -> None:
        await mara(memory)
        answer = await timeline(memory)
        by_id = await timeline(memory, subject=answer.subject.id, predicate=answer.predicate.id)
        assert rows(by_id) == rows(await timeline(memory, predicate="resides in")) == rows(answer)


class TestStatements:
    async def test_one_with_records_and_as_known_then(self, memory: Memory) -> None:
        await mara(memory)
        id = (await timeline(memory)).entries[0].statement.id
        read = pb.ReadStatementRequest(statement_id=id)
        answer = await memory.recall.read_statement(memory.world.scope, read)
        assert [record.episode_id for record in answer.statement.records] == ["episode-paris", "episode-back"]
        assert answer.statement.records[0].quote == "Mara lives in Paris"
        assert len(answer.statement.spans) == 2
        assert list(answer.statement.episode_ids) == ["episode-paris", "episode-back"]
        assert answer.statement.confidence == 1.0
        read.known_at.revision = 1
        first = await memory.recall.read_statement(memory.world.scope, read)
        assert [record.episode_id for record in first.statement.records] == ["episode-paris"]
        assert not first.statement.spans[0].HasField("invalid_at")
        read.known_at.revision = 0
        with pytest.raises(StatementNotFound):
            await memory.recall.read_statement(memory.world.scope, read)

    async def test_another_tenants_is_not_here(self, memory: Memory) -> None:
        await mara(memory)
        id = (await timeline(memory)).entries[0].statement.id
        for scope, unknown in ((twin(), id), (memory.world.scope, "nonsense\x00' or true")):
            with pytest.raises(StatementNotFound):
                await memory.recall.read_statement(scope, pb.ReadStatementRequest(statement_id=unknown))

    async def test_a_revoked_record_is_shown_as_revoked(self, memory: Memory) -> None:
        await mara(memory)
        id = (await timeline(memory)).entries[0].statement.id
        revoke = resolver_pb2.RevokeRequest(commit_id="gone", episode_id="episode-back")
        await memory.world.resolver.revoke(memory.world.scope, revoke)
        answer = await memory.recall.read_statement(
            memory.world.scope, pb.ReadStatementRequest(statement_id=id)
        )
        assert [record.HasField("revoked_at") for record in answer.statement.records] == [False, True]
        assert list(answer.statement.episode_ids) == ["episode-paris"]


class TestLists:
    async def test_filters(self, memory: Memory) -> None:
        await mara(memory)
        await memory.tell("tea", "2024-02-01", ("Mara", "drinks", "tea"))
        paris, rome, tea = ("Mara", LIVES, "Paris"), ("Mara", LIVES, "Rome"), ("Mara", "drinks", "tea")
        assert await listed(memory) == [paris, tea]
        assert await listed(memory, include_ended=True) == [paris, rome, tea]
        assert await listed(memory, valid_at=on("2023-01-01")) == [rome]
        assert await listed(memory, known_at=values.KnownAt(revision=2)) == [rome]
        assert await listed(memory, subject="MARA", predicate="drinks") == [tea]
        assert await listed(memory, object="tea") == [tea]
        assert await listed(memory, subject="Nobody") == []
        assert await listed(memory, predicate="paints") == []
        assert await listed(memory, object="coffee") == []
        assert await listed(memory, subject="Mara", subject_type="Place") == [paris, tea]
        assert await listed(memory, episode_ids=["episode-tea"]) == [tea]
        assert await listed(memory, invalidated_by="episode-rome") == [paris]
        assert await listed(memory, contested=True) == []
        assert await listed(memory, aspects=[""]) == [paris, tea]
        assert await listed(memory, aspects=["Event"]) == []
        with pytest.raises(ValidationFailed):
            await listed(memory, aspects=["Nonsense"])
        with pytest.raises(ValidationFailed):
            await listed(memory, after="nonsense")

    async def test_literals_by_their_text(self, memory: Memory) -> None:
        episode = await memory.say("a", "2024-01-01", ("Mara", "I am 34."))
        assertion = resolver_pb2.Assertion(
            kind=values.FACT_KIND_CLAIM, subject=values.Mention(name="Mara"), predicate="age",
            object=values.Target(literal=values.Literal(kind="number", text="34")),
            attested_at=on("2024-01-01"), confidence=0.8, episode_id=episode.id,
        )  # fmt: skip
        asked = resolver_pb2.AssertRequest(commit_id="a", assertions=[assertion])
        await memory.world.resolver.assert_(memory.world.scope, asked)  # noqa: PT009 - not unittest's
        await memory.tell("b", "2024-01-01", ("Mara", "drinks", "tea"))
        assert await listed(memory, object="34") == [("Mara", "age", "34")]
        assert await listed(memory, object="35") == []

    async def test_sessions(self, memory: Memory) -> None:
        await memory.tell("a", "2024-01-01", ("Mara", "drinks", "tea"))
        await memory.say("talk", "2024-01-02", ("Mara", "I drink mate."), session="morning")
        assert await listed(memory, session_id="morning") == []
        assert await listed(memory, session_id="nothing") == []

    @pytest.mark.parametrize("filtered", [{}, {"aspects": [""]}])
    async def test_pages_meet_each_once(self, memory: Memory, filtered: dict[str, Any]) -> None:
        await memory.tell("a", "2024-01-01", *[("Mara", "drinks", f"tea {n}") for n in range(7)])
        seen: list[tuple[str, str, str]] = []
        after = ""
        for _ in range(10):
            request = pb.ListStatementsRequest(now=TODAY, page_size=2, after=after, **filtered)
            page = await memory.recall.list_statements(memory.world.scope, request)
            seen += [triple(statement) for statement in page.statements]
            after = page.after
            if not after:
                break
        assert len(seen) == len(set(seen)) == 7


class TestWalks:
    async def test_both_directions_within_hops_and_time(self, memory: Memory) -> None:
        await mara(memory)
        await memory.tell("seine", "2020-01-01", ("Paris", "lies_on", "Seine"))
        await memory.tell("tiber", "2020-01-01", ("Rome", "lies_on", "Tiber"))
        scope = memory.world.scope

        async def walked(**fields: Any) -> list[tuple[int, str]]:
            asked: dict[str, Any] = {"seeds": ["Mara"], "max_hops": 2, "now": TODAY} | fields
            answer = await memory.recall.walk(scope, pb.WalkRequest(**asked))
            return [(step.hop, triple(step.statement)[2]) for step in answer.steps]

        assert await walked() == [(1, "Paris"), (2, "Seine")]
        assert await walked(as_of=on("2023-01-01")) == [(1, "Rome"), (2, "Tiber")]
        assert await walked(max_hops=1) == [(1, "Paris")]
        assert await walked(max_hops=0) == []
        assert await walked(seeds=["Seine", "seine"]) == [(1, "Seine"), (2, "Paris")]
        assert {name for _, name in await walked(include_ended=True)} == {"Paris", "Rome", "Seine", "Tiber"}
        with pytest.raises(EntityNotFound):
            await walked(seeds=["Mara", "Nobody"])


class TestText:
    async def test_an_episode_with_its_passages_and_after_its_deletion(self, memory: Memory) -> None:
        await memory.say("a", "2024-01-01", ("Ana", "One."), ("Ben", "Two."), session="s")
        read, scope = pb.ReadEpisodeRequest(episode_id="episode-a"), memory.world.scope
        episode = (await memory.recall.read_episode(scope, read)).episode
        assert [(p.speaker, p.text, p.said_at) for p in episode.passages] == [
            ("Ana", "One.", on("2024-01-01")),
            ("Ben", "Two.", on("2024-01-01")),
        ]
        assert (episode.text, episode.session_id) == ("One.\nTwo.", "s")
        await memory.world.memory.text.delete_episode(scope, EpisodeId("episode-a"), on("2024-02-01"))
        gone = (await memory.recall.read_episode(scope, read)).episode
        assert (gone.text, list(gone.passages), gone.deleted_at) == ("", [], on("2024-02-01"))
        for other in (pb.ReadEpisodeRequest(episode_id="no"), read):
            with pytest.raises(EpisodeNotFound):
                await memory.recall.read_episode(twin(), other)

    async def test_counts(self, memory: Memory) -> None:
        empty = await memory.recall.read_graph(twin(), pb.ReadGraphRequest())
        assert empty == pb.ReadGraphResponse()
        await mara(memory)
        counts = await memory.recall.read_graph(memory.world.scope, pb.ReadGraphRequest())
        assert counts == pb.ReadGraphResponse(
            entities=3, statements=2, episodes=3, claims=3, revision=3, revision_at=on("2024-01-05")
        )


class TestSurroundings:
    async def test_session_similar_passages_and_facts_of_this_graph_alone(self, memory: Memory) -> None:
        for n in range(7):
            await memory.say(f"old{n}", f"2024-01-0{n + 1}", ("Ana", f"Remark {n}."), session="s")
        await memory.tell("fact", "2024-01-01", ("Ana", "drinks", "green tea"))
        await memory.tell("theirs", "2024-01-01", ("Ana", "drinks", "green tea canary"), scope=twin())
        await memory.say("like", "2024-01-01", ("Ana", "I always drink green tea at home."))
        await memory.say(
            "new",
            "2024-02-01",
            ("Ana", "I always drink green tea at home!"),
            ("Ana", "Ana drinks green tea"),
            session="s",
        )
        asked = pb.GatherContextRequest(episode_id="episode-new")
        answer = await memory.recall.gather_context(memory.world.scope, asked)
        setting = answer.setting
        assert [turn.text for turn in answer.turns][1] == "Ana drinks green tea"
        assert list(setting.recent) == [f"Remark {n}." for n in (6, 5, 4, 3, 2)]
        assert "I always drink green tea at home." in setting.similar
        assert "I always drink green tea at home!" not in setting.similar
        assert [fact.fact for fact in setting.known_facts] == ["Ana drinks green tea"]
        assert setting.known_facts[0].valid_at == on("2024-01-01")
        assert (sorted(setting.known_entities), list(setting.known_predicates)) == (
            ["Ana", "green tea"],
            ["drinks"],
        )
        assert "canary" not in str(answer)
        with pytest.raises(EpisodeNotFound):
            await memory.recall.gather_context(twin(), asked)

    async def test_the_first_episode_has_none(self, memory: Memory) -> None:
        await memory.say("new", "2024-02-01", ("Ana", "Hello there."))
        asked = pb.GatherContextRequest(episode_id="episode-new")
        setting = (await memory.recall.gather_context(memory.world.scope, asked)).setting
        assert [*setting.recent, *setting.similar, *setting.known_facts] == []


class TestIndexes:
    async def test_brought_forward_they_answer_as_if_built_anew(self, memory: Memory) -> None:
        steps = [
            ("a", ("Mara", "drinks", "tea")),
            ("b", ("Ben", "drinks", "mate")),
            ("c", ("Mara", "owns", "a kettle")),
        ]
        for name, told in steps:
            await memory.tell(name, "2024-01-01", told)
            old = await memory.ask("what does Mara drink from, tea or mate in a kettle")
            kept, memory.recall = memory.recall, Recall(memory.parts)
            new = await memory.ask("what does Mara drink from, tea or mate in a kettle")
            memory.recall = kept
            assert old.SerializeToString(deterministic=True) == new.SerializeToString(deterministic=True)

    async def test_words_of_a_deleted_episode_are_held_no_more(self, memory: Memory) -> None:
        scope = memory.world.scope
        await memory.say("a", "2024-01-01", ("Ana", "Canarywords here."))
        await memory.say("b", "2024-01-01", ("Ana", "Other words."))
        assert (await memory.ask("canarywords", include_facts=False)).passages
        await memory.world.memory.text.delete_episode(scope, EpisodeId("episode-a"), on("2024-02-01"))
        answer = await memory.ask("canarywords", include_facts=False)
        assert [found.passage.id for found in answer.passages] == ["passage-b-0"]
        assert memory.recall.words_held(scope) == {"ana", "word"}

    @pytest.mark.parametrize("text_first", [True, False])
    async def test_words_of_deleted_facts_are_held_no_more(self, memory: Memory, text_first: bool) -> None:
        world = memory.world
        await memory.tell("a", "2024-01-01", ("Ana", "drinks", "canarywater"))
        await memory.tell("b", "2024-01-01", ("Ana", "drinks", "tea"))
        assert (await memory.ask("canarywater")).facts

        async def delete_text() -> None:
            await world.memory.text.delete_episode(world.scope, EpisodeId("episode-a"), on("2024-02-01"))

        if text_first:
            await delete_text()
            await memory.ask("canarywater")
        revoke = resolver_pb2.RevokeRequest(commit_id="gone", episode_id="episode-a")
        await world.resolver.revoke(world.scope, revoke)
        if not text_first:
            await memory.ask("canarywater")
            await delete_text()
        for _ in range(2):
            answer = await memory.ask("canarywater", include_ended=True)
            assert [triple(fact.statement) for fact in answer.facts] == [("Ana", "drinks", "tea")]
        assert memory.recall.words_held(world.scope) == {"ana", "drink", "tea", "teller"}
        assert "canarywater" not in str(answer)


async def test_a_write_that_was_just_made_is_searched_for_whatever_process_made_it(memory: Memory) -> None:
    """Servers show one process's rows to another a moment later, unless they are asked to wait."""
    told = await memory.tell("oslo", "2025-01-01", ("Mara", LIVES, "Oslo"))
    searched = memory.world.vectors.searched
    memory.recall = Recall(replace(memory.parts, options=Options(hot=False)))
    soon, late = on("2025-01-01"), on("2025-01-02")
    for now, min_revision, expected in [
        (soon, told.revision, Consistency.STRONG),
        (soon, 0, Consistency.SESSION),
        (late, told.revision, Consistency.SESSION),
    ]:
        searched.clear()
        await memory.ask("Where does Mara live?", now=now, min_revision=min_revision)
        assert set(searched) == {expected}
