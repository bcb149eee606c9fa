"""Erasures in the gateway's stores, on SQLite and on PostgreSQL: marks, refusals, tombstones, what stays."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

from gateway.credits.audit import audit
from gateway.credits.money import MicroCredits
from gateway.errors import (
    EntityBeingErased,
    ErasureNotFound,
    GraphBeingErased,
    GraphNotFound,
    RequestIdReused,
    TenantNotFound,
)
from gateway.store.calls import Call, CallFilter
from gateway.store.job_values import JobKind, JobState, Order, Outcome
from gateway.store.lease import JobTakenOver
from gateway.store.requests import RequestName
from gateway.store.stores import Stores, open_stores
from gateway.store.tables import LEDGER, journal_groups
from palimpsest.v1.episode_pb2 import CHUNK_STAGE_ACCEPTED
from palimpsest.v1.graph_pb2 import GraphSettings
from palimpsest.v1.job_pb2 import JobChunk, JobResult
from palimpsest.v1.privacy_pb2 import ErasureReport
from services.domain.ids import JobId
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.paging import Page
from services.stores.sql.engine import postgres_engine
from services.stores.sql.isolation import Across
from tests.doubles.gateway import ACME, GLOBEX, graph, order, sqlite_stores

NOTES, OTHER, TWIN = graph(ACME, "notes"), graph(ACME, "other"), graph(GLOBEX, "notes")
WHOLE = Scope(ACME, GraphId(""))
WORD = "zanzibarcanary"

ERASED_TABLES = {"graphs", "ingestion_rules", "requests", "calls", "jobs", "outbox", "follow_ups"}
EMPTIED_TABLES = {"holds", "journal_groups", "api_keys", "tenants"}
WITHOUT_CONTENT = {
    "accounts",
    "erasures",
    "executors",
    "goodwill_days",
    "journal_entries",
    "price_tables",
    "spends",
    "text_days",
}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    if request.param == "sqlite":
        stores = await sqlite_stores(tmp_path)
    else:
        url = request.getfixturevalue("server_url")
        stores = await open_stores(postgres_engine(url), postgres_engine(url))
    for tenant in (ACME, GLOBEX):
        await stores.tenants.create(tenant, f"{tenant} {WORD}")
        async with stores.ledger.books(tenant) as books:
            await books.grant(tenant, "start", MicroCredits(1000), WORD)
    yield stores
    await stores.close()


def erasing(scope: Scope, key: str = "erase", payload_hash: str = "h") -> Order:
    return Order(
        scope=scope,
        kind=JobKind.ERASURE,
        method="PrivacyService.EraseGraph",
        request_key=key,
        payload_hash=payload_hash,
        payload=b"{}",
        ceiling=MicroCredits(0),
        price_version="v1",
    )


async def answer() -> bytes:
    return WORD.encode()


async def fill(stores: Stores, scope: Scope, key: str) -> JobId:
    """A job that spent and ended, and one that is under way; a call without a job, logged."""
    settings = GraphSettings(user_name=WORD)
    await stores.graphs.create(scope, settings)
    done = (await stores.jobs.accept(order(scope, f"{key}-done", payload=WORD.encode()))).job
    await stores.jobs.spend(done.id, "step", MicroCredits(10))
    result = JobResult(document_id=WORD)
    await stores.jobs.finish(done.id, Outcome(JobState.SUCCEEDED, MicroCredits(10), result, reason=WORD))
    open_job = (await stores.jobs.accept(order(scope, f"{key}-open", payload=WORD.encode()))).job
    await stores.progress.record(open_job.id, [JobChunk(index=0, stage=CHUNK_STAGE_ACCEPTED)])
    await stores.progress.save_artifact(open_job.id, 0, "x", WORD.encode())
    name = RequestName(scope.tenant, "DeleteEpisode", f"{key}-{WORD}", "hash", scope.graph)
    await stores.requests.once(name, answer)
    for action in ("DeleteEpisode", "EraseEntity"):
        call = Call(scope.tenant, f"{key}-{action}", action, "key", scope.graph, request=f"{key}-{WORD}")
        await stores.calls.record(call)
    return open_job.id


async def end(stores: Stores, job: JobId) -> None:
    await stores.jobs.finish(job, Outcome(JobState.SUCCEEDED, MicroCredits(0), JobResult()))


async def test_every_table_of_the_ledger_is_erased_emptied_or_without_content() -> None:
    known = ERASED_TABLES | EMPTIED_TABLES | WITHOUT_CONTENT
    assert {table.name for table in LEDGER.sorted_tables} == known, "say what an erasure does with it"


async def test_what_is_marked_is_refused_at_once_and_others_are_not(stores: Stores) -> None:
    await stores.graphs.create(NOTES, GraphSettings())
    await stores.graphs.create(OTHER, GraphSettings())
    running = (await stores.jobs.accept(order(NOTES, "running"))).job
    first = await stores.erasures.begin(erasing(NOTES))
    assert first.fresh
    with pytest.raises(GraphBeingErased):
        await stores.graphs.check(NOTES)
    with pytest.raises(GraphBeingErased):
        await stores.jobs.accept(order(NOTES, "late"))
    with pytest.raises(GraphBeingErased):
        await stores.graphs.create(NOTES, GraphSettings())
    assert (await stores.jobs.find(running.id)).cancel_requested
    assert [row.scope for row in (await stores.graphs.list(ACME, Page())).items] == [OTHER]
    await stores.graphs.check(OTHER, writing=True)
    again = await stores.erasures.begin(erasing(NOTES))
    assert (again.job.id, again.fresh) == (first.job.id, False)
    with pytest.raises(RequestIdReused):
        await stores.erasures.begin(erasing(NOTES, payload_hash="another"))
    with pytest.raises(GraphBeingErased):
        await stores.erasures.begin(erasing(NOTES, "second"))
    with pytest.raises(GraphNotFound):
        await stores.erasures.begin(erasing(graph(ACME, "absent"), "third"))
    with pytest.raises(TenantNotFound):
        await stores.erasures.begin(erasing(Scope(TenantId("nobody"), GraphId("")), "third"))


async def test_an_erasure_that_failed_keeps_its_mark_and_another_one_goes_on(stores: Stores) -> None:
    await stores.graphs.create(NOTES, GraphSettings())
    first = await stores.erasures.begin(erasing(NOTES))
    await stores.jobs.finish(first.job.id, Outcome(JobState.FAILED, MicroCredits(0), JobResult()))
    assert (await stores.erasures.find(ACME, first.job.id)).state is JobState.FAILED
    with pytest.raises(GraphBeingErased):
        await stores.graphs.check(NOTES)
    second = await stores.erasures.begin(erasing(NOTES, "second"))
    await stores.erasures.finish(second.job.id, NOTES, [ErasureReport(store="graph")])
    with pytest.raises(GraphNotFound):
        await stores.graphs.check(NOTES)
    assert (await stores.erasures.find(ACME, first.job.id)).state is JobState.FAILED


async def test_an_entity_waits_for_nobody_who_reads(stores: Stores) -> None:
    await stores.graphs.create(NOTES, GraphSettings())
    marked = await stores.erasures.begin(erasing(NOTES), "entity")
    await stores.graphs.check(NOTES)
    for writing in (stores.graphs.check(NOTES, writing=True), stores.jobs.accept(order(NOTES, "late"))):
        with pytest.raises(EntityBeingErased):
            await writing
    await stores.erasures.finish(marked.job.id, NOTES, [])
    await stores.graphs.check(NOTES, writing=True)


async def test_content_goes_and_the_ledger_stays(stores: Stores) -> None:
    for scope, key in ((NOTES, f"a-{WORD}"), (OTHER, "b"), (TWIN, "a")):
        await fill(stores, scope, key)
    marked = (await stores.erasures.begin(erasing(NOTES))).job.id
    balance = await stores.ledger.balance(ACME)
    theirs = await stores.content.jobs(NOTES, marked)
    for job in theirs:
        await stores.jobs.finish(job.id, Outcome(JobState.CANCELLED, MicroCredits(0), JobResult()))
    counted = await stores.content.rows(NOTES, marked)
    assert counted == {"requests": 3, "calls": 1, "jobs": 2} | dict.fromkeys(
        ("artifacts", "job_chunks", "job_events", "job_progress", "follow_ups"), 1
    )
    for _ in range(2):
        await stores.content.erase(NOTES, marked)
    assert await stores.content.rows(NOTES, marked) == {}
    await stores.erasures.finish(marked, NOTES, [ErasureReport(store="jobs", removed=counted)])
    await end(stores, marked)

    tomb = await stores.erasures.find(ACME, marked)
    assert (tomb.state, tomb.scope, tomb.entity) == (JobState.SUCCEEDED, NOTES, "")
    assert [dict(report.removed) for report in tomb.reports] == [counted]
    with pytest.raises(ErasureNotFound):
        await stores.erasures.find(GLOBEX, marked)
    assert [one.action for one in await stores.calls.find(ACME, CallFilter(graph="notes"), 9)] == [
        "EraseEntity"
    ]
    assert (await stores.ledger.balance(ACME)).available >= balance.available
    assert await audit(stores.ledger_database, stores.clock) == []
    async with stores.ledger_database.read(Across("test")) as connection:
        told = select(func.count()).where(
            journal_groups.c.job.in_([job.id for job in theirs]),
            (journal_groups.c.request_key != "") | (journal_groups.c.reason != ""),
        )
        assert (await connection.execute(told)).scalar_one() == 0
    for scope in (OTHER, TWIN):
        assert (await stores.content.rows(scope, JobId("none")))["jobs"] == 2
    # Made anew under the same ids, as if it had never been.
    _, created = await stores.graphs.create(NOTES, GraphSettings())
    assert created
    anew = (await stores.jobs.accept(order(NOTES, "anew"))).job
    # A run of the erasure that slept until now finds it over, whatever it was about to do.
    late = (
        lambda: stores.content.to_end(NOTES, marked),
        lambda: stores.content.erase(NOTES, marked),
        lambda: stores.content.remove_graph(NOTES, marked),
        lambda: stores.content.erase_tenant(NOTES, marked),
    )
    for doing in late:
        with pytest.raises(JobTakenOver):
            await doing()
    await stores.erasures.finish(marked, NOTES, [])
    await stores.graphs.check(NOTES)
    assert await stores.jobs.find(anew.id) == anew


async def test_a_tenant_goes_with_its_keys(stores: Stores) -> None:
    for scope, key in ((NOTES, f"a-{WORD}"), (OTHER, "b"), (TWIN, "a")):
        await fill(stores, scope, key)
    marked = (await stores.erasures.begin(erasing(WHOLE))).job.id
    with pytest.raises(GraphBeingErased):
        await stores.graphs.create(graph(ACME, "new"), GraphSettings())
    for job in await stores.content.jobs(WHOLE, marked):
        await stores.jobs.finish(job.id, Outcome(JobState.CANCELLED, MicroCredits(0), JobResult()))
    for row in await stores.graphs.every(ACME):
        await stores.content.remove_graph(row.scope, marked)
    await stores.content.erase(WHOLE, marked)
    await stores.content.erase_tenant(WHOLE, marked)
    assert await stores.content.rows(WHOLE, marked) == {}
    await stores.erasures.finish(marked, WHOLE, [])
    await end(stores, marked)
    assert (await stores.tenants.get(ACME)).display_name == ""
    with pytest.raises(GraphBeingErased):  # a key may be believed for a moment still
        await stores.graphs.create(graph(ACME, "new"), GraphSettings())
    assert await audit(stores.ledger_database, stores.clock) == []
    assert (await stores.content.rows(TWIN, JobId("none")))["jobs"] == 2


async def test_the_journal_loses_its_words_and_nothing_else(stores: Stores) -> None:
    async with stores.ledger_database.write(Across("test")) as connection:
        await connection.execute(journal_groups.update().values(reason=""))
    for change in ({"reason": "other"}, {"key": "other"}, {"tenant": "other"}):
        with pytest.raises(Exception, match="never changed"):
            async with stores.ledger_database.write(Across("test")) as connection:
                await connection.execute(journal_groups.update().values(**change))
