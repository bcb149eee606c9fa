"""The client of benchmarks.load: calls of a mix, offered at a rate, and what became of them."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc.aio
from google.rpc import error_details_pb2, status_pb2

from palimpsest.v1 import (
    entity_pb2,
    episode_pb2,
    memory_ingest_pb2,
    memory_pb2_grpc,
    recall_pb2,
    recall_pb2_grpc,
)

DEADLINE_SECONDS = 5.0
LATE_SECONDS = 3.5
MOST_AT_ONCE = 2_000
"""Calls in flight of one tenant's client; what is above that is counted as not offered."""
MIX = (("recall", 0.75), ("assert", 0.95), ("ingest", 1.0))
"""Kinds of calls with their cumulated shares."""
PEOPLE = 40
GRAPHS = 4


@dataclass
class Tally:
    """What became of the calls of one client in one phase. Times are milliseconds of good answers."""

    good: list[float] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    """By reason: OVERLOADED, TOO_MANY_JOBS, DEADLINE_TOO_SHORT, …"""
    late: int = 0
    """Calls that ended badly so late that they had been let in: nobody waits for a place so long."""
    without_retry: int = 0
    """Refusals for load that name no time to wait."""
    failed: Counter[str] = field(default_factory=Counter)
    offered: int = 0
    seconds: float = 0

    @property
    def goodput(self) -> float:
        """Good answers a second."""
        return len(self.good) / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float:
        if not self.good:
            return float("nan")
        ranked = sorted(self.good)
        return ranked[min(len(ranked) - 1, int(share * len(ranked)))]

    def add(self, others: Sequence["Tally"]) -> "Tally":
        for one in others:
            self.good += one.good
            self.refused += one.refused
            self.failed += one.failed
            self.without_retry += one.without_retry
            self.late += one.late
            self.offered += one.offered
            self.seconds = max(self.seconds, one.seconds)
        return self


LOAD = frozenset({"OVERLOADED", "RATE_LIMITED", "TOO_MANY_JOBS", "STORE_UNAVAILABLE"})
"""Reasons of refusals for load: each must name a time to wait. DEADLINE_TOO_SHORT has none by design: a call
that was let in and told so counts as one that ended late."""


class Client:
    """Calls of one tenant. Every run of the same seed offers the same calls at the same times."""

    def __init__(self, channel: grpc.aio.Channel, key: str, seed: int) -> None:
        self._memory = memory_pb2_grpc.MemoryServiceStub(channel)
        self._recall = recall_pb2_grpc.RecallServiceStub(channel)
        self._metadata = (("authorization", f"Bearer {key}"),)
        self._random = random.Random(seed)  # no secret
        self._prefix = f"{seed}"
        self._made = 0

    async def fill(self, facts: int) -> None:
        """What there is to be recalled."""
        for graph in range(GRAPHS):
            claims = [
                self._claim(f"Person {number % PEOPLE}", f"Tool {number}")
                for number in range(facts // GRAPHS)
            ]
            request = memory_ingest_pb2.AssertTriplesRequest(
                graph_id=f"g{graph}", request_id=f"fill-{graph}", claims=claims
            )
            await self._memory.AssertTriples(request, metadata=self._metadata, timeout=60)

    async def offer(self, rate: float, seconds: float) -> Tally:
        """Open loop: arrivals at random times, `rate` a second on average, for `seconds`."""
        tally, calls, begun = Tally(), set[asyncio.Task[None]](), time.perf_counter()
        due = begun
        while (due := due + self._random.expovariate(rate)) < begun + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if len(calls) < MOST_AT_ONCE:
                tally.offered += 1
                call = asyncio.create_task(self._one(tally))
                calls.add(call)
                call.add_done_callback(calls.discard)
        await asyncio.gather(*calls)
        tally.seconds = time.perf_counter() - begun
        return tally

    async def saturate(self, callers: int, seconds: float) -> Tally:
        """Closed loop: each caller asks again as soon as it is answered."""
        tally, begun = Tally(), time.perf_counter()

        async def caller() -> None:
            while time.perf_counter() < begun + seconds:
                tally.offered += 1
                await self._one(tally)

        await asyncio.gather(*(caller() for _ in range(callers)))
        tally.seconds = time.perf_counter() - begun
        return tally

    async def _one(self, tally: Tally) -> None:
        drawn = self._random.random()
        kind = next(name for name, share in MIX if drawn < share)
        method, request = self._request(kind)
        begun = time.perf_counter()
        try:
            await method(request, metadata=self._metadata, timeout=DEADLINE_SECONDS)
        except grpc.aio.AioRpcError as error:
            reason, retry = _reason(error)
            tally.late += time.perf_counter() - begun > LATE_SECONDS
            if reason:
                tally.refused[reason] += 1
                tally.without_retry += reason in LOAD and not retry
            else:
                tally.failed[error.code().name] += 1
        else:
            tally.good.append((time.perf_counter() - begun) * 1000)

    def _request(self, kind: str) -> tuple[Any, Any]:
        self._made += 1
        graph, person = f"g{self._random.randrange(GRAPHS)}", f"Person {self._random.randrange(PEOPLE)}"
        name = f"{self._prefix}-{self._made}"
        if kind == "recall":
            return self._recall.Recall, recall_pb2.RecallRequest(
                graph_ids=[graph], query=f"Which tools does {person} use?", max_facts=10
            )
        if kind == "assert":
            return self._memory.AssertTriples, memory_ingest_pb2.AssertTriplesRequest(
                graph_id=graph, request_id=name, claims=[self._claim(person, f"Thing {name}")]
            )
        return self._memory.AddEpisode, memory_ingest_pb2.AddEpisodeRequest(
            graph_id=graph,
            request_id=name,
            kind=episode_pb2.EPISODE_KIND_CONVERSATION,
            text=f"{person} works at Company {name}.",
        )

    @staticmethod
    def _claim(person: str, thing: str) -> memory_ingest_pb2.ClaimInput:
        target = entity_pb2.ObjectRef(entity=entity_pb2.EntityRef(name=thing))
        return memory_ingest_pb2.ClaimInput(
            subject=entity_pb2.EntityRef(name=person), predicate="uses", object=target
        )


def _reason(error: grpc.aio.AioRpcError) -> tuple[str, bool]:
    """Our reason for a refusal, "" for none, and whether it names a time to wait."""
    trailers: dict[str, Any] = dict(error.trailing_metadata() or ())
    packed = trailers.get("grpc-status-details-bin")
    if packed is None:
        return "", False
    reason, retry = "", False
    for detail in status_pb2.Status.FromString(packed).details:
        if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            reason = error_details_pb2.ErrorInfo.FromString(detail.value).reason
        retry = retry or detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR)
    return reason, retry
