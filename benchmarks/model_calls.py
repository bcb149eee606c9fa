"""Model calls and tokens of an episode, stage by stage, for both profiles on the same texts.

Short chunks (1 to 3 sentences) stand beside long ones.

The model is the test double's, which answers by rules and counts four characters a token, so calls and the
sizes of prompts are ours and real, while what is answered is shorter than a model's. Long chunks are whole
sessions of a LoCoMo conversation where `shared/` lies beside the repository, else of one that we ship.

Run: python -m benchmarks.model_calls [--texts N]
"""

import argparse
import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import islice

import structlog

from benchmarks.product import Client, model_server, open_client
from gateway.demo.conversation import load, requests
from palimpsest.v1 import episode_pb2, graph_pb2, job_pb2, memory_ingest_pb2

SHORT = (
    "I moved from Graz to Lyon in May 2024.",
    "Atlas uses MySQL as its primary database. Mara leads it.",
    "I prefer tea. I never eat nuts. My sister Ida works at Globex since 2021.",
    "We chose PostgreSQL for Atlas yesterday, not MySQL.",
    "John left Google in May and joined Meta.",
)
COLUMNS = ("calls", "in", "cached", "out")

Spent = Mapping[str, Counter[str]]
"""Of each stage, the sum of each column."""


PROFILES = {
    "full": graph_pb2.EXTRACTION_PROFILE_FULL,
    "economy": graph_pb2.EXTRACTION_PROFILE_ECONOMY,
}


def short_requests(profile: str, texts: int) -> list[memory_ingest_pb2.AddEpisodeRequest]:
    return [
        memory_ingest_pb2.AddEpisodeRequest(
            graph_id=f"short-{profile}",
            request_id=f"short-{profile}-{number}",
            kind=episode_pb2.EPISODE_KIND_CONVERSATION,
            text=SHORT[number % len(SHORT)],
            wait_for=episode_pb2.CHUNK_STAGE_RESOLVED,
        )
        for number in range(texts)
    ]


def long_requests(profile: str, texts: int) -> list[memory_ingest_pb2.AddEpisodeRequest]:
    """Whole sessions of a conversation, as the demo takes them in."""
    asked = list(islice(requests(load()), texts))
    for number, request in enumerate(asked):
        request.graph_id = f"long-{profile}"
        request.request_id = f"long-{profile}-{number}"
        request.wait_for = episode_pb2.CHUNK_STAGE_RESOLVED
    return asked


async def spend(client: Client, asked: Sequence[memory_ingest_pb2.AddEpisodeRequest]) -> tuple[Spent, int]:
    """What all cost together, and how many episodes (chunks) they were, one after the other."""
    spent: dict[str, Counter[str]] = {}
    episodes = 0
    for request in asked:
        id = (await client(client.memory.AddEpisode, request, 250)).job.job_id
        job = await client.ended(id)
        assert job.state == job_pb2.JOB_STATE_SUCCEEDED, job
        episodes += len(job.chunks)
        for stage in job.receipt.stages:
            tokens = (stage.calls, stage.tokens_in, stage.tokens_cached, stage.tokens_out)
            spent.setdefault(stage.stage, Counter()).update(dict(zip(COLUMNS, tokens, strict=True)))
    return spent, episodes


def show(name: str, spent: Spent, episodes: int) -> None:
    print(f"{name}: {episodes} episodes, for each of them")
    print(f"  {'stage':18}" + "".join(f"{column:>10}" for column in COLUMNS))
    total: Counter[str] = Counter()
    for stage, counted in spent.items():
        total.update(counted)
        print(f"  {stage:18}" + "".join(f"{counted[column] / episodes:10.1f}" for column in COLUMNS))
    print(f"  {'all':18}" + "".join(f"{total[column] / episodes:10.1f}" for column in COLUMNS))


async def measure(texts: int) -> None:
    async with AsyncExitStack() as stack:
        base_url = stack.enter_context(model_server(0))
        client = await open_client(stack, base_url, base_url)
        for profile, number in PROFILES.items():
            kinds = {
                "short, 1 to 3 sentences": short_requests(profile, texts),
                "long, a session of a conversation": long_requests(profile, texts),
            }
            for kind, asked in kinds.items():
                settings = graph_pb2.GraphSettings(extraction_profile=number)
                graph = graph_pb2.CreateGraphRequest(graph_id=asked[0].graph_id, settings=settings)
                await client(client.graphs.CreateGraph, graph, 60)
                spent, episodes = await spend(client, asked)
                show(f"{profile}, {kind}", spent, episodes)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=10, help="of each kind")
    logging.getLogger().setLevel(logging.ERROR)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    asyncio.run(measure(parser.parse_args().texts))


if __name__ == "__main__":
    main()
