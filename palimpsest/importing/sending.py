"""Sending: facts by AssertTriples, then texts by BatchAddEpisodes, bounded in flight; what came of each.

Each fact and text has a request id made from its content, a fact one of its own: a call of many would be
another call when one of them is added, and all of them said again. So an import that is repeated, after an
interruption or of a longer export, takes up what was left, and the server answers the rest for nothing.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterator, Mapping
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
from palimpsest.importing.values import Fact, Fate, Item, Key, Words
from palimpsest.texts import Text
from palimpsest.v1 import job_pb2, memory_ingest_pb2

IN_FLIGHT = 16
"""Facts, or texts, that are at work at once."""
_REUSED = "REQUEST_ID_REUSED"


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
        """Each item with what came of it, as it comes; earlier facts begin earlier.

        When credits run out, or one finds no room after all tries, no further ones are sent (`stopped`).
        Raises CallError for what ends every call, such as a key that is not valid.
        """
        facts = sorted(
            ((key, item) for key, item in items.items() if isinstance(item, Fact)),
            key=lambda one: (one[1].said.at, one[0]),
        )
        async with aclosing(self._send_facts(iter(facts))) as results:
            async for key, result in results:
                yield key, result
        if self._stopped is not None:
            return
        bulk = Bulk(self._connection, self._graph, self._in_flight, False, self._tries, self._wait_seconds)
        texts = [self._text(key, item) for key, item in items.items() if isinstance(item, Words)]
        texts.sort(key=_said)
        async with aclosing(bulk.send(texts)) as outcomes:
            async for outcome in outcomes:
                key = outcome.text.name
                came = _of_text(outcome, items[key])
                if came is not None:
                    yield key, came
        self._stopped = bulk.stopped

    async def _send_facts(
        self, facts: Iterator[tuple[Key, Fact]]
    ) -> AsyncGenerator[tuple[Key, Result], None]:
        results: asyncio.Queue[tuple[Key, Result] | None] = asyncio.Queue()

        async def work() -> None:
            for key, fact in facts:
                result = await self._assert(key, fact)
                if result is not None:
                    results.put_nowait((key, result))
                if self._stopped is not None:
                    return

        async def all_sent() -> None:
            try:
                async with asyncio.TaskGroup() as workers:
                    for _ in range(self._in_flight):
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

    async def _assert(self, key: Key, fact: Fact) -> Result | None:
        """None when it was not sent, since the sending has stopped."""
        request = _request(fact, self._graph, self._request_id(key))
        for attempt in range(self._tries):
            try:
                answer = await self._connection.call(self._connection.memory.AssertTriples, request)
            except OutOfCredits as error:
                self._stopped = error
                return None
            except TryAgain as error:
                if attempt + 1 == self._tries:
                    self._stopped = error
                    return None
                wait = min(self._wait_seconds * 2**attempt, LONGEST_WAIT_SECONDS)
                await asyncio.sleep(max(error.retry_after_seconds or 0.0, wait))
            except CallError as error:
                return _refused(error, fact)
            else:
                if answer.replayed:
                    return Result(Fate.KNOWN)
                return Result(Fate.IMPORTED, spent_micros=answer.job.credits.spent_micros)
            if self._stopped is not None:
                return None
        raise AssertionError("unreachable: the last try returns")

    def _text(self, key: Key, words: Words) -> Text:
        request = memory_ingest_pb2.AddEpisodeRequest()
        request.CopyFrom(words.request)
        request.request_id = self._request_id(key)
        return Text(key, request, 1)

    def _request_id(self, key: Key) -> str:
        """Of the graph as well: ids of calls are a tenant's, and two graphs may be given the same file."""
        return "import-" + hashlib.sha256(f"{self._graph}\0{key}".encode()).hexdigest()[:56]


def _said(text: Text) -> tuple[int, str]:
    return text.request.reference_time.ToNanoseconds(), text.name


def _request(fact: Fact, graph: str, request_id: str) -> memory_ingest_pb2.AssertTriplesRequest:
    request = memory_ingest_pb2.AssertTriplesRequest(
        graph_id=graph, request_id=request_id, source=fact.source
    )
    told = fact.input()
    if isinstance(told, memory_ingest_pb2.ClaimInput):
        request.claims.append(told)
    elif isinstance(told, memory_ingest_pb2.EndInput):
        request.ends.append(told)
    else:
        request.denials.append(told)
    return request


def _refused(error: CallError, item: Item) -> Result:
    """Raises the error where it is not of the one fact or text but of every call."""
    if error.reason == _REUSED and not item.said.told:
        return Result(Fate.KNOWN)  # its date alone is another, which the file had and not the record
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
        return _refused(outcome.error, item)
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
