"""Load: what the product answers at its capacity, at twice and at four times it, and what a neighbour feels.

The product runs in a process of its own: services in process, SQLite, offline engine; embeddings by hash and
vectors in arrays, so that what is measured is ours. This one calls it: recalls, assertions and texts of two
tenants. A round finds the capacity with callers that wait for their answers, then offers 1, 2 and 4 times
that at random times, whatever comes back, each call with a deadline of five seconds; then a quiet tenant
calls at a tenth of the capacity, alone and beside one that offers four times the capacity. Jobs that a phase
left are done before the next begins.

A machine has other work, and its speed changes: so what is compared is of one round, minutes at most apart,
and what is told is the median of the rounds. Where others took more than a tenth of the machine, good answers
for a second of the server's own CPU are compared in place of good answers a second.

Prints, for each phase, good answers a second and by CPU second, their p50, p95 and p99, refusals by reason.
Then whether goodput at four times is within a fifth of its peak, whether each refusal for load names a time
to wait, whether calls that were let in ended in their time, whether holds are left and the audit is clean,
and how much slower the quiet tenant's p95 is. Ends by itself, and with 1 where one of these misses.

Run: python -m benchmarks.load [--seconds N] [--rounds N] [--facts N]
"""

import argparse
import asyncio
import json
import logging
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import grpc.aio
import psutil
import structlog

from benchmarks.load_client import Client, Tally
from gateway.credits.audit import audit
from services.domain.scope import TenantId
from services.llm.offline import OfflineEngine
from tests.doubles.product import Product, a_product

LOUD, LOUD_TOO, QUIET = "loud", "loud-too", "quiet"
CALLERS = 8
TIMES = (1, 2, 4)
QUIET_SHARE = 0.1
QUIET_CALLS, QUIET_SECONDS = 60, 60.0
"""A phase of the quiet tenant has so many calls, if that does not take too long."""
DRAIN_SECONDS = 120
DEFAULT_WAIT_SECONDS = 2.0
WITHIN, SLOWER, MISSED = 0.8, 2.0, 0.05
NOISE, MOSTLY_OTHERS = 0.1, 0.5
"""Shares of the machine from which on other work counts, and spoils the figures."""


async def serve(folder: Path) -> None:
    """The product. Answers each line of standard input with a line of JSON; ends with the line `end`."""
    settings = {"admission_wait_seconds": DEFAULT_WAIT_SECONDS}
    async with a_product(folder, OfflineEngine(), settings=settings) as product:
        keys = {name: (await product.tenant(name, 10**12)).key for name in (LOUD, LOUD_TOO, QUIET)}
        print(json.dumps({"target": product.running.gateway.target, "keys": keys}), flush=True)
        while (line := await asyncio.to_thread(sys.stdin.readline)).strip() == "settle":
            print(json.dumps({"unfinished": await settled(product)}), flush=True)
        if line:
            print(json.dumps(await left(product)), flush=True)


async def settled(product: Product) -> int:
    """Waits until all jobs have ended; how many have not, after a while."""
    jobs = product.running.gateway.stores.jobs
    ends = time.monotonic() + DRAIN_SECONDS
    while (unfinished := len(await jobs.unfinished())) and time.monotonic() < ends:  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    return unfinished


async def left(product: Product) -> dict[str, int]:
    """After all jobs have ended: unfinished jobs, credits held, findings of the audit."""
    unfinished = await settled(product)
    stores = product.running.gateway.stores
    await stores.sweep()
    held = 0
    for name in (LOUD, LOUD_TOO, QUIET):
        held += (await stores.ledger.balance(TenantId(name))).held
    findings = await audit(stores.ledger_database, stores.clock)
    return {"unfinished": unfinished, "held": held, "findings": len(findings)}


class Server:
    """The product's process."""

    def __init__(self, process: asyncio.subprocess.Process, told: dict[str, Any]) -> None:
        self._process = process
        self._watched = psutil.Process(process.pid)
        self.target: str = told["target"]
        self.keys: dict[str, str] = told["keys"]

    async def ask(self, line: str) -> dict[str, int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n".encode())
        await self._process.stdin.drain()
        answer = await asyncio.wait_for(self._process.stdout.readline(), DRAIN_SECONDS + 60)
        found: dict[str, int] = json.loads(answer)
        return found

    def used(self) -> tuple[float, float]:
        """Seconds of CPU: its own, and those that others than it and its caller had."""
        own, mine, all_ = self._watched.cpu_times(), psutil.Process().cpu_times(), psutil.cpu_times()
        server = own.user + own.system
        busy = sum(all_) - all_.idle - getattr(all_, "iowait", 0.0) - getattr(all_, "guest", 0.0)
        return server, busy - server - mine.user - mine.system


@asynccontextmanager
async def a_server() -> AsyncIterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "benchmarks.load", "--serve", folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert process.stdout is not None
            yield Server(process, json.loads(await process.stdout.readline()))
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


@dataclass
class Phase:
    """What came of some seconds: the calls, CPU seconds of the server, the share of the machine of others."""

    tally: Tally
    cpu: float
    others: float

    @property
    def by_cpu(self) -> float:
        """Good answers for a second of the server's CPU."""
        return len(self.tally.good) / self.cpu if self.cpu else 0.0


async def phase(server: Server, name: str, *calls: Awaitable[Tally]) -> Phase:
    """Does it, once the jobs of the phase before are done, and tells."""
    await server.ask("settle")
    (own, others), begun = server.used(), time.perf_counter()
    tally = Tally().add(await asyncio.gather(*calls))
    (own_then, others_then), seconds = server.used(), time.perf_counter() - begun
    whole = seconds * (psutil.cpu_count() or 1)
    done = Phase(tally, own_then - own, max(0.0, others_then - others) / whole)
    show(name, done)
    return done


def show(name: str, done: Phase) -> None:
    tally = done.tally
    refused = ", ".join(f"{reason} {times}" for reason, times in sorted(tally.refused.items()))
    failed = ", ".join(f"{code} {times}" for code, times in sorted(tally.failed.items()))
    print(
        f"  {name:22} offered {tally.offered / tally.seconds:6.1f}/s  good {tally.goodput:6.1f}/s "
        f"{done.by_cpu:6.1f}/CPU s  p50 {tally.percentile(0.5):6.0f}  p95 {tally.percentile(0.95):6.0f}  p99 "
        f"{tally.percentile(0.99):6.0f} ms  refused: {refused or 'none'}"
        + (f"  FAILED: {failed}" if failed else "")
        + (f"  (others {done.others:.0%} of the machine)" if done.others > NOISE else ""),
        flush=True,
    )


@dataclass
class Round:
    """What one round compares."""

    waiting: Phase
    offered: dict[int, Phase]
    alone: Phase
    beside: Phase

    @property
    def loads(self) -> Sequence[Phase]:
        return [self.waiting, *self.offered.values()]

    @property
    def noisy(self) -> bool:
        return any(one.others > NOISE for one in self.loads)

    @property
    def share(self) -> float:
        """Goodput at the most that was offered, of its peak."""
        return self.offered[TIMES[-1]].tally.goodput / max(one.tally.goodput for one in self.loads)

    @property
    def share_by_cpu(self) -> float:
        return self.offered[TIMES[-1]].by_cpu / max(one.by_cpu for one in self.loads)

    @property
    def missed(self) -> float:
        """Of the calls that were let in at the most that was offered, those that did not end in time."""
        tally = self.offered[TIMES[-1]].tally
        return tally.late / (tally.late + len(tally.good) or 1)

    @property
    def slower(self) -> float:
        """How many times as long the quiet tenant's p95 is beside the loud one; no number without answers."""
        return self.beside.tally.percentile(0.95) / self.alone.tally.percentile(0.95)

    @property
    def refusal_millis(self) -> float:
        """What a refusal costs the server, about: what is left of its CPU after what good answers cost."""
        most, plain = self.offered[TIMES[-1]], self.waiting
        rest = most.cpu - len(most.tally.good) / plain.by_cpu
        return max(0.0, 1000 * rest / (most.tally.refused.total() or 1))


async def a_round(server: Server, clients: Sequence[Client], seconds: float) -> Round:
    loud, loud_too, quiet = clients
    both = [one.saturate(CALLERS // 2, seconds) for one in (loud, loud_too)]
    waiting = await phase(server, "callers that wait", *both)
    capacity = waiting.tally.goodput
    if capacity * seconds < CALLERS:
        raise SystemExit("the machine leaves the product no time to answer: measure when it has some")
    offered = {}
    for times in TIMES:
        rate = capacity * times / 2
        calls = [one.offer(rate, seconds) for one in (loud, loud_too)]
        offered[times] = await phase(server, f"{times} times the capacity", *calls)
    rate = capacity * QUIET_SHARE
    longer = max(seconds, min(QUIET_CALLS / rate, QUIET_SECONDS))
    alone = await phase(server, "quiet, alone", quiet.offer(rate, longer))
    noise = loud.offer(capacity * TIMES[-1], longer)
    beside = await phase(server, "quiet, beside 4 times", first_of(quiet.offer(rate, longer), noise))
    return Round(waiting, offered, alone, beside)


async def first_of(calls: Awaitable[Tally], noise: Awaitable[Tally]) -> Tally:
    """What became of the first, while the other was offered as well."""
    tally, _ = await asyncio.gather(calls, noise)
    return tally


def misses(rounds: Sequence[Round]) -> list[str]:
    """Tells the medians; answers which of them miss."""
    found = []
    noisy = any(one.noisy for one in rounds)
    share, by_cpu = median(one.share for one in rounds), median(one.share_by_cpu for one in rounds)
    print(f"goodput at {TIMES[-1]} times is {share:.0%} of its peak, by the server's CPU {by_cpu:.0%}")
    if noisy:
        print("other work took more than a tenth of the machine: CPU counts")
    if median(one.waiting.others for one in rounds) > MOSTLY_OTHERS:
        print("it took more than half: what follows says little; repeat this when the machine is quiet")
    if (by_cpu if noisy else share) < WITHIN:
        found.append(f"goodput at {TIMES[-1]} times")
    print(f"a refusal costs about {median(one.refusal_millis for one in rounds):.2f} ms of the server's CPU")
    missed = median(one.missed for one in rounds)
    print(f"{missed:.1%} of the calls that were let in did not end in their time")
    if missed > MISSED:
        found.append("calls that were let in")
    phases = [one for each in rounds for one in (*each.loads, each.alone, each.beside)]
    untold = sum(one.tally.without_retry for one in phases)
    if untold:
        found.append(f"{untold} refusals name no time to wait")
    slower = median(one.slower for one in rounds)
    print(f"the quiet tenant's p95 is {slower:.1f} times as long beside the loud one")
    if not slower <= SLOWER:  # also where it is no number: nothing was answered
        found.append("the neighbour")
    return found


async def run(seconds: float, rounds: int, facts: int) -> list[str]:
    """What misses."""
    async with a_server() as server, grpc.aio.insecure_channel(server.target) as channel:
        names = (LOUD, LOUD_TOO, QUIET)
        clients = [Client(channel, server.keys[name], seed) for seed, name in enumerate(names)]
        for client in clients:
            await client.fill(facts)
            await client.saturate(2, 2)  # indexes are read, code is warm
        done = []
        for number in range(rounds):
            print(f"round {number + 1}")
            done.append(await a_round(server, clients, seconds))
        found = misses(done)
        rest = await server.ask("end")
        print(
            f"left: {rest['unfinished']} jobs, {rest['held']} held, {rest['findings']} findings of the audit"
        )
        if any(rest.values()):
            found.append("the ledger")
        return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10, help="of each phase")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--facts", type=int, default=400)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    if arguments.serve:
        asyncio.run(serve(arguments.serve))
        return
    found = asyncio.run(run(arguments.seconds, arguments.rounds, arguments.facts))
    print(f"misses: {', '.join(found)}" if found else "nothing misses")
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
