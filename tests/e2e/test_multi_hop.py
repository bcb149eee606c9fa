"""A fact two steps from what the question names is found by walking, though no text names both."""

from collections.abc import AsyncIterator
from itertools import count

import pytest
import pytest_asyncio

from palimpsest.v1.recall_pb2 import RECALL_LEG_WALK
from services.llm.offline import OfflineEngine
from tests.builders import on
from tests.doubles.product import Product, a_product
from tests.e2e.stories import case
from tests.e2e.talking import Memory, names

pytestmark = pytest.mark.asyncio(loop_scope="module")

_numbers = count()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    folder = tmp_path_factory.mktemp("hops")
    async with a_product(folder, OfflineEngine(), now=lambda: on("2026-08-01")) as product:
        yield product


@pytest_asyncio.fixture(loop_scope="module")
async def memory(product: Product) -> Memory:
    return Memory(await product.tenant(f"tenant-{next(_numbers)}"), "notes")


TRIPLES = [tuple(triple) for triple in case("multi-hop")["facts"]]
HOPS = [
    (TRIPLES, case("multi-hop")["ask"], "KV: GUESTBOOK"),
    (
        [
            ("Ilse", "leads", "Borealis"),
            ("Borealis", "hosted_in", "Falkenstein"),
            ("Oskar", "leads", "Zephyr"),
        ],
        "In which town are the servers of what Ilse leads?",
        "Falkenstein",
    ),
    (
        [("Rana", "reports_to", "Tom"), ("Tom", "works_at", "Globex"), ("Uli", "works_at", "Initech")],
        "Which company does Rana's boss belong to?",
        "Globex",
    ),
]
HOPS_IN_TEXT = [
    (
        [
            "Wen maintains Study.",
            "Study is deployed on Cloudflare Pages.",
            "The storage binding of Study is KV: GUESTBOOK.",
        ],
        case("multi-hop")["ask"],
        "KV: GUESTBOOK",
    ),
    (
        ["Ilse leads Borealis.", "Borealis runs on Hetzner.", "Borealis uses Loki."],
        "What keeps the logs of the project that Ilse leads?",
        "Loki",
    ),
]


@pytest.mark.parametrize(("triples", "question", "wanted"), HOPS)
async def test_two_hops_over_asserted_facts(
    memory: Memory, triples: list[tuple[str, str, str]], question: str, wanted: str
) -> None:
    for triple in triples:  # each by itself: no text names both ends
        await memory.assert_triples(triple)
    await check_hops(memory, question, wanted)


@pytest.mark.parametrize(("texts", "question", "wanted"), HOPS_IN_TEXT)
async def test_two_hops_from_text(memory: Memory, texts: list[str], question: str, wanted: str) -> None:
    for number, text in enumerate(texts):
        await memory.say(text, f"2026-01-0{number + 1}")
    await check_hops(memory, question, wanted)


async def check_hops(memory: Memory, question: str, wanted: str) -> None:
    """The wanted fact is reached over two edges, and not by a walk that may take only one."""
    answer = await memory.recall(question, max_hops=2, explain=True)
    (fact,) = [one for one, name in zip(answer.facts, names(answer.facts), strict=True) if name[2] == wanted]
    assert RECALL_LEG_WALK in {found.leg for found in fact.found_by}
    assert len(fact.path) == 2
    assert wanted in answer.context
    near = await memory.recall(question, max_hops=1, explain=True)
    walked = [
        name[2]
        for one, name in zip(near.facts, names(near.facts), strict=True)
        if RECALL_LEG_WALK in {found.leg for found in one.found_by}
    ]
    assert wanted not in walked
