"""Twin tenants: no byte and no work tells theirs from nobody's, fifty tasks at once, logs, hostile names."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from structlog.testing import capture_logs

from gateway.rpcs import path
from services.llm.openai_engine import OpenAIEngine
from tests.builders import on
from tests.doubles.model_server import ModelServer
from tests.doubles.product import Tenant, a_product
from tests.e2e.asked import ASKED, NO_PLACE, NOBODYS
from tests.e2e.talking import Memory
from tests.e2e.test_isolation import METHODS, Twins, a_twin, ask, told

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def twins(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Twins]:
    folder: Path = tmp_path_factory.mktemp("oracles")
    with ModelServer() as server:
        engine = OpenAIEngine(server.settings())
        async with a_product(folder, engine, now=lambda: on("2026-08-01")) as product:
            one = await a_twin(await product.tenant("one"), ("Xanthrop", "Zyglomat"))
            other = await a_twin(await product.tenant("other"), ("Quibblor", "Vortiman"))
            yield Twins(product, server, one, other)
        await engine.aclose()


async def bare_refusal(tenant: Tenant, name: str, request: Message) -> tuple[bytes, list[tuple[str, str]]]:
    """All bytes of a refusal, under one request id, and what the services were asked on the way to it."""
    method = METHODS[f"/palimpsest.v1.{name}"]
    channel: Any = tenant.channel
    call = (channel.unary_stream if method.server_streaming else channel.unary_unary)(
        path(method),
        request_serializer=type(request).SerializeToString,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    with capture_logs() as logs:
        answering = call(request, metadata=(*tenant.metadata, ("x-request-id", "the-same")), timeout=60)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await (answering.read() if method.server_streaming else answering)
        for _ in range(1_000):  # the caller has his answer before the last line is written
            if any(line["event"] == "call" for line in logs):
                break
            await asyncio.sleep(0.01)
    asked = [(line["rpc"], line["code"]) for line in logs if line["event"] == "answered"]
    trailers: dict[str, Any] = dict(refused.value.trailing_metadata() or ())
    return trailers.pop("grpc-status-details-bin") + str(sorted(trailers.items())).encode(), asked


@pytest.mark.parametrize("name", NO_PLACE)
async def test_no_byte_and_no_work_tells_what_is_the_twins_from_what_is_not(twins: Twins, name: str) -> None:
    asker, theirs = twins.other.memory.tenant, twins.one.ids
    foreign = replace(theirs, words=twins.other.ids.words)
    nobodys = {id: f"{number:08d}{NOBODYS[8:]}" for number, id in enumerate(sorted(theirs.ours), start=1)}
    absent = replace(
        foreign,
        episode=nobodys[theirs.episode],
        job=nobodys[theirs.job],
        statement=nobodys[theirs.statement],
        subject=nobodys[theirs.subject],
        predicate=nobodys[theirs.predicate],
        other=nobodys[theirs.other],
        voice=nobodys[theirs.voice],
        trees=(nobodys[theirs.trees[0]], nobodys[theirs.trees[1]], nobodys[theirs.trees[2]]),
    )
    of_twin, asked_of_twin = await bare_refusal(asker, name, ASKED[name](foreign))
    of_nobody, asked_of_nobody = await bare_refusal(asker, name, ASKED[name](absent))
    for id, other in nobodys.items():
        of_twin = of_twin.replace(id.encode(), other.encode())
    assert of_twin == of_nobody
    assert asked_of_twin == asked_of_nobody


READS = [
    "MemoryService/GetEpisode",
    "MemoryService/GetStatement",
    "MemoryService/ListStatements",
    "MemoryService/GetTimeline",
    "MemoryService/ListVoiceAspects",
    "RecallService/Recall",
    "RecallService/GetSubgraph",
]


async def test_fifty_tasks_of_both_see_their_own_alone_and_the_logs_see_nothing(twins: Twins) -> None:
    pairs = ((twins.one, twins.other), (twins.other, twins.one))

    async def look(number: int) -> None:
        mine, theirs = pairs[number % 2]
        name = READS[number // 2 % len(READS)]
        text = told(await ask(mine.memory.tenant, name, ASKED[name](mine.ids)))
        assert all(word in text for word in mine.ids.words)
        assert not [word for word in (*theirs.ids.words, *theirs.ids.ours) if word in text]

    async def tell(number: int) -> None:
        mine, _ = pairs[number % 2]
        who, what = mine.ids.words
        triple = (f"{who} {number}", "uses", f"{what} {number}")
        await Memory(mine.memory.tenant, "at once").assert_triples(triple, request_id=f"at-once-{number}")

    with capture_logs() as logs:
        await asyncio.gather(*((tell if number % 5 == 0 else look)(number) for number in range(50)))
    for mine, theirs in pairs:
        facts = await Memory(mine.memory.tenant, "at once").facts()
        assert len(facts) == 5
        assert all(fact[0].startswith(mine.ids.words[0]) for fact in facts)
        assert theirs.ids.words[0] not in str(facts)
        said = [*mine.ids.words, mine.memory.tenant.key.rpartition("_")[2]]
        assert not [word for word in said if word in str(logs)]
    assert [line for line in logs if line["event"] == "call"], "calls are logged"


HOSTILE = [
    "it's",
    'x" or true or "',
    "a-b",
    "a_b",
    "a|b",
    "a%",
    "a b",
    "图谱",
    "é",
    "e\u0301",
    "A",
    "a",
    "1 == 1",
]


@pytest.mark.slow
async def test_tenants_of_hostile_names_hold_their_own(twins: Twins) -> None:
    memories = [Memory(await twins.product.tenant(name), name) for name in HOSTILE]
    for number, memory in enumerate(memories):
        await memory.assert_triples(("Ada", "likes", f"thing{number}x"), request_id="the same")
    for number, memory in enumerate(memories):
        assert [fact[2] for fact in await memory.facts()] == [f"thing{number}x"]
        answer = await memory.recall("What does Ada like?")
        assert [one.statement.object.entity.name for one in answer.facts] == [f"thing{number}x"]
        assert [one.graph_id for one in answer.revisions] == [memory.graph]
        spent = [entry.amount_micros for entry in await memory.ledger() if entry.request_id == "the same"]
        assert sum(spent) == -100
