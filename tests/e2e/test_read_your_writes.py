"""A fact is invisible until its revision is published, then read without sleeping; deleting undoes it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio

from palimpsest.v1 import (
    common_pb2,
    entity_pb2,
    episode_pb2,
    graph_pb2,
    job_pb2,
    memory_episodes_pb2,
    memory_statements_pb2,
    recall_pb2,
    recall_subgraph_pb2,
)
from services.domain.scope import Scope
from services.llm.offline import OfflineEngine
from services.llm.port import Answer
from services.llm.tasks import Judged, JudgeStatements
from tests.builders import on
from tests.doubles.product import Product, a_product
from tests.e2e.talking import Memory, day, names
from tests.examples import sampled

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = count()


class Gated(OfflineEngine):
    """The built-in rules, whose verdicts on statements can be held back: then a chunk stays understood."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()

    def close(self) -> None:
        self.reached.clear()
        self.gate.clear()

    async def judge_statements(self, scope: Scope, task: JudgeStatements) -> Answer[Judged]:
        self.reached.set()
        await self.gate.wait()
        return await super().judge_statements(scope, task)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> Gated:
    return Gated()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory, engine: Gated) -> AsyncIterator[Product]:
    folder: Path = tmp_path_factory.mktemp("writes")
    async with a_product(folder, engine, now=lambda: on("2026-08-01")) as product:
        yield product


@pytest_asyncio.fixture(loop_scope="module")
async def memory(product: Product) -> Memory:
    """A graph that knows one thing, at revision 1."""
    memory = Memory(await product.tenant(f"tenant-{next(_numbers)}"), "notes")
    assert (await memory.say("Atlas uses Redis.", "2025-01-01")).revision == 1
    return memory


async def start(memory: Memory, said: str, at: str) -> str:
    """Says something without waiting; returns the job."""
    answer = await memory.tenant.call(memory.tenant.memory.AddEpisode, memory.episode(said, at))
    return str(answer.job.job_id)


ATLAS = entity_pb2.EntityRef(name="Atlas")
USES = entity_pb2.PredicateRef(name="uses")


def timeline_of(memory: Memory, **more: Any) -> tuple[Any, Any]:
    asked = memory_statements_pb2.GetTimelineRequest(
        graph_id=memory.graph, subject=ATLAS, predicate=USES, **more
    )
    return memory.tenant.memory.GetTimeline, asked


def statements_of(memory: Memory, **more: Any) -> tuple[Any, Any]:
    return memory.tenant.memory.ListStatements, memory_statements_pb2.ListStatementsRequest(
        graph_id=memory.graph, **more
    )


def recall_of(memory: Memory, **more: Any) -> tuple[Any, Any]:
    return memory.tenant.recall.Recall, recall_pb2.RecallRequest(
        graph_ids=[memory.graph], query="What does Atlas use?", **more
    )


def subgraph_of(memory: Memory, **more: Any) -> tuple[Any, Any]:
    return memory.tenant.recall.GetSubgraph, recall_subgraph_pb2.GetSubgraphRequest(
        graph_id=memory.graph, seeds=[ATLAS], **more
    )


READS: Mapping[str, Callable[..., tuple[Any, Any]]] = {
    "GetTimeline": timeline_of,
    "ListStatements": statements_of,
    "Recall": recall_of,
    "GetSubgraph": subgraph_of,
}


async def objects(memory: Memory, name: str, **more: Any) -> set[str]:
    """What Atlas uses, as one of the reads tells."""
    answer = await memory.tenant.call(*READS[name](memory, **more))
    match name:
        case "GetTimeline":
            return {entry.object.entity.name for entry in answer.entries}
        case "ListStatements":
            return {one.object.entity.name for one in answer.statements}
        case "Recall":
            return {found[2] for found in names(answer.facts)}
        case _:
            return {node.entity.name for node in answer.nodes} - {"Atlas"}


async def test_what_is_stored_is_not_seen_before_it_is_published(memory: Memory, engine: Gated) -> None:
    engine.close()
    try:
        asked = memory.episode("Atlas uses Kafka.", "2025-02-01", wait_for=episode_pb2.CHUNK_STAGE_UNDERSTOOD)
        accepted = await memory.tenant.call(memory.tenant.memory.AddEpisode, asked)
        await asyncio.wait_for(engine.reached.wait(), 30)
        (chunk,) = accepted.job.chunks
        assert chunk.stage == episode_pb2.CHUNK_STAGE_UNDERSTOOD
        for name in READS:
            assert await objects(memory, name) == {"Redis"}
        graph = await memory.tenant.call(
            memory.tenant.graphs.GetGraph, graph_pb2.GetGraphRequest(graph_id="notes")
        )
        assert (graph.graph.revision.revision, graph.graph.counts.statements) == (1, 1)
        # Reads of the next revision are waiting now; nothing wakes them but its publication.
        waiting = [asyncio.create_task(objects(memory, name, min_revision=2)) for name in READS]
        await asyncio.sleep(0)
    finally:
        engine.gate.set()
    assert await asyncio.gather(*waiting) == [{"Redis", "Kafka"}] * len(READS)
    job = await memory.end_of(accepted.job.job_id)
    assert (job.state, job.revision) == (job_pb2.JOB_STATE_SUCCEEDED, 2)
    for name in READS:
        known_at = common_pb2.KnownAt(revision=1)
        assert await objects(memory, name, known_at=known_at) == {"Redis"}


@pytest.mark.parametrize("name", READS)
async def test_a_write_is_read_by_its_revision_without_sleeping(memory: Memory, name: str) -> None:
    job = await start(memory, "Atlas uses Kafka.", "2025-02-01")
    assert await objects(memory, name, min_revision=2) == {"Redis", "Kafka"}
    assert (await memory.end_of(job)).revision == 2
    done = await memory.assert_triples(("Atlas", "uses", "Loki"))
    assert await objects(memory, name, min_revision=done.revision) == {"Redis", "Kafka", "Loki"}


@pytest.mark.parametrize(
    "more", sampled([{"min_revision": 99}, {"known_at": common_pb2.KnownAt(revision=99)}])
)
@pytest.mark.parametrize("name", sampled(READS))
async def test_a_revision_that_does_not_come_may_be_asked_for_again(
    memory: Memory, name: str, more: dict[str, Any]
) -> None:
    refusal = await memory.tenant.refused(*READS[name](memory, **more), seconds=0.7)
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "REVISION_NOT_READY")
    assert refusal.info.metadata == {"wanted": "99", "published": "1"}
    assert refusal.retryable


MOVES = [
    (["Ivo lives in Graz.", "Ivo moved to Linz."], "Ivo", "lives_in", ("Graz", "Linz")),
    (["John works at Google.", "John left Google and joined Meta."], "John", "works_at", ("Google", "Meta")),
    (["Kite uses MySQL.", "Kite switched from MySQL to Valkey."], "Kite", "uses", ("MySQL", "Valkey")),
]


@pytest.mark.parametrize(
    ("said", "subject", "predicate", "held"), sampled(MOVES), ids=lambda value: str(value)[:9]
)
async def test_deleting_an_episode_restores_what_it_had_struck_out(
    memory: Memory, said: list[str], subject: str, predicate: str, held: tuple[str, str]
) -> None:
    old, new = held
    await memory.say(said[0], "2020-01-01")
    second = await memory.say(said[1], "2023-01-01")
    assert await memory.timeline(subject, predicate) == [
        (old, "2020-01-01", "2023-01-01"),
        (new, "2023-01-01", ""),
    ]
    before = common_pb2.KnownAt(revision=second.revision)
    gone = await memory.delete(second.result.episode_ids[0])
    assert await memory.timeline(subject, predicate) == [(old, "2020-01-01", "")]
    assert gone.revision == second.revision + 1
    assert (gone.counts.episodes_deleted, gone.counts.passages_removed) == (1, 1)
    assert gone.counts.claims_revoked == 1
    (restored,) = [one for one in await memory.statements() if one.object.entity.name == old]
    assert list(gone.restored_statement_ids) == [restored.statement_id]
    assert list(gone.expired_statement_ids) == list(second.result.added_statement_ids)
    # The belief of then is still told, by ids and dates; its text is gone from everywhere.
    then = memory_statements_pb2.ListStatementsRequest(
        graph_id=memory.graph, include_ended=True, known_at=before
    )
    believed = await memory.tenant.call(memory.tenant.memory.ListStatements, then)
    dates = {
        one.statement_id: [(day_span.HasField("invalid_at")) for day_span in one.spans]
        for one in believed.statements
    }
    assert dates[restored.statement_id] == [True]
    assert dates[second.result.added_statement_ids[0]] == [False]
    assert said[1] not in str(await memory.recall(said[1]))
    read = memory_episodes_pb2.GetEpisodeRequest(
        graph_id=memory.graph, episode_id=second.result.episode_ids[0]
    )
    refusal = await memory.tenant.refused(memory.tenant.memory.GetEpisode, read)
    assert refusal.reason == "EPISODE_NOT_FOUND"


async def test_a_deleted_statement_says_since_when_it_is_not_believed(memory: Memory) -> None:
    job = await memory.say("Ivo lives in Graz.", "2020-01-01")
    (made,) = job.result.added_statement_ids
    deleted = await memory.delete(job.result.episode_ids[0])
    assert await memory.facts(subject=entity_pb2.EntityRef(name="Ivo")) == set()
    read = await memory.read(made, include_past_beliefs=True)
    assert read.statement.HasField("expired_at")
    assert [span.known_to.revision for span in read.past_spans] == [deleted.revision]
    (claim,) = read.claims
    assert claim.source.revoked_at.revision == deleted.revision
    assert claim.source.quote == "", "only ids and dates are kept"


async def test_deleting_twice_is_deleting_once(memory: Memory) -> None:
    job = await memory.say("Ivo lives in Graz.", "2020-01-01")
    asked = memory_episodes_pb2.DeleteEpisodeRequest(
        graph_id=memory.graph, episode_id=job.result.episode_ids[0], request_id="gone"
    )
    first = await memory.tenant.call(memory.tenant.memory.DeleteEpisode, asked)
    again = await memory.tenant.call(memory.tenant.memory.DeleteEpisode, asked)
    assert again == first
    asked.request_id = "gone once more"
    other = await memory.tenant.call(memory.tenant.memory.DeleteEpisode, asked)
    assert other.counts == memory_episodes_pb2.DeletionCounts(), "there is nothing left to delete"


async def test_the_users_voice_goes_with_its_episode(memory: Memory) -> None:
    job = await memory.say("Never commit directly to main.", "2025-01-01")
    assert [one.text for one in await memory.voice("How do I commit?")] == ["Never commit directly to main."]
    deleted = await memory.delete(job.result.episode_ids[0])
    assert deleted.counts.voice_aspects_removed == 1
    assert await memory.voice("How do I commit?") == []
    assert await memory.voice("How do I commit?", as_of=day("2025-06-01")) == []


async def test_what_was_deleted_may_be_said_again(memory: Memory) -> None:
    first = await memory.say("Ivo lives in Graz.", "2020-01-01", session_id="s")
    await memory.delete(first.result.episode_ids[0])
    again = await memory.say("Ivo lives in Graz.", "2021-01-01", session_id="s")
    assert again.state == job_pb2.JOB_STATE_SUCCEEDED
    assert await memory.timeline("Ivo", "lives_in") == [("Graz", "2021-01-01", "")]
