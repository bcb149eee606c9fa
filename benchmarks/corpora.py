"""Whole corpora: LoCoMo and MemoryBank taken in by the offline engine through the public API, twice.

One process on embedded stores, as `palimpsest up --runtime inprocess` has them: SQLite, Milvus Lite, the
packaged embedder; with `--vectors arrays` embeddings by hash in arrays instead, so that what is measured is
ours. A conversation, or a user of MemoryBank in one language, is a graph; a session of it, or a day, is an
episode of messages. Prints for each corpus the time, processor time, calls, rows and what failed.

The second run brings the same texts under other request ids: it must add no row, and all it held must be
given back. Ends with 1 where something failed or was added.

Run: python -m benchmarks.corpora [--data FOLDER] [--sessions N] [--vectors embedded|arrays]
"""

import argparse
import asyncio
import contextlib
import json
import logging
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import create_engine, func, inspect, select, table

from gateway.credits.money import MicroCredits
from gateway.keys import KeyScope
from gateway.settings import GatewaySettings
from gateway.store.follow_ups import FollowUps
from gateway.up import bring_up
from palimpsest.bulk import Bulk, Outcome
from palimpsest.connection import Connection
from palimpsest.texts import Text
from palimpsest.v1 import credits_pb2, episode_pb2, graph_pb2, job_pb2, memory_ingest_pb2
from services.domain.scope import TenantId
from services.llm.offline import OfflineEngine
from services.runtime.settings import ServiceSettings
from tests.doubles.product import a_product

TENANT = TenantId("corpora")
CREDITS = 10**12
AT_ONCE = 32
"""Texts that are at work."""
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
NOT_MEMORY = frozenset({"alembic_version", "requests", "calls"})
"""Tables that are no memory: each call leaves a row there, whatever it adds."""

Request = memory_ingest_pb2.AddEpisodeRequest
Message = memory_ingest_pb2.EpisodeMessage
USER, ASSISTANT = episode_pb2.MESSAGE_ROLE_USER, episode_pb2.MESSAGE_ROLE_ASSISTANT


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts with what they are called."""

    name: str
    texts: Sequence[Request]

    @property
    def messages(self) -> int:
        return sum(len(text.messages.messages) for text in self.texts)


@dataclass
class Tally:
    """What came of one run over one corpus."""

    seconds: float = 0.0
    processor_seconds: float = 0.0
    spent_micros: int = 0
    states: Counter[str] = field(default_factory=Counter)
    chunks: Counter[str] = field(default_factory=Counter)
    stages: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def text_of(graph: str, session: str, at: datetime, messages: Sequence[Message], source: str) -> Request:
    request = Request(
        graph_id=graph,
        kind=episode_pb2.EPISODE_KIND_CONVERSATION,
        session_id=session,
        source=source,
        messages=memory_ingest_pb2.EpisodeMessages(messages=messages),
    )
    request.reference_time.FromDatetime(at)
    return request


def locomo(data: Path, sessions: int | None) -> Corpus:
    """Five conversations between two people."""
    texts = []
    for read in json.loads((data / "locomo" / "conversations.json").read_text(encoding="utf-8")):
        told: dict[str, Any] = read["conversation"]
        numbers = sorted(int(name[8:]) for name in told if name[8:].isdigit())[:sessions]
        for number in numbers:
            turns: Sequence[Any] = told[f"session_{number}"]
            at = datetime.strptime(f"{told[f'session_{number}_date_time']} +0000", "%I:%M %p on %d %B, %Y %z")
            messages = [
                Message(message_id=turn["dia_id"], role=USER, speaker=turn["speaker"], text=turn["text"])
                for turn in turns
                if turn["text"].strip()
            ]
            texts.append(text_of(f"locomo-{read['sample_id']}", f"s{number}", at, messages, "locomo"))
    return Corpus("LoCoMo", texts)


def memorybank(data: Path, language: str, days: int | None) -> Corpus:
    """Fifteen users who talk with an assistant, a session a day."""
    file = data / "memorybank" / f"memory_bank_{language}.json"
    texts = []
    for number, (name, user) in enumerate(json.loads(file.read_text(encoding="utf-8")).items()):
        for day in sorted(user["history"])[:days]:
            messages = []
            for turn in user["history"][day]:
                said = ((USER, name, turn["query"]), (ASSISTANT, "", turn["response"]))
                messages += [
                    Message(role=role, speaker=speaker, text=text)
                    for role, speaker, text in said
                    if text.strip()
                ]
            if not messages:
                continue  # some days are without a word
            at = datetime.fromisoformat(f"{day}T12:00:00+00:00")
            texts.append(text_of(f"memorybank-{language}-{number}", day, at, messages, "memorybank"))
    return Corpus(f"MemoryBank {language}", texts)


@asynccontextmanager
async def a_server(folder: Path, vectors: str) -> AsyncIterator[tuple[Connection, FollowUps]]:
    """The product with the offline engine: a connection of a tenant with credits, and what follows jobs."""
    async with AsyncExitStack() as stack:
        if vectors == "arrays":
            product = await stack.enter_async_context(a_product(folder, OfflineEngine()))
            tenant = await product.tenant(TENANT, CREDITS)
            gateway = product.running.gateway
            connection = await stack.enter_async_context(Connection(gateway.target, tenant.key))
            yield connection, gateway.stores.follow_ups
            return
        settings = GatewaySettings(data_dir=folder, gateway_port=0, tenant_requests_per_second=100_000)
        running = await bring_up(ServiceSettings(data_dir=folder), settings, stack)
        stores = running.gateway.stores
        await stores.tenants.create(TENANT, "")
        async with stores.ledger.books(TENANT) as books:
            await books.grant(TENANT, "start", MicroCredits(CREDITS), "")
        _, key = await stores.keys.create(TENANT, "corpora", [KeyScope.ERASE])
        connection = await stack.enter_async_context(Connection(running.gateway.target, key))
        yield connection, stores.follow_ups


async def take_in(connection: Connection, corpus: Corpus, run: int) -> Tally:
    """Brings all texts, and waits for their jobs."""
    tally = Tally()
    started, processor = time.perf_counter(), processor_seconds()
    texts = []
    for number, text in enumerate(corpus.texts):
        request = Request()
        request.CopyFrom(text)
        request.request_id = f"{corpus.name.replace(' ', '-')}-{run}-{number}"
        texts.append(Text(request.request_id, request, 0))
    bulk = Bulk(connection, "", AT_ONCE)
    async with aclosing(bulk.send(texts)) as outcomes:
        async for outcome in outcomes:
            count(tally, outcome)
            done = sum(tally.states.values())
            if done % 20 == 0:
                print(f"  … {done} of {len(texts)}", file=sys.stderr, flush=True)
    if bulk.unsent:
        tally.failures.append(f"{bulk.unsent} were not sent: {bulk.stopped}")
    tally.seconds = time.perf_counter() - started
    tally.processor_seconds = processor_seconds() - processor
    return tally


def count(tally: Tally, outcome: Outcome) -> None:
    job = outcome.job
    if job is None:
        tally.failures.append(f"{outcome.text.name}: {outcome.error}")
        return
    state = job_pb2.JobState.Name(job.state).removeprefix("JOB_STATE_")
    tally.states[state] += 1
    tally.spent_micros += job.credits.spent_micros
    for chunk in job.chunks:
        tally.chunks[episode_pb2.ChunkStage.Name(chunk.stage).removeprefix("CHUNK_STAGE_")] += 1
    for stage in job.receipt.stages:
        tally.stages[stage.stage] += stage.duration_millis
    if job.state != job_pb2.JOB_STATE_SUCCEEDED:
        tally.failures.append(f"{job.request_id}: {state} {job.error.message}")


def processor_seconds() -> float:
    """Of this process with all its threads, and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def rows(folder: Path) -> dict[str, int]:
    """Rows of every table of memory and graphs."""
    found = {}
    for file in ("graph.db", "memory.db"):
        engine = create_engine(f"sqlite:///{folder / file}")
        with engine.connect() as connection:
            for name in inspect(engine).get_table_names():
                if name not in NOT_MEMORY:
                    number = connection.scalar(select(func.count()).select_from(table(name)))
                    found[f"{file.removesuffix('.db')}.{name}"] = int(number or 0)
        engine.dispose()
    return found


async def graph_counts(connection: Connection, corpora: Sequence[Corpus]) -> Counter[str]:
    """What the API says that the graphs hold."""
    total: Counter[str] = Counter()
    for graph in sorted({text.graph_id for corpus in corpora for text in corpus.texts}):
        request = graph_pb2.GetGraphRequest(graph_id=graph)
        counts = (await connection.call(connection.graphs.GetGraph, request)).graph.counts
        total.update({name.name: value for name, value in counts.ListFields()})
    return total


def show(corpus: Corpus, tally: Tally) -> None:
    each = 1000 * tally.processor_seconds / corpus.messages
    print(
        f"  {corpus.name:14} {len(corpus.texts):4} texts, {corpus.messages:5} messages: "
        f"{tally.seconds:7.1f} s, {tally.processor_seconds:7.1f} of processor, {each:.0f} ms a message"
    )
    print(
        f"{'':17}jobs {dict(tally.states)}; "
        f"chunks {dict(tally.chunks)}; {tally.spent_micros / 1e6:.4f} credits"
    )
    stages = ", ".join(f"{name} {ms / 1000:.1f}" for name, ms in sorted(tally.stages.items()) if ms >= 100)
    if stages:
        print(f"{'':17}seconds in the engine: {stages}", flush=True)
    for failure in tally.failures[:10]:
        print(f"    FAILED {failure}")


async def followed(follow_ups: FollowUps) -> None:
    """Waits until summaries, titles, labels and personas are made."""
    while await follow_ups.waiting():  # noqa: ASYNC110  # it rings no bell
        await asyncio.sleep(0.5)


async def balance(connection: Connection) -> tuple[int, int]:
    answer = await connection.call(connection.credits.GetBalance, credits_pb2.GetBalanceRequest())
    return answer.balance.available_micros, answer.balance.held_micros


async def measure(data: Path, sessions: int | None, vectors: str) -> list[str]:
    """What misses."""
    corpora = [locomo(data, sessions), *(memorybank(data, one, sessions) for one in ("en", "cn"))]
    misses: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with a_server(folder, vectors) as (connection, follow_ups):
            print("first run")
            for corpus in corpora:
                tally = await take_in(connection, corpus, 1)
                show(corpus, tally)
                misses += tally.failures
            await followed(follow_ups)
            before, held, money = (
                rows(folder),
                await graph_counts(connection, corpora),
                await balance(connection),
            )
            print(f"  graphs: {', '.join(f'{value:,} {one}' for one, value in held.items())}")
            print(f"  rows: {', '.join(f'{value:,} {one}' for one, value in before.items() if value)}")
            print("second run")
            for corpus in corpora:
                tally = await take_in(connection, corpus, 2)
                show(corpus, tally)
                misses += tally.failures
                if tally.spent_micros:
                    misses.append(f"{corpus.name}: the second run cost {tally.spent_micros} micro-credits")
            await followed(follow_ups)
            after = rows(folder)
            misses += [
                f"{one}: {before.get(one, 0)} rows, then {value}"
                for one, value in after.items()
                if value != before.get(one, 0)
            ]
            if await graph_counts(connection, corpora) != held:
                misses.append("the graphs count more")
            if await balance(connection) != money:
                misses.append(f"credits: {money}, then {await balance(connection)}")
    return misses


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=SHARED)
    parser.add_argument("--sessions", type=int, help="of each conversation or user; all without it")
    parser.add_argument("--vectors", choices=["embedded", "arrays"], default="embedded")
    return parser.parse_args()


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    logging.getLogger().setLevel(logging.ERROR)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    yield


def main() -> None:
    told = arguments()
    with quietly():
        misses = asyncio.run(measure(told.data, told.sessions, told.vectors))
    print(
        "nothing failed, and the second run added nothing" if not misses else "\n".join(["MISSED:", *misses])
    )
    sys.exit(bool(misses))


if __name__ == "__main__":
    main()
