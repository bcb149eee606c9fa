"""Documents: chunks that add up to the text, versions that differ by paragraphs, a chunk that fails."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.rpc import error_details_pb2

from gateway.credits.money import DEFAULT_PRICES
from palimpsest.v1 import episode_pb2, errors_pb2, job_pb2, statement_pb2
from services.llm import tokens
from services.llm.openai_engine import OpenAIEngine
from tests.builders import on
from tests.doubles import model_replies as replies
from tests.doubles.model_replies import Asked, Reply, Responder, Rule
from tests.doubles.model_server import ModelServer
from tests.doubles.product import Product, a_product
from tests.doubles.understanding import understand
from tests.e2e.talking import Memory, balance, day_of
from tests.examples import sampled

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENT = episode_pb2.EPISODE_KIND_DOCUMENT
CONVERSATION = episode_pb2.EPISODE_KIND_CONVERSATION
_numbers = count()


@dataclass(frozen=True, slots=True)
class Library:
    """The product and the model behind it."""

    product: Product
    server: ModelServer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def library(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Library]:
    with ModelServer() as server:
        engine = OpenAIEngine(server.settings())
        folder: Path = tmp_path_factory.mktemp("documents")
        async with a_product(folder, engine, now=lambda: on("2026-08-01T12:00:00")) as product:
            yield Library(product, server)
        await engine.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def memory(library: Library) -> Memory:
    """An empty graph of a tenant of its own."""
    library.server.rules.clear()
    return Memory(await library.product.tenant(f"tenant-{next(_numbers)}"), "notes")


async def texts(memory: Memory, job: job_pb2.Job) -> list[str]:
    return [(await memory.read_episode(chunk.episode_id)).text for chunk in job.chunks]


def exactly(amount: int) -> str:
    """A text of so many tokens, which says nothing."""
    text = " 7" * (amount // 2)
    text += "\n" * (amount - tokens.count(text))
    while tokens.count(text) < amount:
        text += " 7"
    assert tokens.count(text) == amount
    return text


@pytest.mark.parametrize("kind", sampled([DOCUMENT, CONVERSATION]))
@pytest.mark.parametrize(("amount", "is_one"), [(1_799, True), (1_800, False)])
async def test_from_1800_tokens_on_a_text_is_several_chunks(
    memory: Memory, amount: int, is_one: bool, kind: episode_pb2.EpisodeKind.ValueType
) -> None:
    text = " word" * amount
    assert tokens.count(text) == amount
    asked = memory.episode(text, "2026-01-01", kind=kind, validate_only=True)
    quote = (await memory.tenant.call(memory.tenant.memory.AddEpisode, asked)).quote
    assert quote.token_count == amount
    job = await memory.say(text, "2026-01-01", kind=kind)
    assert len(job.chunks) == quote.chunk_count
    assert (len(job.chunks) == 1) is is_one
    assert "".join(await texts(memory, job)) == text
    assert all(chunk.token_count <= 1_800 for chunk in job.chunks)


RULES = "".join(f"Rule {line} was read, and then kept. " for line in range(40))
PROSE = "# Handbook\r\n\r\n" + "".join(f"## Part {part}\r\n\r\n{RULES}\r\n\r\n" for part in range(12))
CHINESE = "".join(f"第{number}条：我们在第{number}天讨论了这个问题。\n\n" for number in range(400))
ODD = "\n\n".join(f"👩‍👩‍👧‍👦 e\u0301 {'a' * 40} {number}" for number in range(400)) + "\n \n\t\n"


@pytest.mark.parametrize("text", sampled([CHINESE, PROSE, ODD]), ids=["chinese", "prose", "odd"])
async def test_the_chunks_added_up_are_the_text(memory: Memory, text: str) -> None:
    job = await memory.say(text, "2026-01-01", kind=DOCUMENT)
    parts = await texts(memory, job)
    assert len(parts) > 2
    assert "".join(parts) == text
    for chunk, part in zip(job.chunks, parts, strict=True):
        assert chunk.token_count == tokens.count(part) <= 1_800
        read = await memory.read_episode(chunk.episode_id)
        assert all(part[one.start_offset : one.end_offset] == one.text for one in read.passages)
        assert (read.episode.chunk_index, read.episode.job_id) == (chunk.index, job.job_id)


FIRST = """# Services

Atlas uses MySQL.

Borealis uses Loki.

Kite uses Redis.
"""
WITHOUT = """# Services

Atlas uses MySQL.
"""
WITHOUT_AND_MORE = """# Services

Atlas uses MySQL.

Zephyr uses Kafka.
"""


async def write(memory: Memory, text: str, at: str) -> job_pb2.Job:
    job = await memory.say(text, at, kind=DOCUMENT, document_id="services")
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    return job


@pytest.mark.parametrize(
    "second", sampled([WITHOUT, WITHOUT_AND_MORE]), ids=["only dropped", "dropped and added"]
)
@pytest.mark.case("two versions of a document")
async def test_what_only_a_dropped_paragraph_said_ends_with_its_version(memory: Memory, second: str) -> None:
    first = await write(memory, FIRST, "2026-01-10")
    assert first.result.document_version == 1
    await memory.say("Kite uses Redis.", "2026-01-12")  # another source of the same fact
    job = await write(memory, second, "2026-02-20")
    assert (job.result.document_id, job.result.document_version) == ("services", 2)
    expected = {
        ("Atlas", "uses", "MySQL", "2026-01-10", ""),
        ("Borealis", "uses", "Loki", "2026-01-10", "2026-02-20"),
        ("Kite", "uses", "Redis", "2026-01-10", ""),
    }
    if second is WITHOUT_AND_MORE:
        expected.add(("Zephyr", "uses", "Kafka", "2026-02-20", ""))
    assert await memory.facts() == expected
    (ended,) = [one for one in await memory.statements() if one.HasField("invalid_at")]
    assert list(job.result.ended_statement_ids) == [ended.statement_id]
    cause = ended.spans[0].end_cause
    assert (cause.kind, cause.origin) == (
        statement_pb2.CAUSE_KIND_END,
        statement_pb2.RECORD_ORIGIN_SOURCE_REMOVED,
    )
    (end,) = (await memory.read(ended.statement_id)).ends
    assert (day_of(end, "ended_at"), end.source.origin) == (
        "2026-02-20",
        statement_pb2.RECORD_ORIGIN_SOURCE_REMOVED,
    )
    if second is WITHOUT_AND_MORE:
        assert cause.episode_id == ended.invalidated_by == job.result.episode_ids[0]


async def test_only_what_changed_is_understood_and_paid_for(library: Library, memory: Memory) -> None:
    await write(memory, FIRST, "2026-01-10")
    library.server.asked.clear()
    before, _ = await balance(memory.tenant)
    job = await write(memory, FIRST.replace("Loki", "Grafana"), "2026-02-20")
    asked = [turn["text"] for one in library.server.of_task("extract_world") for turn in one.blocks["turns"]]
    assert asked == ["Borealis uses Grafana."]
    assert job.result.counts.tokens_saved > 0
    assert job.credits.spent_micros == before - (await balance(memory.tenant))[0]
    assert job.credits.spent_micros == sum(DEFAULT_PRICES.ingest(chunk.token_count) for chunk in job.chunks)


async def test_a_paragraph_that_comes_back_holds_anew(memory: Memory) -> None:
    await write(memory, FIRST, "2026-01-10")
    await write(memory, WITHOUT, "2026-02-20")
    await write(memory, FIRST, "2026-03-30")
    assert await memory.timeline("Borealis", "uses") == [
        ("Loki", "2026-01-10", "2026-02-20"),
        ("Loki", "2026-03-30", ""),
    ]


async def test_an_unchanged_version_is_nothing_and_paid_back_in_full(
    library: Library, memory: Memory
) -> None:
    await write(memory, FIRST, "2026-01-10")
    facts, claims, before = await memory.facts(), await memory.claims(), await balance(memory.tenant)
    library.server.asked.clear()
    job = await write(memory, FIRST, "2026-02-20")
    assert library.server.asked == []
    assert (job.credits.spent_micros, job.credits.held_micros) == (0, 0)
    assert job.credits.refunded_micros > 0
    assert await balance(memory.tenant) == before
    assert job.result.counts.tokens_saved == tokens.count(FIRST)
    assert await ledger_reasons(memory, job) >= {
        errors_pb2.NothingReason.Name(errors_pb2.NOTHING_REASON_UNCHANGED_DOCUMENT).removeprefix(
            "NOTHING_REASON_"
        )
    }
    assert await memory.facts() == facts
    assert await memory.claims() == claims


async def ledger_reasons(memory: Memory, job: job_pb2.Job) -> set[str]:
    return {entry.reason for entry in await memory.ledger(job.job_id)}


def ten_sections() -> str:
    """Ten paragraphs of one chunk each, each with one fact."""
    return "".join(f"Service{number} uses Tool{number}.\n{exactly(1_200)}\n\n" for number in range(10))


def refusing(words: Sequence[str]) -> Responder:
    """Refuses texts that hold one of the words; their neighbours, which show them as context, are read."""

    def reply(asked: Asked) -> Reply:
        said = " ".join(turn["text"] for turn in asked.blocks["turns"])
        return replies.refused() if any(word in said for word in words) else understand(asked)

    return reply


@pytest.mark.parametrize("failing", sampled([[0, 9], [7]]), ids=["first and last", "one"])
@pytest.mark.case("a document of 10 chunks")
async def test_a_chunk_that_fails_is_named_and_not_paid_for(
    library: Library, memory: Memory, failing: Sequence[int]
) -> None:
    library.server.rules.append(Rule("extract_world", "", refusing([f"Service{one} " for one in failing])))
    before = await balance(memory.tenant)
    text = ten_sections()
    job = await memory.say(text, "2026-01-01", kind=DOCUMENT)
    assert job.state == job_pb2.JOB_STATE_PARTIAL
    assert len(job.chunks) == 10
    assert "".join(await texts(memory, job)) == text, "what failed is kept as text"
    failed = [chunk for chunk in job.chunks if chunk.stage == episode_pb2.CHUNK_STAGE_FAILED]
    assert [chunk.index for chunk in failed] == list(failing)
    kept = [chunk for chunk in job.chunks if chunk.stage == episode_pb2.CHUNK_STAGE_RESOLVED]
    assert len(kept) == 10 - len(failing)
    info = error_details_pb2.ErrorInfo()
    assert all(chunk.error.details[0].Unpack(info) and info.reason == "MODEL_REFUSED" for chunk in failed)
    assert job.error.details[0].Unpack(info)
    assert (info.reason, dict(info.metadata)) == (
        "CHUNKS_FAILED",
        {"failed": str(len(failing)), "chunks": "10"},
    )
    assert {fact[0] for fact in await memory.facts()} == {f"Service{chunk.index}" for chunk in kept}
    earned = sum(DEFAULT_PRICES.ingest(chunk.token_count) for chunk in kept)
    share = sum(DEFAULT_PRICES.ingest(chunk.token_count) for chunk in failed)
    assert job.credits.spent_micros == earned
    assert job.credits.refunded_micros >= share > 0
    assert await balance(memory.tenant) == (before[0] - earned, 0)


@pytest.mark.parametrize("more", [{"session_id": "s"}, {"kind": DOCUMENT, "document_id": "d"}, {}], ids=str)
async def test_what_failed_is_learned_when_it_is_said_again(
    library: Library, memory: Memory, more: dict[str, Any]
) -> None:
    library.server.rules.append(Rule("extract_world", "", replies.refused()))
    failed = await memory.say("Atlas uses MySQL.", "2026-01-10", **more)
    assert failed.state == job_pb2.JOB_STATE_FAILED
    library.server.rules.clear()
    again = await memory.say("Atlas uses MySQL.", "2026-01-10", **more)
    assert again.state == job_pb2.JOB_STATE_SUCCEEDED
    assert await memory.facts() == {("Atlas", "uses", "MySQL", "2026-01-10", "")}
    assert again.credits.spent_micros > 0
    if more:
        third = await memory.say("Atlas uses MySQL.", "2026-01-10", **more)
        assert third.credits.spent_micros == 0, "now it is known"
        assert set((await memory.claims()).values()) == {1}


async def test_only_the_failed_chunk_of_a_document_is_understood_again(
    library: Library, memory: Memory
) -> None:
    text = ten_sections()
    library.server.rules.append(Rule("extract_world", "", refusing(["Service4 "])))
    first = await memory.say(text, "2026-01-01", kind=DOCUMENT, document_id="d")
    assert first.state == job_pb2.JOB_STATE_PARTIAL
    library.server.rules.clear()
    library.server.asked.clear()
    again = await memory.say(text, "2026-01-01", kind=DOCUMENT, document_id="d")
    assert again.state == job_pb2.JOB_STATE_SUCCEEDED
    said = [turn["text"] for one in library.server.of_task("extract_world") for turn in one.blocks["turns"]]
    assert [words for words in said if "Service" in words and "Service4 " not in words] == []
    assert {fact[0] for fact in await memory.facts()} == {f"Service{number}" for number in range(10)}
    assert set((await memory.claims()).values()) == {1}
