"""A memory with one word in every field that can carry text; and a look for that word wherever it may be."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palimpsest.v1 import (
    entity_pb2,
    episode_pb2,
    graph_pb2,
    job_pb2,
    memory_ingest_pb2,
    memory_statements_pb2,
    privacy_pb2,
)
from services.domain.facts import FactKind, Mention, StatedTime, VoiceFact, WorldFact
from services.domain.memory import VoiceKind
from services.domain.records import VerdictKind
from services.llm import tasks
from tests.doubles.engine import ScriptedEngine
from tests.doubles.product import Tenant
from tests.e2e.talking import Memory, day

CANARY = "zanzibarcanary"
QUOTE = f"I like tea and my {CANARY} does."
FINAL = {job_pb2.JOB_STATE_SUCCEEDED, job_pb2.JOB_STATE_FAILED, job_pb2.JOB_STATE_CANCELLED}


def said(quote: str, target: str, fact: str, **more: Any) -> WorldFact:
    kind = more.pop("kind", FactKind.CLAIM)
    return WorldFact(kind, Mention("Fay"), "likes", Mention(target), fact, 0, quote, **more)


def hears(engine: ScriptedEngine, word: str, quote: str) -> None:
    """Of the next text: facts, an end and a sentence, each with the word."""
    since = StatedTime(f"since {word}")
    engine.world = tasks.WorldFacts(
        (
            said(quote, "tea", f"Fay likes tea as her {word}.", start=since),
            said(quote, word, f"Fay likes her {word}."),
            said(quote, f"the {word} song", "Fay is over it.", kind=FactKind.END),
        )
    )
    sentence = f"Fay prefers tea, as the {word} does."
    engine.voice = tasks.VoiceFacts((VoiceFact(sentence, 0, quote, VoiceKind.PREFERENCE),))
    engine.judge = lambda task: [
        tasks.PairVerdict(pair.new, pair.candidate, VerdictKind.COMPATIBLE, f"not about the {word}")
        for pair in task.pairs
    ]


async def fill(tenant: Tenant, engine: ScriptedEngine, graph: str, word: str) -> Memory:
    """Makes a graph with the word in its settings, texts, facts, reasons, requests, and other names."""
    memory = Memory(tenant, graph)
    settings = graph_pb2.GraphSettings(user_name=word)
    await tenant.call(
        tenant.graphs.CreateGraph, graph_pb2.CreateGraphRequest(graph_id=graph, settings=settings)
    )
    quote = f"I like tea and my {word} does."
    hears(engine, word, quote)
    message = memory_ingest_pb2.EpisodeMessage(
        message_id=f"m-{word}", role=episode_pb2.MESSAGE_ROLE_USER, speaker=f"Fay {word}", text=quote
    )
    asked = memory_ingest_pb2.AddEpisodeRequest(
        graph_id=graph,
        request_id=f"add-{word}",
        messages=memory_ingest_pb2.EpisodeMessages(messages=[message]),
        kind=episode_pb2.EPISODE_KIND_CONVERSATION,
        session_id=f"s-{word}",
        title=f"About a {word}",
        source=f"{word}-bot",
        metadata={word: word},
        reference_time=day("2025-01-01"),
    )
    accepted = await tenant.call(tenant.memory.AddEpisode, asked)
    await memory.end_of(accepted.job.job_id)
    engine.world, engine.voice = tasks.WorldFacts(()), tasks.VoiceFacts(())
    document = memory.episode(
        f"# The {word}\n\nAll of it is about a {word}.",
        "2025-01-02",
        kind=episode_pb2.EPISODE_KIND_DOCUMENT,
        document_id=f"doc-{word}",
        request_id=f"document-{word}",
    )
    accepted = await tenant.call(tenant.memory.AddEpisode, document)
    await memory.end_of(accepted.job.job_id)
    soup = ("Fay", "likes", f"{word} soup")
    await memory.assert_triples(soup, at="2025-03-01", request_id=f"soup-{word}")
    [first, *_] = await memory.statements()
    ending = memory_statements_pb2.EndStatementRequest(
        graph_id=graph, statement_id=first.statement_id, request_id=f"end-{word}", reason=f"no {word} now"
    )
    await tenant.call(tenant.memory.EndStatement, ending)
    declaring = graph_pb2.DeclarePredicateRequest(
        graph_id=graph,
        name=f"feeds_{word}",
        cardinality=entity_pb2.CARDINALITY_MULTI,
        aliases=[f"gives {word}"],
    )
    await tenant.call(tenant.graphs.DeclarePredicate, declaring)
    return memory


def holding(folder: Path, word: str) -> set[str]:
    """Files in whose bytes the word is, in whatever state their pages are."""
    needle = word.encode()
    found = {
        path.name for path in folder.rglob("*") if path.is_file() and needle in path.read_bytes().lower()
    }
    return {name.removesuffix("-wal") for name in found}


async def erased(tenant: Tenant, method: Any, request: Any, seconds: float = 60) -> privacy_pb2.Erasure:
    """The erasure that a call asks for, or is asked for again, once it has ended."""
    async with asyncio.timeout(seconds):
        while True:
            found: privacy_pb2.Erasure = (await tenant.call(method, request)).erasure
            if found.state in FINAL:
                return found
            await asyncio.sleep(0.05)


def removed(erasure: privacy_pb2.Erasure) -> Mapping[str, Mapping[str, int]]:
    """What the report tells, by store and kind."""
    return {report.store: dict(report.removed) for report in erasure.reports}
