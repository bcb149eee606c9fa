"""Redaction and providers: what a graph says of its texts is heeded before anything keeps or reads them."""

from pathlib import Path

import grpc
from google.protobuf.field_mask_pb2 import FieldMask

from palimpsest.v1 import (
    entity_pb2,
    graph_pb2,
    memory_entities_pb2,
    memory_episodes_pb2,
    memory_ingest_pb2,
    memory_statements_pb2,
)
from services.llm.openai_engine import OpenAIEngine
from tests.doubles.model_server import ModelServer
from tests.doubles.product import Tenant, a_product
from tests.e2e.talking import USER, Memory, object_name

CARD = "4111 1111 1111 1111"
SPELLINGS = (CARD, "4111-1111-1111-1111", "4111111111111111", "41 11 11 11 11 11 11 11")
SECRET = "hunter22-and-more"
MARK = "\u27e6card number\u27e7"


async def a_graph(tenant: Tenant, settings: graph_pb2.GraphSettings) -> Memory:
    request = graph_pb2.CreateGraphRequest(graph_id="notes", settings=settings)
    await tenant.call(tenant.graphs.CreateGraph, request)
    return Memory(tenant, "notes")


def kept_in(folder: Path) -> bytes:
    """All that any store has on disk."""
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


async def test_what_is_redacted_is_kept_nowhere_and_no_model_reads_it(tmp_path: Path) -> None:
    with ModelServer() as server:
        engine = OpenAIEngine(server.settings())
        async with a_product(tmp_path, engine) as product:
            redaction = graph_pb2.RedactionSettings(secrets=True, card_numbers=True)
            settings = graph_pb2.GraphSettings(redaction=redaction)
            memory = await a_graph(await product.tenant("careful"), settings)
            job = await memory.say(
                f"Ana uses {SPELLINGS[0]}. Gus uses {SPELLINGS[1]}. My password is {SECRET}.",
                title=f"Card {SPELLINGS[2]}",
                metadata={"card": SPELLINGS[3]},
            )
            messages = [(USER, f"Ana likes tea and {one}.") for one in SPELLINGS]
            await memory.say(messages, session_id="s")
            await memory.assert_triples(("Ana", "pays_with", SPELLINGS[2]), ("Ana", "likes", "rain"))
            await decided(memory)
            await memory.recall(f"Whose card is {CARD}?")
            episode = await memory.read_episode(job.result.episode_ids[0])
            asked = memory_episodes_pb2.GetEpisodeRequest(
                graph_id="notes", episode_id=job.result.episode_ids[0]
            )
            read = await memory.tenant.call(memory.tenant.memory.GetEpisode, asked)
        await engine.aclose()
        prompts = "".join(one.user for one in server.asked)
    assert read.episode.redacted == {"card_number": 2, "secret": 1}
    assert episode.text.startswith(f"Ana uses {MARK}. Gus uses {MARK}. My password is ")
    for passage in read.passages:
        assert read.text[passage.start_offset : passage.end_offset] == passage.text
    kept = kept_in(tmp_path)
    assert MARK.encode() in kept, "where nothing is kept nothing is proved"
    assert MARK in prompts
    for text in (*SPELLINGS, SECRET):
        assert text.encode() not in kept
        assert text not in prompts


async def decided(memory: Memory) -> None:
    """Reasons are texts too."""
    tenant = memory.tenant
    likes = [one for one in await memory.statements() if one.predicate.name == "likes"]
    ended = memory_statements_pb2.EndStatementRequest(
        graph_id="notes", statement_id=likes[0].statement_id, reason=f"told with {CARD}", request_id="end"
    )
    await tenant.call(tenant.memory.EndStatement, ended)
    named = {one.subject.entity_id for one in likes}
    others = {one.object.entity.entity_id for one in likes if one.object.HasField("entity")}
    merged = memory_entities_pb2.MergeEntitiesRequest(
        graph_id="notes",
        into_entity_id=min(named),
        entity_ids=[min(others)],
        reason=f"both have {CARD}",
        request_id="merge",
    )
    await tenant.call(tenant.memory.MergeEntities, merged)


async def test_a_text_is_refused_where_a_provider_may_not_see_it(tmp_path: Path) -> None:
    async with a_product(tmp_path, providers=frozenset({"openai"})) as product:
        models = graph_pb2.ModelSettings(allowed_providers=["ours"])
        memory = await a_graph(await product.tenant("choosy"), graph_pb2.GraphSettings(models=models))
        tenant = memory.tenant
        claim = memory_ingest_pb2.ClaimInput(
            subject=entity_pb2.EntityRef(name="Ana"),
            predicate="likes",
            object=entity_pb2.ObjectRef(entity=entity_pb2.EntityRef(name="tea")),
        )
        told = memory_ingest_pb2.AssertTriplesRequest(graph_id="notes", request_id="told", claims=[claim])
        refusals = [
            await tenant.refused(tenant.memory.AddEpisode, memory.episode("Ana likes tea.")),
            await tenant.refused(tenant.memory.AssertTriples, told),
        ]
        for refusal in refusals:
            assert (refusal.code, refusal.reason) == (
                grpc.StatusCode.FAILED_PRECONDITION,
                "MODEL_NOT_ALLOWED",
            )
        assert b"Ana likes tea" not in kept_in(tmp_path)
        models.allowed_providers.append("openai")
        change = graph_pb2.UpdateGraphRequest(
            graph_id="notes",
            settings=graph_pb2.GraphSettings(models=models),
            update_mask=FieldMask(paths=["models"]),
        )
        await tenant.call(tenant.graphs.UpdateGraph, change)
        await tenant.call(tenant.memory.AssertTriples, told)


async def test_patterns_of_ones_own_are_heeded_and_what_may_not_end_is_refused(tmp_path: Path) -> None:
    async with a_product(tmp_path) as product:
        tenant = await product.tenant("own")
        redaction = graph_pb2.RedactionSettings(patterns=["EMP-[0-9]+", "(a+)+", "(", "b"])
        request = graph_pb2.CreateGraphRequest(
            graph_id="notes", settings=graph_pb2.GraphSettings(redaction=redaction)
        )
        refusal = await tenant.refused(tenant.graphs.CreateGraph, request)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "VALIDATION_FAILED")
        fields = [one.field for one in refusal.details["BadRequest"].field_violations]
        assert fields == ["settings.redaction.patterns[1]", "settings.redaction.patterns[2]"]
        redaction.patterns[:] = ["EMP-[0-9]+"]
        memory = await a_graph(tenant, graph_pb2.GraphSettings(redaction=redaction))
        await memory.assert_triples(("Ana", "has_badge", "EMP-4711"), ("Ana", "likes", "tea"))
        [badge] = [one for one in await memory.statements() if one.predicate.name == "has_badge"]
        assert "redacted" in object_name(badge.object)
    kept = kept_in(tmp_path)
    assert b"EMP-" in kept, "the setting is kept"
    assert b"EMP-4711" not in kept
