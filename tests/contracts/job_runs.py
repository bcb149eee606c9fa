"""Runs and retries of jobs on every database: a run that lost its job writes nothing. With JobsContract."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from gateway.credits.audit import audit
from gateway.credits.money import MicroCredits
from gateway.credits.values import HoldState
from gateway.errors import InsufficientCredits, JobNotFailed, JobNotFound, RequestIdReused, TooManyJobs
from gateway.store.job_values import Job, JobState, Order, Outcome
from gateway.store.lease import JobTakenOver, Lease, confirm, held
from gateway.store.stores import Stores
from palimpsest.v1 import job_pb2
from palimpsest.v1.episode_pb2 import ChunkStage
from services.domain.ids import JobId, Revision
from tests.doubles.gateway import ACME, GLOBEX, graph, order

SCOPE = graph(ACME)
RETRY = "JobService.RetryJob"


def again(key: str = "retry", ceiling: int = 50, tenant: str = ACME) -> Order:
    return order(replace(SCOPE, tenant=tenant), key, ceiling=ceiling, payload=b"left", method=RETRY)  # type: ignore[arg-type]


def ended(state: JobState = JobState.PARTIAL, charge: int = 0, left: bytes = b"left") -> Outcome:
    result = job_pb2.JobResult(episode_ids=["e0"])
    return Outcome(state, MicroCredits(charge), result, revision=Revision(4), left=left)


async def a_failed_job(stores: Stores, key: str = "first") -> Job:
    """Two chunks, of which one was resolved and paid for."""
    job = (await stores.jobs.accept(order(SCOPE, key))).job
    await stores.jobs.start(job.id)
    await stores.jobs.spend(job.id, "chunk/0", MicroCredits(30))
    return await stores.jobs.finish(job.id, ended(charge=30))


class JobRunsContract:
    """Subclasses have the fixture `ready` of JobsContract."""

    async def test_the_latest_run_is_the_one_that_counts(self, ready: Stores) -> None:
        job = (await ready.jobs.accept(order(SCOPE, "r"))).job
        first = await ready.jobs.claim(job.id)
        second = await ready.jobs.claim(job.id)
        assert second.epoch > first.epoch
        with held(second, ready.jobs.confirm):
            await confirm()
        with held(first, ready.jobs.confirm), pytest.raises(JobTakenOver):
            await confirm()
        with pytest.raises(JobNotFound):
            await ready.jobs.claim(JobId("none"))
        with pytest.raises(JobTakenOver):
            await ready.jobs.claim(job.id, attempt=1)

    async def test_a_run_that_lost_its_job_writes_nothing(self, ready: Stores) -> None:
        job = (await ready.jobs.accept(order(SCOPE, "r"))).job
        old, new = await ready.jobs.claim(job.id), await ready.jobs.claim(job.id)
        await ready.progress.claim(new)
        chunk = job_pb2.JobChunk(index=0, stage=ChunkStage.CHUNK_STAGE_FAILED)
        stage = job_pb2.StageReceipt(stage="extract", calls=1)
        writes: list[Callable[[], Awaitable[object]]] = [
            lambda: ready.jobs.start(job.id),
            lambda: ready.jobs.spend(job.id, "chunk/0", MicroCredits(1)),
            lambda: ready.jobs.published(job.id, Revision(9)),
            lambda: ready.jobs.finish(job.id, ended(JobState.FAILED)),
            lambda: ready.progress.claim(old),
            lambda: ready.progress.record(job.id, [chunk]),
            lambda: ready.progress.reopen(job.id, {}),
            lambda: ready.progress.add_receipts(job.id, "s", "openai", [stage]),
            lambda: ready.progress.save_artifact(job.id, 0, "understood", b"text"),
            lambda: ready.progress.drop_artifacts(job.id),
        ]
        before = await ready.job_view.read(ACME, job.id), await ready.jobs.find(job.id)
        for write in writes:
            with held(old, ready.jobs.confirm), pytest.raises(JobTakenOver):
                await write()
        assert (await ready.job_view.read(ACME, job.id), await ready.jobs.find(job.id)) == before
        assert await ready.progress.artifact(job.id, 0, "understood") is None
        with held(new, ready.jobs.confirm):
            for write in writes[:4]:
                await write()
        assert await audit(ready.ledger_database, ready.clock) == []

    async def test_what_no_run_does_needs_no_lease(self, ready: Stores) -> None:
        job = (await ready.jobs.accept(order(SCOPE, "r"))).job
        await ready.jobs.claim(job.id)
        assert (await ready.jobs.request_cancel(ACME, job.id)).cancel_requested
        other = (await ready.jobs.accept(order(SCOPE, "r2"))).job
        with held(Lease(job.id, 0), ready.jobs.confirm):
            assert (await ready.jobs.start(other.id)).state is JobState.RUNNING, "a lease is of one job"

    async def test_a_retry_has_a_hold_of_its_own(self, ready: Stores) -> None:
        first = await a_failed_job(ready)
        retried = await ready.jobs.retry(again(), first.id)
        job = retried.job
        assert (retried.fresh, job.id, job.state, job.attempt) == (True, first.id, JobState.QUEUED, 1)
        assert (job.finished, job.error, job.left, job.result) == (False, None, b"", first.result)
        assert (job.hold.ceiling, job.hold.state, job.hold.job) == (50, HoldState.OPEN, first.id)
        assert (job.earlier.settled, job.earlier.returned) == (30, 70)
        assert await ready.jobs.payload(job.id) == b"left"
        assert [one.id for one in await ready.jobs.pending()] == [job.id]
        await ready.jobs.spend(job.id, "retry/1/chunk/1", MicroCredits(20))
        await ready.jobs.finish(job.id, ended(JobState.SUCCEEDED, charge=20, left=b""))
        paid = (await ready.job_view.read(ACME, job.id)).credits
        assert (paid.held_micros, paid.spent_micros, paid.refunded_micros) == (0, 50, 100)
        assert (await ready.ledger.balance(ACME)).available == 1000 - 50
        assert await audit(ready.ledger_database, ready.clock) == []

    async def test_the_same_retry_many_times_at_once_is_one(self, ready: Stores) -> None:
        first = await a_failed_job(ready)
        answers = await asyncio.gather(*(ready.jobs.retry(again(), first.id) for _ in range(10)))
        assert sum(answer.fresh for answer in answers) == 1
        assert {answer.job.attempt for answer in answers} == {1}
        with pytest.raises(RequestIdReused):
            await ready.jobs.retry(replace(again(), payload_hash="other"), first.id)
        assert await audit(ready.ledger_database, ready.clock) == []

    async def test_of_two_retries_at_once_one_is_refused(self, ready: Stores) -> None:
        first = await a_failed_job(ready)
        answers = await asyncio.gather(
            *(ready.jobs.retry(again(f"k{number}"), first.id) for number in range(4)), return_exceptions=True
        )
        assert sum(isinstance(answer, JobNotFailed) for answer in answers) == 3
        assert (await ready.jobs.find(first.id)).attempt == 1
        assert await audit(ready.ledger_database, ready.clock) == []

    async def test_a_retry_that_is_refused_changes_nothing(self, ready: Stores) -> None:
        running = (await ready.jobs.accept(order(SCOPE, "running"))).job
        with pytest.raises(JobNotFailed):
            await ready.jobs.retry(again(), running.id)
        for state, left in ((JobState.SUCCEEDED, b""), (JobState.CANCELLED, b""), (JobState.FAILED, b"")):
            job = (await ready.jobs.accept(order(SCOPE, f"{state} job"))).job
            await ready.jobs.finish(job.id, ended(state, left=left))
            with pytest.raises(JobNotFailed):
                await ready.jobs.retry(again(), job.id)
        failed = await a_failed_job(ready)
        with pytest.raises(InsufficientCredits):
            await ready.jobs.retry(again(ceiling=5000), failed.id)
        with pytest.raises(TooManyJobs):
            await ready.jobs.retry(again(), failed.id, max_jobs=1)
        for id, tenant in ((failed.id, GLOBEX), (JobId("none"), ACME)):
            with pytest.raises(JobNotFound):
                await ready.jobs.retry(again(tenant=tenant), id)
        assert await ready.jobs.find(failed.id) == failed
        assert (await ready.jobs.retry(again(), failed.id)).fresh, "the key is free"
        assert await audit(ready.ledger_database, ready.clock) == []

    async def test_a_run_of_an_attempt_that_is_over_changes_nothing(self, ready: Stores) -> None:
        job = (await ready.jobs.accept(order(SCOPE, "r"))).job
        run = await ready.jobs.claim(job.id)
        await ready.jobs.finish(job.id, ended())
        await ready.jobs.retry(again(), job.id)
        with held(run, ready.jobs.confirm), pytest.raises(JobTakenOver):
            await ready.jobs.finish(job.id, ended(JobState.FAILED))
        with pytest.raises(JobTakenOver):
            await ready.jobs.claim(job.id)
        assert (await ready.jobs.find(job.id)).state is JobState.QUEUED
