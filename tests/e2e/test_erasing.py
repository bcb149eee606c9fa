"""EraseGraph and EraseTenant: nothing is left anywhere, nobody else loses anything, and what it costs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from structlog.testing import capture_logs

from gateway.credits.audit import audit
from palimpsest.v1 import graph_pb2, job_pb2, privacy_pb2
from services.domain.ids import Revision
from services.domain.scope import TenantId
from services.stores.vectors.port import Collection
from tests.doubles.engine import ScriptedEngine
from tests.doubles.gateway import graph
from tests.doubles.product import Product, Tenant, a_product
from tests.e2e.erasing import CANARY, erased, fill, holding, removed
from tests.e2e.talking import Memory
from tests.e2e.test_carrying import exported, imported

TWIN = "parrotword"


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    """What is logged by ourselves."""
    with capture_logs() as logged:
        yield logged


def asks(name: str, request_id: str = "erase") -> privacy_pb2.EraseGraphRequest:
    return privacy_pb2.EraseGraphRequest(graph_id=name, request_id=request_id)


async def nothing_in_stores(product: Product, tenant: str, name: str) -> None:
    scope = graph(TenantId(tenant), name)
    resources = product.resources
    assert await resources.graph.rows(scope) == {}
    assert await resources.memory.rows(scope) == {}
    assert [await resources.vectors.count(scope, one) for one in Collection] == [0] * len(Collection)


@pytest.mark.case("erase a graph with a canary word")
async def test_erase_a_graph_with_a_canary_word_no_store_job_table_or_log_contains_it(
    tmp_path: Path, logs: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """erase a graph with a canary word: no store, job table, label, persona, export or log contains it"""
    engine = ScriptedEngine()
    async with a_product(tmp_path, engine=engine) as product:
        acme, globex = await product.tenant("acme"), await product.tenant("globex")
        memory = await fill(acme, engine, "notes", CANARY)
        twin = await fill(globex, engine, "notes", TWIN)
        other = Memory(acme, "other")
        await other.assert_triples(("Ada", "likes", TWIN), request_id=f"add-{TWIN}")
        assert CANARY in str(await memory.recall("What does Fay like?"))
        before = [await twin.facts(), await other.facts()]
        spent = list(await memory.ledger())
        assert holding(tmp_path, CANARY) >= {"graph.db", "memory.db", "ledger.db"}

        done = await erased(acme, acme.privacy.EraseGraph, asks("notes"))
        assert (done.state, done.graph_id) == (job_pb2.JOB_STATE_SUCCEEDED, "notes")
        counts = removed(done)
        assert {report.store for report in done.reports if not report.verified_empty} == {"caches"}
        assert len(done.reports) == 5
        assert counts["graph"]["statements"] >= 3
        assert counts["memory"]["episodes"] == 3
        assert counts["vectors"]["passages"]
        assert counts["jobs"]["jobs"] == 3
        assert counts["jobs"]["requests"] >= 4

        await nothing_in_stores(product, "acme", "notes")
        assert holding(tmp_path, CANARY) == set()
        assert len(logs) > 50
        assert CANARY not in f"{logs} {caplog.text}"

        found = privacy_pb2.GetErasureRequest(erasure_id=done.erasure_id)
        assert (await acme.call(acme.privacy.GetErasure, found)).erasure == done
        assert (await globex.refused(globex.privacy.GetErasure, found)).reason == "ERASURE_NOT_FOUND"
        gone = await acme.refused(acme.graphs.GetGraph, graph_pb2.GetGraphRequest(graph_id="notes"))
        assert gone.reason == "GRAPH_NOT_FOUND"
        kept = await memory.ledger()
        moved = [(one.entry_id, one.amount_micros) for one in spent]
        assert [(one.entry_id, one.amount_micros) for one in kept] == moved
        assert CANARY not in str(kept)
        stores = product.running.gateway.stores
        assert await audit(stores.ledger_database, stores.clock) == []

        # Others, of the same tenant and of another, have what they had.
        assert [await twin.facts(), await other.facts()] == before
        assert holding(tmp_path, TWIN) >= {"graph.db", "memory.db"}

        # Made anew, it sees nothing of before, and replicas remember nothing either.
        made = await acme.call(acme.graphs.CreateGraph, graph_pb2.CreateGraphRequest(graph_id="notes"))
        assert (made.created, made.graph.revision.revision) == (True, 0)
        await memory.assert_triples(("Fay", "likes", "rum"), at="2025-01-01", request_id=f"soup-{CANARY}")
        assert [one[2] for one in await memory.facts()] == ["rum"]
        recalled = str(await memory.recall("What does Fay like?"))
        assert "rum" in recalled
        assert not [word for word in (CANARY, "tea") if word in recalled]
        view = await product.resources.graph.counts(graph(TenantId("acme"), "notes"), Revision(10))
        assert (view.statements, view.claims) == (1, 1)


@pytest.mark.slow
async def test_an_erased_tenant_leaves_its_ledger_alone(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with a_product(tmp_path, engine=engine) as product:
        acme, globex = await product.tenant("acme"), await product.tenant("globex")
        await fill(acme, engine, "notes", CANARY)
        await fill(acme, engine, f"second {CANARY}", f"{CANARY}b")
        twin = await fill(globex, engine, "notes", TWIN)
        before = await twin.facts()
        operator: Tenant = product.operator
        request = privacy_pb2.EraseTenantRequest(tenant_id="acme", request_id="out")
        refused = await acme.refused(acme.privacy.EraseTenant, request)
        assert refused.reason == "SCOPE_MISSING"
        done = await erased(operator, operator.privacy.EraseTenant, request)
        assert (done.state, done.graph_id) == (job_pb2.JOB_STATE_SUCCEEDED, "")
        assert removed(done)["caches"]["graphs"] == 2
        for name in ("notes", f"second {CANARY}"):
            await nothing_in_stores(product, "acme", name)
        assert holding(tmp_path, CANARY) == set()
        # Its key is believed for a moment still: nothing can be made with it.
        making = graph_pb2.CreateGraphRequest(graph_id="notes")
        refusal = await acme.refused(acme.graphs.CreateGraph, making)
        assert refusal.reason in {"GRAPH_BEING_ERASED", "API_KEY_INVALID", "TENANT_SUSPENDED"}
        stores = product.running.gateway.stores
        assert await audit(stores.ledger_database, stores.clock) == []
        assert (await stores.ledger.balance(TenantId("acme"))).held == 0
        again = await operator.call(operator.privacy.EraseTenant, request)
        assert again.erasure == done
        assert await twin.facts() == before


def rows_with(url: str, word: str) -> set[str]:
    """Tables of every schema of a PostgreSQL database with a row that holds the word."""
    found: set[str] = set()
    listing = (
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')"
    )
    with psycopg.connect(url) as connection:
        for schema, table in connection.execute(listing).fetchall():
            place = sql.Identifier(str(schema), str(table))
            query = sql.SQL("SELECT count(*) FROM {} AS one WHERE one::text ILIKE %s OR {}").format(
                place, sql.SQL(" OR ").join(_bytes(connection, str(schema), str(table)) or [sql.SQL("false")])
            )
            (count,) = connection.execute(query, [f"%{word}%"]).fetchone() or (0,)
            if count:
                found.add(f"{schema}.{table}")
    return found


def _bytes(connection: Any, schema: str, table: str) -> list[sql.Composable]:
    """Of columns that hold bytes, whether the word is in them."""
    query = (
        "SELECT column_name FROM information_schema.columns "
        "WHERE table_schema = %s AND table_name = %s AND data_type = 'bytea'"
    )
    names = connection.execute(query, [schema, table]).fetchall()
    needle = sql.Literal(CANARY.encode())
    return [sql.SQL("position({} in {}) > 0").format(needle, sql.Identifier(str(name))) for (name,) in names]


@pytest.mark.slow
async def test_what_was_taken_out_before_can_be_brought_back_under_the_same_id(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with a_product(tmp_path, engine=engine) as product:
        acme = await product.tenant("acme")
        memory = await fill(acme, engine, "notes", CANARY)
        before, recalled = await memory.facts(), str(await memory.recall("What does Fay like?"))
        out = await exported(memory)
        await erased(acme, acme.privacy.EraseGraph, asks("notes"))
        job = await imported(acme, out.messages("notes", "import"))
        assert (job.state, job.revision) == (job_pb2.JOB_STATE_SUCCEEDED, out.header.revision)
        assert await memory.facts() == before
        assert str(await memory.recall("What does Fay like?")) == recalled
        await memory.assert_triples(("Fay", "likes", "rum"), at="2026-01-01", request_id="later")
        assert "rum" in {fact[2] for fact in await memory.facts()}


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.case("erase a graph with a canary word")
async def test_on_postgresql_no_row_of_any_table_holds_the_word(
    tmp_path: Path, server_url: str, owner_url: str
) -> None:
    engine = ScriptedEngine()
    async with a_product(tmp_path, engine=engine, url=server_url) as product:
        acme, globex = await product.tenant("acme"), await product.tenant("globex")
        await fill(acme, engine, "notes", CANARY)
        twin = await fill(globex, engine, "notes", TWIN)
        before = await twin.facts()
        assert len(rows_with(owner_url, CANARY)) > 8
        done = await erased(acme, acme.privacy.EraseGraph, asks("notes"))
        assert done.state == job_pb2.JOB_STATE_SUCCEEDED
        assert rows_with(owner_url, CANARY) == set()
        await nothing_in_stores(product, "acme", "notes")
        assert await twin.facts() == before
