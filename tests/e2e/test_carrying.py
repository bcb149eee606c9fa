"""ExportGraph and ImportGraph as clients have them: out of one graph, into another, all reads the same."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.message import Message

from gateway.store.clock import SkewedClock
from gateway.store.imports import Imports, Making
from gateway.store.quotas import Quotas
from gateway.store.tenants import Limits
from palimpsest.carrying import NotAnExport, export_graph, import_graph
from palimpsest.connection import Connection
from palimpsest.errors import CallError
from palimpsest.v1 import (
    common_pb2,
    entity_pb2,
    episode_pb2,
    graph_pb2,
    job_pb2,
    jobs_pb2,
    memory_entities_pb2,
    memory_episodes_pb2,
    memory_graph_pb2,
    memory_statements_pb2,
    memory_voice_pb2,
    privacy_pb2,
)
from services.domain.ids import EpisodeId
from services.domain.scope import GraphId, Scope, TenantId
from services.llm.offline import OfflineEngine
from tests.contracts.memory_base import full_episode
from tests.doubles.gateway import Refusal
from tests.doubles.product import Product, Tenant, a_product
from tests.e2e.talking import Memory, balance, day

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = count()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    limits = {"max_import_bytes": 1_000_000, "max_imports": 2}
    folder = tmp_path_factory.mktemp("carrying")
    async with a_product(folder, engine=OfflineEngine(), settings=limits) as product:
        yield product


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def memory(product: Product) -> Memory:
    """A graph with something of everything."""
    made = Memory(await product.tenant("first"), "notes")
    tenant = made.tenant
    settings = graph_pb2.GraphSettings(user_name="Ana", time_zone="Europe/Vienna", languages=["en"])
    await tenant.call(
        tenant.graphs.CreateGraph, graph_pb2.CreateGraphRequest(graph_id="notes", settings=settings)
    )
    await made.say("I live in Graz. I prefer short answers.", "2024-01-01", session_id="one")
    await made.say("I live in Linz now.", "2025-01-01", session_id="one")
    document = {"kind": episode_pb2.EPISODE_KIND_DOCUMENT, "document_id": "cv"}
    await made.say("# CV\n\nAna works at Acme.\n", "2025-02-01", **document)
    await made.say("# CV\n\nAna works at Initech.\n", "2025-03-01", **document)
    await made.assert_triples(("Ash", "near", "home"), ("Birch", "near", "home"), ("Ash", "likes", "rain"))
    trees = {one.subject.name: one.subject.entity_id for one in await made.statements()}
    merged = memory_entities_pb2.MergeEntitiesRequest(
        graph_id="notes",
        into_entity_id=trees["Ash"],
        entity_ids=[trees["Birch"]],
        reason="one tree",
        request_id="merge",
    )
    await tenant.call(tenant.memory.MergeEntities, merged)
    declared = graph_pb2.DeclarePredicateRequest(
        graph_id="notes", name="wears", cardinality=entity_pb2.CARDINALITY_SINGLE, aliases=["dressed in"]
    )
    await tenant.call(tenant.graphs.DeclarePredicate, declared)
    gone = await made.say("Ana knows Gus.", "2025-04-01")
    await made.delete(gone.result.episode_ids[0])
    return made


async def reads(memory: Memory) -> list[str]:
    """What a graph answers to everything that can be asked of it, on both axes, of some revisions."""
    tenant, graph = memory.tenant, memory.graph
    asked: list[tuple[Any, Message]] = [
        (tenant.graphs.GetGraph, graph_pb2.GetGraphRequest(graph_id=graph)),
        (tenant.graphs.ListPredicates, graph_pb2.ListPredicatesRequest(graph_id=graph, page_size=1000)),
        (tenant.memory.ListEntities, memory_entities_pb2.ListEntitiesRequest(graph_id=graph, page_size=1000)),
        (
            tenant.memory.ListVoiceAspects,
            memory_voice_pb2.ListVoiceAspectsRequest(graph_id=graph, include_ended=True, page_size=1000),
        ),
        (
            tenant.memory.GetDocument,
            memory_episodes_pb2.GetDocumentRequest(graph_id=graph, document_id="cv", version=1),
        ),
    ]
    known = (await tenant.call(*asked[0])).graph.revision.revision
    assert known >= 7
    for revision in (1, known // 2, known):
        at = common_pb2.KnownAt(revision=revision)
        for more in ({"include_ended": True}, {"valid_at": day("2024-06-01")}):
            request = memory_statements_pb2.ListStatementsRequest(
                graph_id=graph, page_size=1000, known_at=at, **more
            )
            asked.append((tenant.memory.ListStatements, request))
        since = memory_graph_pb2.SystemTimes(before=common_pb2.KnownAt(revision=revision - 1), after=at)
        asked.append(
            (
                tenant.memory.DiffGraph,
                memory_graph_pb2.DiffGraphRequest(graph_id=graph, system=since, page_size=1000),
            )
        )
    for one in await memory.statements():
        whole = memory_statements_pb2.GetStatementRequest(
            graph_id=graph, statement_id=one.statement_id, include_past_beliefs=True
        )
        asked.append((tenant.memory.GetStatement, whole))
    episodes = memory_episodes_pb2.ListEpisodesRequest(graph_id=graph, page_size=1000)
    told = [str(await tenant.call(method, request)) for method, request in asked]
    for episode in (await tenant.call(tenant.memory.ListEpisodes, episodes)).episodes:
        # How far its job had come is told where the job was.
        episode.ClearField("stage")
        told.append(str(episode))
        asked_for = memory_episodes_pb2.GetEpisodeRequest(graph_id=graph, episode_id=episode.episode_id)
        read = await tenant.call(tenant.memory.GetEpisode, asked_for)
        read.episode.ClearField("stage")
        told.append(str(read))
    for query in ("Where does Ana live?", "short answers"):
        answer = await memory.recall(query)
        told.append(str(answer))
    return [text.replace(f'"{graph}"', '"graph"') for text in told]


class Exported:
    """An export as it came."""

    def __init__(self, parts: list[privacy_pb2.ExportGraphResponse]) -> None:
        assert [part.WhichOneof("part") for part in (parts[0], parts[-1])] == ["header", "trailer"]
        self.header, self.trailer = parts[0].header, parts[-1].trailer
        self.data = [part.data for part in parts[1:-1]]

    def messages(self, graph: str, request_id: str) -> list[privacy_pb2.ImportGraphRequest]:
        start = privacy_pb2.ImportStart(graph_id=graph, request_id=request_id, header=self.header)
        return [
            privacy_pb2.ImportGraphRequest(start=start),
            *(privacy_pb2.ImportGraphRequest(data=data) for data in self.data),
            privacy_pb2.ImportGraphRequest(trailer=self.trailer),
        ]


async def exported(memory: Memory) -> Exported:
    tenant, request = memory.tenant, privacy_pb2.ExportGraphRequest(graph_id=memory.graph)
    answers = tenant.privacy.ExportGraph(request, metadata=tenant.metadata, timeout=60)
    return Exported([part async for part in answers])


async def imported(tenant: Tenant, messages: list[privacy_pb2.ImportGraphRequest]) -> job_pb2.Job:
    answer = await tenant.privacy.ImportGraph(iter(messages), metadata=tenant.metadata, timeout=60)
    assert isinstance(answer, privacy_pb2.ImportGraphResponse)
    return answer.job


async def refused(tenant: Tenant, messages: list[privacy_pb2.ImportGraphRequest]) -> Refusal:
    try:
        job = await imported(tenant, messages)
    except grpc.aio.AioRpcError as error:
        return Refusal.of(error)
    raise AssertionError(f"it was taken: {job}")


@pytest.mark.slow
async def test_a_graph_is_taken_out_and_brought_back_as_it_was(product: Product, memory: Memory) -> None:
    out, before = await exported(memory), await reads(memory)
    spent = await balance(memory.tenant)
    beside = Memory(memory.tenant, "copy")
    elsewhere = Memory(await product.tenant(f"tenant-{next(_numbers)}"), "notes")
    for there in (beside, elsewhere):
        job = await imported(there.tenant, out.messages(there.graph, "import"))
        assert (job.state, job.revision) == (job_pb2.JOB_STATE_SUCCEEDED, out.header.revision)
        assert job.kind == job_pb2.JOB_KIND_IMPORT
        for read, told in zip(await reads(there), before, strict=True):
            assert [line for line in read.splitlines() if line not in told] == []
            assert read == told
        again = await exported(there)
        assert (again.data, again.trailer) == (out.data, out.trailer)
    assert await balance(memory.tenant) == spent
    # It lives on: what it is told next it takes as the first would, and the first knows nothing of it.
    await elsewhere.say("I live in Wels now.", "2026-01-01", session_id="one")
    assert ("Ana", "lives_in", "Linz", "2025-01-01", "2026-01-01") in await elsewhere.facts()
    assert await reads(beside) == before
    events = privacy_pb2.ListAuditEventsRequest(graph_id="copy", action="ImportGraph")
    (event,) = (await beside.tenant.call(beside.tenant.privacy.ListAuditEvents, events)).events
    assert event.request_id == "import"


@pytest.mark.slow
async def test_the_same_import_again_is_the_same_job(product: Product, memory: Memory) -> None:
    out, there = await exported(memory), await product.tenant(f"tenant-{next(_numbers)}")
    first = await imported(there, out.messages("copy", "import"))
    assert (await imported(there, out.messages("copy", "import"))).job_id == first.job_id
    other = out.messages("another", "import")
    assert (await refused(there, other)).reason == "REQUEST_ID_REUSED"
    taken = await refused(there, out.messages("copy", "another"))
    assert (taken.code, taken.reason) == (grpc.StatusCode.ALREADY_EXISTS, "GRAPH_ALREADY_EXISTS")
    listed = jobs_pb2.ListJobsRequest(kind=job_pb2.JOB_KIND_IMPORT)
    assert len((await there.call(there.jobs.ListJobs, listed)).jobs) == 1


@pytest.mark.slow
async def test_a_graph_that_is_there_is_not_overwritten(memory: Memory) -> None:
    out, before = await exported(memory), await memory.facts()
    refusal = await refused(memory.tenant, out.messages("notes", "over itself"))
    assert refusal.reason == "GRAPH_ALREADY_EXISTS"
    assert await memory.facts() == before


def broken(out: Exported) -> Iterator[tuple[str, list[privacy_pb2.ImportGraphRequest]]]:
    """Imports that are none, by what is wrong with them."""
    whole = out.messages("broken", "broken")
    start, *data, trailer = whole
    cut = privacy_pb2.ImportGraphRequest(data=data[-1].data[:-30])
    yield "cut within a line", [start, *data[:-1], cut, trailer]
    yield "cut between messages", [start, *data[:-1], trailer]
    yield "without its trailer", [start, *data]
    yield "without its start", [*data, trailer]
    yield "nothing at all", []
    yield "twice its data", [start, *data, *data, trailer]
    yield "after its trailer", [*whole, data[-1]]
    yield "started twice", [start, *whole]
    swapped = data[0].data.replace(b"Europe/Vienna", b"Europe/Zurich")
    yield "garbled", [start, privacy_pb2.ImportGraphRequest(data=swapped), *data[1:], trailer]
    yield "foreign", [start, privacy_pb2.ImportGraphRequest(data=b'{"some":"json"}\n'), trailer]
    newer = privacy_pb2.ImportGraphRequest()
    newer.CopyFrom(start)
    newer.start.header.format_version = 2
    yield "of a newer version", [newer, *data, trailer]
    older = privacy_pb2.ImportGraphRequest()
    older.CopyFrom(start)
    older.start.header.revision -= 1
    yield "of another revision", [older, *data, trailer]
    nameless = privacy_pb2.ImportGraphRequest()
    nameless.CopyFrom(start)
    nameless.start.graph_id = ""
    yield "into no graph", [nameless, *data, trailer]


async def test_what_is_no_whole_export_is_refused_and_leaves_nothing(
    product: Product, memory: Memory
) -> None:
    out, there = await exported(memory), await product.tenant(f"tenant-{next(_numbers)}")
    for what, messages in broken(out):
        refusal = await refused(there, messages)
        found = (refusal.code, refusal.reason)
        assert found == (grpc.StatusCode.INVALID_ARGUMENT, "VALIDATION_FAILED"), what
        assert "Graz" not in f"{refusal.text} {refusal.details}", what
    asked = graph_pb2.GetGraphRequest(graph_id="broken")
    assert (await there.refused(there.graphs.GetGraph, asked)).reason == "GRAPH_NOT_FOUND"
    assert not (await there.call(there.graphs.ListGraphs, graph_pb2.ListGraphsRequest())).graphs
    # Nothing of them is in the way of one that is whole.
    await imported(there, out.messages("broken", "broken"))
    assert await Memory(there, "broken").facts() == await memory.facts()


@pytest.mark.slow
async def test_an_import_has_a_largest_size(product: Product, memory: Memory) -> None:
    out, there = await exported(memory), await product.tenant(f"tenant-{next(_numbers)}")
    start, *_ = out.messages("large", "large")
    much = [privacy_pb2.ImportGraphRequest(data=out.data[0]), *out.messages("large", "large")[2:-1] * 40]
    refusal = await refused(there, [start, *much])
    assert refusal.reason == "DOCUMENT_TOO_LARGE"


async def test_a_graph_in_the_making_is_not_there_yet(product: Product, memory: Memory) -> None:
    """Reads don't find it, writes wait for it, another import too; one that was left is taken over."""
    out, there = await exported(memory), await product.tenant(f"tenant-{next(_numbers)}")
    stores = product.running.gateway.stores
    row = await stores.graphs.get(scope_of(memory))
    scope = scope_of(Memory(there, "making"))
    making = Making(scope, "0" * 64, row.settings, row.created_at, row.updated_at)
    owner, _ = await stores.imports.begin(making)
    asked = graph_pb2.GetGraphRequest(graph_id="making")
    assert (await there.refused(there.graphs.GetGraph, asked)).reason == "GRAPH_NOT_FOUND"
    assert not (await there.call(there.graphs.ListGraphs, graph_pb2.ListGraphsRequest())).graphs
    create = graph_pb2.CreateGraphRequest(graph_id="making")
    assert (await there.refused(there.graphs.CreateGraph, create)).reason == "OVERLOADED"
    say = Memory(there, "making").episode("Ana knows Gus.", "2025-01-01")
    assert (await there.refused(there.memory.AddEpisode, say)).reason == "OVERLOADED"
    assert (await refused(there, out.messages("making", "mine"))).reason == "OVERLOADED"
    await stores.imports.give_up(scope, owner)
    await imported(there, out.messages("making", "mine"))
    assert await Memory(there, "making").facts() == await memory.facts()


def scope_of(memory: Memory) -> Scope:
    return Scope(TenantId(memory.tenant.name), GraphId(memory.graph))


@pytest.mark.slow
async def test_writers_go_on_and_are_not_in_it(product: Product, memory: Memory) -> None:
    busy = Memory(await product.tenant(f"tenant-{next(_numbers)}"), "busy")
    for number in range(2):
        await busy.assert_triples((f"Ana{number}", "knows", "Gus"))

    async def write() -> None:
        for number in range(2, 6):
            await busy.assert_triples((f"Ana{number}", "knows", "Gus"))

    writing = asyncio.create_task(write())
    outs = [await exported(busy) for _ in range(2)]
    await writing
    for number, out in enumerate(outs):
        copy = Memory(busy.tenant, f"copy-{number}")
        await imported(copy.tenant, out.messages(copy.graph, copy.graph))
        known = common_pb2.KnownAt(revision=out.header.revision)
        assert await copy.facts() == await busy.facts(known_at=known)
        assert len(await copy.facts()) == out.header.revision


async def test_a_client_carries_it_in_a_file(product: Product, memory: Memory, tmp_path: Path) -> None:
    file, there = tmp_path / "notes.jsonl", await product.tenant(f"tenant-{next(_numbers)}")
    target = product.running.gateway.target
    async with Connection(target, memory.tenant.key) as connection:
        await export_graph(connection, "notes", file)
        assert file.stat().st_mode & 0o777 == 0o600
        with pytest.raises(FileExistsError):
            await export_graph(connection, "notes", file)
        with pytest.raises(CallError):
            await export_graph(connection, "nothing", tmp_path / "nothing.jsonl")
    assert not list(tmp_path.glob("*nothing*"))  # noqa: ASYNC240
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(file.read_bytes()[:-300])
    garbled = tmp_path / "garbled.jsonl"
    garbled.write_bytes(file.read_bytes().replace(b"Linz", b"Lunz"))
    async with Connection(target, there.key) as connection:
        with pytest.raises(NotAnExport):
            await import_graph(connection, "notes", cut, "cut")
        with pytest.raises(CallError):
            await import_graph(connection, "notes", garbled, "garbled")
        answer = await import_graph(connection, "notes", file, "whole")
        assert answer.job.state == job_pb2.JOB_STATE_SUCCEEDED
    assert await Memory(there, "notes").facts() == await memory.facts()


async def test_an_import_that_was_left_is_in_nobodys_way(product: Product, memory: Memory) -> None:
    """What one left that died is removed by the next, and by an erasure of the tenant."""
    out, there = await exported(memory), await product.tenant(f"tenant-{next(_numbers)}")
    stores, resources = product.running.gateway.stores, product.resources
    row = await stores.graphs.get(scope_of(memory))
    scope = scope_of(Memory(there, "left"))
    late = Imports(stores.ledger_database, SkewedClock(-1000), Quotas(stores.clock, Limits()))
    await late.begin(Making(scope, "0" * 64, row.settings, row.created_at, row.updated_at))
    await resources.memory.text.save(scope, [full_episode("left")], [], None)
    assert [one.scope for one in await stores.graphs.every(TenantId(there.name), making=True)] == [scope]
    await imported(there, out.messages("left", "mine"))
    copy = Memory(there, "left")
    assert await copy.facts() == await memory.facts()
    assert await resources.memory.text.episodes(scope, [EpisodeId("left")]) == []


@pytest.mark.slow
async def test_what_was_erased_is_brought_back(product: Product, memory: Memory) -> None:
    out, there = await exported(memory), await product.tenant(f"tenant-{next(_numbers)}")
    await imported(there, out.messages("copy", "first"))
    asked = privacy_pb2.EraseGraphRequest(graph_id="copy", request_id="erase")
    erasing = await there.call(there.privacy.EraseGraph, asked)
    await Memory(there, "copy").end_of(erasing.erasure.erasure_id)
    again = await imported(there, out.messages("copy", "second"))
    assert again.state == job_pb2.JOB_STATE_SUCCEEDED
    assert await Memory(there, "copy").facts() == await memory.facts()
