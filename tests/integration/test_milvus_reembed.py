"""`palimpsest-admin reembed`: an installation whose embedder was changed in its settings."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gateway.admin import app
from gateway.main import open_gateway_stores
from gateway.settings import GatewaySettings
from palimpsest.v1.graph_pb2 import GraphSettings
from services.domain.ids import EpisodeId, JobId, PassageId
from services.domain.memory import Episode, EpisodeKind, Passage
from services.preprocessor.index import PassageIndex
from services.runtime.resources import Resources, open_resources
from services.runtime.settings import ServiceSettings
from services.stores.vectors.errors import EmbedderDiffers
from services.stores.vectors.lite import LiteServer
from services.stores.vectors.port import Collection
from tests.builders import a_scope, on
from tests.doubles.model_server import ModelServer

pytestmark = pytest.mark.milvus

SCOPE = a_scope()
LINES = [f"The {colour} door leads to the garden." for colour in ("red", "green", "blue")]


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@asynccontextmanager
async def resources(settings: ServiceSettings) -> AsyncIterator[Resources]:
    async with AsyncExitStack() as stack:
        yield await open_resources(settings, stack)


async def take_in(folder: Path, settings: ServiceSettings) -> None:
    """An installation with one graph, which holds three passages."""
    stores = await open_gateway_stores(GatewaySettings(data_dir=folder))
    await stores.graphs.create(SCOPE, GraphSettings())
    await stores.close()
    at = on("2024-05-01")
    episode = Episode(EpisodeId("e1"), JobId("j1"), EpisodeKind.CONVERSATION, "\n".join(LINES), at, at, 1)
    passages = [
        Passage(PassageId(f"p{number}"), episode.id, number, line, 0, len(line), f"h{number}")
        for number, line in enumerate(LINES)
    ]
    async with resources(settings) as opened:
        await opened.memory.text.save(SCOPE, [episode], passages, None)
        await PassageIndex(opened.vectors, opened.embedder).add(SCOPE, [episode], passages)


async def best(settings: ServiceSettings, question: str) -> str:
    async with resources(settings) as opened:
        [vector] = await opened.embedder.queries([question])
        [[hit]] = await opened.vectors.search(SCOPE, Collection.PASSAGES, [vector], 1)
        assert await opened.vectors.count(SCOPE, Collection.PASSAGES) == len(LINES)
    return hit.id


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["reembed", "--data-dir", str(folder), *arguments])


@pytest.mark.slow
def test_another_embedder_is_refused_until_all_is_embedded_anew(tmp_path: Path, models: ModelServer) -> None:
    was = ServiceSettings(data_dir=tmp_path, embedder="openai", embedding=models.embedding_settings())
    becomes = ServiceSettings(data_dir=tmp_path)
    asyncio.run(take_in(tmp_path, was))
    with pytest.raises(EmbedderDiffers, match="palimpsest-admin reembed"):
        asyncio.run(best(becomes, "Which is red?"))

    refused = run(tmp_path)
    assert refused.exit_code == 1
    assert "openai_test_embedding_64" in refused.stderr.replace("-", "_")

    done = run(tmp_path, "--keep", "--yes")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == "3 rows written\n"
    again = run(tmp_path)
    assert (again.exit_code, again.stdout) == (0, "0 rows written\n"), again.stderr
    assert again.stderr.splitlines()[-1] == f"dropped {len(Collection)} former collections"
    assert asyncio.run(best(becomes, "Which door is green?")) == "p1"


@pytest.mark.slow
def test_where_a_server_has_the_embedded_store_it_is_not_begun(tmp_path: Path) -> None:
    with LiteServer.start(tmp_path / "vectors", tmp_path / "log"):
        refused = run(tmp_path)
    assert refused.exit_code == 2
    assert "stop the server first" in refused.stderr


def test_a_server_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALIMPSEST_VECTORS_URI", "http://127.0.0.1:9")
    refused = run(tmp_path)
    assert refused.exit_code == 2
    assert "the vectors store can't be reached" in refused.stderr
