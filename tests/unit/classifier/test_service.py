"""The classifier's call, with an engine that says what it is told to."""

import pytest

from palimpsest.internal.v1 import classifier_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.classifier.service import Classifying
from services.domain.errors import ValidationFailed
from services.domain.facts import FactKind, Mention, VoiceFact, WorldFact
from services.domain.graph import GraphAspect
from services.domain.instants import Instant
from services.domain.memory import VoiceKind
from services.domain.scope import GraphId, Scope, TenantId
from services.llm.port import ModelOutputInvalid
from services.llm.tasks import Classified
from services.wire.facts import voice_out, world_out
from tests.doubles.engine import ScriptedEngine

SCOPE = Scope(TenantId("acme"), GraphId("maya"))
SETTING = values.Setting(kind="conversation", reference_time=1)
WORLD = WorldFact(
    FactKind.CLAIM, Mention("Maya"), "lives_in", Mention("Graz"), "Maya lives in Graz.", 3, "Graz"
)
VOICE = VoiceFact("Always run the tests.", 4, "Always run the tests.")


def request(world: int = 2, voice: int = 2) -> pb.ClassifyRequest:
    return pb.ClassifyRequest(
        world=[world_out(WORLD, f"w{at}") for at in range(world)],
        voice=[voice_out(VOICE, f"v{at}") for at in range(voice)],
        setting=SETTING,
    )


async def classify(classes: Classified, asked: pb.ClassifyRequest | None = None) -> pb.ClassifyResponse:
    engine = ScriptedEngine()
    engine.classified = classes
    return await Classifying(engine).classify(SCOPE, asked or request())


async def test_facts_get_their_aspects_and_dates_in_order() -> None:
    response = await classify(
        Classified(
            [(GraphAspect.EVENT, Instant(7)), (None, None)], [VoiceKind.DIRECTIVE, VoiceKind.PREFERENCE]
        )
    )
    first, second = response.world
    assert (first.aspect, first.event_at, first.passage_id) == ("Event", 7, "w0")
    assert (second.aspect, second.HasField("event_at"), second.passage_id) == ("", False, "w1")
    assert [(one.kind, one.passage_id) for one in response.voice] == [
        ("Directive", "v0"),
        ("Preference", "v1"),
    ]
    assert (first.quote, response.voice[0].text) == ("Graz", "Always run the tests.")
    assert [receipt.stage for receipt in response.receipts] == ["classify"]
    assert not response.dropped


async def test_voice_without_a_kind_is_dropped_and_a_fact_is_kept() -> None:
    response = await classify(Classified([(None, None)] * 2, [None, VoiceKind.GOAL]))
    assert [one.passage_id for one in response.world] == ["w0", "w1"]
    assert [one.passage_id for one in response.voice] == ["v1"]
    assert [(one.reason, one.stage, one.turn) for one in response.dropped] == [
        ("UNCLASSIFIED_VOICE", "classify", 4)
    ]


@pytest.mark.parametrize(("world", "voice"), [(1, 2), (3, 2), (2, 1), (2, 3), (0, 0)])
async def test_an_answer_of_another_length_is_invalid(world: int, voice: int) -> None:
    with pytest.raises(ModelOutputInvalid):
        await classify(Classified([(None, None)] * world, [None] * voice))


async def test_no_facts_cost_no_call() -> None:
    engine = ScriptedEngine()
    assert await Classifying(engine).classify(SCOPE, request(0, 0)) == pb.ClassifyResponse()
    assert engine.asked == []


@pytest.mark.parametrize(
    "broken",
    [
        pb.ClassifyRequest(world=[values.WorldFact()], setting=SETTING),
        pb.ClassifyRequest(voice=[values.VoiceFact(kind="Shout")], setting=SETTING),
        pb.ClassifyRequest(setting=values.Setting(kind="poem")),
    ],
)
async def test_wrong_requests_are_refused(broken: pb.ClassifyRequest) -> None:
    with pytest.raises(ValidationFailed):
        await classify(Classified([], []), broken)
