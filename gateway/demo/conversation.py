"""Chapter: a long conversation, taken in session by session while the progress shows."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gateway.demo.stage import Stage
from palimpsest.cli.recalling import answer_of
from palimpsest.v1 import episode_pb2, graph_pb2, job_pb2, memory_ingest_pb2, recall_pb2
from palimpsest.watching import wait_for

GRAPH = "conversation"
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "locomo" / "conversations.json"
"""LoCoMo, where it lies beside the checkout; it may be measured with, not shipped."""

QUESTIONS = 10
"""Of LoCoMo's own questions about one turn; the turn must be among the passages recalled for most of them."""
ENOUGH = 0.6
BUDGET = 300
"""Tokens of an answer: three or four turns."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `id` is the source's own."""

    id: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Session:
    """A part of a conversation that was held at one time."""

    id: str
    at: datetime
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the ids of the messages that answer it."""

    text: str
    evidence: Sequence[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What is taken in, and what is asked of it."""

    name: str
    sessions: Sequence[Session]
    questions: Sequence[Question]


def load(path: Path = SHARED) -> Conversation:
    """LoCoMo's first conversation when it is there, else a short one that we ship."""
    if path.is_file():
        return _locomo(json.loads(path.read_text(encoding="utf-8"))[0])
    return shipped()


def _locomo(found: dict[str, Any]) -> Conversation:
    talk = found["conversation"]
    names = sorted(
        (name for name in talk if name.startswith("session_") and not name.endswith("_date_time")),
        key=lambda name: int(name.removeprefix("session_")),
    )
    sessions = [
        Session(
            id=name,
            at=datetime.strptime(talk[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC),
            messages=[Message(turn["dia_id"], turn["speaker"], turn["text"]) for turn in talk[name]],
        )
        for name in names
    ]
    single = [Question(one["question"], one["evidence"]) for one in found["qa"] if one["category"] == 4]
    people = f"{talk['speaker_a']} and {talk['speaker_b']}"
    return Conversation(f"LoCoMo: {people}", sessions, single[:QUESTIONS])


def shipped() -> Conversation:
    """The conversation that comes with the demo."""
    text = (resources.files("gateway.demo") / "texts" / "conversation.json").read_text(encoding="utf-8")
    sessions = [
        Session(
            id=f"session_{number}",
            at=datetime.fromisoformat(session["date"]),
            messages=[
                Message(f"D{number}:{turn}", speaker, words)
                for turn, (speaker, words) in enumerate(session["messages"], start=1)
            ],
        )
        for number, session in enumerate(json.loads(text), start=1)
    ]
    questions = [
        Question("Where does Ben's wife work?", ["D1:4", "D2:4"]),
        Question("What is the name of Nadia's cat?", ["D1:7"]),
        Question("What is Nadia allergic to?", ["D2:5"]),
        Question("Which city did Nadia visit in May?", ["D2:3"]),
        Question("Where did Ben move to?", ["D1:2"]),
    ]
    return Conversation("Nadia and Ben, a short conversation of our own", sessions, questions)


def requests(conversation: Conversation) -> Iterator[memory_ingest_pb2.AddEpisodeRequest]:
    """One call a session: its messages with their speakers, dated."""
    for session in conversation.sessions:
        request = memory_ingest_pb2.AddEpisodeRequest(
            graph_id=GRAPH, kind=episode_pb2.EPISODE_KIND_CONVERSATION, session_id=session.id, source="demo"
        )
        request.reference_time.FromDatetime(session.at)
        for message in session.messages:
            request.messages.messages.add(
                message_id=message.id,
                role=episode_pb2.MESSAGE_ROLE_USER,
                speaker=message.speaker,
                text=message.text,
            )
        yield request


async def play(stage: Stage, conversation: Conversation) -> None:
    """Takes in every session at once, then asks what single turns answer."""
    turns = sum(len(session.messages) for session in conversation.sessions)
    stage.chapter("A conversation")
    stage.tell(
        f"{conversation.name}: {len(conversation.sessions)} dated sessions, {turns} messages. "
        "Every session is a job; sessions are understood at the same time and resolved one after the other."
    )
    jobs = [await stage.accept(request) for request in requests(conversation)]
    ended = await _watch(stage, jobs)
    stage.expect(
        f"all {len(jobs)} jobs succeeded", all(job.state == job_pb2.JOB_STATE_SUCCEEDED for job in ended)
    )
    graph = await stage.connection.call(
        stage.connection.graphs.GetGraph, graph_pb2.GetGraphRequest(graph_id=GRAPH)
    )
    counts = graph.graph.counts
    stage.tell(
        f"The graph holds {counts.episodes} episodes, {counts.entities} entities and {counts.statements} "
        f"statements; it is at revision {graph.graph.revision.revision}."
    )
    stage.expect("something was learned", counts.statements > 0)
    await _ask(stage, conversation.questions)


async def _watch(stage: Stage, jobs: Sequence[str]) -> list[job_pb2.Job]:
    columns = TextColumn("    {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=stage.console) as progress:
        bar = progress.add_task("sessions", total=len(jobs))

        async def follow(job_id: str) -> job_pb2.Job:
            job = await wait_for(stage.connection, job_id)
            progress.advance(bar)
            return job

        return await asyncio.gather(*map(follow, jobs))


async def _ask(stage: Stage, questions: Sequence[Question]) -> None:
    found = 0
    for number, question in enumerate(questions):
        answer = await stage.connection.call(
            stage.connection.recall.Recall,
            recall_pb2.RecallRequest(graph_ids=[GRAPH], query=question.text, token_budget=BUDGET),
        )
        turns = {passage.passage.message_id for passage in answer.passages}
        found += any(one in turns for one in question.evidence)
        if number == 0:
            stage.tell(f"Asked: [bold]{question.text}[/]")
            stage.show(answer_of(answer))
    stage.expect(
        f"for {found} of {len(questions)} questions the message that answers is among those recalled",
        found >= ENOUGH * len(questions),
    )
