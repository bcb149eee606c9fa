"""`palimpsest add FOLDER|FILE` against a running product: taken in once, told, resumed, paid for once."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from io import StringIO
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import typer
from rich.console import Console

from palimpsest.cli import adding
from palimpsest.cli.dates import read_date
from palimpsest.cli.exits import Exit
from palimpsest.cli.shell import Shell
from palimpsest.connection import Connection
from services.domain.scope import Scope
from services.llm import tasks
from services.llm.offline import OfflineEngine
from services.llm.port import Answer, ModelOutputInvalid
from tests.doubles.product import Product, a_product
from tests.e2e.talking import Memory, balance

pytestmark = pytest.mark.asyncio(loop_scope="module")
_numbers = count()


class Moody(OfflineEngine):
    """The rules, which fail on texts that hold a word as long as it is set."""

    fails_on = ""

    async def normalise(self, scope: Scope, task: tasks.Normalise) -> Answer[tasks.Normalised]:
        if self.fails_on and any(self.fails_on in turn.text for turn in task.turns):
            raise ModelOutputInvalid("in a mood")
        return await super().normalise(scope, task)


@pytest.fixture(scope="module")
def engine() -> Moody:
    return Moody()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory, engine: Moody) -> AsyncIterator[Product]:
    async with a_product(tmp_path_factory.mktemp("files"), engine) as product:
        yield product


@pytest_asyncio.fixture(loop_scope="module")
async def memory(product: Product, engine: Moody) -> Memory:
    engine.fails_on = ""
    return Memory(await product.tenant(f"tenant-{next(_numbers)}", 1_000_000), "notes")


@dataclass(frozen=True, slots=True)
class Added:
    """What a command printed, and its exit code."""

    stdout: str
    code: int

    @property
    def told(self) -> Any:
        return json.loads(self.stdout)


Add = Callable[..., Awaitable[Added]]


@pytest.fixture
def add(product: Product, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Add:
    """Does as `palimpsest add notes …` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    async def run(text: str, *, said: str = "", key: str = "", json: bool = True, **options: Any) -> Added:
        out, errors = StringIO(), StringIO()
        target = product.running.gateway.target
        async with Connection(target, key or memory.tenant.key) as connection:
            shell = Shell(connection, json, Console(file=out, width=160), Console(file=errors, width=160))
            try:
                told = read_date(said) if said else None
                await adding.add(shell, "notes", text=text, reference_time=told, **options)
            except typer.Exit as done:
                return Added(out.getvalue(), done.exit_code)
        return Added(out.getvalue(), Exit.OK)

    return run


def some_files(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "ana.md").write_text("Ana works at Initech.", encoding="utf-8")
    (folder / "in" / "bo.txt").write_text("Bo works at Globex.", encoding="utf-8")
    chat = [{"role": "user", "content": "Cy works at Hooli."}, {"role": "assistant", "content": "I see."}]
    (folder / "in" / "chat.jsonl").write_text("\n".join(map(json.dumps, chat)), encoding="utf-8")


async def works_at(memory: Memory) -> set[tuple[str, str]]:
    return {(fact[0], fact[2]) for fact in await memory.facts()}


async def test_a_folder_is_taken_in_once(memory: Memory, add: Add, tmp_path: Path) -> None:
    some_files(tmp_path)
    first = await add("in", source="disk", said="2025-06-01")
    assert first.code == Exit.OK
    summary = first.told
    assert (summary["texts"], summary["ended"], summary["failures"]) == (3, {"succeeded": 3}, [])
    known = {("Ana", "Initech"), ("Bo", "Globex"), ("Cy", "Hooli")}
    assert await works_at(memory) == known
    claims, spent = await memory.claims(), await balance(memory.tenant)
    assert spent[0] == 1_000_000 - int(summary["spentMicros"])
    again = await add("in", source="disk", said="2025-06-01")
    assert (again.code, again.told["known"]) == (Exit.OK, 3)
    later = await add("in", source="disk", said="2025-06-02")
    assert (later.told["nothing"], later.told["spentMicros"]) == (3, "0"), "known by what they say"
    assert (await memory.claims(), await balance(memory.tenant)) == (claims, spent)


async def test_a_file_that_changed_is_a_new_version(memory: Memory, add: Add, tmp_path: Path) -> None:
    (tmp_path / "ana.md").write_text("Ana works at Initech.\n\nAna has a cat.", encoding="utf-8")
    assert (await add("ana.md", said="2025-06-01")).code == Exit.OK
    (tmp_path / "ana.md").write_text("Ana works at Globex.\n\nAna has a cat.", encoding="utf-8")
    done = await add("ana.md", said="2025-07-01", json=False)
    assert done.code == Exit.OK
    assert "succeeded" in done.stdout
    ends = {fact[2]: fact[4] for fact in await memory.facts() if fact[1] == "works_at"}
    assert ends == {"Initech": "2025-07-01", "Globex": ""}


async def test_what_failed_is_told_and_tried_again(
    memory: Memory, add: Add, engine: Moody, tmp_path: Path
) -> None:
    some_files(tmp_path)
    (tmp_path / "in" / "photo.md").write_bytes(b"\x89PNG\0")
    (tmp_path / "in" / "table.csv").write_text("a,b", encoding="utf-8")
    engine.fails_on = "Globex"
    first = await add("in", said="2025-06-01")
    assert first.code == Exit.FAILED, "a file could not be read, which no second run mends"
    summary = first.told
    assert summary["ended"] == {"failed": 1, "succeeded": 2}
    reasons = {one["text"]: one["reason"] for one in summary["failures"]}
    assert reasons == {"in/bo.txt": "MODEL_OUTPUT_INVALID", "in/photo.md": "NOT_READ"}
    assert [one["file"] for one in summary["leftOut"]] == ["in/table.csv"]
    (tmp_path / "in" / "photo.md").unlink()
    still = await add("in", said="2025-06-01", json=False)
    assert still.code == Exit.JOB_FAILED
    assert "in/bo.txt" in still.stdout
    spent = (await balance(memory.tenant))[0]
    engine.fails_on = ""
    mended = await add("in", said="2025-06-01")
    assert (mended.code, mended.told["ended"]) == (Exit.OK, {"succeeded": 3})
    assert ("Bo", "Globex") in await works_at(memory)
    assert (await balance(memory.tenant))[0] < spent


@pytest.mark.slow
async def test_it_stops_where_credits_end_and_goes_on_from_there(
    product: Product, add: Add, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for name in ("Ana", "Bob", "Clara", "Dan", "Eva", "Frank"):
        (tmp_path / "in" / f"{name}.txt").write_text(f"{name} works at Initech.", encoding="utf-8")
    poor = Memory(await product.tenant(f"tenant-{next(_numbers)}", 1), "notes")
    quote = await add("in", validate_only=True, key=poor.tenant.key)
    assert quote.code == Exit.OK
    each = int(quote.told["quotedMicros"]) // 6
    await grant(product, poor, 2 * each)
    stopped = await add("in", in_flight=1, key=poor.tenant.key)
    assert stopped.code == Exit.CREDITS
    summary = stopped.told
    assert (summary["texts"], summary["unsent"], summary["ended"]) == (3, 3, {"succeeded": 2})
    await grant(product, poor, 10 * each)
    done = await add("in", key=poor.tenant.key)
    assert (done.code, done.told["known"]) == (Exit.OK, 2)
    assert len(await works_at(poor)) == 6


async def grant(product: Product, memory: Memory, micros: int) -> None:
    stores = product.running.gateway.stores
    async with stores.ledger.books(memory.tenant.name) as books:  # type: ignore[arg-type]  # a plain name
        await books.grant(memory.tenant.name, f"grant-{next(_numbers)}", micros, "")  # type: ignore[arg-type]
