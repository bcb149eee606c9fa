"""A word that one episode said is nowhere, in no store, once that episode is deleted."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from services.domain.facts import FactKind, Mention, StatedTime, VoiceFact, WorldFact
from services.domain.memory import VoiceKind
from services.domain.records import VerdictKind
from services.domain.scope import TenantId
from services.llm import tasks
from services.llm.port import Answer
from services.stores.vectors.port import Collection
from tests.doubles.engine import ScriptedEngine
from tests.doubles.gateway import graph
from tests.doubles.product import a_product
from tests.doubles.vectors import ArrayVectorStore
from tests.e2e.talking import Memory

CANARY = "zanzibarcanary"
FILES = ("graph.db", "memory.db", "jobs.db", "ledger.db", "workflows.db")


class HeldEngine(ScriptedEngine):
    """Waits before it classifies, when everything of a text is under way."""

    def __init__(self) -> None:
        super().__init__()
        self.asking, self.go = asyncio.Event(), asyncio.Event()

    async def classify(self, scope: Any, task: tasks.Classify) -> Answer[tasks.Classified]:
        self.asking.set()
        await self.go.wait()
        return await super().classify(scope, task)


def cells(folder: Path) -> Iterator[tuple[str, str]]:
    """Every cell of every table, as text, with where it is."""
    for name in FILES:
        with closing(sqlite3.connect(f"file:{folder / name}?mode=ro", uri=True)) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            assert tables, name
            for (table,) in tables:
                for row in database.execute(f'SELECT * FROM "{table}"'):
                    for cell in row:
                        text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
                        yield f"{name}:{table}", text


def places(folder: Path) -> set[str]:
    return {place for place, text in cells(folder) if CANARY in text.lower()}


def said(turn: int, quote: str, target: str, fact: str, **more: Any) -> WorldFact:
    kind = more.pop("kind", FactKind.CLAIM)
    return WorldFact(kind, Mention("Fay"), "likes", Mention(target), fact, turn, quote, **more)


async def test_a_deleted_word_is_nowhere(tmp_path: Path) -> None:
    engine = HeldEngine()
    async with a_product(tmp_path, engine=engine) as product:
        tenant = await product.tenant("acme")
        memory = Memory(tenant, "notes")
        quote = f"I like tea and my {CANARY} does."
        engine.world = tasks.WorldFacts(
            (
                said(
                    0,
                    quote,
                    "tea",
                    f"Fay likes tea as her {CANARY} does.",
                    start=StatedTime(f"since {CANARY}"),
                ),
                said(0, quote, CANARY, f"Fay likes her {CANARY}."),
                said(0, quote, f"the {CANARY} song", "Fay is over it.", kind=FactKind.END),
            )
        )
        engine.voice = tasks.VoiceFacts(
            (VoiceFact(f"Fay prefers tea, as the {CANARY} does.", 0, quote, VoiceKind.PREFERENCE),)
        )
        accepted = await tenant.call(
            tenant.memory.AddEpisode,
            memory.episode(
                quote,
                "2025-01-01",
                session_id="s",
                title=f"About a {CANARY}",
                source=f"{CANARY}-bot",
                metadata={CANARY: CANARY},
            ),
        )
        await engine.asking.wait()
        assert "workflows.db" not in {place.split(":")[0] for place in places(tmp_path)}
        engine.go.set()
        job = await memory.end_of(accepted.job.job_id)
        first = job.chunks[0].episode_id
        assert {"graph.db", "memory.db"} == {place.split(":")[0] for place in places(tmp_path)}
        read = await memory.read_episode(first)
        assert dict(read.episode.metadata) == {CANARY: CANARY}

        again = "Tea is what I like."
        engine.world = tasks.WorldFacts(
            (said(0, again, "tea", "Fay likes tea."), said(0, again, "rum", "Fay likes rum."))
        )
        engine.voice = tasks.VoiceFacts(
            (VoiceFact("Fay prefers tea, as the parrot does.", 0, again, VoiceKind.PREFERENCE),)
        )
        engine.judge = lambda task: [
            tasks.PairVerdict(pair.new, pair.candidate, VerdictKind.COMPATIBLE, f"not about the {CANARY}")
            for pair in task.pairs
        ]
        engine.judge_of_voice = lambda task: [
            tasks.VoiceVerdict(pair.new, pair.candidate, duplicate=True, why=CANARY) for pair in task.pairs
        ]
        await memory.say(again, "2025-02-01", session_id="s")
        asserted = await memory.assert_triples(
            ("Fay", "likes", f"{CANARY} soup"), at="2025-03-01", request_id="soup"
        )

        gone = await memory.delete(first)
        assert gone.counts.claims_revoked == 2
        await memory.delete(asserted.episodes[0].episode_id)
        assert places(tmp_path) == set()
        vectors = product.resources.vectors
        assert isinstance(vectors, ArrayVectorStore)
        assert await vectors.count(graph(TenantId("acme"), "notes"), Collection.PASSAGES) == 1
        assert {(one.object.entity.name, one.fact) for one in await memory.statements()} == {
            ("tea", "Fay likes tea"),
            ("rum", "Fay likes rum."),
        }

        # Asking again for what was asserted and deleted tells its ids, and brings nothing back.
        replayed = await memory.assert_triples(
            ("Fay", "likes", f"{CANARY} soup"), at="2025-03-01", request_id="soup"
        )
        assert replayed.replayed
        assert replayed.claims == asserted.claims
        assert places(tmp_path) == set()
