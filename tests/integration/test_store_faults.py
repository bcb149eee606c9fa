"""Each call of each store fails once, in an ingest and in a recall: nothing is lost or done twice."""

import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from palimpsest.v1 import credits_pb2, job_pb2, recall_pb2
from services.domain.scope import GraphId, Scope, TenantId
from services.llm.offline.engine import OfflineEngine
from services.runtime.resources import Resources
from services.stores.vectors.port import Collection
from tests.doubles.failing_store import FailingStore, Faults, Lost
from tests.doubles.gateway import Refusal
from tests.doubles.product import Product, Tenant, a_product
from tests.e2e.talking import Memory

COMPONENTS = ("graph", "memory", "vectors")
MEMORY_PARTS = ("text", "staging", "revisions", "voice", "decisions")
EARLIER, LATER = "Ana lives in Graz.", "Ana moved to Linz in March 2025. I prefer short answers."
NAMED = {
    "graph": recall_pb2.RECALL_COMPONENT_GRAPH_STORE,
    "memory": recall_pb2.RECALL_COMPONENT_MEMORY_STORE,
    "vectors": recall_pb2.RECALL_COMPONENT_VECTOR_STORE,
}
TENANT = "acme"
QUESTION = "Where does Ana live?"
SOME = 25
"""Every so many calls one fails in the run of every day; in the long run each does."""


@dataclass
class Scene:
    """A product whose stores fail at will, and its one tenant."""

    product: Product
    tenant: Tenant
    faults: dict[str, Faults]
    _graphs: Iterator[int]

    def graph(self) -> Memory:
        return Memory(self.tenant, f"g{next(self._graphs)}")

    def scope(self, memory: Memory) -> Scope:
        return Scope(TenantId(TENANT), GraphId(memory.graph))

    async def state(self, memory: Memory, job: job_pb2.Job) -> dict[str, Any]:
        """All that an ingest leaves behind, without ids."""
        scope, vectors = self.scope(memory), self.product.resources.vectors
        entries = await memory.ledger(job.job_id)
        return {
            "facts": await memory.facts(),
            "claims": await memory.claims(),
            "voice": [one.text for one in await memory.voice("answers")],
            "vectors": {one.value: await vectors.count(scope, one) for one in Collection},
            "revision": job.revision,
            "spent": job.credits.spent_micros,
            "settled": sum(entry.kind == credits_pb2.LEDGER_ENTRY_KIND_SETTLE for entry in entries),
        }


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    faults = {component: Faults(component) for component in COMPONENTS}

    def behind(resources: Resources) -> Resources:
        graph: Any = FailingStore(resources.graph, faults["graph"])
        memory: Any = FailingStore(resources.memory, faults["memory"], MEMORY_PARTS)
        vectors: Any = FailingStore(resources.vectors, faults["vectors"])
        return replace(resources, graph=graph, memory=memory, vectors=vectors)

    async with a_product(tmp_path, OfflineEngine(), behind=behind) as product:
        tenant = await product.tenant(TENANT)
        yield Scene(product, tenant, faults, itertools.count())


DAILY = [("graph", Lost.ANSWER)]
LOSSES = [
    pytest.param(
        component,
        every,
        lost,
        id=f"{component}-{'every' if every else 'some'}-{lost}",
        marks=() if (component, lost) in DAILY and not every else pytest.mark.slow,
    )
    for component in COMPONENTS
    for every in (False, True)
    for lost in Lost
]


def calls_to_lose(every: bool) -> Iterator[int]:
    return itertools.count(1, 1 if every else SOME)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("component", "every", "lost"), LOSSES)
async def test_an_ingest_ends_in_the_same_state_whichever_call_is_lost(
    scene: Scene, component: str, every: bool, lost: Lost
) -> None:
    faults = scene.faults[component]
    expected = await ingest(scene, faults, 0, lost)
    assert ("Ana", "lives_in", "Linz", "2025-03-01", "") in expected["facts"]
    assert expected["settled"]
    for at in calls_to_lose(every):
        found = await ingest(scene, faults, at, lost)
        if not faults.struck:
            assert at > 1, "the store is asked for something"
            return
        assert found == expected, f"lost {lost} {at}: {faults.calls[at - 1]}"


async def ingest(scene: Scene, faults: Faults, at: int, lost: Lost) -> dict[str, Any]:
    """The state after two texts, of which the second meets the fault."""
    memory = scene.graph()
    await memory.say(EARLIER, at="2025-01-01")
    faults.watch(scene.scope(memory), at, lost)
    job = await memory.say(LATER, at="2025-04-01")
    faults.scope = None
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED, (at, faults.calls[-3:], job.error)
    return await scene.state(memory, job)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("component", COMPONENTS)
async def test_a_recall_that_loses_a_call_is_whole_degraded_or_refused_as_asked(
    scene: Scene, component: str
) -> None:
    memory = scene.graph()
    await memory.say(EARLIER, at="2025-01-01")
    whole = await memory.recall(QUESTION, token_budget=500)
    faults = scene.faults[component]
    for at in itertools.count(1):
        faults.watch(scene.scope(memory), at)
        refused = await asked(memory, degraded=False)
        if not faults.struck:
            assert refused == whole
            break
        assert isinstance(refused, Refusal)
        assert (refused.reason, refused.retryable) == ("STORE_UNAVAILABLE", True)
        faults.watch(scene.scope(memory), at)
        partial = await asked(memory, degraded=True)
        if isinstance(partial, Refusal):
            assert component == "memory", "without it no revision is known"
        elif faults.struck:
            assert [one.component for one in partial.degraded] == [NAMED[component]]
        faults.watch(scene.scope(memory))
        assert await asked(memory, degraded=False) == whole, "the next call is whole"


async def asked(memory: Memory, degraded: bool) -> recall_pb2.RecallResponse | Refusal:
    request = recall_pb2.RecallRequest(
        graph_ids=[memory.graph], query=QUESTION, token_budget=500, allow_degraded=degraded
    )
    tenant = memory.tenant
    try:
        answer: recall_pb2.RecallResponse = await tenant.call(tenant.recall.Recall, request)
    except grpc.aio.AioRpcError as error:
        return Refusal.of(error)
    return answer


@pytest.mark.parametrize(
    ("component", "leg"),
    [("vectors", recall_pb2.RECALL_LEG_DENSE), ("graph", recall_pb2.RECALL_LEG_WALK)],
)
async def test_a_store_that_is_down_takes_its_leg_from_what_is_explained(
    scene: Scene, component: str, leg: recall_pb2.RecallLeg.ValueType
) -> None:
    memory, asked_before = scene.graph(), scene.graph()
    for each in (memory, asked_before):
        await each.say(EARLIER, at="2025-01-01")
    assert leg in await legs(asked_before)
    scene.faults[component].down = True
    assert leg not in await legs(memory)
    assert leg in await legs(asked_before), "what is held in memory needs no store"
    (missing,) = (await memory.recall(QUESTION, allow_degraded=True)).degraded
    assert missing.component == NAMED[component]
    assert leg in missing.legs
    scene.faults[component].down = False
    assert leg in await legs(memory)


async def legs(memory: Memory) -> set[recall_pb2.RecallLeg.ValueType]:
    """Which found anything, as the answer explains."""
    answer = await memory.recall(QUESTION, explain=True, allow_degraded=True)
    facts = {rank.leg for fact in answer.facts for rank in fact.found_by}
    return facts | {rank.leg for passage in answer.passages for rank in passage.found_by}
