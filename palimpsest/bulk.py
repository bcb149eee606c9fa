"""Bulk: many texts sent in few calls, bounded in flight, each to its end.

Every text has a request id made from its content, so that sending all of them again, after an interruption
or later, takes up what was left: the server answers what it knows with the first outcome, for nothing.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from palimpsest.connection import Connection
from palimpsest.errors import CallError, OutOfCredits, TooLate, TryAgain, error_of_status
from palimpsest.texts import NotTaken, Text, named_by_content
from palimpsest.v1 import job_pb2, jobs_pb2, memory_ingest_pb2
from palimpsest.watching import FINAL, wait_for

BATCH = 20
"""Texts of one call; it may have a hundred, but all of them are accepted within one deadline."""
BATCH_BYTES = 12 * 1024 * 1024
"""Bytes of one call: below what it may have."""
IN_FLIGHT = 32
"""Texts that are accepted and not at their end."""
CALL_SECONDS = 120.0
"""Of one call: texts are accepted one after the other, and a server under load takes its time."""
TRIES = 6
"""Calls in a row of which nothing is accepted, after which we give up."""
WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
_RETRIED = frozenset({job_pb2.JOB_STATE_FAILED, job_pb2.JOB_STATE_PARTIAL})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a text: its job at its end, a quote, or the error. `known`: from an earlier run."""

    text: Text
    job: job_pb2.Job | None = None
    quote: job_pb2.Quote | None = None
    known: bool = False
    error: CallError | None = None


class Bulk:
    """Sends texts, to one graph where they name none. A bulk is used once."""

    def __init__(
        self,
        connection: Connection,
        graph: str,
        in_flight: int = IN_FLIGHT,
        validate_only: bool = False,
        tries: int = TRIES,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`tries` where the server has no room for now, each longer after the last from `wait_seconds` on."""
        self._connection = connection
        self._graph = graph
        self._batch = min(BATCH, in_flight)
        self._places = asyncio.Semaphore(in_flight)
        self._validate_only = validate_only
        self._tries = tries
        self._wait_seconds = wait_seconds
        self._stopped: CallError | None = None
        self._unsent = 0

    async def send(
        self, found: Iterable[Text | NotTaken], not_taken: Callable[[NotTaken], None] = lambda _: None
    ) -> AsyncGenerator[Outcome, None]:
        """Each text's outcome as it comes; texts are accepted in order, and read no earlier than needed.

        When credits run out, or a text finds no room after all tries, no further ones are sent (`stopped`).
        Raises CallError for what ends every call, such as a key that is not valid.
        """
        outcomes: asyncio.Queue[Outcome | None] = asyncio.Queue()

        async def all_sent() -> None:
            try:
                async with asyncio.TaskGroup() as watching:
                    for part in self._parts(_texts(found, not_taken)):
                        if self._stopped is None:
                            await self._accept(part, outcomes, watching)
                        else:
                            self._unsent += len(part)
            finally:
                outcomes.put_nowait(None)

        sending = asyncio.create_task(all_sent())
        try:
            while (outcome := await outcomes.get()) is not None:
                yield outcome
            await _bare(sending)
        finally:
            sending.cancel()

    @property
    def stopped(self) -> CallError | None:
        """Why not all was sent, if so."""
        return self._stopped

    @property
    def unsent(self) -> int:
        """Texts that were not sent for that."""
        return self._unsent

    def _parts(self, texts: Iterable[Text]) -> Iterator[list[Text]]:
        """As many as fit into a call, each id once."""
        part: list[Text] = []
        size = 0
        seen: set[str] = set()
        for text in texts:
            request = text.request
            request.graph_id = request.graph_id or self._graph
            request.validate_only = self._validate_only
            request.request_id = request.request_id or named_by_content(request)
            bytes_ = request.ByteSize()
            if part and (
                len(part) == self._batch or size + bytes_ > BATCH_BYTES or request.request_id in seen
            ):
                yield part
                part, size, seen = [], 0, set()
            part.append(text)
            seen.add(request.request_id)
            size += bytes_
        if part:
            yield part

    async def _accept(
        self, part: Sequence[Text], outcomes: asyncio.Queue[Outcome | None], watching: asyncio.TaskGroup
    ) -> None:
        """Until each text of the part is accepted or refused for good."""
        for _ in part:
            await self._places.acquire()
        left, size, attempt = list(part), len(part), 0
        while left and self._stopped is None:
            some, left = left[:size], left[size:]
            again: list[Text] = []
            longest = 0.0
            for text, answer in zip(some, await self._asked(some), strict=True):
                if isinstance(answer, TryAgain) and attempt + 1 < self._tries:
                    again.append(text)
                    longest = max(longest, answer.retry_after_seconds or 0.0)
                    size = max(1, size // 2) if isinstance(answer, TooLate) and text is some[0] else size
                elif isinstance(answer, CallError):
                    self._refused(text, answer, outcomes)
                else:
                    watching.create_task(self._followed(text, answer, outcomes))
            attempt = attempt + 1 if len(again) == len(some) else 0  # whatever is accepted is a step forward
            left = again + left
            if again:
                wait = min(self._wait_seconds * 2**attempt, LONGEST_WAIT_SECONDS)
                await asyncio.sleep(max(longest, wait))
        self._unsent += len(left)
        for _ in left:
            self._places.release()

    def _refused(self, text: Text, error: CallError, outcomes: asyncio.Queue[Outcome | None]) -> None:
        self._places.release()
        if isinstance(error, OutOfCredits | TryAgain) and error.reason != "MAX_CREDITS_EXCEEDED":
            self._stopped = error
        outcomes.put_nowait(Outcome(text, error=error))

    async def _asked(
        self, part: Sequence[Text]
    ) -> Sequence[memory_ingest_pb2.AddEpisodeResponse | CallError]:
        asked = memory_ingest_pb2.BatchAddEpisodesRequest(requests=[text.request for text in part])
        try:
            answer = await self._connection.call(
                self._connection.memory.BatchAddEpisodes, asked, CALL_SECONDS
            )
        except TryAgain as error:
            return [error] * len(part)
        return [
            error_of_status(one.error) if one.HasField("error") else one.response for one in answer.results
        ]

    async def _followed(
        self,
        text: Text,
        answer: memory_ingest_pb2.AddEpisodeResponse,
        outcomes: asyncio.Queue[Outcome | None],
    ) -> None:
        try:
            if not answer.HasField("job"):
                outcomes.put_nowait(Outcome(text, quote=answer.quote))
                return
            job = answer.job
            if answer.replayed and job.state in _RETRIED:
                job = await self._retried(job)
            if job.state not in FINAL:
                job = await wait_for(self._connection, job.job_id)
            outcomes.put_nowait(Outcome(text, job, answer.quote, answer.replayed))
        except TryAgain as error:
            self._stopped = error
            outcomes.put_nowait(Outcome(text, error=error))
        finally:
            self._places.release()

    async def _retried(self, job: job_pb2.Job) -> job_pb2.Job:
        """What of a job failed in an earlier run is tried again; the job as it is where nothing is left."""
        # Named after that failure, so that two runs at once make one retry.
        name = f"again-{job.job_id}"[:44] + f"-{job.finished_at.ToMilliseconds()}"
        request = jobs_pb2.RetryJobRequest(job_id=job.job_id, request_id=name)
        try:
            return (await self._connection.call(self._connection.jobs.RetryJob, request)).job
        except TryAgain:
            raise
        except CallError:
            return job


def _texts(found: Iterable[Text | NotTaken], not_taken: Callable[[NotTaken], None]) -> Iterator[Text]:
    for one in found:
        if isinstance(one, Text):
            yield one
        else:
            not_taken(one)


async def _bare(task: "asyncio.Task[None]") -> None:
    """Waits; of a group of errors the first is raised by itself."""
    try:
        await task
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
