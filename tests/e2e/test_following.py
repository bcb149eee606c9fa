"""What follows an ingest, through the public API: labels, titles, cited summaries, the persona."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest_asyncio

from palimpsest.v1 import recall_summaries_pb2 as pb
from services.llm.offline import OfflineEngine
from tests.doubles.product import Product, Tenant, a_product
from tests.e2e.talking import Memory

NOW = {"follow_quiet_seconds": 0, "follow_longest_seconds": 0}


@pytest_asyncio.fixture
async def product(tmp_path: Path) -> AsyncIterator[Product]:
    async with a_product(tmp_path, OfflineEngine(), settings=NOW) as product:
        yield product


async def followed(product: Product) -> None:
    """Waits until nothing is left to be made."""
    while await product.running.gateway.stores.follow_ups.waiting():
        await asyncio.sleep(0.05)


async def session(memory: Memory, name: str) -> pb.SessionSummary:
    tenant = memory.tenant
    request = pb.GetSessionSummaryRequest(graph_id=memory.graph, session_id=name)
    response: pb.GetSessionSummaryResponse = await tenant.call(tenant.recall.GetSessionSummary, request)
    return response.summary


async def persona(memory: Memory) -> pb.Persona:
    tenant = memory.tenant
    response = await tenant.call(tenant.recall.GetPersona, pb.GetPersonaRequest(graph_id=memory.graph))
    found: pb.Persona = response.persona
    return found


async def test_smoke(product: Product) -> None:
    tenant = await product.tenant("acme")
    memory = Memory(tenant, "notes")
    await memory.say(
        "I live in Berlin. I work at Acme. I prefer tea over coffee.", "2025-01-01", session_id="s1"
    )
    await memory.say("Always answer in short sentences.", "2025-01-02", session_id="s1")
    await followed(product)
    print(await session(memory, "s1"))
    print(await persona(memory))
    await memory.say("I moved to Munich.", "2025-06-01", session_id="s2")
    print(await session(memory, "s1"), await persona(memory))
    await followed(product)
    print(await session(memory, "s1"), await session(memory, "s2"), await persona(memory))
