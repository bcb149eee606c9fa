"""Tools: what an assistant may do with one graph, whatever carries them to it (MCP, an agent's framework).

Their docstrings are what a model reads. Forgetting takes two calls: the first shows what would go, and gives
the word that the second must repeat, so that no model deletes by a slip.
"""

import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import typer
from google.protobuf.timestamp_pb2 import Timestamp

from palimpsest.cli.dates import FORMS, Dated, read_date, shown
from palimpsest.cli.words import since, until
from palimpsest.errors import CallError, InvalidRequest, NotFound
from palimpsest.memory import Memory
from palimpsest.v1 import (
    entity_pb2,
    memory_episodes_pb2,
    memory_graph_pb2,
    memory_statements_pb2,
    recall_summaries_pb2,
    statement_pb2,
)

Answer = TypeVar("Answer")
Asked = ParamSpec("Asked")

INSTRUCTIONS = """A memory of dated facts. Call recall before you answer what may have been said before, and
remember when the user tells something lasting. Facts that are true no more are told as ended, with dates."""

_CHANGES = {
    memory_graph_pb2.CHANGE_KIND_ADDED: "began to hold",
    memory_graph_pb2.CHANGE_KIND_ENDED: "ended",
    memory_graph_pb2.CHANGE_KIND_RESTORED: "holds again",
    memory_graph_pb2.CHANGE_KIND_EXPIRED: "is not believed any more",
    memory_graph_pb2.CHANGE_KIND_REDATED: "has other dates",
}


class NotDone(Exception):
    """Why a tool did nothing, for the model to read. `correctable`: by other arguments."""

    def __init__(self, why: str, *, correctable: bool) -> None:
        super().__init__(why)
        self.correctable = correctable


class Tools:
    """What an assistant may do with one graph. Every one raises NotDone."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._client = memory.client
        self._graph = memory.graph

    async def remember(self, text: str, said_at: str = "") -> str:
        """Hands in what was said, in the user's words, with who said it. `said_at`: when, if not now."""
        job = await _told(self._memory.remember(text, at=_date(said_at), wait=True))
        if job.error.message:
            raise NotDone(job.error.message, correctable=False)
        counts = job.result.counts
        return f"remembered: {counts.statements_added} new facts, {counts.statements_ended} ended"

    async def recall(self, question: str, as_of: str = "", token_budget: int = 1_000) -> str:
        """What is known about a question, now or as of a date: dated facts, and what was said."""
        found = await _told(self._memory.recall(question, as_of=_date(as_of), token_budget=token_budget))
        if not found:
            return "nothing is known about that"
        texts = [f"[{name}] is episode {one.episode_id}" for name, one in found.response.evidence.items()]
        return "\n".join([found.text, "", *sorted(texts)])

    async def timeline(self, subject: str, predicate: str) -> str:
        """All that held of a subject and a predicate (lives_in, works_at, uses …), in order of time."""
        asked = memory_statements_pb2.GetTimelineRequest(
            graph_id=self._graph,
            subject=entity_pb2.EntityRef(name=subject),
            predicate=entity_pb2.PredicateRef(name=predicate),
        )
        answer = await _told(self._client.call(self._client.memory.GetTimeline, asked))
        lines = [f"{entry.fact}  ({_dates(entry.span)})" for entry in answer.entries]
        return "\n".join(lines) or "nothing is known about that"

    async def what_changed(self, since: str, until: str = "now") -> str:
        """What began to hold, or ended, between two dates."""
        asked = memory_graph_pb2.DiffGraphRequest(graph_id=self._graph, page_size=200)
        asked.world.before.CopyFrom(_stamp(since))
        asked.world.after.CopyFrom(_stamp(until))
        answer = await _told(self._client.call(self._client.memory.DiffGraph, asked))
        lines = [
            f"{change.statement.fact or change.voice_aspect.text}: {_CHANGES.get(change.kind, 'changed')}"
            for change in answer.changes
        ]
        more = "\n(and more)" if answer.next_page_token else ""
        return ("\n".join(lines) or "nothing changed") + more

    async def forget(self, episode_id: str, confirm: str = "") -> str:
        """Deletes one text with all that only it said; recall tells its id. Call it without `confirm` first,
        show the user what would go, and call it again with the word that it answered.
        """
        read = memory_episodes_pb2.GetEpisodeRequest(graph_id=self._graph, episode_id=episode_id)
        found = await _told(self._client.call(self._client.memory.GetEpisode, read))
        word = _word(self._graph, episode_id, found.text)
        if confirm != word:
            said = f"said {shown(found.episode.reference_time)}: {found.text[:300]}"
            return f"nothing was deleted. This would go: {said}\nTo delete it, repeat with confirm={word!r}."
        asked = memory_episodes_pb2.DeleteEpisodeRequest(graph_id=self._graph, episode_id=episode_id)
        answer = await _told(self._client.call(self._client.memory.DeleteEpisode, asked))
        gone, back = len(answer.expired_statement_ids), len(answer.restored_statement_ids)
        return f"deleted; {gone} facts are not believed any more, {back} hold again"

    async def about_user(self) -> str:
        """Who the user is, what they prefer, and how they want to be answered."""
        asked = recall_summaries_pb2.GetPersonaRequest(graph_id=self._graph)
        try:
            persona = (await _told(self._client.call(self._client.recall.GetPersona, asked))).persona
        except NotDone as error:
            if not isinstance(error.__cause__, NotFound):
                raise
            persona = recall_summaries_pb2.Persona()
        sections = [f"## {section.title}\n{section.text}" for section in persona.sections if section.text]
        return "\n\n".join(sections) or "nothing is known about the user"


def told_as(
    tool: Callable[Asked, Coroutine[Any, Any, str]], error: Callable[[NotDone], Exception]
) -> Callable[Asked, Coroutine[Any, Any, str]]:
    """The same tool, by the same name and for the same arguments, with errors of whoever calls it."""

    @wraps(tool)
    async def run(*args: Asked.args, **arguments: Asked.kwargs) -> str:
        try:
            return await tool(*args, **arguments)
        except NotDone as why:
            raise error(why) from why

    return run


async def _told(work: Awaitable[Answer]) -> Answer:
    """An error of the API as one of the tool. The model reads it: reason and message, nothing of ours."""
    try:
        return await work
    except (CallError, ValueError) as error:
        correctable = isinstance(error, NotFound | InvalidRequest | ValueError)
        raise NotDone(str(error), correctable=correctable) from error


def _date(text: str) -> datetime | None:
    return read(text).at if text else None


def _stamp(text: str) -> Timestamp:
    return read(text).timestamp


def read(text: str) -> Dated:
    """A date as a model writes it. Raises NotDone, which says how to."""
    try:
        return read_date(text)
    except typer.BadParameter as error:
        raise NotDone(f"{text!r} is no date; write it like {FORMS}", correctable=True) from error


def _dates(span: statement_pb2.Span) -> str:
    return f"since {since(span)}" + (f" until {until(span)}" if until(span) else "")


def _word(graph: str, episode_id: str, text: str) -> str:
    """Changes with what would be deleted, so that a word is good for what was shown."""
    return hashlib.sha256(f"{graph}\n{episode_id}\n{text}".encode()).hexdigest()[:8]
