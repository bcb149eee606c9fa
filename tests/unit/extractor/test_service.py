"""The extractor's call, with an engine that says what it is told to."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from palimpsest.internal.v1 import extractor_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import ValidationFailed
from services.domain.facts import FactKind, Mention, NothingReason, VoiceFact, WorldFact
from services.domain.scope import GraphId, Scope, TenantId
from services.extractor.service import Extractor
from services.llm import tasks
from services.llm.port import Answer, EngineError, ModelOutputInvalid, ModelUnavailable, Receipt
from services.wire.facts import voice_in, world_in

SCOPE = Scope(TenantId("acme"), GraphId("maya"))


class Told:
    """An engine that answers what a test sets, or raises it."""

    name = "told"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.tasks: list[Any] = []
        self.normalised: Any = tasks.Normalised(narrative="As it was said.")
        self.world: Any = tasks.WorldFacts((WORLD,))
        self.voice: Any = tasks.VoiceFacts((VOICE,))
        self.kept: Any = None

    async def normalise(self, _scope: Scope, task: tasks.Normalise) -> Answer[tasks.Normalised]:
        return self._answer("normalise", task, self.normalised)

    async def extract_world(self, _scope: Scope, task: tasks.Extract) -> Answer[tasks.WorldFacts]:
        return self._answer("extract_world", task, self.world)

    async def extract_voice(self, _scope: Scope, task: tasks.Extract) -> Answer[tasks.VoiceFacts]:
        return self._answer("extract_voice", task, self.voice)

    async def reflect(self, _scope: Scope, task: tasks.Reflect) -> Answer[tasks.Kept]:
        everything = tasks.Kept(range(len(task.world)), range(len(task.voice)))
        return self._answer("reflect", task, self.kept or everything)

    def _answer(self, stage: str, task: object, value: Any) -> Answer[Any]:
        self.asked.append(stage)
        self.tasks.append(task)
        if isinstance(value, Exception):
            raise value
        return Answer(value, Receipt(stage, self.name, "script", 1, 10, 5, 0, 1.0, "1"))


WORLD = WorldFact(
    FactKind.CLAIM,
    Mention("User"),
    "has_pet",
    Mention("Miso"),
    "User has a cat called Miso.",
    1,
    "cat is Miso",
)
VOICE = VoiceFact("Always run the tests.", 0, "Always run the tests.")


def request(*texts: str, role: str = "user") -> pb.ExtractRequest:
    texts = texts or ("Always run the tests.", "My cat is Miso.")
    turns = [
        values.Turn(position=at, text=text, role=role, passage_id=f"p{at}") for at, text in enumerate(texts)
    ]
    return pb.ExtractRequest(turns=turns, setting=values.Setting(kind="conversation", reference_time=1))


async def extract(engine: Told, asked: pb.ExtractRequest | None = None) -> pb.ExtractResponse:
    return await Extractor(engine).extract(SCOPE, asked or request())  # type: ignore[arg-type]  # its four tasks


def reasons(response: pb.ExtractResponse) -> list[tuple[str, str, int]]:
    return [(one.reason, one.stage, one.turn) for one in response.dropped]


async def test_facts_come_back_with_their_passages_and_receipts() -> None:
    engine = Told()
    response = await extract(engine)
    assert [world_in(fact) for fact in response.world] == [WORLD]
    assert [voice_in(fact) for fact in response.voice] == [VOICE]
    assert (response.world[0].passage_id, response.voice[0].passage_id) == ("p1", "p0")
    assert [receipt.stage for receipt in response.receipts] == engine.asked
    assert sorted(engine.asked) == ["extract_voice", "extract_world", "normalise", "reflect"]
    assert (response.nothing, reasons(response), list(response.warnings)) == ("", [], [])


async def test_the_narrative_is_what_facts_are_drawn_from() -> None:
    engine = Told()
    await extract(engine)
    narratives = [task.narrative for task in engine.tasks[1:]]
    assert narratives == ["As it was said."] * 3


async def test_nothing_to_remember_ends_early_with_its_reason_and_cost() -> None:
    engine = Told()
    engine.normalised = tasks.Normalised(nothing=NothingReason.SMALL_TALK)
    response = await extract(engine)
    assert response.nothing == "SMALL_TALK"
    assert engine.asked == [receipt.stage for receipt in response.receipts] == ["normalise"]


@pytest.mark.parametrize(
    "value",
    [
        tasks.Normalised(),
        tasks.Normalised(narrative=" \n"),
        tasks.Normalised(narrative="Something.", nothing=NothingReason.SMALL_TALK),
    ],
)
async def test_an_answer_with_neither_or_both_is_invalid(value: tasks.Normalised) -> None:
    engine = Told()
    engine.normalised = value
    with pytest.raises(ModelOutputInvalid):
        await extract(engine)


async def test_what_the_guards_refuse_is_named_by_stage() -> None:
    engine = Told()
    engine.world = tasks.WorldFacts((replace(WORLD, quote="cat is Rex"), WORLD, replace(WORLD, turn=9)))
    engine.voice = tasks.VoiceFacts((replace(VOICE, quote="Never run them."),))
    response = await extract(engine)
    assert reasons(response) == [
        ("QUOTE_NOT_FOUND", "extract_world", 1),
        ("UNKNOWN_TURN", "extract_world", 9),
        ("QUOTE_NOT_FOUND", "extract_voice", 0),
    ]
    assert len(response.world) == 1


async def test_nothing_left_is_nothing_to_remember() -> None:
    engine = Told()
    engine.world, engine.voice = tasks.WorldFacts(()), tasks.VoiceFacts(())
    response = await extract(engine)
    assert response.nothing == "NO_DURABLE_FACT"
    assert "reflect" not in engine.asked


async def test_only_recalled_facts_are_recalled_text() -> None:
    line = "- (User) --[has_pet]--> (Miso)  since 2025-01-01 [e1]"
    engine = Told()
    engine.world = tasks.WorldFacts((replace(WORLD, turn=0, quote="(Miso)"),))
    engine.voice = tasks.VoiceFacts(())
    response = await extract(engine, request(f"You said:\n{line}\nDidn't you"))
    assert (response.nothing, reasons(response)) == ("RECALLED_TEXT", [("RECALLED_TEXT", "extract_world", 0)])
    asked_before = len(engine.asked)
    assert (await extract(engine, request(line))).nothing == "RECALLED_TEXT"
    assert len(engine.asked) == asked_before, "what came from here costs no call"


async def test_session_noise_is_dropped() -> None:
    engine = Told()
    engine.kept = tasks.Kept(world=(), voice=(0,))
    response = await extract(engine)
    assert (len(response.world), len(response.voice)) == (0, 1)
    assert reasons(response) == [("NOT_DURABLE", "reflect", 1)]


async def test_positions_that_were_not_sent_keep_nothing_and_drop_nothing_else() -> None:
    engine = Told()
    engine.kept = tasks.Kept(world=(0, 0, 5, -1), voice=(0,))
    response = await extract(engine)
    assert (len(response.world), len(response.voice), reasons(response)) == (1, 1, [])


async def test_reflection_that_fails_keeps_what_there_is() -> None:
    engine = Told()
    engine.kept = ModelUnavailable("down")
    engine.kept.receipt = Receipt("reflect", "told", "script", 2, 9, 0, 0, 1.0)
    response = await extract(engine)
    assert (len(response.world), len(response.voice)) == (1, 1)
    assert list(response.warnings) == ["reflect failed, nothing was filtered: ModelUnavailable"]
    assert [receipt.calls for receipt in response.receipts if receipt.stage == "reflect"] == [2]


@pytest.mark.parametrize("task", ["world", "voice", "normalised"])
async def test_any_other_failure_is_told(task: str) -> None:
    engine = Told()
    setattr(engine, task, ModelUnavailable("down"))
    with pytest.raises(ModelUnavailable):
        await extract(engine)


async def test_both_failing_is_one_failure() -> None:
    engine = Told()
    engine.world, engine.voice = ModelOutputInvalid("world"), ModelOutputInvalid("voice")
    with pytest.raises(EngineError):
        await extract(engine)


async def test_world_and_voice_are_asked_at_the_same_time() -> None:
    class Meeting(Told):
        """Answers for the world only once it is asked for the voice, and the other way round."""

        def __init__(self) -> None:
            super().__init__()
            self.both = asyncio.Barrier(2)

        async def extract_world(self, scope: Scope, task: tasks.Extract) -> Answer[tasks.WorldFacts]:
            await self.both.wait()
            return await super().extract_world(scope, task)

        async def extract_voice(self, scope: Scope, task: tasks.Extract) -> Answer[tasks.VoiceFacts]:
            await self.both.wait()
            return await super().extract_voice(scope, task)

    async with asyncio.timeout(30):
        assert len((await extract(Meeting())).world) == 1


@pytest.mark.parametrize(
    "broken",
    [
        pb.ExtractRequest(
            turns=[values.Turn(text="x", role="root")], setting=values.Setting(kind="document")
        ),
        pb.ExtractRequest(turns=[values.Turn(text="x")], setting=values.Setting(kind="poem")),
        pb.ExtractRequest(turns=[values.Turn(), values.Turn()], setting=values.Setting(kind="document")),
    ],
)
async def test_wrong_requests_are_refused(broken: pb.ExtractRequest) -> None:
    with pytest.raises(ValidationFailed):
        await extract(Told(), broken)


async def test_no_turns_are_nothing() -> None:
    asked = pb.ExtractRequest(setting=values.Setting(kind="document"))
    assert (await extract(Told(), asked)).nothing == "NO_DURABLE_FACT"
