"""Records how texts are understood by a model, for tests/recordings: with our own server, or a real endpoint.

    python -m tests.doubles.recording                                  # tests/doubles/model_server.py
    python -m tests.doubles.recording --base-url https://host/v1 --model NAME --file other.jsonl

The key is read from OPENAI_API_KEY. What is there is kept: delete the file to record all anew.
"""

import argparse
import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from palimpsest.internal.v1 import classifier_pb2, extractor_pb2, values_pb2
from services.classifier.service import Classifying
from services.domain.scope import GraphId, Scope, TenantId
from services.extractor.service import Extractor
from services.llm.openai_engine import OpenAIEngine
from services.llm.port import Engine
from services.llm.settings import ModelSettings
from tests.builders import on
from tests.doubles.model_server import ModelServer
from tests.machine import ROOT

FILE = ROOT / "tests" / "recordings" / "understanding.jsonl"
GRAPHS: Mapping[str, Sequence[tuple[str, str]]] = {
    "ana": (
        ("user", "Bob joined the team. Always run the tests before you open a PR."),
        ("assistant", "Noted."),
    ),
    "wen": (("user", "我们的主数据库用的是 MySQL 8.0。"),),
}
"""By graph, what is said in it. Each user is named as the graph, in capitals: a word of no other graph."""


def scope_of(graph: str) -> Scope:
    return Scope(TenantId("recorded"), GraphId(graph))


def setting_of(graph: str) -> values_pb2.Setting:
    return values_pb2.Setting(
        kind="conversation",
        reference_time=on("2026-02-01"),
        time_zone="Asia/Shanghai",
        user_name=graph.upper(),
        source=f"chat of {graph.upper()}",
        rules=[f"Keep what {graph.upper()} decides."],
    )


async def understood(engine: Engine, graph: str) -> classifier_pb2.ClassifyResponse:
    """Extracts and classifies what is said in a graph. Raises EngineError."""
    setting, said = setting_of(graph), GRAPHS[graph]
    turns = [
        values_pb2.Turn(position=at, role=role, text=text, said_at=setting.reference_time)
        for at, (role, text) in enumerate(said)
    ]
    request = extractor_pb2.ExtractRequest(turns=turns, setting=setting)
    drawn = await Extractor(engine).extract(scope_of(graph), request)
    facts = classifier_pb2.ClassifyRequest(world=drawn.world, voice=drawn.voice, setting=setting)
    return await Classifying(engine).classify(scope_of(graph), facts)


async def record(settings: ModelSettings) -> None:
    engine = OpenAIEngine(settings)
    for graph in GRAPHS:
        done = await understood(engine, graph)
        print(f"{graph}: {len(done.world)} facts, {len(done.voice)} sentences")  # noqa: T201
    await engine.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", default="")
    parser.add_argument("--model", default="test-medium")
    parser.add_argument("--file", type=Path, default=FILE)
    asked = parser.parse_args()
    with nullcontext(asked) if asked.base_url else ModelServer() as server:
        settings = ModelSettings(
            base_url=server.base_url,
            api_key=os.environ.get("OPENAI_API_KEY", ""),
            medium_model=asked.model,
            cassette=asked.file,
            cassette_mode="record",
        )
        asyncio.run(record(settings))


if __name__ == "__main__":
    main()
