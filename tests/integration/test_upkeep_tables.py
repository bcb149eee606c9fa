"""The gateway's tables in a backup: the same keys and balances on another database; unfinished jobs go on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from gateway.admin_commands import tables
from gateway.credits.audit import audit
from gateway.credits.money import MicroCredits
from gateway.credits.values import HoldState
from gateway.keys import Authenticator, FailedAttempts, KeyScope
from gateway.store.job_values import JobKind, JobState, Order, Outcome
from gateway.store.stores import Stores, open_stores
from palimpsest.v1.episode_pb2 import ChunkStage
from palimpsest.v1.job_pb2 import JobChunk, JobResult
from services.domain.ids import Revision
from services.domain.scope import TenantId
from services.runtime.clock import clock
from services.stores.sql.engine import engine_for
from services.upkeep.archive import ArchiveIn, ArchiveOut, ArchiveUnknown, Manifest
from services.upkeep.backup import StoresNotEmpty
from tests.builders import a_scope

ACME = TenantId("acme")


@asynccontextmanager
async def gateway_stores(ledger: str, jobs: str) -> AsyncIterator[Stores]:
    stores = await open_stores(engine_for(ledger), engine_for(jobs))
    try:
        yield stores
    finally:
        await stores.close()


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    ledger, jobs = (f"sqlite:///{tmp_path / name}.db" for name in ("ledger", "jobs"))
    async with gateway_stores(ledger, jobs) as stores:
        yield stores


def order(name: str) -> Order:
    return Order(
        scope=a_scope(),
        kind=JobKind.INGEST,
        method="AddEpisode",
        request_key=name,
        payload_hash=f"hash of {name}",
        payload=f"text of {name} \x00\xff".encode(),
        ceiling=MicroCredits(1_000),
        price_version="1",
    )


async def a_business(stores: Stores) -> str:
    """A tenant with a key, credits, a finished and an unfinished job; answers the key."""
    await stores.tenants.create(ACME, "Acme Inc. 中")
    async with stores.ledger.books(ACME) as books:
        await books.grant(ACME, "start", MicroCredits(10_000), "a start")
    _, key = await stores.keys.create(ACME, "all", [KeyScope.ERASE])
    for name in ("finished", "unfinished"):
        job = (await stores.jobs.accept(order(name), taken=True)).job.id
        await stores.jobs.start(job)
        await stores.jobs.spend(job, "step-1", MicroCredits(300))
        chunk = JobChunk(index=0, stage=ChunkStage.CHUNK_STAGE_PREPROCESSED)
        await stores.progress.record(job, [chunk])
        await stores.progress.save_artifact(job, 0, "normalise", b"text between steps")
        if name == "finished":
            outcome = Outcome(JobState.SUCCEEDED, MicroCredits(300), JobResult())
            await stores.jobs.finish(job, outcome)
    return key


async def dumped(stores: Stores, folder: Path) -> ArchiveIn:
    with ArchiveOut(folder) as archive:
        at = (await tables.dump(stores, archive)).at
        manifest = Manifest(at, "test", "none", 1, False, (), archive.files, tables.revisions())
        archive.finish(manifest)
    return ArchiveIn(folder)


async def test_keys_balances_and_jobs_are_as_they_were(stores: Stores, tmp_path: Path, sql_url: str) -> None:
    key = await a_business(stores)
    archive = await dumped(stores, tmp_path / "backup")
    balance = await stores.ledger.balance(ACME)
    # What comes after the moment is not in it.
    async with stores.ledger.books(ACME) as books:
        await books.grant(ACME, "later", MicroCredits(5), "")
    async with gateway_stores(sql_url, sql_url if "postgres" in sql_url else f"{sql_url}-jobs") as target:
        await tables.check_empty(target)
        tables.check_revisions(archive)
        await tables.load(target, archive)
        assert await audit(target.ledger_database, target.clock) == []
        restored = await target.ledger.balance(ACME)
        assert (restored.available, restored.held) == (balance.available, balance.held)
        authenticator = Authenticator(target.keys, FailedAttempts(9, monotonic), clock, monotonic)
        found = await authenticator.authenticate(key, "peer")
        assert found.tenant is not None
        assert found.tenant.id == ACME
        assert (await target.tenants.get(ACME)).display_name == "Acme Inc. 中"
        again = await target.jobs.accept(order("finished"))
        assert (again.fresh, again.job.state) == (False, JobState.SUCCEEDED)
        assert (await target.progress.snapshot(again.job.id)).chunks[0].index == 0
        with pytest.raises(StoresNotEmpty, match="ledger store has rows"):
            await tables.check_empty(target)
        # New rows are numbered after those that came along.
        async with target.ledger.books(ACME) as books:
            await books.grant(ACME, "more", MicroCredits(7), "")
        assert (await target.ledger.balance(ACME)).available == balance.available + 7


async def test_an_unfinished_job_goes_on_from_its_start(stores: Stores, tmp_path: Path, sql_url: str) -> None:
    await a_business(stores)
    archive = await dumped(stores, tmp_path / "backup")
    async with gateway_stores(sql_url, sql_url if "postgres" in sql_url else f"{sql_url}-jobs") as target:
        await tables.load(target, archive)
        [job] = await target.jobs.unfinished()
        assert [one.id for one in await target.jobs.pending()] == [job.id]
        assert await target.jobs.payload(job.id) == order("unfinished").payload
        assert (await target.progress.snapshot(job.id)).chunks == {}
        assert await target.progress.artifact(job.id, 0, "normalise") is None
        assert job.hold.state is HoldState.OPEN
        await target.jobs.spend(job.id, "step-1", MicroCredits(300))  # done anew, and charged once
        await target.jobs.spend(job.id, "step-2", MicroCredits(50))
        ended = await target.jobs.finish(job.id, Outcome(JobState.SUCCEEDED, MicroCredits(350), JobResult()))
        assert ended.hold.settled == 350
        assert await audit(target.ledger_database, target.clock) == []


async def test_finished_jobs_tell_what_was_published(stores: Stores, tmp_path: Path) -> None:
    await a_business(stores)
    await stores.tenants.create(TenantId("twin"), "")
    async with stores.ledger.books(TenantId("twin")) as books:
        await books.grant(TenantId("twin"), "start", MicroCredits(10_000), "")
    for scope, revision, ends in (
        (a_scope(), 7, True),
        (a_scope(), 6, True),
        (a_scope(), 9, False),
        (a_scope(tenant="twin"), 3, True),
    ):
        job = (await stores.jobs.accept(replace(order(f"r{revision}"), scope=scope))).job.id
        await stores.jobs.published(job, Revision(revision))
        if ends:
            outcome = Outcome(JobState.SUCCEEDED, MicroCredits(0), JobResult(), revision=Revision(revision))
            await stores.jobs.finish(job, outcome)
    with ArchiveOut(tmp_path / "backup") as archive:
        dumped = await tables.dump(stores, archive)
    assert dumped.revisions == {a_scope(): 7, a_scope(tenant="twin"): 3}


async def test_tables_of_another_version_are_refused(stores: Stores, tmp_path: Path) -> None:
    with ArchiveOut(tmp_path / "backup") as archive:
        at = (await tables.dump(stores, archive)).at
        revisions = dict(tables.revisions()) | {"ledger": "r0000"}
        archive.finish(Manifest(at, "test", "none", 1, False, (), archive.files, revisions))
    with pytest.raises(ArchiveUnknown, match="r0000"):
        tables.check_revisions(ArchiveIn(tmp_path / "backup"))


async def test_many_rows_are_read_in_pages(stores: Stores, tmp_path: Path) -> None:
    await stores.tenants.create(ACME, "")
    wanted = tables.PAGE + 7
    for number in range(wanted):
        async with stores.ledger.books(ACME) as books:
            await books.grant(ACME, f"g{number}", MicroCredits(1), "")
    archive = await dumped(stores, tmp_path / "backup")
    groups = [line for line in archive.lines("gateway/journal_groups.jsonl") if b'"grant:' in line]
    assert len(set(groups)) == wanted
