"""The OpenAI-compatible engine: what it sends, what it mends, and which error ends each misbehaviour."""

from dataclasses import replace
from typing import Any

import pytest

from services.domain.facts import FactKind, NothingReason
from services.domain.graph import GraphAspect
from services.domain.instants import Precision
from services.domain.memory import VoiceKind
from services.llm import tasks
from services.llm.openai_engine import OpenAIEngine
from services.llm.port import ModelOutputCut, ModelOutputInvalid, ModelRefused
from tests.doubles import model_replies as replies
from tests.doubles.model_replies import Reply, Rule
from tests.doubles.model_server import ModelServer
from tests.unit.llm.helpers import SCOPE, SETTING, claim, engine_on, extract, fact, known, normalise, voice

GOOD = {"facts": [fact()]}
CLOTHES = {
    "plain": replies.answer(GOOD),
    "fenced": replies.fenced(GOOD),
    "in prose": replies.in_prose(GOOD),
    "thinking": replies.thinking(GOOD),
    "bare list": replies.bare_list(GOOD["facts"]),
    "no usage": Reply(replies.answer(GOOD).content, usage=False),
}
BAD = {
    "prose": replies.text("Bob has joined the team, it seems."),
    "empty": replies.text(""),
    "cut": replies.cut(GOOD),
    "another shape": replies.answer({"triples": [["Bob", "member_of", "the team"]]}),
    "missing keys": replies.answer({"facts": [{"kind": "claim", "subject": "Bob"}]}),
    "unknown turn": replies.answer({"facts": [fact(turn=7)]}),
    "unknown confirming turn": replies.answer({"facts": [fact(confirmed_by=-1)]}),
    "unknown kind": replies.answer({"facts": [fact(kind="maybe")]}),
    "impossible confidence": replies.answer({"facts": [fact(confidence=-3)]}),
    "noise": replies.noise(),
    "strings": replies.answer({"facts": ["Bob joined the team."]}),
}


def asking(reply: Reply, times: int | None = None, task: str = "extract_world") -> Rule:
    return Rule(task, "", reply, times)


@pytest.mark.parametrize("form", ["json_schema", "tool", "plain"])
@pytest.mark.parametrize("reply", CLOTHES.values(), ids=CLOTHES)
async def test_a_right_answer_is_read_in_any_clothes(reply: Reply, form: str) -> None:
    with ModelServer(asking(reply)) as server:
        async with engine_on(server, structured_output=form) as engine:
            answer = await engine.extract_world(SCOPE, extract("Bob joined the team."))
    assert [(one.subject.name, one.predicate) for one in answer.value.facts] == [("Bob", "member_of")]
    assert answer.warnings == ()
    assert [asked.form for asked in server.asked] == [form]
    assert answer.receipt.calls == 1
    assert answer.receipt.tokens_in > 100
    assert answer.receipt.tokens_out > 0


async def test_a_graphs_own_models_go_before_the_operators() -> None:
    setting = replace(SETTING, medium_model="test-low", low_model="test-medium")
    with ModelServer(asking(replies.answer(GOOD))) as server:
        async with engine_on(server) as engine:
            drawn = await engine.extract_world(SCOPE, extract("Bob joined the team.", setting=setting))
            free = await engine.judge_voice(SCOPE, tasks.JudgeVoice((), (), (), setting))
    assert [asked.model for asked in server.asked] == [drawn.receipt.model] == ["test-low"]
    assert free.receipt.model == "test-medium"


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD)
async def test_a_bad_answer_is_mended_once(reply: Reply) -> None:
    with ModelServer(asking(reply, times=1)) as server:
        async with engine_on(server) as engine:
            answer = await engine.extract_world(SCOPE, extract("Bob joined the team."))
    assert [one.object.name for one in answer.value.facts if hasattr(one.object, "name")] == ["the team"]
    assert answer.receipt.calls == 2
    assert [asked.is_repair for asked in server.asked] == [False, True]
    again = server.asked[1].messages
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    assert again[:2] == server.asked[0].messages
    assert len(again[2]["content"]) <= 12_000
    assert "can't be used" in again[3]["content"]


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD)
async def test_a_model_that_stays_bad_ends_in_a_typed_error(reply: Reply) -> None:
    with ModelServer(asking(reply)) as server:
        async with engine_on(server) as engine:
            with pytest.raises(ModelOutputInvalid) as failed:
                await engine.extract_world(SCOPE, extract("Bob joined the team."))
    assert len(server.asked) == 2
    assert isinstance(failed.value, ModelOutputCut) == (reply.finish == "length")
    assert "Bob" not in str(failed.value)
    assert failed.value.receipt is not None
    assert failed.value.receipt.calls == 2
    assert failed.value.receipt.tokens_in > 0


async def test_what_stays_wrong_is_left_out_with_a_warning_and_the_rest_stands() -> None:
    mixed = replies.answer({"facts": [fact(turn=9), fact(), {"kind": "claim"}]})
    with ModelServer(asking(mixed)) as server:
        async with engine_on(server) as engine:
            answer = await engine.extract_world(SCOPE, extract("Bob joined the team."))
    assert len(answer.value.facts) == 1
    assert answer.warnings
    assert len(server.asked) == 2


async def test_no_fact_at_all_is_an_answer() -> None:
    with ModelServer(asking(replies.answer({"facts": []}))) as server:
        async with engine_on(server) as engine:
            answer = await engine.extract_world(SCOPE, extract("Let me see."))
    assert answer.value.facts == ()
    assert len(server.asked) == 1


async def understand(engine: OpenAIEngine, task: str, text: str) -> None:
    if task == "normalise":
        await engine.normalise(SCOPE, normalise(text))
    else:
        await engine.extract_world(SCOPE, extract(text))


REFUSALS = {
    "by the protocol": replies.refused(),
    "by a filter": replies.filtered(),
    "in prose": replies.refused_in_prose(),
    "in Chinese": replies.text("很抱歉，我无法处理这个请求。"),
    "with a 400": replies.failing(400, "content_filter"),
}


@pytest.mark.parametrize("task", ["normalise", "extract_world"])
@pytest.mark.parametrize("reply", REFUSALS.values(), ids=REFUSALS)
async def test_a_refusal_is_told_apart_and_not_repeated(reply: Reply, task: str) -> None:
    with ModelServer(asking(reply, task=task)) as server:
        async with engine_on(server) as engine:
            with pytest.raises(ModelRefused):
                await understand(engine, task, "Bob joined the team.")
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("lacks", "forms"),
    [
        ((), ["json_schema"]),
        (("json_schema",), ["json_schema", "tool"]),
        (("json_schema", "tool"), ["json_schema", "tool", "plain"]),
        (("temperature",), ["json_schema", "json_schema"]),
        (("max_tokens",), ["json_schema", "json_schema"]),
    ],
)
async def test_what_a_server_lacks_is_asked_once(lacks: tuple[str, ...], forms: list[str]) -> None:
    with ModelServer(lacks=lacks) as server:
        async with engine_on(server) as engine:
            for _ in range(2):
                answer = await engine.extract_world(SCOPE, extract("Bob joined the team."))
                assert len(answer.value.facts) == 1
            await engine.extract_voice(SCOPE, extract("Bob joined the team."))
    assert [asked.form for asked in server.asked] == [*forms, forms[-1], forms[-1]]
    last = server.asked[-1].body
    assert ("temperature" in last) == ("temperature" not in lacks)
    assert ("max_completion_tokens" in last) == ("max_tokens" in lacks)


async def test_plain_json_tells_the_schema_in_words() -> None:
    with ModelServer() as server:
        async with engine_on(server, structured_output="plain") as engine:
            await engine.extract_world(SCOPE, extract("Bob joined the team."))
    assert '"required":["facts"]' in server.asked[0].system


async def test_each_tier_has_its_model_and_all_ask_at_temperature_0() -> None:
    with ModelServer() as server:
        async with engine_on(server) as engine:
            await engine.normalise(SCOPE, normalise("Bob joined the team."))
            await engine.reflect(SCOPE, tasks.Reflect("", [claim("Bob", "likes", "tea")], [], SETTING))
    assert [(asked.task, asked.model) for asked in server.asked] == [
        ("normalise", "test-medium"),
        ("reflect", "test-low"),
    ]
    assert all(asked.body["temperature"] == 0 for asked in server.asked)


async def test_a_prefix_that_the_provider_cached_is_in_the_receipt() -> None:
    with ModelServer() as server:
        async with engine_on(server) as engine:
            first = await engine.extract_world(SCOPE, extract("Bob joined the team."))
            second = await engine.extract_world(SCOPE, extract("I live in Graz."))
    assert first.receipt.tokens_cached == 0
    assert second.receipt.tokens_cached > 500


@pytest.mark.case("a non-ISO date")
async def test_times_keep_their_precision_and_what_is_no_date_stays_text() -> None:
    said = [fact(start="2025-03"), fact(start="Q3 2025", end="next week"), fact(kind="end", end="2025-W30")]
    with ModelServer(asking(replies.answer({"facts": said}))) as server:
        async with engine_on(server) as engine:
            facts = (await engine.extract_world(SCOPE, extract("Bob joined the team."))).value.facts
    starts = [None if one.start is None else one.start.precision for one in facts]
    assert starts == [Precision.MONTH, Precision.QUARTER, None]
    assert facts[1].end is not None
    assert (facts[1].end.text, facts[1].end.at) == ("next week", None)
    assert facts[2].kind is FactKind.END
    assert facts[2].end is not None
    assert facts[2].end.precision is Precision.WEEK


@pytest.mark.parametrize(
    ("output", "nothing"),
    [
        ("NOTHING_TO_REMEMBER SMALL_TALK", "SMALL_TALK"),
        ("NOTHING_TO_REMEMBER: recalled_text.", "RECALLED_TEXT"),
    ],
)
async def test_nothing_to_remember_has_a_reason(output: str, nothing: str) -> None:
    with ModelServer(asking(replies.text(f"<output>{output}</output>"), task="normalise")) as server:
        async with engine_on(server) as engine:
            answer = await engine.normalise(SCOPE, normalise("ok thanks!"))
    assert answer.value == tasks.Normalised(nothing=NothingReason(nothing))


@pytest.mark.parametrize(
    "text",
    [
        "Bob joined.",
        "<output></output>",
        "<output>NOTHING_TO_REMEMBER</output>",
        "<output>NOTHING_TO_REMEMBER UNCHANGED_DOCUMENT</output>",
        "<output>NOTHING_TO_REMEMBER SMALL_TALK but Bob joined.</output>",
    ],
)
async def test_half_a_narrative_is_mended_or_refused(text: str) -> None:
    for times, calls in ((1, 2), (None, 2)):
        with ModelServer(asking(replies.text(text), times, "normalise")) as server:
            async with engine_on(server) as engine:
                if times:
                    answer = await engine.normalise(SCOPE, normalise("Bob joined the team."))
                    assert answer.value.narrative == "Bob joined the team."
                else:
                    with pytest.raises(ModelOutputInvalid):
                        await engine.normalise(SCOPE, normalise("Bob joined the team."))
        assert len(server.asked) == calls


async def test_a_verdict_on_what_was_not_offered_changes_nothing() -> None:
    wrong = replies.answer({"verdicts": [{"new": 0, "candidate": 99, "verdict": "CONTRADICTS", "why": ""}]})
    with ModelServer(asking(wrong, task="judge_statements")) as server:
        async with engine_on(server) as engine:
            task = tasks.JudgeStatements(known("a", "b"), known("c"), [tasks.Pair(0, 0)], SETTING)
            answer = await engine.judge_statements(SCOPE, task)
    assert answer.value.verdicts == ()
    assert answer.warnings == ("The pair [0, 99] is not in <pairs>.",)
    assert answer.receipt.calls == 2


PREDICATES = tasks.JudgeStatements(
    known("a"),
    known("b"),
    [tasks.Pair(0, 0)],
    SETTING,
    [tasks.NamedPredicate("toils_at", fact="a")],
    [tasks.NamedPredicate("works_at", ["employed_by"]), tasks.NamedPredicate("lives_in")],
    [tasks.Pair(0, 0), tasks.Pair(0, 1)],
)
DUPLICATE = {"new": 0, "candidate": 0, "verdict": "DUPLICATE", "why": ""}
SAME = {"new": 0, "candidate": 0, "verdict": "SAME", "why": "one thing"}


@pytest.mark.parametrize(
    ("said", "found", "calls"),
    [
        ([SAME, SAME | {"candidate": 1, "verdict": "different"}], [(0, True), (1, False)], 1),
        ([SAME, SAME | {"verdict": "DIFFERENT"}], [(0, True)], 2),
        ([SAME, SAME | {"candidate": 7}, [0, 1], "SAME"], [(0, True)], 2),
        ([[0, 0, "SAME"]], [], 2),
        ({"0": "SAME"}, [], 1),
        ("SAME", [], 1),
        (None, [], 1),
    ],
)
async def test_verdicts_on_predicates_are_checked_and_never_cost_those_on_facts(
    said: Any, found: list[tuple[int, bool]], calls: int
) -> None:
    reply = replies.answer({"verdicts": [DUPLICATE], "predicates": said})
    with ModelServer(asking(reply, 2, "judge_statements")) as server:
        async with engine_on(server) as engine:
            answer = await engine.judge_statements(SCOPE, PREDICATES)
    assert [one.kind.name for one in answer.value.verdicts] == ["DUPLICATE"]
    assert [(one.candidate, one.same) for one in answer.value.predicates] == found
    assert answer.receipt.calls == calls


async def test_predicates_alone_are_worth_a_call() -> None:
    alone = replace(PREDICATES, new=(), candidates=(), pairs=())
    reply = replies.answer({"verdicts": [], "predicates": [SAME]})
    with ModelServer(asking(reply, task="judge_statements")) as server:
        async with engine_on(server) as engine:
            answer = await engine.judge_statements(SCOPE, alone)
    assert [one.same for one in answer.value.predicates] == [True]
    (asked,) = server.asked
    assert "pairs" not in asked.blocks
    assert asked.blocks["predicate_pairs"] == [[0, 0], [0, 1]]


async def test_two_verdicts_on_one_pair_leave_the_first() -> None:
    said = [{"new": 0, "candidate": 0, "verdict": word, "why": ""} for word in ("DUPLICATE", "REPLACES")]
    with ModelServer(asking(replies.answer({"verdicts": said}), task="judge_voice")) as server:
        async with engine_on(server) as engine:
            task = tasks.JudgeVoice([voice("a")], known("c"), [tasks.Pair(0, 0)], SETTING)
            answer = await engine.judge_voice(SCOPE, task)
    assert [verdict.duplicate for verdict in answer.value.verdicts] == [True]
    assert answer.warnings


async def test_noise_is_taken_out_by_position_and_other_positions_are_ignored() -> None:
    said = replies.answer({"noise_world": [1, 5], "noise_voice": [0]})
    with ModelServer(asking(said, task="reflect")) as server:
        async with engine_on(server) as engine:
            world = [claim("Bob", "likes", "tea"), claim("Bob", "says", "hello")]
            answer = await engine.reflect(SCOPE, tasks.Reflect("", world, [voice("Hi.")], SETTING))
    assert answer.value == tasks.Kept((0,), ())
    assert answer.warnings


@pytest.mark.parametrize(("entries", "usable"), [([0], True), ([], False), ([4], False)])
async def test_a_fact_without_a_class_is_asked_for_again(entries: list[int], usable: bool) -> None:
    world: list[dict[str, Any]] = [{"number": at, "aspect": "event", "event_at": "2025-03"} for at in entries]
    with ModelServer(asking(replies.answer({"world": world, "voice": []}), task="classify")) as server:
        async with engine_on(server) as engine:
            task = tasks.Classify([claim("Bob", "likes", "tea")] * 2, [voice("Always ask.")], SETTING)
            if not usable:
                with pytest.raises(ModelOutputInvalid):
                    await engine.classify(SCOPE, task)
            else:
                answer = await engine.classify(SCOPE, task)
                assert [aspect for aspect, _ in answer.value.world] == [GraphAspect.EVENT, None]
                assert list(answer.value.voice) == [None]
                assert len(answer.warnings) == 2
    assert len(server.asked) == 2


async def test_the_mended_classes_are_whole() -> None:
    short = replies.answer({"world": [], "voice": []})
    with ModelServer(asking(short, 1, "classify")) as server:
        async with engine_on(server) as engine:
            answer = await engine.classify(SCOPE, tasks.Classify([], [voice("Always ask.")], SETTING))
    assert list(answer.value.voice) == [VoiceKind.DIRECTIVE]
    assert answer.warnings == ()
