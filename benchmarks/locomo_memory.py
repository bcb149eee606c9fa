"""A product that holds LoCoMo: taken in once by the public API, then opened again from its folder."""

import asyncio
import hashlib
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from benchmarks.locomo_corpus import Conversation, Turn
from gateway.credits.money import MicroCredits
from gateway.keys import KeyScope
from gateway.settings import GatewaySettings
from gateway.up import bring_up
from palimpsest.v1 import (
    episode_pb2,
    graph_pb2,
    graph_pb2_grpc,
    job_pb2,
    jobs_pb2,
    jobs_pb2_grpc,
    memory_episodes_pb2,
    memory_ingest_pb2,
    memory_pb2_grpc,
    recall_pb2,
    recall_pb2_grpc,
)
from services.domain.scope import TenantId
from services.runtime.settings import ServiceSettings

TENANT = TenantId("locomo")
_DONE = "taken-in"
_TIMES = 20
_SECONDS = 3_600
"""Ten minutes and more for the jobs of a long conversation on a busy machine."""


class Memory:
    """The public API of one running product, with a key."""

    def __init__(self, channel: grpc.aio.Channel, key: str) -> None:
        self._memory = memory_pb2_grpc.MemoryServiceStub(channel)
        self._graphs = graph_pb2_grpc.GraphServiceStub(channel)
        self._recall = recall_pb2_grpc.RecallServiceStub(channel)
        self._jobs = jobs_pb2_grpc.JobServiceStub(channel)
        self._metadata = (("authorization", f"Bearer {key}"),)

    async def take_in(self, conversation: Conversation) -> None:
        """One job a session, all at once; returns when each is resolved."""
        jobs = []
        settings = graph_pb2.GraphSettings(user_name=conversation.user)
        made = graph_pb2.CreateGraphRequest(graph_id=conversation.name, settings=settings)
        await self._graphs.CreateGraph(made, metadata=self._metadata, timeout=120)
        for session, turns in conversation.sessions.items():
            request = memory_ingest_pb2.AddEpisodeRequest(
                graph_id=conversation.name,
                request_id=f"{conversation.name}-{session}",
                kind=episode_pb2.EPISODE_KIND_CONVERSATION,
                session_id=session,
                source="locomo",
            )
            request.reference_time.FromDatetime(turns[0].at)
            for turn in turns:
                request.messages.messages.add(
                    message_id=turn.id,
                    role=_role(turn),
                    speaker=turn.speaker,
                    text=turn.text,
                )
            answer = await self._memory.AddEpisode(request, metadata=self._metadata, timeout=120)
            jobs.append(answer.job.job_id)
        for job in jobs:
            await self._finished(job)

    async def _finished(self, job: str) -> None:
        ended = {job_pb2.JOB_STATE_SUCCEEDED, job_pb2.JOB_STATE_FAILED, job_pb2.JOB_STATE_CANCELLED}
        request = jobs_pb2.WatchJobRequest(job_id=job)
        async for seen in self._jobs.WatchJob(request, metadata=self._metadata, timeout=_SECONDS):
            if seen.job.state in ended:
                assert seen.job.state == job_pb2.JOB_STATE_SUCCEEDED, (
                    f"a session was not taken in: {seen.job}"
                )
                return

    async def turns(self, graph: str) -> dict[str, str]:
        """Of each passage of a graph, by its id, the id of the message that it was."""
        episodes: list[episode_pb2.Episode] = []
        after = ""
        while True:
            listed = await self._memory.ListEpisodes(
                memory_episodes_pb2.ListEpisodesRequest(graph_id=graph, page_size=100, page_token=after),
                metadata=self._metadata,
                timeout=120,
            )
            episodes += listed.episodes
            after = listed.next_page_token
            if not after:
                break
        found: dict[str, str] = {}
        for episode in episodes:
            request = memory_episodes_pb2.GetEpisodeRequest(graph_id=graph, episode_id=episode.episode_id)
            answer = await self._memory.GetEpisode(request, metadata=self._metadata, timeout=120)
            found |= {passage.passage_id: passage.message_id for passage in answer.passages}
        return found

    async def recall(self, graph: str, query: str, **fields: Any) -> recall_pb2.RecallResponse:
        """One question to the graph of a conversation; asked again where the machine is too busy."""
        request = recall_pb2.RecallRequest(graph_ids=[graph], query=query, **fields)
        for _ in range(_TIMES):
            try:
                return await self._recall.Recall(request, metadata=self._metadata, timeout=120)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise
        raise TimeoutError(f"no answer in {_TIMES} times to {query!r}")


def _role(turn: Turn) -> episode_pb2.MessageRole.ValueType:
    return episode_pb2.MESSAGE_ROLE_ASSISTANT if turn.by_assistant else episode_pb2.MESSAGE_ROLE_USER


def folder_of(build: Path, conversations: Sequence[Conversation], version: str) -> Path:
    """The folder for this content, made if need be; `version` tells what else it comes from."""
    digest = hashlib.sha256(version.encode())
    for conversation in conversations:
        for turn in conversation.turns:
            digest.update(f"{conversation.name}\0{turn.id}\0{turn.speaker}\0{turn.text}\n".encode())
    folder = build / digest.hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


async def open_memory(stack: AsyncExitStack, folder: Path, conversations: Sequence[Conversation]) -> Memory:
    """Opens the product of a folder; conversations that it does not hold yet are taken in first."""
    services = ServiceSettings(data_dir=folder)
    gateway = GatewaySettings(data_dir=folder, gateway_port=0, tenant_requests_per_second=100_000)
    running = await bring_up(services, gateway, stack)
    stores = running.gateway.stores
    if not (folder / _DONE).exists():
        await stores.tenants.create(TENANT, "")
        async with stores.ledger.books(TENANT) as books:
            await books.grant(TENANT, "start", MicroCredits(10**12), "")
        (folder / _DONE).write_text("")
    _, key = await stores.keys.create(TENANT, "bench", [KeyScope.ERASE])
    channel = grpc.aio.insecure_channel(running.gateway.target)
    stack.push_async_callback(channel.close)
    memory = Memory(channel, key)
    held = set((folder / _DONE).read_text().split())
    for conversation in conversations:
        if conversation.name in held:
            continue
        started = time.perf_counter()
        await memory.take_in(conversation)
        with (folder / _DONE).open("a") as done:
            done.write(f"{conversation.name}\n")
        print(
            f"  {conversation.name}: {len(conversation.turns)} turns taken in, "
            f"{time.perf_counter() - started:.0f} s",
            flush=True,
        )
        await asyncio.sleep(0)
    return memory
