"""What models are told, as a server behind the OpenAI protocol saw it: of the graph itself, and no more."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

import pytest
import pytest_asyncio
from google.protobuf.field_mask_pb2 import FieldMask

from palimpsest.v1 import entity_pb2, graph_pb2, job_pb2, memory_entities_pb2, memory_ingest_pb2
from services.domain.instants import Instant
from services.llm.openai_engine import OpenAIEngine
from tests.builders import on
from tests.doubles.model_replies import Asked
from tests.doubles.model_server import MODELS, ModelServer
from tests.doubles.product import Product, a_product
from tests.e2e.talking import USER, Memory

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = count()

Profile: TypeAlias = "graph_pb2.ExtractionProfile.ValueType"
FULL, ECONOMY = graph_pb2.EXTRACTION_PROFILE_FULL, graph_pb2.EXTRACTION_PROFILE_ECONOMY
BOTH = pytest.mark.parametrize(
    "profile", [pytest.param(FULL, id="full"), pytest.param(ECONOMY, id="economy", marks=pytest.mark.slow)]
)
DRAWING = {
    FULL: {"normalise", "extract_world", "extract_voice", "classify"},
    ECONOMY: {"understand", "resolve"},
}
"""The tasks of each profile for a text with a fact in it."""


@dataclass(frozen=True, slots=True)
class Told:
    """The product and the model behind it."""

    product: Product
    server: ModelServer

    async def memory(self, profile: Profile = FULL, **settings: Any) -> Memory:
        """An empty graph of a tenant of its own."""
        memory = Memory(await self.product.tenant(f"tenant-{next(_numbers)}"), "notes")
        chosen = graph_pb2.GraphSettings(extraction_profile=profile, **settings)
        request = graph_pb2.CreateGraphRequest(graph_id=memory.graph, settings=chosen)
        await memory.tenant.call(memory.tenant.graphs.CreateGraph, request)
        return memory

    async def asked(self, memory: Memory, said: str, **more: Any) -> list[Asked]:
        """What the model was asked for one text."""
        before = len(self.server.asked)
        job = await memory.say(said, "2025-06-30", **more)
        assert job.state == job_pb2.JOB_STATE_SUCCEEDED
        return self.server.asked[before:]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def told(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Told]:
    with ModelServer() as server:
        engine = OpenAIEngine(server.settings())
        folder = tmp_path_factory.mktemp("told")
        ticks = count(on("2026-08-01"))
        offered = {"offered_models": [MODELS[1]]}
        async with a_product(folder, engine, now=lambda: Instant(next(ticks)), settings=offered) as product:
            yield Told(product, server)
        await engine.aclose()


async def put(memory: Memory, source: str, graph: str = "", **rule: Any) -> None:
    one = graph_pb2.IngestionRule(graph_id=graph, source=source, **rule)
    asked = graph_pb2.SetIngestionRuleRequest(rule=one)
    await memory.tenant.call(memory.tenant.graphs.SetIngestionRule, asked)


@BOTH
async def test_each_ingestion_rule_of_the_source_is_told_in_every_prompt(
    told: Told, profile: Profile
) -> None:
    memory = await told.memory(profile)
    await put(memory, "slack", instructions="Keep decisions.")
    await put(memory, "slack", memory.graph, instructions="Leave out <jokes>.")
    await put(memory, "mail", instructions="Of mails alone.")
    await put(memory, "slack", "another graph", instructions="Of another graph.")
    asked = await told.asked(memory, "I live in Graz.", source="slack")
    assert DRAWING[profile] <= {one.task for one in asked}
    for one in asked:
        assert one.blocks["ingestion_rules"] == ["Keep decisions.", "Leave out <jokes>."]
        assert one.user.startswith("<ingestion_rules>")
    for one in await told.asked(memory, "I work at Initech."):
        assert "ingestion_rules" not in one.blocks


async def test_the_rules_of_one_tenant_are_not_told_to_anothers_model(told: Told) -> None:
    mine, theirs = await told.memory(), await told.memory()
    await put(mine, "slack", instructions="Xanthrop")
    asked = await told.asked(theirs, "I live in Graz.", source="slack")
    assert asked
    assert not [one for one in asked if "Xanthrop" in one.user]


async def test_trust_of_a_source_weighs_what_it_claims(told: Told) -> None:
    memory = await told.memory()
    await memory.say("I live in Graz.", "2025-06-30", source="rumour")
    (plain,) = await memory.statements()
    doubted = await told.memory()
    await put(doubted, "rumour", trust=0.25)
    await doubted.say("I live in Graz.", "2025-06-30", source="rumour")
    await doubted.assert_triples(("Maya", "likes", "tea"), source="rumour")
    found = {one.predicate.name: one.confidence for one in await doubted.statements()}
    assert found == pytest.approx({"lives_in": plain.confidence * 0.25, "likes": 0.25})


@BOTH
async def test_the_user_the_speakers_the_time_and_its_zone_are_told(told: Told, profile: Profile) -> None:
    memory = await told.memory(profile, user_name="Maya", time_zone="Asia/Shanghai", languages=["zh"])
    messages = [
        memory_ingest_pb2.EpisodeMessage(role=USER, speaker=speaker, text=text)
        for speaker, text in (("Ida", "I live in Graz."), ("Wen", "Kiran works on project Alpha."))
    ]
    asked = memory_ingest_pb2.EpisodeMessages(messages=messages)
    before = len(told.server.asked)
    accepted = memory.episode("", "2025-06-30")
    accepted.messages.CopyFrom(asked)
    answer = await memory.tenant.call(memory.tenant.memory.AddEpisode, accepted)
    await memory.end_of(answer.job.job_id)
    assert len(told.server.asked) > before
    for one in told.server.asked[before:]:
        if "turns" in one.blocks:
            assert [turn["speaker"] for turn in one.blocks["turns"]] == ["Ida", "Wen"]
        (about,) = one.blocks["setting"]
        assert (about["user"], about["time_zone"], about["languages"]) == ("Maya", "Asia/Shanghai", ["zh"])
        assert about["reference_time"] == "2025-06-30T08:00:00+08:00"


@pytest.mark.slow
@BOTH
async def test_the_five_latest_episodes_of_the_session_are_told(told: Told, profile: Profile) -> None:
    memory = await told.memory(profile)
    cities = ["Graz", "Linz", "Wels", "Enns", "Steyr", "Krems", "Melk"]
    for city in cities:
        await memory.say(f"I visited {city}.", "2025-06-01", session_id="travels")
    await memory.say("I visited Paris.", "2025-06-01", session_id="others")
    elsewhere = Memory(memory.tenant, "another graph")
    await elsewhere.say("I visited Rome.", "2025-06-01", session_id="travels")
    for one in await told.asked(memory, "I visited Bregenz.", session_id="travels"):
        if "turns" not in one.blocks:
            continue
        recent = one.blocks["recent_texts"]
        assert recent == [f"I visited {city}." for city in reversed(cities[-5:])]
        assert "Rome" not in one.user


@pytest.mark.slow
async def test_a_chunk_is_told_the_chunks_before_it_of_its_own_conversation(told: Told) -> None:
    memory = await told.memory()
    sentence = "We talked for a long time about nothing in particular. "
    said = [
        (USER, f"{city} it was. {sentence * 80}So much for {city}.")
        for city in ("Graz", "Linz", "Wels", "Enns")
    ]
    before = len(told.server.asked)
    job = await memory.say(said, "2025-06-30")
    assert len(job.chunks) > 1
    asked = [one for one in told.server.asked[before:] if one.task == "normalise"]
    texts = {"".join(turn["text"] for turn in one.blocks["turns"]): one for one in asked}
    first, second = (next(one for text, one in texts.items() if city in text) for city in ("Graz", "Enns"))
    assert "recent_texts" not in first.blocks
    assert "So much for" in second.blocks["recent_texts"][0]


async def test_predicates_that_were_declared_are_offered(told: Told) -> None:
    memory = await told.memory()
    declared = graph_pb2.DeclarePredicateRequest(
        graph_id=memory.graph, name="rides", cardinality=entity_pb2.CARDINALITY_MULTI
    )
    await memory.tenant.call(memory.tenant.graphs.DeclarePredicate, declared)
    for one in await told.asked(memory, "I dwell in Graz."):
        assert one.blocks["known_predicates"] == ["rides"]


@BOTH
async def test_what_a_text_names_is_offered_by_any_of_its_names(told: Told, profile: Profile) -> None:
    memory, other = await told.memory(profile), await told.memory(profile)
    await other.assert_triples(("Ravi Sharma", "likes", "tea"))
    for left, right in (("Robert Miller", "Initech GmbH"), ("Bob", "the board"), ("Ida", "PostgreSQL")):
        await memory.assert_triples((left, "has_something_to_do_with", right))
    ids = {one.subject.name: one.subject.entity_id for one in await memory.statements()}
    merged = memory_entities_pb2.MergeEntitiesRequest(
        graph_id=memory.graph,
        request_id=memory.tenant.request_id(),
        into_entity_id=ids["Robert Miller"],
        entity_ids=[ids["Bob"]],
    )
    await memory.tenant.call(memory.tenant.memory.MergeEntities, merged)
    said = "Bob is employed by a firm, and Ravi Sharma moved to postgresql."
    drawing = [one for one in await told.asked(memory, said) if "turns" in one.blocks]
    assert drawing
    for one in drawing:
        offered = one.blocks["known_entities"]
        assert {"name": "Robert Miller", "also": ["Bob"]} in offered
        assert "PostgreSQL" in offered
        assert not [name for name in offered if "Ravi" in str(name)], "of another graph"
        assert "works_at" in one.blocks["known_predicates"]


@BOTH
async def test_neighbours_are_told_from_three_quarters_on_and_of_this_graph_alone(
    told: Told, profile: Profile
) -> None:
    memory = await told.memory(profile)
    elsewhere = Memory(memory.tenant, "another graph")
    near, far = "Atlas runs on the old cluster in Linz.", "Nothing whatever alike."
    await memory.say(near, "2025-06-01")
    await memory.say(far, "2025-06-01")
    await elsewhere.say("Atlas runs on the old cluster in Rome.", "2025-06-01")
    asked = await told.asked(memory, "Atlas runs on the old cluster in Wels.")
    drawing = [one for one in asked if "turns" in one.blocks]
    assert drawing
    for one in drawing:
        assert one.blocks["similar_texts"] == [near]
        assert [fact["fact"] for fact in one.blocks["known_facts"]] == [near]
        assert far not in one.user
        assert "Rome" not in one.user


async def test_a_graph_is_understood_by_the_models_that_it_chose_and_no_others_are(told: Told) -> None:
    chosen = graph_pb2.ModelSettings(medium_model=MODELS[1])
    memory, other = await told.memory(models=chosen), await told.memory()
    graphs = memory.tenant.graphs
    before = len(told.server.asked)
    job = await memory.say("I live in Graz.", "2025-06-30")
    assert {one.model for one in told.server.asked[before:]} == {MODELS[1]}
    assert {stage.model for stage in job.receipt.stages if stage.calls} == {MODELS[1]}
    assert MODELS[0] in {one.model for one in await told.asked(other, "I live in Graz.")}

    back = graph_pb2.UpdateGraphRequest(
        graph_id=memory.graph,
        settings=graph_pb2.GraphSettings(),
        update_mask=FieldMask(paths=["models.medium_model"]),
    )
    await memory.tenant.call(graphs.UpdateGraph, back)
    assert MODELS[0] in {one.model for one in await told.asked(memory, "I work at Initech.")}
    back.settings.models.medium_model = MODELS[2]
    assert (await memory.tenant.refused(graphs.UpdateGraph, back)).reason == "VALIDATION_FAILED"
