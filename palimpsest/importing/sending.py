"""Sending: facts by AssertTriples, then texts by BatchAddEpisodes, bounded in flight; what came of each.

Facts go in calls of many, cut where their content says so. Request ids are made from the content alone. So an
import that is repeated, or goes on after an interruption, makes the same calls, and the server answers those
that it knows for nothing; of a longer export only calls that hold something new are others.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from palimpsest.bulk import LONGEST_WAIT_SECONDS, TRIES, WAIT_SECONDS, Bulk, Outcome
from palimpsest.connection import Connection
from palimpsest.errors import (
    CallError,
    InvalidRequest,
    NotFound,
    OutOfCredits,
    PermissionRefused,
    TryAgain,
    Unauthenticated,
    error_of_status,
)
from palimpsest.importing.values import Fact, Fate, Item, Key, Words, marked
from palimpsest.texts import Text
from palimpsest.v1 import job_pb2, memory_ingest_pb2
from palimpsest.watching import FINAL, wait_for

IN_FLIGHT = 32
"""Texts that are at work at once."""
CALLS = 4
"""Calls of facts at once: a graph records one after the other, so that more would only wait."""
MOST_FACTS = 256
_ONE_IN = 64
"""A call ends with each fact whose key is divisible by this, wherever it stands."""
_REUSED = "REQUEST_ID_REUSED"
_Facts = Mapping[Key, Fact]


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a fact or text. `why` is of one that was refused or failed."""

    fate: Fate
    why: str = ""
    spent_micros: int = 0


class Sending:
    """Sends to one graph. A sending is used once."""

    def __init__(
        self,
        connection: Connection,
        graph: str,
        in_flight: int = IN_FLIGHT,
        tries: int = TRIES,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`tries` where the server has no room for now, each longer after the last from `wait_seconds` on."""
        self._connection = connection
        self._graph = graph
        self._in_flight = in_flight
        self._tries = tries
        self._wait_seconds = wait_seconds
        self._stopped: CallError | None = None

    @property
    def stopped(self) -> CallError | None:
        """Why not all was sent, if so."""
        return self._stopped

    async def send(self, items: Mapping[Key, Item]) -> AsyncGenerator[tuple[Key, Result], None]:
        """Each item with what came of it, as it comes; facts first, each in order of when it was said.

        When credits run out, or one finds no room after all tries, no further ones are sent (`stopped`).
        Raises CallError for what ends every call, such as a key that is not valid.
        """
        facts = {key: item for key, item in items.items() if isinstance(item, Fact)}
        async with aclosing(self._send_facts(_cut(facts))) as results:
            async for key, result in results:
                yield key, result
        if self._stopped is not None:
            return
        bulk = Bulk(self._connection, self._graph, self._in_flight, False, self._tries, self._wait_seconds)
        texts = [
            Text(key, text_call(item, self._graph, self._request_id(key)), 1)
            for key, item in items.items()
            if isinstance(item, Words)
        ]
        texts.sort(key=_said)
        async with aclosing(bulk.send(texts)) as outcomes:
            async for outcome in outcomes:
                key = outcome.text.name
                came = _of_text(outcome, items[key])
                if came is not None:
                    yield key, came
        self._stopped = bulk.stopped

    async def _send_facts(self, calls: Iterator[_Facts]) -> AsyncGenerator[tuple[Key, Result], None]:
        results: asyncio.Queue[tuple[Key, Result] | None] = asyncio.Queue()

        async def work() -> None:
            for facts in calls:
                for one in (await self._record(facts)).items():
                    results.put_nowait(one)
                if self._stopped is not None:
                    return

        async def all_sent() -> None:
            try:
                async with asyncio.TaskGroup() as workers:
                    for _ in range(min(CALLS, self._in_flight)):
                        workers.create_task(work())
            finally:
                results.put_nowait(None)

        sending = asyncio.create_task(all_sent())
        try:
            while (result := await results.get()) is not None:
                yield result
            await _bare(sending)
        finally:
            sending.cancel()

    async def _record(self, facts: _Facts) -> dict[Key, Result]:
        """What came of each; of those that were not sent, since the sending has stopped, nothing.

        A call is recorded whole or not at all. Where one fact can't be, halves find out which.
        """
        try:
            result = await self._asked(facts)
        except CallError as error:
            known = any(not fact.said.told for fact in facts.values())
            result = _refused(error, known)
        if result is None:
            return {}
        if result.fate is Fate.REFUSED and len(facts) > 1:
            keys = list(facts)
            halves = keys[: len(keys) // 2], keys[len(keys) // 2 :]
            one, two = [await self._record({key: facts[key] for key in half}) for half in halves]
            return one | two
        first, *others = facts
        return {first: result} | {key: Result(result.fate, result.why) for key in others}

    async def _asked(self, facts: _Facts) -> Result | None:
        """The end of the job that records them. Raises CallError where it can't."""
        request = facts_call(facts.values(), self._graph, self._request_id("".join(facts)))
        unsure = False
        for attempt in range(self._tries):
            if self._stopped is not None:
                return None
            try:
                answer = await self._connection.call(self._connection.memory.AssertTriples, request)
                # The answer to an earlier try may have been lost on its way.
                job, ended = answer.job, answer.job.state in FINAL
                if answer.replayed and ended and not unsure:
                    return Result(Fate.KNOWN)
                job = job if ended else await wait_for(self._connection, job.job_id)
                if job.state != job_pb2.JOB_STATE_SUCCEEDED:
                    return Result(Fate.REFUSED, str(error_of_status(job.error)))
                return Result(Fate.IMPORTED, spent_micros=job.credits.spent_micros)
            except OutOfCredits as error:
                self._stopped = error
                return None
            except TryAgain as error:
                unsure = True
                if attempt + 1 == self._tries:
                    self._stopped = error
                    return None
                wait = min(self._wait_seconds * 2**attempt, LONGEST_WAIT_SECONDS)
                await asyncio.sleep(max(error.retry_after_seconds or 0.0, wait))
        raise AssertionError("unreachable: the last try returns")

    def _request_id(self, key: Key) -> str:
        """Of the graph as well: ids of calls are a tenant's, and two graphs may be given the same file."""
        return f"import-{marked(self._graph, key)}"


def _said(text: Text) -> tuple[int, str]:
    return text.request.reference_time.ToNanoseconds(), text.name


def _cut(facts: _Facts) -> Iterator[_Facts]:
    """Facts of one source in the order in which they were said, as calls of some."""
    some: dict[Key, Fact] = {}
    source = ""
    for key, fact in sorted(facts.items(), key=lambda one: (one[1].source, one[1].said.at, one[0])):
        if some and (fact.source != source or len(some) == MOST_FACTS):
            yield some
            some = {}
        some[key], source = fact, fact.source
        if int(key[:8], 16) % _ONE_IN == 0:
            yield some
            some = {}
    if some:
        yield some


def text_call(words: Words, graph: str, request_id: str) -> memory_ingest_pb2.AddEpisodeRequest:
    """The request that brings a text."""
    request = memory_ingest_pb2.AddEpisodeRequest()
    request.CopyFrom(words.request)
    request.graph_id, request.request_id = graph, request_id
    return request


def facts_call(facts: Iterable[Fact], graph: str, request_id: str) -> memory_ingest_pb2.AssertTriplesRequest:
    """The request that brings facts of one source."""
    request = memory_ingest_pb2.AssertTriplesRequest(graph_id=graph, request_id=request_id, wait=False)
    for fact in facts:
        request.source = fact.source
        told = fact.input()
        if isinstance(told, memory_ingest_pb2.ClaimInput):
            request.claims.append(told)
        elif isinstance(told, memory_ingest_pb2.EndInput):
            request.ends.append(told)
        else:
            request.denials.append(told)
    return request


def _refused(error: CallError, undated: bool) -> Result:
    """`undated`: it goes by the date of its file. Raises the error where it is one of every call."""
    if error.reason == _REUSED and undated:
        return Result(Fate.KNOWN)  # the same from a file of another date
    if isinstance(error, Unauthenticated | PermissionRefused | NotFound):
        raise error
    if isinstance(error, InvalidRequest) and any(one.field == "graph_id" for one in error.violations):
        raise error
    return Result(Fate.REFUSED, str(error))


def _of_text(outcome: Outcome, item: Item) -> Result | None:
    """None for one that was not taken because the sending has stopped."""
    if isinstance(outcome.error, OutOfCredits | TryAgain):
        return None
    if outcome.error is not None:
        return _refused(outcome.error, not item.said.told)
    job = outcome.job
    assert job is not None, "nothing was only validated"
    if job.state != job_pb2.JOB_STATE_SUCCEEDED:
        why = f"job {job.job_id}: {error_of_status(job.error)}"
        return Result(Fate.FAILED, why, job.credits.spent_micros)
    if outcome.known:
        return Result(Fate.KNOWN)
    return Result(Fate.IMPORTED, spent_micros=job.credits.spent_micros)


async def _bare(task: "asyncio.Task[None]") -> None:
    """Waits; of a group of errors the first is raised by itself."""
    try:
        await task
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
