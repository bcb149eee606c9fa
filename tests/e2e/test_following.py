"""What follows an ingest, through the public API: labels, titles, cited summaries, the persona."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from palimpsest.v1 import job_pb2, memory_episodes_pb2
from palimpsest.v1 import recall_summaries_pb2 as pb
from services.llm.openai_engine import OpenAIEngine
from tests.doubles.model_server import ModelServer
from tests.doubles.product import Product, a_product
from tests.e2e.talking import Memory

NOW = {"follow_quiet_seconds": 0, "follow_longest_seconds": 0}


async def followed(product: Product) -> None:
    """Waits until nothing is left to be made."""
    while await product.running.gateway.stores.follow_ups.waiting():  # noqa: ASYNC110  # it rings no bell
        await asyncio.sleep(0.05)


async def session(memory: Memory, name: str) -> pb.SessionSummary:
    request = pb.GetSessionSummaryRequest(graph_id=memory.graph, session_id=name)
    response: pb.GetSessionSummaryResponse = await memory.tenant.call(
        memory.tenant.recall.GetSessionSummary, request
    )
    return response.summary


async def labels(memory: Memory, **page: Any) -> pb.ListLabelsResponse:
    request = pb.ListLabelsRequest(graph_id=memory.graph, **page)
    response: pb.ListLabelsResponse = await memory.tenant.call(memory.tenant.recall.ListLabels, request)
    return response


async def edited(memory: Memory, *sections: pb.PersonaSection) -> pb.Persona:
    request = pb.UpdatePersonaRequest(graph_id=memory.graph, sections=sections)
    response: pb.UpdatePersonaResponse = await memory.tenant.call(memory.tenant.recall.UpdatePersona, request)
    return response.persona


async def persona(memory: Memory) -> Sequence[pb.PersonaSection]:
    request = pb.GetPersonaRequest(graph_id=memory.graph)
    response = await memory.tenant.call(memory.tenant.recall.GetPersona, request)
    sections: Sequence[pb.PersonaSection] = response.persona.sections
    return sections


async def test_what_is_said_is_summed_up_and_what_is_taken_back_is_not(tmp_path: Path) -> None:
    with ModelServer() as server:
        engine = OpenAIEngine(server.settings())
        async with a_product(tmp_path, engine, settings=NOW) as product:
            memory = Memory(await product.tenant("acme"), "notes")
            first = await memory.say("Maya uses Kafka.", "2025-01-01", session_id="one")
            second = await memory.say("Always ask Maya about Kafka.", "2025-01-02", session_id="two")
            await followed(product)
            summary = await session(memory, "one")
            (used,) = await memory.statements()
            assert [list(one.statement_ids) for one in summary.sentences] == [[used.statement_id]]
            assert (summary.title, list(summary.labels)) == ("What was told there", ["Talk"])
            assert [(one.name, one.session_count) for one in (await labels(memory)).labels] == [("Talk", 2)]
            assert [one.section_id for one in await persona(memory)] == ["directives"]
            told = await receipts(memory, first) | await receipts(memory, second)
            assert told == {"summarise", "portray"}

            await edited(memory, pb.PersonaSection(section_id="mine", title="M", text="So.", protected=True))
            deleting = memory_episodes_pb2.DeleteEpisodeRequest(
                graph_id="notes", episode_id=first.result.episode_ids[0], request_id="delete"
            )
            await memory.tenant.call(memory.tenant.memory.DeleteEpisode, deleting)
            await followed(product)
            refusal = await memory.tenant.refused(
                memory.tenant.recall.GetSessionSummary,
                pb.GetSessionSummaryRequest(graph_id="notes", session_id="one"),
            )
            assert refusal.reason == "SESSION_NOT_FOUND"
            assert [(one.name, one.session_count) for one in (await labels(memory)).labels] == [("Talk", 1)]
            assert [one.section_id for one in await persona(memory)] == ["directives", "mine"]
        await engine.aclose()


async def receipts(memory: Memory, job: job_pb2.Job) -> set[str]:
    """Which of the stages that follow are in a job's receipt."""
    found = await memory.end_of(job.job_id)
    return {stage.stage for stage in found.receipt.stages} & {"summarise", "portray"}
