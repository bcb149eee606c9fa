"""`palimpsest import` against a running product: each format's fixture ends in the right timelines, once."""

import asyncio
import json
from collections import Counter
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

from palimpsest.cli import importing
from palimpsest.cli.dates import read_date
from palimpsest.cli.exits import Exit
from palimpsest.cli.shell import Shell
from palimpsest.connection import Connection
from palimpsest.v1 import privacy_pb2
from services.llm.offline import OfflineEngine
from tests.doubles.product import Product, a_product
from tests.e2e.erasing import erased
from tests.e2e.talking import Memory, balance
from tests.machine import ROOT

pytestmark = pytest.mark.asyncio(loop_scope="module")
FILES = ROOT / "tests" / "data" / "importing"
_numbers = count()
_COMMANDS: dict[str, Callable[..., Awaitable[None]]] = {
    "graphiti": importing.from_graphiti,
    "mem0": importing.from_mem0,
    "csv": importing.from_csv,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def product(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    async with a_product(tmp_path_factory.mktemp("importing"), OfflineEngine()) as product:
        yield product


@pytest_asyncio.fixture(loop_scope="module")
async def memory(product: Product) -> Memory:
    return Memory(await product.tenant(f"tenant-{next(_numbers)}", 1_000_000), "notes")


@dataclass(frozen=True, slots=True)
class Imported:
    """What a command printed, and its exit code."""

    stdout: str
    code: int

    @property
    def told(self) -> Any:
        return json.loads(self.stdout)

    @property
    def fates(self) -> dict[str, int]:
        fates: dict[str, int] = self.told["fates"]
        return fates


Import = Callable[..., Awaitable[Imported]]


@pytest.fixture
def take_in(product: Product, memory: Memory, tmp_path: Path) -> Import:
    """Does as `palimpsest import FORMAT FILE... --graph notes` with files of the fixtures, or others."""

    async def run(
        format: str,
        *files: str,
        said: str = "2025-07-01",
        json: bool = True,
        key: str = memory.tenant.key,
        **options: Any,
    ) -> Imported:
        out, errors = StringIO(), StringIO()
        paths = [tmp_path / name if (tmp_path / name).exists() else FILES / name for name in files]
        async with Connection(product.running.gateway.target, key) as connection:
            shell = Shell(connection, json, Console(file=out, width=160), Console(file=errors, width=160))
            try:
                told = read_date(said) if said else None
                await _COMMANDS[format](shell, paths, memory.graph, said=told, **options)
            except typer.Exit as done:
                return Imported(out.getvalue(), done.exit_code)
        return Imported(out.getvalue(), Exit.OK)

    return run


async def test_graphiti_ends_in_its_timelines(memory: Memory, take_in: Import) -> None:
    done = await take_in("graphiti", "graphiti.json")
    assert done.code == Exit.FAILED, "two edges can't be"
    assert done.fates == {"imported": 7, "refused": 2, "leftOut": 4}
    assert await memory.timeline("Mara Lind", "lives_in") == [
        ("Graz", "2023-04-01", "2025-05-01"),
        ("Linz", "2025-05-01", ""),
    ]
    assert await memory.timeline("Mara Lind", "works_at") == [("Siemens", "2025-03-01", "")]
    facts = {fact[:3] for fact in await memory.facts()}
    assert {("Siemens", "is_a", "Employer"), ("Mara Lind", "job_title", "engineer")} <= facts


async def test_what_apoc_exports_ends_in_its_timelines(memory: Memory, take_in: Import) -> None:
    done = await take_in("graphiti", "graphiti.apoc.json")
    assert (done.code, done.fates) == (Exit.OK, {"imported": 5, "leftOut": 2})
    assert await memory.timeline("Bo Hart", "works_at") == [
        ("Acme", "2022-01-01", "2025-02-01"),
        ("Hooli", "2025-02-01", ""),
    ]


async def test_mem0_ends_in_its_timelines(memory: Memory, take_in: Import) -> None:
    done = await take_in("mem0", "mem0.json", "mem0.history.json")
    assert done.code == Exit.FAILED, "one memory is empty"
    assert done.fates == {"imported": 4, "same": 1, "refused": 1, "leftOut": 2}
    assert await memory.timeline("User", "lives_in") == [
        ("Graz", "2024-03-01", "2025-06-02"),
        ("Linz", "2025-06-02", ""),
    ]
    assert await memory.timeline("Ana", "works_at") == [("Siemens", "2024-03-01", "")]
    assert await memory.timeline("Ana", "sibling_of") == [("mara", "2025-07-01", "")]
    assert "diagnosis" not in str(await memory.statements())


async def test_a_table_ends_in_its_timelines(memory: Memory, take_in: Import) -> None:
    done = await take_in("csv", "facts.csv")
    assert (done.code, done.fates) == (Exit.FAILED, {"imported": 7, "same": 1, "refused": 5})
    assert await memory.timeline("Ana Moser", "lives_in") == [
        ("Graz", "2019-01-01", "2023-08-31"),
        ("Wien", "2023-09-01", ""),
    ]
    assert await memory.timeline("Ana Moser", "works_at") == [("Siemens", "2021-04-01", "2025-03-31")]
    assert await memory.timeline("Ana Moser", "member_of") == []
    assert await memory.timeline("Ana Moser", "height_in_cm") == [("171.0", "2024-01-10", "")]


@pytest.mark.slow
async def test_a_second_run_with_texts_adds_nothing_and_costs_nothing(
    memory: Memory, take_in: Import
) -> None:
    first = await take_in("graphiti", "graphiti.json", texts=True)
    assert first.fates["imported"] == 9
    spent = await balance(memory.tenant)
    assert spent[0] == 1_000_000 - int(first.told["spentMicros"])
    claims = await memory.claims()
    again = await take_in("graphiti", "graphiti.json", texts=True, said="2025-08-01")
    assert again.fates == {"known": 9, "refused": 2, "leftOut": 2}
    assert (await memory.claims(), await balance(memory.tenant)) == (claims, spent)
    assert again.told["spentMicros"] == "0"


async def test_a_second_run_adds_nothing(memory: Memory, take_in: Import) -> None:
    await take_in("csv", "facts.csv")
    claims, spent = await memory.claims(), await balance(memory.tenant)
    again = await take_in("csv", "facts.csv", said="2025-08-01")
    assert again.fates == {"known": 7, "same": 1, "refused": 5}
    assert (await memory.claims(), await balance(memory.tenant)) == (claims, spent)


@pytest.mark.slow
async def test_a_longer_export_adds_what_is_new(memory: Memory, take_in: Import, tmp_path: Path) -> None:
    """Also where rows don't tell when they were said: the file is another, the rows are not."""
    table, report = tmp_path / "more.csv", tmp_path / "report.jsonl"
    table.write_text("subject,predicate,object,start\nAna,works_at,Initech,2020\n", encoding="utf-8")
    first = await take_in("csv", "more.csv", said="2025-06-01", report=report)
    assert first.fates == {"imported": 1}
    claims = await memory.claims()
    with table.open("a", encoding="utf-8") as more:
        more.write("Ana,works_at,Globex,2025-01-01\n")
    second = await take_in("csv", "more.csv", said="2025-06-02", after=[report])
    assert second.fates == {"imported": 1, "known": 1}
    assert (await memory.claims()).items() >= claims.items()
    assert await memory.timeline("Ana", "works_at") == [
        ("Initech", "2020-01-01", "2025-01-01"),
        ("Globex", "2025-01-01", ""),
    ]


async def test_a_dry_run_changes_nothing(memory: Memory, take_in: Import, tmp_path: Path) -> None:
    """It tells beforehand what the import tells afterwards."""
    lines = tmp_path / "report.jsonl"
    tried = await take_in("csv", "facts.csv", dry_run=True, report=lines)
    assert (tried.code, tried.fates) == (Exit.FAILED, {"ready": 7, "same": 1, "refused": 5})
    assert await balance(memory.tenant) == (1_000_000, 0)
    written = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    assert written == tried.told["lines"]
    done = await take_in("csv", "facts.csv")
    lines_after = done.told["lines"]
    for one in lines_after:
        one.pop("marks", None)
        one["fate"] = one["fate"].replace("imported", "ready")
    assert lines_after == written


@pytest.mark.slow
async def test_a_graph_that_was_erased_is_imported_anew(memory: Memory, take_in: Import) -> None:
    assert (await take_in("csv", "facts.csv")).fates["imported"] == 7
    request = privacy_pb2.EraseGraphRequest(graph_id=memory.graph, request_id="erase")
    await erased(memory.tenant, memory.tenant.privacy.EraseGraph, request)
    assert (await take_in("csv", "facts.csv")).fates == {"imported": 7, "same": 1, "refused": 5}


def many_rows(folder: Path) -> set[tuple[str, str]]:
    """A file of more facts than one call takes; who works where."""
    told = {(f"Person {number}", f"Company {number}") for number in range(300)}
    rows = [f"{who},works_at,{where},2025-01-01" for who, where in sorted(told)]
    (folder / "many.csv").write_text("\n".join(["subject,predicate,object,said", *rows]), encoding="utf-8")
    return told


@pytest.mark.slow
async def test_it_stops_where_credits_end_and_goes_on_from_there(
    product: Product, memory: Memory, take_in: Import, tmp_path: Path
) -> None:
    told = many_rows(tmp_path)
    each = (await memory.assert_triples(("Ana", "works_at", "Initech"))).job.credits.spent_micros
    poor = Memory(await product.tenant(f"tenant-{next(_numbers)}", 1), "notes")
    await grant(product, poor, 150 * each)
    stopped = await take_in("csv", "many.csv", key=poor.tenant.key)
    assert stopped.code == Exit.CREDITS
    assert 0 < stopped.fates["imported"] <= 150
    assert sum(stopped.fates.values()) == 300
    await grant(product, poor, 300 * each)
    done = await take_in("csv", "many.csv", key=poor.tenant.key)
    assert done.code == Exit.OK
    assert done.fates == {"known": stopped.fates["imported"], "imported": stopped.fates["unsent"]}
    assert (await balance(poor.tenant))[0] == 150 * each + 1
    assert {(fact[0], fact[2]) for fact in await poor.facts()} == told


@pytest.mark.slow
async def test_one_that_was_cut_short_goes_on(memory: Memory, take_in: Import, tmp_path: Path) -> None:
    told = many_rows(tmp_path)
    report = tmp_path / "report.jsonl"
    begun = asyncio.ensure_future(take_in("csv", "many.csv", report=report, in_flight=1))
    while (await balance(memory.tenant))[0] == 1_000_000:
        assert not begun.done()
        await asyncio.sleep(0)
    begun.cancel()
    with pytest.raises(asyncio.CancelledError):
        await begun
    fates = Counter(json.loads(line)["fate"] for line in report.read_text(encoding="utf-8").splitlines())
    assert fates.total() == 300
    assert fates["unsent"] > 0
    done = await take_in("csv", "many.csv")
    assert done.code == Exit.OK
    assert {(fact[0], fact[2]) for fact in await memory.facts()} == told
    assert set((await memory.claims()).values()) == {1}, "nothing was said twice"


async def grant(product: Product, memory: Memory, micros: int) -> None:
    stores = product.running.gateway.stores
    async with stores.ledger.books(memory.tenant.name) as books:  # type: ignore[arg-type]  # a plain name
        await books.grant(memory.tenant.name, f"grant-{next(_numbers)}", micros, "")  # type: ignore[arg-type]
