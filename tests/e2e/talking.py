"""Talking to a running product in this process: say something, wait for its job, read what is remembered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from gateway.convert.times import instant_of
from palimpsest.v1 import (
    common_pb2,
    credits_pb2,
    entity_pb2,
    episode_pb2,
    job_pb2,
    jobs_pb2,
    memory_episodes_pb2,
    memory_ingest_pb2,
    memory_statements_pb2,
    recall_pb2,
    statement_pb2,
    voice_pb2,
)
from services.domain.instants import moment
from tests.builders import on
from tests.doubles.product import Tenant

USER, ASSISTANT = episode_pb2.MESSAGE_ROLE_USER, episode_pb2.MESSAGE_ROLE_ASSISTANT

Message = tuple[episode_pb2.MessageRole.ValueType, str]
Fact = tuple[str, str, str, str, str]
"""Subject, predicate, object, and the days from which and until which it holds; "" for an open side."""


def day(text: str) -> Timestamp:
    """The first instant of an ISO day."""
    stamp = Timestamp()
    stamp.FromMicroseconds(on(text))
    return stamp


def day_of(message: Any, field: str) -> str:
    """The ISO day of a time in `message`; "" when it is absent."""
    if not message.HasField(field):
        return ""
    return moment(instant_of(getattr(message, field))).date().isoformat()


def object_name(value: entity_pb2.ObjectValue) -> str:
    """What the object is called, entity or literal."""
    if value.HasField("entity"):
        return value.entity.name
    return str(getattr(value.literal, value.literal.WhichOneof("value") or "string_value"))


@dataclass(frozen=True, slots=True)
class Memory:
    """One graph of a tenant."""

    tenant: Tenant
    graph: str

    def episode(
        self, said: str | Sequence[Message], at: str = "", **more: Any
    ) -> memory_ingest_pb2.AddEpisodeRequest:
        """A request that says a text, or messages, on a day."""
        asked: dict[str, Any] = {
            "graph_id": self.graph,
            "request_id": self.tenant.request_id(),
            "kind": episode_pb2.EPISODE_KIND_CONVERSATION,
        }
        if at:
            asked["reference_time"] = day(at)
        if isinstance(said, str):
            asked["text"] = said
        else:
            messages = [memory_ingest_pb2.EpisodeMessage(role=role, text=text) for role, text in said]
            asked["messages"] = memory_ingest_pb2.EpisodeMessages(messages=messages)
        return memory_ingest_pb2.AddEpisodeRequest(**(asked | more))

    async def say(self, said: str | Sequence[Message], at: str = "", **more: Any) -> job_pb2.Job:
        """Says it and waits for the end of its job, as its watcher sees it."""
        accepted = await self.tenant.call(self.tenant.memory.AddEpisode, self.episode(said, at, **more))
        return await self.end_of(accepted.job.job_id)

    async def assert_triples(
        self, *triples: tuple[str, str, str], at: str = "2025-01-01", **more: Any
    ) -> memory_ingest_pb2.AssertTriplesResponse:
        """Records open claims without a stated start, all said on one day."""
        claims = [
            memory_ingest_pb2.ClaimInput(
                subject=entity_pb2.EntityRef(name=subject),
                predicate=predicate,
                object=entity_pb2.ObjectRef(entity=entity_pb2.EntityRef(name=target)),
            )
            for subject, predicate, target in triples
        ]
        named: dict[str, Any] = {"graph_id": self.graph, "request_id": self.tenant.request_id()}
        asked = memory_ingest_pb2.AssertTriplesRequest(
            **(named | more), claims=claims, reference_time=day(at)
        )
        answer: memory_ingest_pb2.AssertTriplesResponse = await self.tenant.call(
            self.tenant.memory.AssertTriples, asked
        )
        return answer

    async def end_of(self, job_id: str) -> job_pb2.Job:
        """The job in its final state."""
        asked = jobs_pb2.WatchJobRequest(job_id=job_id)
        last = job_pb2.Job()
        async for change in self.tenant.jobs.WatchJob(asked, metadata=self.tenant.metadata, timeout=90):
            last = change.job
        assert last.HasField("finished_at"), "the stream of a job ends with its end"
        return last

    async def statements(self, **filters: Any) -> list[statement_pb2.Statement]:
        """What is believed, ended and future facts too unless the filters say otherwise."""
        filters.setdefault("include_ended", "valid_at" not in filters)
        asked = memory_statements_pb2.ListStatementsRequest(graph_id=self.graph, page_size=1000, **filters)
        return list((await self.tenant.call(self.tenant.memory.ListStatements, asked)).statements)

    async def facts(self, **filters: Any) -> set[Fact]:
        """Every span of every statement, as names and days."""
        return {
            (
                one.subject.name,
                one.predicate.name,
                object_name(one.object),
                day_of(span, "valid_at"),
                day_of(span, "invalid_at"),
            )
            for one in await self.statements(**filters)
            for span in one.spans
        }

    async def read(self, statement_id: str, **more: Any) -> memory_statements_pb2.GetStatementResponse:
        """A statement with its records."""
        asked = memory_statements_pb2.GetStatementRequest(
            graph_id=self.graph, statement_id=statement_id, **more
        )
        answer: memory_statements_pb2.GetStatementResponse = await self.tenant.call(
            self.tenant.memory.GetStatement, asked
        )
        return answer

    async def read_episode(self, episode_id: str) -> memory_episodes_pb2.GetEpisodeResponse:
        """An episode with its text and passages."""
        asked = memory_episodes_pb2.GetEpisodeRequest(graph_id=self.graph, episode_id=episode_id)
        answer: memory_episodes_pb2.GetEpisodeResponse = await self.tenant.call(
            self.tenant.memory.GetEpisode, asked
        )
        return answer

    async def delete(self, episode_id: str) -> memory_episodes_pb2.DeleteEpisodeResponse:
        """Deletes an episode."""
        asked = memory_episodes_pb2.DeleteEpisodeRequest(
            graph_id=self.graph, episode_id=episode_id, request_id=self.tenant.request_id()
        )
        answer: memory_episodes_pb2.DeleteEpisodeResponse = await self.tenant.call(
            self.tenant.memory.DeleteEpisode, asked
        )
        return answer

    async def timeline(
        self, subject: str, predicate: str, known_at: common_pb2.KnownAt | None = None
    ) -> list[tuple[str, str, str]]:
        """A slot's objects with the days between which each holds."""
        asked = memory_statements_pb2.GetTimelineRequest(
            graph_id=self.graph,
            subject=entity_pb2.EntityRef(name=subject),
            predicate=entity_pb2.PredicateRef(name=predicate),
            known_at=known_at,
        )
        answer = await self.tenant.call(self.tenant.memory.GetTimeline, asked)
        return [
            (object_name(one.object), day_of(one.span, "valid_at"), day_of(one.span, "invalid_at"))
            for one in answer.entries
        ]

    async def recall(self, query: str, **more: Any) -> recall_pb2.RecallResponse:
        """What is recalled for a question."""
        asked = recall_pb2.RecallRequest(graph_ids=[self.graph], query=query, **more)
        answer: recall_pb2.RecallResponse = await self.tenant.call(self.tenant.recall.Recall, asked)
        return answer

    async def voice(self, query: str, **more: Any) -> list[voice_pb2.VoiceAspect]:
        """The user's own sentences that a question recalls."""
        more.setdefault("include", [recall_pb2.RECALL_INCLUDE_VOICE])
        return [one.voice_aspect for one in (await self.recall(query, **more)).voice]

    async def claims(self) -> dict[str, int]:
        """How many claims each statement rests on, by its sentence."""
        return {one.fact: len((await self.read(one.statement_id)).claims) for one in await self.statements()}

    async def ledger(self, job_id: str = "") -> list[credits_pb2.LedgerEntry]:
        """The tenant's entries, of one job or of all, newest first."""
        asked = credits_pb2.ListLedgerEntriesRequest(job_id=job_id, page_size=1000)
        return list((await self.tenant.call(self.tenant.credits.ListLedgerEntries, asked)).entries)


async def balance(tenant: Tenant) -> tuple[int, int]:
    """What a tenant has available, and what is held."""
    answer = await tenant.call(tenant.credits.GetBalance, credits_pb2.GetBalanceRequest())
    return answer.balance.available_micros, answer.balance.held_micros


def names(facts: Sequence[recall_pb2.RecalledFact]) -> list[tuple[str, str, str]]:
    """Recalled facts as triples, in order of rank."""
    return [
        (one.statement.subject.name, one.statement.predicate.name, object_name(one.statement.object))
        for one in facts
    ]
