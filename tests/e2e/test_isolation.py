"""Twin tenants with the same ids: whatever one asks, in any RPC, nothing of the other is in the answer."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from gateway.keys import KeyScope
from gateway.paging import sealed
from gateway.rpcs import RPCS, SERVICES, path
from palimpsest.v1 import (
    credits_pb2,
    episode_pb2,
    jobs_pb2,
    memory_entities_pb2,
    memory_episodes_pb2,
    memory_statements_pb2,
    recall_pb2,
    recall_summaries_pb2,
)
from services.domain.scope import TenantId
from services.llm.openai_engine import OpenAIEngine
from tests.builders import on
from tests.doubles.gateway import Refusal
from tests.doubles.model_server import ModelServer
from tests.doubles.product import Product, Tenant, a_product
from tests.e2e.asked import (
    ASKED,
    DOCUMENT,
    EMPTY,
    ENDLESS,
    FILTERS_BY_GRAPH,
    GRAPH,
    MAKES_ITS_GRAPH,
    NO_PLACE,
    NOBODYS,
    SESSION,
    TELLS_WORDS,
    UNLIKE_A_READ,
    Ids,
    a_section,
    sent,
)
from tests.e2e.talking import Fact, Memory, balance

pytestmark = pytest.mark.asyncio(loop_scope="module")

METHODS = {path(method): method for service in SERVICES for method in service.methods}


@dataclass(frozen=True, slots=True)
class Twin:
    """A tenant that has said the same as the other, of other things."""

    memory: Memory
    ids: Ids

    async def state(self) -> tuple[set[Fact], tuple[int, int], str]:
        """What must not change by what the other does."""
        text = (await self.memory.read_episode(self.ids.episode)).text
        return await self.memory.facts(), await balance(self.memory.tenant), text


@dataclass(frozen=True, slots=True)
class Twins:
    """Two tenants of one product, and the model that understands both."""

    product: Product
    server: ModelServer
    one: Twin
    other: Twin


async def a_twin(tenant: Tenant, words: tuple[str, str]) -> Twin:
    """Says three things in the same places and under the same request ids as its twin."""
    memory, (who, what) = Memory(tenant, GRAPH), words
    document = {"kind": episode_pb2.EPISODE_KIND_DOCUMENT, "document_id": DOCUMENT}
    first = await memory.say(f"{who} uses {what}.", "2025-01-01", request_id="r-0", session_id=SESSION)
    await memory.say(f"Always ask {who} about {what}.", "2025-01-02", request_id="r-1", session_id=SESSION)
    await memory.say(f"# {who}\n\n{who} likes {what}.\n", "2025-01-03", request_id="r-2", **document)
    mine = f"of-{first.result.episode_ids[0]}"
    named = {"kind": episode_pb2.EPISODE_KIND_DOCUMENT, "document_id": mine, "source": mine}
    await memory.say(f"{who} knows {what}.", "2025-01-04", request_id="r-named", **named)
    (used,) = [one for one in await memory.statements() if one.predicate.name == "uses"]
    (liked,) = [one for one in await memory.statements() if one.predicate.name == "likes"]
    asked = [recall_pb2.RECALL_INCLUDE_VOICE]
    (voice,) = (await memory.recall(f"Always ask {who} about {what}.", include=asked)).voice
    await memory.assert_triples(
        *((tree, "near", "home") for tree in ("Ash", "Birch", "Cedar")), request_id="r-3"
    )
    trees = {one.subject.name: one.subject.entity_id for one in await memory.statements()}
    ash, birch = trees["Ash"], trees["Birch"]
    merged = memory_entities_pb2.MergeEntitiesRequest(
        graph_id=GRAPH, into_entity_id=ash, entity_ids=[birch], request_id="r-4"
    )
    await tenant.call(tenant.memory.MergeEntities, merged)
    persona = recall_summaries_pb2.UpdatePersonaRequest(graph_id=GRAPH, sections=[a_section(words)])
    await tenant.call(tenant.recall.UpdatePersona, persona)
    ids = Ids(
        graph=GRAPH,
        episode=first.result.episode_ids[0],
        job=first.job_id,
        statement=used.statement_id,
        subject=used.subject.entity_id,
        predicate=used.predicate.predicate_id,
        other=liked.statement_id,
        voice=voice.voice_aspect.voice_aspect_id,
        words=words,
        trees=(ash, birch, trees["Cedar"]),
    )
    return Twin(memory, ids)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def twins(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Twins]:
    folder: Path = tmp_path_factory.mktemp("isolation")
    with ModelServer() as server:
        engine = OpenAIEngine(server.settings())
        async with a_product(folder, engine, now=lambda: on("2026-08-01")) as product:
            one = await a_twin(await product.tenant("one"), ("Xanthrop", "Zyglomat"))
            other = await a_twin(await product.tenant("other"), ("Quibblor", "Vortiman"))
            yield Twins(product, server, one, other)
        await engine.aclose()


OPERATORS = [name for name in ASKED if RPCS[f"/palimpsest.v1.{name}"].scope is KeyScope.OPERATOR]
TENANTS = [name for name in ASKED if name not in OPERATORS]


async def ask(tenant: Tenant, name: str, request: Message) -> list[Any] | Refusal:
    """All answers of a call, or its refusal; again where gRPC lost a refusal while it still sent."""
    while True:
        try:
            return await _ask(tenant, name, request)
        except grpc.aio.AioRpcError as error:
            if error.details() != "Internal error from Core":
                return Refusal.of(error)


async def _ask(tenant: Tenant, name: str, request: Message) -> list[Any]:
    method = METHODS[f"/palimpsest.v1.{name}"]
    channel: Any = tenant.channel
    call = channel.unary_stream if method.server_streaming else channel.unary_unary
    if method.client_streaming:
        call = channel.stream_unary
    multi = call(
        path(method),
        request_serializer=type(request).SerializeToString,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    asked = sent(request)
    given = iter(asked) if method.client_streaming else asked[0]
    answering = multi(given, metadata=tenant.metadata, timeout=60)
    if name in ENDLESS:
        first = await answering.read()
        answering.cancel()
        return [first]
    return [one async for one in answering] if method.server_streaming else [await answering]


def told(answer: list[Any] | Refusal) -> str:
    """All that an answer says, ids and texts."""
    if isinstance(answer, Refusal):
        return f"{answer.text} {answer.info} {dict(answer.details)}"
    return "".join(str(one) for one in answer)


def outline(refusal: Refusal) -> tuple[Any, ...]:
    """A refusal without what names this very call."""
    details = {name: str(detail) for name, detail in refusal.details.items() if name != "RequestInfo"}
    if "ResourceInfo" in refusal.details:
        details["ResourceInfo"] = refusal.details["ResourceInfo"].resource_type
    return refusal.code, refusal.reason, refusal.text, details


async def test_every_rpc_of_the_api_is_served(twins: Twins) -> None:
    """None answers UNIMPLEMENTED."""
    assert twins.product.running.gateway.served == METHODS.keys() == RPCS.keys()


async def test_every_rpc_that_is_served_has_a_case(twins: Twins) -> None:
    served = twins.product.running.gateway.served
    assert {f"/palimpsest.v1.{name}" for name in ASKED} == served


async def test_the_same_things_said_in_the_same_places_have_ids_of_their_own(twins: Twins) -> None:
    assert not twins.one.ids.ours & twins.other.ids.ours


@pytest.mark.parametrize("name", [name for name in TENANTS if name not in UNLIKE_A_READ])
async def test_an_answer_holds_nothing_of_the_twins(twins: Twins, name: str) -> None:
    for mine, theirs in ((twins.one, twins.other), (twins.other, twins.one)):
        answer = await ask(mine.memory.tenant, name, ASKED[name](mine.ids))
        assert isinstance(answer, list), told(answer)
        text = told(answer)
        assert not [word for word in (*theirs.ids.words, *theirs.ids.ours) if word in text]
        if name in TELLS_WORDS:
            assert all(word in text for word in mine.ids.words), "a search that finds nothing proves nothing"


@pytest.mark.parametrize("name", [*NO_PLACE, *EMPTY])
@pytest.mark.case("ids of tenant A")
async def test_an_id_of_the_twins_is_like_one_of_nobody(twins: Twins, name: str) -> None:
    mine, theirs = twins.other, twins.one
    before = await theirs.state()
    foreign = replace(theirs.ids, words=mine.ids.words)
    absent = Ids(GRAPH, NOBODYS, NOBODYS, NOBODYS, NOBODYS, NOBODYS, NOBODYS, NOBODYS, mine.ids.words)
    answers = [await ask(mine.memory.tenant, name, ASKED[name](ids)) for ids in (foreign, absent)]
    if name in NO_PLACE:
        outlines = [outline(answer) for answer in answers if isinstance(answer, Refusal)]
        assert len(outlines) == 2, "both are refused"
        assert outlines[0] == outlines[1]
        assert outlines[0][:2] == (grpc.StatusCode.NOT_FOUND, NO_PLACE[name])
    else:
        for answer in answers:
            assert isinstance(answer, list)
            assert list(getattr(answer[0], EMPTY[name])) == []
    assert not [word for word in theirs.ids.words if word in told(answers[0])]
    assert await theirs.state() == before


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in TENANTS
        if {"graph_id", "graph_ids"} & set(METHODS[f"/palimpsest.v1.{name}"].input_type.fields_by_name)
        and name not in MAKES_ITS_GRAPH | FILTERS_BY_GRAPH
    ],
)
async def test_a_graph_of_the_twins_is_like_one_that_is_not_there(twins: Twins, name: str) -> None:
    hers = Memory(twins.one.memory.tenant, "hers alone")
    await hers.assert_triples(("Ada", "likes", "tea"), request_id="make")
    asker = twins.other
    answers = [
        await ask(asker.memory.tenant, name, ASKED[name](replace(asker.ids, graph=graph)))
        for graph in (hers.graph, "of nobody")
    ]
    outlines = [outline(answer) for answer in answers if isinstance(answer, Refusal)]
    assert len(outlines) == 2
    assert outlines[0] == outlines[1]
    assert outlines[0][:2] == (grpc.StatusCode.NOT_FOUND, "GRAPH_NOT_FOUND")


@pytest.mark.parametrize("name", OPERATORS)
async def test_a_tenants_key_does_not_operate(twins: Twins, name: str) -> None:
    before = await twins.one.state()
    refusal = await ask(twins.other.memory.tenant, name, ASKED[name](twins.other.ids))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")
    assert await twins.one.state() == before


@pytest.mark.parametrize("name", TENANTS)
async def test_an_operators_key_reads_no_memory(twins: Twins, name: str) -> None:
    refusal = await ask(twins.product.operator, name, ASKED[name](twins.one.ids))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")


def paged(name: str) -> set[str]:
    """The fields of a request that hold a position."""
    return {"page_token", "cursor"} & set(METHODS[f"/palimpsest.v1.{name}"].input_type.fields_by_name)


POSITIONS = (
    "x",
    "-1",
    "1.x.y",
    "9" * 30,
    "[1]",
    '["a", "b"]',
    "[1, 2, 3]",
    "{}",
    "\x00",
    '[1, "x"]',
    "1.1",
    "1.1.x",
)


@pytest.mark.parametrize("name", [name for name in ASKED if paged(name) and name not in ENDLESS])
async def test_a_position_of_somebodys_own_making_breaks_nothing(twins: Twins, name: str) -> None:
    operator = name in OPERATORS
    tenant = twins.product.operator if operator else twins.one.memory.tenant
    request = ASKED[name](twins.one.ids)
    fields = paged(name)
    owner = TenantId(getattr(request, "tenant_id", "") if operator else tenant.name)
    for field in fields:
        for position in POSITIONS:
            # How a token is bound is no secret: whoever reads this source can make one.
            setattr(request, field, sealed(owner, request, position))
            answer = await ask(tenant, name, request)
            if isinstance(answer, Refusal):
                assert answer.reason in {"VALIDATION_FAILED", "CURSOR_EXPIRED"}, position


async def test_pages_and_cursors_are_bound_to_their_tenant(twins: Twins) -> None:
    mine, theirs = twins.other.memory.tenant, twins.one.memory.tenant
    lists: dict[str, Any] = {
        "MemoryService/ListStatements": memory_statements_pb2.ListStatementsRequest(
            graph_id=GRAPH, page_size=1
        ),
        "MemoryService/ListEpisodes": memory_episodes_pb2.ListEpisodesRequest(graph_id=GRAPH, page_size=1),
        "MemoryService/ListEntities": memory_entities_pb2.ListEntitiesRequest(graph_id=GRAPH, page_size=1),
        "CreditService/ListLedgerEntries": credits_pb2.ListLedgerEntriesRequest(page_size=1),
    }
    for name, request in lists.items():
        (page,) = list(await ask(theirs, name, request))  # type: ignore[arg-type]  # it is not refused
        assert page.next_page_token
        request.page_token = page.next_page_token
        refusal = await ask(mine, name, request)
        assert isinstance(refusal, Refusal)
        assert refusal.reason == "VALIDATION_FAILED"
    first, *_ = list(await ask(theirs, "JobService/WatchJob", ASKED["JobService/WatchJob"](twins.one.ids)))  # type: ignore[arg-type]
    again = jobs_pb2.WatchJobRequest(job_id=twins.other.ids.job, cursor=first.cursor)
    refusal = await ask(mine, "JobService/WatchJob", again)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == "VALIDATION_FAILED"


async def test_no_prompt_holds_words_of_both(twins: Twins) -> None:
    hers, his = twins.one.ids.words, twins.other.ids.words
    prompts = [asked.user for asked in twins.server.asked]
    assert any(hers[0] in prompt for prompt in prompts)
    assert any(his[0] in prompt for prompt in prompts)
    both = [
        prompt
        for prompt in prompts
        if any(word in prompt for word in hers) and any(word in prompt for word in his)
    ]
    assert both == []


async def test_deleting_mine_leaves_the_twins(twins: Twins) -> None:
    texts = [
        await twin.memory.say("Ada knows Grace.", "2025-03-01", request_id="same", session_id=SESSION)
        for twin in (twins.one, twins.other)
    ]
    before = await twins.other.state()
    await twins.one.memory.delete(texts[0].result.episode_ids[0])
    known = ("Ada", "knows", "Grace", "2025-03-01", "")
    assert known not in await twins.one.memory.facts()
    assert known in await twins.other.memory.facts()
    assert await twins.other.state() == before
