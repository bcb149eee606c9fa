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


def files(folder: Path) -> set[str]:
    return {place.split(":")[0] for place in places(folder)}


def said(turn: int, quote: str, target: str, fact: str, **more: Any) -> WorldFact:
    kind = more.pop("kind", FactKind.CLAIM)
    return WorldFact(kind, Mention("Fay"), "likes", Mention(target), fact, turn, quote, **more)


QUOTE = f"I like tea and my {CANARY} does."
AGAIN = "Tea is what I like."


def hears_of_the_canary(engine: ScriptedEngine) -> None:
    """Of QUOTE: a fact that others may say too, one that is the canary's, an end, and a sentence."""
    since = StatedTime(f"since {CANARY}")
    engine.world = tasks.WorldFacts(
        (
            said(0, QUOTE, "tea", f"Fay likes tea as her {CANARY}.", start=since),
            said(0, QUOTE, CANARY, f"Fay likes her {CANARY}."),
            said(0, QUOTE, f"the {CANARY} song", "Fay is over it.", kind=FactKind.END),
        )
    )
    sentence = f"Fay prefers tea, as the {CANARY} does."
    engine.voice = tasks.VoiceFacts((VoiceFact(sentence, 0, QUOTE, VoiceKind.PREFERENCE),))


def hears_of_tea(engine: ScriptedEngine) -> None:
    """Of AGAIN: the fact and the sentence that QUOTE said too, judged with the canary in every reason."""
    engine.world = tasks.WorldFacts(
        tuple(said(0, AGAIN, target, f"Fay likes {target}.") for target in ("tea", "rum"))
    )
    sentence = "Fay prefers tea, as the parrot does."
    engine.voice = tasks.VoiceFacts((VoiceFact(sentence, 0, AGAIN, VoiceKind.PREFERENCE),))
    engine.judge = lambda task: [
        tasks.PairVerdict(pair.new, pair.candidate, VerdictKind.COMPATIBLE, f"not about the {CANARY}")
        for pair in task.pairs
    ]
    engine.judge_of_voice = lambda task: [
        tasks.VoiceVerdict(pair.new, pair.candidate, duplicate=True, why=CANARY) for pair in task.pairs
    ]


async def told_of_the_canary(folder: Path, memory: Memory, engine: HeldEngine) -> str:
    """Says QUOTE with the canary in every field; answers its episode. Workflows hold no text meanwhile."""
    hears_of_the_canary(engine)
    asked = memory.episode(
        QUOTE,
        "2025-01-01",
        session_id="s",
        title=f"About a {CANARY}",
        source=f"{CANARY}-bot",
        metadata={CANARY: CANARY},
    )
    accepted = await memory.tenant.call(memory.tenant.memory.AddEpisode, asked)
    await engine.asking.wait()
    assert "workflows.db" not in files(folder)
    engine.go.set()
    job = await memory.end_of(accepted.job.job_id)
    assert files(folder) == {"graph.db", "memory.db"}
    return job.chunks[0].episode_id


async def test_a_deleted_word_is_nowhere(tmp_path: Path) -> None:
    engine = HeldEngine()
    async with a_product(tmp_path, engine=engine) as product:
        memory = Memory(await product.tenant("acme"), "notes")
        first = await told_of_the_canary(tmp_path, memory, engine)
        hears_of_tea(engine)
        await memory.say(AGAIN, "2025-02-01", session_id="s")
        soup = ("Fay", "likes", f"{CANARY} soup")
        asserted = await memory.assert_triples(soup, at="2025-03-01", request_id="soup")

        question = "What does Fay like and prefer?"
        assert CANARY in str(await memory.recall(question))
        gone = await memory.delete(first)
        assert (gone.counts.claims_revoked, gone.counts.ends_revoked) == (2, 1)
        await memory.delete(asserted.episodes[0].episode_id)
        assert places(tmp_path) == set()
        assert CANARY not in str(await memory.recall(question))
        scope = graph(TenantId("acme"), "notes")
        vectors = product.resources.vectors
        assert isinstance(vectors, ArrayVectorStore)
        left = {collection: await vectors.count(scope, collection) for collection in Collection}
        assert [left[one] for one in (Collection.PASSAGES, Collection.STATEMENTS, Collection.VOICE)] == [
            1,
            2,
            1,
        ]
        assert {(one.object.entity.name, one.fact) for one in await memory.statements()} == {
            ("tea", "Fay likes tea"),
            ("rum", "Fay likes rum."),
        }

        # Asking again for what was asserted and deleted tells its ids, and brings nothing back.
        replayed = await memory.assert_triples(soup, at="2025-03-01", request_id="soup")
        assert (replayed.replayed, replayed.claims) == (True, asserted.claims)
        assert places(tmp_path) == set()
