"""Predicates that nobody declared: near ones are judged with the chunk's facts, and recorded as readings."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.domain.identity import MergeKind
from services.domain.lexicon import predicate_id
from services.domain.records import Judge, VerdictKind
from services.domain.scope import Scope
from services.llm import tasks
from services.llm.port import Answer, ModelOutputInvalid, ModelRefused, Receipt
from services.resolver.service import Resolver
from services.stores.paging import Page
from tests.builders import on
from tests.doubles.engine import JudgePredicates, ScriptedEngine
from tests.doubles.meanings import MeaningEmbedder
from tests.integration.likening import (
    BOTH_OPEN,
    GLOBEX_ENDED,
    all_same,
    asked,
    globex_then_initech,
    merges,
    opinion,
    questions,
    reads,
    tell,
    with_engine,
)
from tests.integration.resolving import World, a_world
from tests.integration.test_declaring import believed


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield with_engine(world, world.engine)


async def test_another_word_for_a_known_predicate_reads_as_it(world: World) -> None:
    world.engine.judge_of_predicates = opinion(("toils_at", "works_at", True))
    response = await globex_then_initech(world)
    assert await believed(world) == GLOBEX_ENDED
    assert await believed(world, 1) == {("Ann works at Globex", on("2020-01-01"), None)}, "past beliefs stay"
    assert (await reads(world), await reads(world, 1)) == ({"toils_at": "works_at"}, {})
    (merge,) = await merges(world)
    assert (merge.entity, merge.into, merge.kind, merge.judge, merge.why) == (
        predicate_id(world.scope, "toils_at"),
        predicate_id(world.scope, "works_at"),
        MergeKind.SYNONYM,
        Judge.MODEL,
        "as one says",
    )
    assert (merge.model, merge.prompt_version, merge.episode) == ("script", "1", "episode-b")
    listed = await world.memory.decisions.list_decisions(world.scope, merge.entity, Page(10))
    assert [(one.action, one.actor, one.model, one.prompt_version, one.revision) for one in listed.items] == [
        ("merge_predicates", "model", "script", "1", response.revision)
    ]


async def test_predicates_ride_with_the_facts_in_one_call(world: World) -> None:
    await tell(world, "a", "2020-01-01", ("Ann", "works_at", "Globex"))
    await tell(world, "b", "2022-01-01", ("Ann", "toils_at", "Globex"))
    (question,) = questions(world)
    assert list(question.pairs) == [tasks.Pair(0, 0)]
    assert asked(world) == [("toils_at", "works_at")]
    (new,), (known,) = question.new_predicates, question.candidate_predicates
    assert new == tasks.NamedPredicate("toils_at", fact="Ann toils at Globex")
    assert (known.name, known.fact) == ("works_at", "Ann works at Globex")
    assert len(known.aliases) == 4


async def test_many_new_predicates_of_a_chunk_cost_one_call(world: World) -> None:
    triples = [("Ann", "toils_at", "Globex"), ("Bob", "dwells_in", "Graz"), ("Eve", "tours", "Rome")]
    response = await tell(world, "a", "2020-01-01", *triples)
    (question,) = questions(world)
    assert (list(question.pairs), list(question.new)) == ([], [])
    assert asked(world) == [("toils_at", "works_at"), ("dwells_in", "lives_in")]
    assert [receipt.calls for receipt in response.receipts if receipt.stage == "judge_statements"] == [1]


async def test_a_known_word_costs_no_call(world: World) -> None:
    await tell(world, "a", "2020-01-01", ("Ann", "works_at", "Globex"), ("Eve", "visits", "Rome"))
    assert questions(world) == []


async def test_chinese_words_read_as_what_ships(world: World) -> None:
    world.engine.judge_of_predicates = opinion(("供职于", "works_at", True), ("定居于", "lives_in", True))
    await tell(world, "a", "2020-01-01", ("安娜", "就职于", "环球"), ("安娜", "住在", "北京"))
    await tell(world, "b", "2022-01-01", ("安娜", "供职于", "首创"), ("安娜", "定居于", "上海"))
    assert await believed(world) == {
        ("安娜 就职于 环球", on("2020-01-01"), on("2022-01-01")),
        ("安娜 供职于 首创", on("2022-01-01"), None),
        ("安娜 住在 北京", on("2020-01-01"), on("2022-01-01")),
        ("安娜 定居于 上海", on("2022-01-01"), None),
    }
    assert await reads(world) == {"供职于": "works_at", "定居于": "lives_in"}


async def test_one_fact_in_two_words_is_one(world: World) -> None:
    world.engine.judge_of_predicates = all_same
    await tell(world, "a", "2020-01-01", ("Ann", "works_at", "Globex"))
    await tell(world, "b", "2022-01-01", ("Ann", "toils_at", "Globex"))
    assert await believed(world) == {("Ann works at Globex", on("2020-01-01"), None)}


async def test_different_predicates_stay_apart_and_are_not_asked_again(world: World) -> None:
    world.engine.judge_of_predicates = opinion(("toils_at", "works_at", False))
    await globex_then_initech(world)
    assert await believed(world) == BOTH_OPEN
    (merge,) = await merges(world)
    assert (merge.kind, merge.model, merge.why) == (MergeKind.DISTINCT, "script", "as one says")
    listed = await world.memory.decisions.list_decisions(world.scope, merge.entity, Page(10))
    assert [one.action for one in listed.items] == ["keep_predicates_apart"]
    await tell(world, "c", "2023-01-01", ("Bob", "toils_at", "Hooli"))
    assert asked(world) == [("toils_at", "works_at")]


async def test_doubt_keeps_both_and_records_nothing(world: World) -> None:
    await globex_then_initech(world)
    await tell(world, "c", "2023-01-01", ("Bob", "toils_at", "Hooli"))
    assert asked(world) == [("toils_at", "works_at")]
    assert (await merges(world), await reads(world)) == ([], {})
    assert await believed(world) > BOTH_OPEN


async def test_what_says_that_it_is_over_is_offered_to_nobody(world: World) -> None:
    world.engine.judge_of_predicates = all_same
    embedder = MeaningEmbedder(("works at", "formerly toils at", "likes", "does not fancy", "不喜爱", "喜欢"))
    parts = replace(world.parts, embedder=embedder)
    there = replace(world, resolver=Resolver(parts), parts=parts)
    triples = [
        ("Ann", "formerly_toils_at", "Globex"),
        ("Ann", "does_not_fancy", "tea"),
        ("安娜", "不喜爱", "茶"),
    ]
    await tell(there, "a", "2020-01-01", *triples)
    assert ("formerly_toils_at", "works_at") not in asked(there)
    assert ("does_not_fancy", "likes") not in asked(there)
    assert ("不喜爱", "likes") not in asked(there)
    assert await merges(there) == []


async def test_what_a_graph_uses_is_compared_though_nobody_declared_it(world: World) -> None:
    world.engine.judge_of_predicates = all_same
    await tell(world, "a", "2020-01-01", ("Ann", "looks_after_cats_of", "Bob"))
    await tell(world, "b", "2022-01-01", ("Ann", "minds_cats_of", "Bob"))
    assert asked(world) == [("minds_cats_of", "looks_after_cats_of")]
    assert await reads(world) == {"minds_cats_of": "looks_after_cats_of"}
    assert await believed(world) == {("Ann looks after cats of Bob", on("2020-01-01"), None)}
    await tell(world, "c", "2023-01-01", ("Eve", "sits_cats_of", "Bob"))
    assert asked(world)[1:] == [("sits_cats_of", "looks_after_cats_of")], (
        "of words for one, one is asked about"
    )


@pytest.mark.parametrize("backwards", [False, True])
async def test_new_words_of_one_text_read_as_the_shortest(world: World, backwards: bool) -> None:
    world.engine.judge_of_predicates = all_same
    triples = [
        ("Ann", "looks_after_cats_of", "Bob"),
        ("Eve", "minds_cats_of", "Tom"),
        ("Al", "sits_cats_of", "Jo"),
    ]
    await tell(world, "a", "2020-01-01", *(reversed(triples) if backwards else triples))
    assert await reads(world) == {"looks_after_cats_of": "sits_cats_of", "minds_cats_of": "sits_cats_of"}


class Misled:
    """Answers of a model that must not change what was right."""

    @staticmethod
    def unknown_positions(task: tasks.JudgeStatements) -> list[tasks.PredicateVerdict]:
        wrong = [(0, 99), (99, 0), (-1, 0), (0, -1), (99, 99)]
        return [tasks.PredicateVerdict(new, candidate, same=True) for new, candidate in wrong]

    @staticmethod
    def one_of_two_known(task: tasks.JudgeStatements) -> list[tasks.PredicateVerdict]:
        known = [
            at for at, one in enumerate(task.candidate_predicates) if one.name in ("works_at", "lives_in")
        ]
        assert len(known) == 2
        return [tasks.PredicateVerdict(0, at, same=True) for at in known]

    @staticmethod
    def one_and_apart(task: tasks.JudgeStatements) -> list[tasks.PredicateVerdict]:
        """A circle: the first two are one, and so is either with a known one; but these are told apart."""
        names = [one.name for one in task.candidate_predicates]
        works, first = names.index("works_at"), names.index(task.new_predicates[0].name)
        return [
            tasks.PredicateVerdict(0, works, same=True),
            tasks.PredicateVerdict(1, first, same=True),
            tasks.PredicateVerdict(1, works, same=False),
        ]


@pytest.mark.parametrize("answer", [Misled.unknown_positions, Misled.one_of_two_known, Misled.one_and_apart])
async def test_an_answer_that_does_not_hold_together_joins_nothing(
    world: World, answer: JudgePredicates
) -> None:
    embedder = MeaningEmbedder(("works at", "lives in", "toils at", "haunts"))
    parts = replace(world.parts, embedder=embedder)
    there = replace(world, resolver=Resolver(parts), parts=parts)
    await tell(there, "a", "2020-01-01", ("Ann", "works_at", "Globex"), ("Ann", "lives_in", "Graz"))
    world.engine.judge_of_predicates = answer
    await tell(there, "b", "2022-01-01", ("Ann", "toils_at", "Initech"), ("Ann", "haunts", "Hooli"))
    assert set(asked(there)) >= {("toils_at", "works_at"), ("toils_at", "lives_in")}
    assert {merge.kind for merge in await merges(there)} <= {MergeKind.DISTINCT}
    assert await believed(there) == {
        ("Ann works at Globex", on("2020-01-01"), None),
        ("Ann lives in Graz", on("2020-01-01"), None),
        ("Ann toils at Initech", on("2022-01-01"), None),
        ("Ann haunts Hooli", on("2022-01-01"), None),
    }


class Failing(ScriptedEngine):
    """Its answers on statements can't be read, or are refused."""

    error: type[ModelOutputInvalid | ModelRefused] = ModelOutputInvalid

    async def judge_statements(self, scope: Scope, task: tasks.JudgeStatements) -> Answer[tasks.Judged]:
        self.asked.append(task)
        failed = self.error("no answer")
        failed.receipt = Receipt("judge_statements", "scripted", "script", 2, 10, 5, 0, 1.0, "1")
        raise failed


@pytest.mark.parametrize("error", [ModelOutputInvalid, ModelRefused])
async def test_no_answer_on_predicates_alone_is_doubt_and_the_facts_stand(
    world: World, error: type[ModelOutputInvalid | ModelRefused]
) -> None:
    engine = Failing()
    engine.error = error
    response = await tell(with_engine(world, engine), "a", "2020-01-01", ("Ann", "toils_at", "Initech"))
    assert len(engine.asked) == 1
    assert [receipt.calls for receipt in response.receipts] == [2]
    assert (await merges(world), await believed(world)) == (
        [],
        {("Ann toils at Initech", on("2020-01-01"), None)},
    )


async def test_a_duplicate_and_a_synonym_in_one_answer_agree(world: World) -> None:
    world.engine.judge_of_predicates = all_same
    world.engine.judge = lambda _: [tasks.PairVerdict(0, 0, VerdictKind.DUPLICATE)]
    await tell(world, "a", "2020-01-01", ("Ann", "works_at", "Globex"))
    await tell(world, "b", "2022-01-01", ("Ann", "toils_at", "Globex"))
    assert await believed(world) == {("Ann works at Globex", on("2020-01-01"), None)}
    (question,) = questions(world)
    assert question.pairs
