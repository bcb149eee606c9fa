"""Two spellings of one name through the whole product: one entity with the facts of both, or two in doubt."""

from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio

from palimpsest.v1 import entity_pb2, job_pb2, memory_entities_pb2
from services.llm.offline import OfflineEngine
from services.llm.openai_engine import OpenAIEngine
from tests.builders import on
from tests.doubles import misbehaviour
from tests.doubles.misbehaviour import fact
from tests.doubles.model_replies import Reply, Rule, answer
from tests.doubles.model_server import ModelServer
from tests.doubles.product import Product, a_product
from tests.e2e.talking import Memory
from tests.examples import sampled

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = count()


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def offline(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    folder: Path = tmp_path_factory.mktemp("offline")
    async with a_product(folder, OfflineEngine(), now=lambda: on("2026-08-01")) as product:
        yield product


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def modelled(tmp_path_factory: pytest.TempPathFactory, server: ModelServer) -> AsyncIterator[Product]:
    engine = OpenAIEngine(server.settings())
    folder: Path = tmp_path_factory.mktemp("modelled")
    async with a_product(folder, engine, now=lambda: on("2026-08-01")) as product:
        yield product
    await engine.aclose()


async def a_memory(product: Product) -> Memory:
    return Memory(await product.tenant(f"tenant-{next(_numbers)}"), "notes")


async def entity(memory: Memory, name: str) -> entity_pb2.Entity:
    asked = memory_entities_pb2.GetEntityRequest(graph_id="notes", entity=entity_pb2.EntityRef(name=name))
    answer: memory_entities_pb2.GetEntityResponse = await memory.tenant.call(
        memory.tenant.memory.GetEntity, asked
    )
    return answer.entity


SPELLED = [
    ("Maya Kapoor works at Globex. Maya K. lives in Graz.", "Maya K", "Maya Kapoor"),
    ("Maya K. lives in Graz. Maya Kapoor works at Globex.", "Maya K", "Maya Kapoor"),
    ("Ravi Sharma works at Globex. R. Sharma lives in Graz.", "R. Sharma", "Ravi Sharma"),
    ("张伟住在Graz。張偉在Globex工作。", "张伟", "張偉"),
]


@pytest.mark.parametrize(("said", "short", "full"), sampled(SPELLED))
async def test_without_a_model_two_spellings_in_one_text_are_one(
    offline: Product, said: str, short: str, full: str
) -> None:
    memory = await a_memory(offline)
    job = await memory.say(said, "2026-01-05")
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    one, other = await entity(memory, short), await entity(memory, full)
    assert one == other
    assert {one.name, *one.aliases} == {short, full}
    assert {(name, target) for name, _, target, _, _ in await memory.facts()} == {
        (one.name, "Graz"),
        (one.name, "Globex"),
    }
    await memory.delete(job.result.episode_ids[0])
    assert await memory.facts() == set()


async def test_without_a_model_doubt_keeps_both(offline: Product) -> None:
    memory = await a_memory(offline)
    await memory.say("Maya Kapoor works at Globex.", "2026-01-05")
    await memory.say("Maya K. lives in Graz.", "2026-01-06")
    assert (await entity(memory, "Maya Kapoor")).entity_id != (await entity(memory, "Maya K")).entity_id
    await memory.say("Maya Kumar works at Globex. Maya K. owns a kite.", "2026-01-07")
    ids = {(await entity(memory, name)).entity_id for name in ("Maya Kapoor", "Maya Kumar", "Maya K")}
    assert len(ids) == 3, "the second Maya K. may be either"


def drawn(said: str, *facts: tuple[str, str, str]) -> Rule:
    """What the model draws from a text: triples, each with the text as its quote."""
    found = [fact(subject, predicate, target, said) for subject, predicate, target in facts]
    return Rule("extract_world", said, answer({"facts": found}))


async def test_a_model_joins_what_the_facts_speak_for(modelled: Product, server: ModelServer) -> None:
    memory = await a_memory(modelled)
    first, second = "IBM sells the z17 mainframe", "International Business Machines builds the z17 mainframe"
    server.rules[:] = [
        drawn(first, ("IBM", "sells", "z17 mainframe")),
        drawn(second, ("International Business Machines", "builds", "z17 mainframe")),
    ]
    await memory.say(first, "2026-01-05")
    job = await memory.say(second, "2026-01-06")
    assert (await entity(memory, "IBM")).name == "International Business Machines"
    assert {one[:3] for one in await memory.facts()} == {
        ("International Business Machines", "sells", "z17 mainframe"),
        ("International Business Machines", "builds", "z17 mainframe"),
    }
    judging = {"judge_entities", "resolve"}
    assert [stage.calls for stage in job.receipt.stages if stage.stage in judging] == [1]


@pytest.mark.parametrize(
    "reply",
    [
        misbehaviour.everything_is_one().reply,
        answer([[0, 1], [1, 0]]),
        answer({"verdicts": [{"new": 0, "candidate": 99, "verdict": "SAME", "why": ""}]}),
        Reply("They are all the same, I think."),
    ],
    ids=["everything is one", "lists", "unknown ids", "prose"],
)
async def test_a_wrong_answer_mixes_nobody_up(modelled: Product, server: ModelServer, reply: Reply) -> None:
    memory = await a_memory(modelled)
    known, new = "Maya Kapoor knows Maya Kumar", "Maya K called about PostgreSQL 16.1 and PostgreSQL 16.10"
    server.rules[:] = [
        drawn(known, ("Maya Kapoor", "knows", "Maya Kumar")),
        drawn(
            new, ("Maya K", "asked_about", "PostgreSQL 16.1"), ("Maya K", "asked_about", "PostgreSQL 16.10")
        ),
        Rule("judge_entities", "", reply),
    ]
    await memory.say(known, "2026-01-05")
    job = await memory.say(new, "2026-01-06")
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    asked = [*server.of_task("judge_entities"), *server.of_task("resolve")]
    assert asked, "the names were asked about"
    assert {one[:3] for one in await memory.facts()} == {
        ("Maya Kapoor", "knows", "Maya Kumar"),
        ("Maya K", "asked_about", "PostgreSQL 16.1"),
        ("Maya K", "asked_about", "PostgreSQL 16.10"),
    }
