"""Memory: what an agent loop needs of a graph. It says what was said, and asks what is known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NotRequired, TypedDict

from google.protobuf.timestamp_pb2 import Timestamp

from palimpsest.client import Client
from palimpsest.errors import NotFound
from palimpsest.v1 import episode_pb2, job_pb2, memory_ingest_pb2, recall_pb2


class Said(TypedDict):
    """A message, as chat APIs write it; `name` is who speaks, where a graph has several people."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str
    name: NotRequired[str]


_ROLES: Mapping[str, episode_pb2.MessageRole.ValueType] = {
    "user": episode_pb2.MESSAGE_ROLE_USER,
    "assistant": episode_pb2.MESSAGE_ROLE_ASSISTANT,
    "system": episode_pb2.MESSAGE_ROLE_SYSTEM,
    "tool": episode_pb2.MESSAGE_ROLE_TOOL,
}


UNMADE = "GRAPH_NOT_FOUND"
"""A graph is made by the first thing that is said to it."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """An answer. `text` is ready for a prompt, each line with date and evidence; `response` has it all."""

    text: str
    response: recall_pb2.RecallResponse

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self.response.facts or self.response.passages or self.response.voice)


class Memory:
    """One graph, for one conversation at a time.

    `session` ties messages that belong together. What was remembered here is read back here: `recall` asks
    for the newest revision that a finished job of this object made. Who says "I" is a setting of the graph.
    """

    def __init__(self, client: Client, graph: str, *, session: str = "") -> None:
        self.client = client
        self.graph = graph
        self.session = session
        self._pending: list[str] = []
        self._revision = 0

    async def remember(
        self,
        said: str | Iterable[Said],
        *,
        at: datetime | None = None,
        wait: bool = False,
        request_id: str = "",
        source: str = "",
    ) -> job_pb2.Job:
        """Hands in a text or messages, said at a time (default: now). `wait`: until it is understood.

        The same `request_id` again changes nothing and answers the first job. Raises CallError; ValueError
        for a time without a zone, or a role that is none.
        """
        request = memory_ingest_pb2.AddEpisodeRequest(
            graph_id=self.graph,
            request_id=request_id,
            kind=episode_pb2.EPISODE_KIND_CONVERSATION,
            session_id=self.session,
            source=source,
            reference_time=_stamp(at or datetime.now(UTC)),
        )
        if isinstance(said, str):
            request.text = said
        else:
            request.messages.messages.extend(_message(one) for one in said)
        job = (await self.client.call(self.client.memory.AddEpisode, request)).job
        if not wait:
            self._pending.append(job.job_id)
            return job
        return self._seen(await self.client.wait(job.job_id))

    async def settle(self) -> Sequence[job_pb2.Job]:
        """Waits for all that was handed in here. The jobs; some may have FAILED. Raises CallError."""
        pending, self._pending = self._pending, []
        return [self._seen(await self.client.wait(job_id)) for job_id in pending]

    async def recall(
        self,
        question: str,
        *,
        as_of: datetime | None = None,
        token_budget: int = 0,
        max_facts: int | None = None,
        max_passages: int | None = None,
        also: Sequence[str] = (),
    ) -> Recalled:
        """What is known about a question, now or as of a date, within a budget of tokens (0: the server's).

        A graph to which nothing was said yet knows nothing. `also` names further graphs of the tenant.
        Raises CallError; ValueError for a time without a zone.
        """
        request = recall_pb2.RecallRequest(
            graph_ids=[self.graph, *also],
            query=question,
            as_of=_stamp(as_of) if as_of else None,
            token_budget=token_budget or None,
            max_facts=max_facts,
            max_passages=max_passages,
            min_revision=0 if also else self._revision,
        )
        try:
            answer = await self.client.call(self.client.recall.Recall, request)
        except NotFound as error:
            if error.reason != UNMADE or also:
                raise
            answer = recall_pb2.RecallResponse()
        return Recalled(answer.context, answer)

    def _seen(self, job: job_pb2.Job) -> job_pb2.Job:
        self._revision = max(self._revision, job.revision)
        return job


def _message(said: Said) -> memory_ingest_pb2.EpisodeMessage:
    if said["role"] not in _ROLES:
        raise ValueError(f"no such role: {said['role']}")
    return memory_ingest_pb2.EpisodeMessage(
        role=_ROLES[said["role"]], text=said["content"], speaker=said.get("name", "")
    )


def _stamp(at: datetime) -> Timestamp:
    if at.tzinfo is None:
        raise ValueError("a time needs a zone")
    stamp = Timestamp()
    stamp.FromDatetime(at)
    return stamp
