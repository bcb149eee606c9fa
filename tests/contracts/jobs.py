"""What accepting, moving and ending jobs must do on every database. Subclasses give `stores`."""

import asyncio
from collections.abc import Sequence

import pytest
from sqlalchemy import func, select

from gateway.credits.audit import audit
from gateway.credits.money import MicroCredits
from gateway.credits.values import Courtesy, EntryFilter, EntryKind, HoldState
from gateway.errors import (
    ChunksFailed,
    GraphNotFound,
    InsufficientCredits,
    JobFinished,
    JobNotFound,
    RequestIdReused,
    TooManyJobs,
    status_of,
)
from gateway.store.clock import SkewedClock
from gateway.store.job_values import Job, JobState, Outcome
from gateway.store.job_view import WatchPoint
from gateway.store.jobs import HOLD_SECONDS
from gateway.store.stores import Stores
from gateway.store.tables import jobs, outbox, requests
from palimpsest.v1 import job_pb2
from palimpsest.v1.episode_pb2 import ChunkStage
from services.domain.ids import JobId, Revision
from services.stores.paging import Page
from services.stores.sql.isolation import Across
from tests.contracts.job_quotas import QuotasContract
from tests.doubles.gateway import ACME, GLOBEX, graph, order

SCOPE = graph(ACME)
PREPROCESSED = ChunkStage.CHUNK_STAGE_PREPROCESSED
UNDERSTOOD = ChunkStage.CHUNK_STAGE_UNDERSTOOD
RESOLVED = ChunkStage.CHUNK_STAGE_RESOLVED
FAILED = ChunkStage.CHUNK_STAGE_FAILED


def micros(amount: int) -> MicroCredits:
    return MicroCredits(amount)


def done(charge: int, state: JobState = JobState.SUCCEEDED) -> Outcome:
    result = job_pb2.JobResult(counts=job_pb2.JobCounts(claims_added=2), episode_ids=["e0"])
    return Outcome(state, micros(charge), result, revision=Revision(4))


def chunk(index: int, stage: ChunkStage.ValueType) -> job_pb2.JobChunk:
    return job_pb2.JobChunk(index=index, stage=stage, episode_id=f"e{index}")


class JobsContract(QuotasContract):
    """Subclasses have the fixture `stores`, empty, opened with the fixture `clock`."""

    @pytest.fixture
    def clock(self) -> SkewedClock:
        return SkewedClock()

    @pytest.fixture
    async def ready(self, stores: Stores) -> Stores:
        for tenant in (ACME, GLOBEX):
            await stores.tenants.create(tenant, "")
            async with stores.ledger.books(tenant) as books:
                await books.grant(tenant, "start", micros(1000), "")
        return stores

    async def test_accepting_makes_all_of_it_or_nothing(self, ready: Stores) -> None:
        accepted = await ready.jobs.accept(order(SCOPE, "r1", ceiling=300))
        assert accepted.fresh
        job = accepted.job
        assert (job.state, job.scope, job.request_key) == (JobState.QUEUED, SCOPE, "r1")
        assert (job.hold.ceiling, job.hold.held, job.hold.state) == (300, 300, HoldState.OPEN)
        assert [pending.id for pending in await ready.jobs.pending()] == [job.id]
        assert await ready.jobs.payload(job.id) == b"text"
        assert (await ready.graphs.get(SCOPE)).scope == SCOPE
        with pytest.raises(InsufficientCredits):
            await ready.jobs.accept(order(graph(ACME, "other"), "r2", ceiling=701))
        assert await counted(ready) == [1, 1, 1]
        with pytest.raises(GraphNotFound):
            await ready.graphs.get(graph(ACME, "other"))
        # The refused call left its request key free.
        assert (await ready.jobs.accept(order(SCOPE, "r2", ceiling=700))).fresh
        await assert_clean(ready)

    async def test_a_request_key_names_one_job(self, ready: Stores) -> None:
        first = await ready.jobs.accept(order(SCOPE, "r1"))
        again = await ready.jobs.accept(order(SCOPE, "r1"))
        assert (again.fresh, again.job) == (False, first.job)
        for other in (order(SCOPE, "r1", payload=b"other"), order(SCOPE, "r1", method="AssertTriples")):
            with pytest.raises(RequestIdReused):
                await ready.jobs.accept(other)
        await ready.jobs.finish(first.job.id, done(0))
        ended = await ready.jobs.accept(order(SCOPE, "r1"))
        assert (ended.fresh, ended.job.state) == (False, JobState.SUCCEEDED)
        assert (await ready.jobs.accept(order(graph(GLOBEX), "r1"))).fresh
        await assert_clean(ready)

    async def test_the_same_call_many_times_at_once_is_one_job(self, ready: Stores) -> None:
        outcomes = await asyncio.gather(*(ready.jobs.accept(order(SCOPE, "r1")) for _ in range(10)))
        assert len({accepted.job.id for accepted in outcomes}) == 1
        assert [accepted.fresh for accepted in outcomes].count(True) == 1
        assert await counted(ready) == [1, 1, 1]
        await assert_clean(ready)

    async def test_fifty_at_once_with_enough_credits_are_all_accepted(self, ready: Stores) -> None:
        outcomes = await asyncio.gather(
            *(ready.jobs.accept(order(SCOPE, f"r{number}", ceiling=20)) for number in range(50))
        )
        assert all(accepted.fresh for accepted in outcomes)
        balance = await ready.ledger.balance(ACME)
        assert (balance.available, balance.held) == (0, 1000)
        await assert_clean(ready)

    async def test_fifty_at_once_without_enough_are_accepted_as_far_as_paid(self, ready: Stores) -> None:
        async def attempt(number: int) -> bool:
            try:
                return (await ready.jobs.accept(order(SCOPE, f"r{number}", ceiling=30))).fresh
            except InsufficientCredits:
                return False

        outcomes = await asyncio.gather(*(attempt(number) for number in range(50)))
        assert outcomes.count(True) == 1000 // 30
        assert await counted(ready) == [33, 33, 33]
        assert (await ready.ledger.balance(ACME)).available == 10
        await assert_clean(ready)

    async def test_a_tenant_has_so_many_unfinished_jobs(self, ready: Stores) -> None:
        first = await ready.jobs.accept(order(SCOPE, "r1"), max_jobs=2)
        await ready.jobs.accept(order(SCOPE, "r2"), max_jobs=2)
        with pytest.raises(TooManyJobs):
            await ready.jobs.accept(order(SCOPE, "r3"), max_jobs=2)
        await ready.jobs.accept(order(graph(GLOBEX), "r1"), max_jobs=2)
        await ready.jobs.finish(first.job.id, done(0))
        assert (await ready.jobs.accept(order(SCOPE, "r3"), max_jobs=2)).fresh
        await assert_clean(ready)

    async def test_a_job_is_its_tenants_alone(self, ready: Stores) -> None:
        job = (await ready.jobs.accept(order(SCOPE, "r1"))).job
        for read in (ready.jobs.get, ready.job_view.read):
            with pytest.raises(JobNotFound):
                await read(GLOBEX, job.id)
        with pytest.raises(JobNotFound):
            await ready.jobs.request_cancel(GLOBEX, job.id)
        with pytest.raises(JobNotFound):
            await anext(ready.job_view.watch(GLOBEX, job.id, None))

    async def test_the_whole_way_of_a_job(self, ready: Stores) -> None:
        job = (await ready.jobs.accept(order(SCOPE, "r1", ceiling=300))).job
        await ready.jobs.taken(job.id)
        assert await ready.jobs.pending() == []
        assert (await ready.jobs.start(job.id)).state is JobState.RUNNING
        assert await ready.jobs.spend(job.id, "understand/0", micros(120)) == 120
        assert await ready.jobs.spend(job.id, "understand/0", micros(120)) == 120
        await ready.jobs.published(job.id, Revision(3))
        await ready.progress.save_artifact(job.id, 0, "facts", b"1")
        await ready.progress.save_artifact(job.id, 0, "facts", b"2")
        assert await ready.progress.artifact(job.id, 0, "facts") == b"1"
        ended = await ready.jobs.finish(job.id, done(120))
        assert (ended.state, ended.revision) == (JobState.SUCCEEDED, Revision(4))
        assert list(ended.result.episode_ids) == ["e0"]
        assert (ended.hold.settled, ended.hold.returned) == (120, 180)
        assert ended.started_at is not None
        assert await ready.jobs.unfinished() == []
        with pytest.raises(JobNotFound):
            await ready.jobs.payload(job.id)
        await ready.sweep()
        assert await ready.progress.artifact(job.id, 0, "facts") is None
        await assert_clean(ready)

    async def test_a_job_ends_once(self, ready: Stores) -> None:
        job = (await ready.jobs.accept(order(SCOPE, "r1", ceiling=300))).job
        await ready.jobs.spend(job.id, "s", micros(100))
        ends = await asyncio.gather(*(ready.jobs.finish(job.id, done(100 - number)) for number in range(5)))
        assert len({ended.hold.settled for ended in ends}) == 1
        late = await ready.jobs.finish(job.id, done(0, JobState.FAILED))
        assert late == ends[0]
        assert await ready.jobs.start(job.id) == late
        with pytest.raises(JobFinished):
            await ready.jobs.request_cancel(ACME, job.id)
        await assert_clean(ready)

    async def test_a_failed_job_is_given_back_whole_and_says_why(self, ready: Stores) -> None:
        job = (await ready.jobs.accept(order(SCOPE, "r1", ceiling=300))).job
        await ready.jobs.spend(job.id, "s", micros(100))
        outcome = Outcome(
            JobState.FAILED,
            micros(0),
            job_pb2.JobResult(),
            error=status_of(ChunksFailed(1, 1)),
        )
        ended = await ready.jobs.finish(job.id, outcome)
        assert (ended.hold.settled, ended.hold.goodwill, ended.hold.returned) == (0, 100, 300)
        message = await ready.job_view.read(ACME, job.id)
        assert message.error.message == "1 of 1 chunks failed"
        assert (message.credits.held_micros, message.credits.spent_micros) == (0, 0)
        assert message.credits.refunded_micros == 300
        entries = await ready.ledger.entries(ACME, EntryFilter(job=job.id), Page(10))
        assert {entry.kind for entry in entries.items} == {EntryKind.HOLD, EntryKind.VOID}
        assert (await ready.ledger.balance(ACME)).available == 1000
        await assert_clean(ready)

    async def test_small_talk_is_a_courtesy_with_a_cap(self, ready: Stores) -> None:
        settled = []
        for number in range(3):
            job = (await ready.jobs.accept(order(SCOPE, f"r{number}", ceiling=100))).job
            await ready.jobs.spend(job.id, "s", micros(60))
            courtesy = Courtesy(amount=micros(60), cap_per_day=micros(120), minimum=micros(5))
            outcome = Outcome(
                JobState.SUCCEEDED,
                micros(0),
                job_pb2.JobResult(),
                courtesy=courtesy,
                reason="SMALL_TALK",
            )
            settled.append((await ready.jobs.finish(job.id, outcome)).hold.settled)
        assert settled == [0, 0, 5]
        await assert_clean(ready)

    async def test_a_live_jobs_hold_outlives_its_time(self, ready: Stores, clock: SkewedClock) -> None:
        job = (await ready.jobs.accept(order(SCOPE, "r1", ceiling=300))).job
        await ready.jobs.spend(job.id, "s", micros(10))
        clock.skew_seconds = 2 * HOLD_SECONDS
        await ready.sweep()
        assert (await ready.ledger.balance(ACME)).held == 300
        await ready.jobs.renew(job.id)
        assert (await ready.jobs.finish(job.id, done(10))).hold.settled == 10
        await assert_clean(ready)

    async def test_request_keys_are_kept_thirty_days(self, ready: Stores, clock: SkewedClock) -> None:
        first = (await ready.jobs.accept(order(SCOPE, "r1"))).job
        live = (await ready.jobs.accept(order(SCOPE, "r2"))).job
        await ready.jobs.finish(first.id, done(0))
        clock.skew_seconds = 29 * 86_400
        await ready.sweep()
        assert not (await ready.jobs.accept(order(SCOPE, "r1"))).fresh
        clock.skew_seconds = 31 * 86_400
        await ready.sweep()
        again = await ready.jobs.accept(order(SCOPE, "r1", payload=b"other"))
        assert again.fresh
        assert (await ready.jobs.accept(order(SCOPE, "r2"))).job.id == live.id
        await assert_clean(ready)

    async def test_chunks_only_move_on(self, ready: Stores) -> None:
        job = (await ready.jobs.accept(order(SCOPE, "r1"))).job
        assert await ready.progress.record(job.id, [chunk(0, PREPROCESSED), chunk(1, PREPROCESSED)]) == 2
        assert await ready.progress.record(job.id, [chunk(0, PREPROCESSED)]) == 0
        assert await ready.progress.record(job.id, [chunk(0, RESOLVED)]) == 1
        assert await ready.progress.record(job.id, [chunk(0, UNDERSTOOD), chunk(0, FAILED)]) == 0
        snapshot = await ready.progress.snapshot(job.id)
        assert {index: one.stage for index, one in snapshot.chunks.items()} == {
            0: RESOLVED,
            1: PREPROCESSED,
        }
        assert [event.number for event in await ready.progress.events(job.id)] == [1, 2, 3]

    async def test_receipts_are_counted_once_a_step(self, ready: Stores) -> None:
        job = (await ready.jobs.accept(order(SCOPE, "r1"))).job
        stage = job_pb2.StageReceipt(stage="extract", model="m", calls=1, tokens_in=10)
        for step in ("understand/0", "understand/0", "understand/1"):
            await ready.progress.add_receipts(job.id, step, "openai", [stage])
        receipt = (await ready.job_view.read(ACME, job.id)).receipt
        assert receipt.engine == "openai"
        assert [(line.stage, line.calls, line.tokens_in) for line in receipt.stages] == [("extract", 2, 20)]

    async def test_a_watch_tells_every_change_and_goes_on_with_its_cursor(self, ready: Stores) -> None:
        job = (await ready.jobs.accept(order(SCOPE, "r1"))).job
        watching = asyncio.ensure_future(self._watch(ready, job, None))
        await asyncio.sleep(0)
        await self._work(ready, job)
        told = await watching
        # The first look comes before or after the start: both are told as they are.
        assert told[0][0][0] in {"JOB_STATE_QUEUED", "JOB_STATE_RUNNING"}
        final = ("JOB_STATE_SUCCEEDED", {0: RESOLVED, 1: FAILED})
        assert told[-1][0] == final
        whole = await self._watch(ready, job, WatchPoint(0, 1))
        states = [state for state, _ in whole]
        assert [list(chunks.values()) for _, chunks in states] == [
            [PREPROCESSED],
            [PREPROCESSED, PREPROCESSED],
            [UNDERSTOOD, PREPROCESSED],
            [UNDERSTOOD, FAILED],
            [RESOLVED, FAILED],
            [RESOLVED, FAILED],
        ]
        for place, (_, point) in enumerate(whole[:-1]):
            assert await self._watch(ready, job, point) == whole[place + 1 :]
        assert [state for state, _ in await self._watch(ready, job, None)] == [final]

    async def _work(self, stores: Stores, job: Job) -> None:
        await stores.jobs.start(job.id)
        await stores.progress.record(job.id, [chunk(0, PREPROCESSED), chunk(1, PREPROCESSED)])
        await stores.progress.record(job.id, [chunk(0, UNDERSTOOD)])
        await stores.progress.record(job.id, [chunk(1, FAILED)])
        await stores.progress.record(job.id, [chunk(0, RESOLVED)])
        await stores.jobs.finish(job.id, done(0))

    async def _watch(
        self, stores: Stores, job: Job, seen: WatchPoint | None
    ) -> Sequence[tuple[tuple[str, dict[int, int]], WatchPoint]]:
        return [
            (
                (
                    job_pb2.JobState.Name(message.state),
                    {one.index: one.stage for one in message.chunks},
                ),
                point,
            )
            async for message, point in stores.job_view.watch(ACME, job.id, seen)
        ]

    async def test_waiting_ends_at_the_stage_or_with_the_time(self, ready: Stores) -> None:
        job = (await ready.jobs.accept(order(SCOPE, "r1"))).job
        as_it_stands = await ready.job_view.wait(ACME, job.id, RESOLVED, at_most_seconds=0)
        assert as_it_stands.state == job_pb2.JOB_STATE_QUEUED
        waiting = asyncio.ensure_future(ready.job_view.wait(ACME, job.id, UNDERSTOOD, at_most_seconds=30))
        await ready.progress.record(job.id, [chunk(0, PREPROCESSED), chunk(1, PREPROCESSED)])
        await ready.progress.record(job.id, [chunk(0, UNDERSTOOD), chunk(1, FAILED)])
        assert [one.stage for one in (await waiting).chunks] == [UNDERSTOOD, FAILED]

    async def test_a_job_nobody_knows(self, ready: Stores) -> None:
        for deed in (ready.jobs.start, ready.jobs.payload, ready.jobs.find, ready.jobs.renew):
            with pytest.raises(JobNotFound):
                await deed(JobId("none"))


async def counted(stores: Stores) -> Sequence[int]:
    """Rows of request keys, jobs and the outbox."""
    async with stores.ledger_database.read(Across("test")) as connection:
        return [
            (await connection.execute(select(func.count()).select_from(table))).scalar_one()
            for table in (requests, jobs, outbox)
        ]


async def assert_clean(stores: Stores) -> None:
    assert await audit(stores.ledger_database, SkewedClock()) == []
