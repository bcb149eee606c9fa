"""The commands over a whole embedded installation: what is restored or moved answers as before."""

import asyncio
import base64
import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import grpc.aio
import pytest
from typer.testing import CliRunner, Result

from gateway.admin import app
from gateway.credits.money import MicroCredits
from gateway.keys import KeyScope
from gateway.main import open_gateway_stores
from gateway.settings import GatewaySettings
from gateway.up import Running, bring_up
from palimpsest.v1 import credits_pb2, episode_pb2
from palimpsest.v1.graph_pb2 import GraphSettings
from services.domain.scope import GraphId, Scope, TenantId
from services.runtime.settings import ServiceSettings
from services.stores.vectors.lite import LiteServer
from services.upkeep.archive import ArchiveOut, GraphEntry, Manifest
from tests.doubles.product import IMPATIENT, Tenant
from tests.e2e.talking import Memory

pytestmark = [pytest.mark.slow, pytest.mark.milvus, pytest.mark.timeout(600)]

T = TypeVar("T")
ACME = TenantId("acme")


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("DATA_DIR", "LEDGER_URL", "JOBS_URL", "GRAPH_URL", "MEMORY_URL", "VECTORS_URI", "WORKFLOWS_URL")
    for name in names:
        monkeypatch.delenv(f"PALIMPSEST_{name}", raising=False)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def up(folder: Path, work: Callable[[Running], Awaitable[T]], **named: Any) -> T:
    """Does work while the product is up on a data folder."""

    async def serving() -> T:
        async with AsyncExitStack() as stack:
            gateway = GatewaySettings(data_dir=folder, gateway_port=0, drain_seconds=0.5)
            services = ServiceSettings(data_dir=folder, **named)
            return await work(await bring_up(services, gateway, stack, steps=IMPATIENT))

    return asyncio.run(serving())


async def tell(running: Running) -> str:
    """A tenant with a key, and what it says: something ends, something is removed, something deleted."""
    stores = running.gateway.stores
    await stores.tenants.create(ACME, "Acme")
    async with stores.ledger.books(ACME) as books:
        await books.grant(ACME, "start", MicroCredits(10_000_000), "")
    _, key = await stores.keys.create(ACME, "all", [KeyScope.ERASE])
    async with grpc.aio.insecure_channel(running.gateway.target) as channel:
        memory = Memory(Tenant("acme", key, channel), "notes")
        await memory.say("I live in Graz. I prefer short answers.", "2025-03-01")
        await memory.say("I moved to Vienna.", "2026-02-01")
        await Memory(memory.tenant, "other").assert_triples(("Ivo", "likes", "tea"))
        # A document whose second version drops a paragraph, and an episode that is deleted.
        paper = {"kind": episode_pb2.EPISODE_KIND_DOCUMENT, "document_id": "paper"}
        await memory.say("# Work\n\nIvo works at Initech.\n\nIvo lives in Linz.", "2025-05-01", **paper)
        await memory.say("# Work\n\nIvo lives in Linz.\n\nIvo likes jam.", "2025-06-01", **paper)
        gone = await memory.say("Ivo works at Globex. I love sushi.", "2025-07-01")
        await memory.delete(gone.chunks[0].episode_id)
    return key


def asked(key: str) -> Callable[[Running], Awaitable[list[object]]]:
    """What the tenant is told: facts, recall, balance."""

    async def ask(running: Running) -> list[object]:
        async with grpc.aio.insecure_channel(running.gateway.target) as channel:
            tenant = Tenant("acme", key, channel)
            told: list[object] = []
            for graph in ("notes", "other"):
                memory = Memory(tenant, graph)
                told += await memory.statements()
            recalled = await Memory(tenant, "notes").recall("Where do I live?")
            told += [recalled.context, sorted(fact.statement.fact for fact in recalled.facts)]
            balance = await tenant.call(tenant.credits.GetBalance, credits_pb2.GetBalanceRequest())
            told += [balance.balance.available_micros, balance.balance.held_micros]
            return told

    return ask


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, list[object]]:
    """A data folder of which the server is down, its tenant's key, and what the tenant is told."""
    folder = tmp_path_factory.mktemp("installation") / "data"
    key = up(folder, tell)
    before = up(folder, asked(key))
    for word in ("Vienna", "Linz", "Initech", "jam"):
        assert any(word in str(one) for one in before), f"{word} was not understood"
    assert not any("Globex" in str(one) for one in before)
    return folder, key, before


Story = tuple[Path, str, list[object]]


def test_a_sound_installation_has_no_differences(story: Story) -> None:
    folder, _, _ = story
    done = run("verify", "--data-dir", str(folder))
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "2 graphs: 0 differences found, 0 left\n"
    one = run("verify", "--json", "--tenant", "acme", "--graph", "notes", "--data-dir", str(folder))
    told = json.loads(one.stdout)
    assert (told["tenant"], told["graph"], told["left"], told["differences"]) == ("acme", "notes", 0, [])


def test_what_cannot_be_looked_at_has_a_code_of_its_own(story: Story, tmp_path: Path) -> None:
    folder = str(story[0])
    for wrong, said in (
        (["--graph", "notes"], "--graph needs --tenant"),
        (["--tenant", "nobody"], "tenant nobody has no graphs"),
        (["--tenant", "acme", "--graph", "none"], "no graph acme/none"),
    ):
        done = run("verify", *wrong, "--data-dir", folder)
        assert (done.exit_code, done.stderr) == (2, f"palimpsest-admin: {said}\n")
    with LiteServer.start(tmp_path / "busy" / "vectors", tmp_path / "log"):
        done = run("verify", "--data-dir", str(tmp_path / "busy"))
    assert done.exit_code == 2
    assert "stop the server first" in done.stderr
    same = tmp_path / "same.env"
    same.write_text("PALIMPSEST_ENGINE=offline\n")
    done = run("move", "--to", str(same), "--data-dir", folder)
    assert done.exit_code == 2
    assert "names no other store" in done.stderr


def test_what_is_backed_up_is_restored_and_answers_alike(story: Story, tmp_path: Path) -> None:
    folder, key, before = story
    kept, target = str(tmp_path / "backup"), tmp_path / "target"
    done = run("backup", kept, "--data-dir", str(folder))
    assert done.exit_code == 0, done.stderr
    assert [line.split("  ")[0] for line in done.stdout.splitlines()] == ["acme/notes", "acme/other"]
    again = run("backup", kept, "--data-dir", str(folder))
    assert again.exit_code == 1
    assert "not empty" in again.stderr
    files = "".join(file.read_text() for file in (tmp_path / "backup").rglob("*.json*"))
    assert "Graz" in files
    assert key.rpartition("_")[2] not in files
    restored = run("restore", kept, "--data-dir", str(target))
    assert restored.exit_code == 0, restored.stderr
    assert up(target, asked(key)) == before
    refused = run("restore", kept, "--data-dir", str(target))
    assert refused.exit_code == 1
    assert "rows in" in refused.stderr


def test_one_graph_can_be_restored_beside_others(story: Story, tmp_path: Path) -> None:
    folder, _, _ = story
    kept, target = str(tmp_path / "backup"), tmp_path / "target"
    one = ("--tenant", "acme", "--graph", "other")
    assert run("backup", kept, *one, "--no-vectors", "--data-dir", str(folder)).exit_code == 0
    assert not (tmp_path / "backup" / "gateway").exists()
    done = run("restore", kept, "--data-dir", str(target))
    assert done.exit_code == 0, done.stderr
    assert run("verify", *one, "--data-dir", str(target)).exit_code == 0
    harmed = sqlite3.connect(target / "graph.db")
    with harmed:
        harmed.execute("UPDATE graph_spans SET contested = 1")
    harmed.close()
    found = run("verify", *one, "--data-dir", str(target))
    assert found.exit_code == 1
    assert found.stdout.startswith("spans differ  acme/other  ")
    assert found.stdout.endswith("  left\n")
    mended = run("verify", *one, "--repair", "--data-dir", str(target))
    assert (mended.exit_code, mended.stdout.endswith("  repaired\n")) == (0, True)
    assert run("verify", *one, "--data-dir", str(target)).exit_code == 0


@pytest.mark.parametrize(("user", "code", "said"), [("Ivo", 1, "with other settings"), ("Mara", 0, "")])
def test_a_graph_that_is_known_is_restored_with_the_same_settings_alone(
    tmp_path: Path, user: str, code: int, said: str
) -> None:
    kept = base64.b64encode(GraphSettings(user_name="Mara").SerializeToString()).decode()
    with ArchiveOut(tmp_path / "backup") as archive:
        entry = GraphEntry(ACME, "notes", "graphs/notes", 0, 0, kept)
        archive.finish(Manifest(0, "test", "none", 1, False, (entry,), archive.files))

    async def make_known() -> None:
        stores = await open_gateway_stores(GatewaySettings(data_dir=tmp_path))
        await stores.graphs.create(Scope(ACME, GraphId("notes")), GraphSettings(user_name=user))
        await stores.close()

    asyncio.run(make_known())
    done = run("restore", str(tmp_path / "backup"), "--data-dir", str(tmp_path))
    assert (done.exit_code, said in done.stderr) == (code, True), done.stderr


def test_what_is_moved_answers_alike_in_the_other_stores(story: Story, tmp_path: Path) -> None:
    folder, key, before = story
    urls = {name: f"sqlite:///{tmp_path / name}.db" for name in ("graph_url", "memory_url")}
    target = tmp_path / "target.env"
    target.write_text("".join(f"PALIMPSEST_{name.upper()}={url}\n" for name, url in urls.items()))
    done = run("move", "--to", str(target), "--data-dir", str(folder))
    assert done.exit_code == 0, done.stderr
    assert "copied 2 graphs (graph, memory)" in done.stderr
    again = run("move", "--to", str(target), "--data-dir", str(folder))
    assert again.exit_code == 1
    assert "hold something of acme/notes already" in again.stderr
    assert run("move", "--to", str(target), "--resume", "--data-dir", str(folder)).exit_code == 0
    assert up(folder, asked(key), **urls) == before
