"""Jobs: accepted, and ended, each in one transaction with the credits that they cost.

accept → (pending → payload → taken) → claim → start → spend… → finish (→ retry, as accept). The ledger's
database holds what these transactions change; stages of chunks are in gateway/store/progress.py. What a run
writes that has lost its job is refused (gateway/store/lease.py): every write raises JobTakenOver then.
"""

import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Text, and_, case, cast, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.credits.ledger import Ledger
from gateway.credits.money import MicroCredits
from gateway.credits.values import HoldId
from gateway.errors import HoldExpired, JobFinished, JobNotFailed, JobNotFound, RequestIdReused, TooManyJobs
from gateway.store.bell import Bell
from gateway.store.clock import DatabaseClock
from gateway.store.erasing import refuse_erased
from gateway.store.follow_ups import want
from gateway.store.graphs import Graphs
from gateway.store.job_values import Accepted, Job, JobFilter, JobState, Marking, Order, Outcome
from gateway.store.lease import JobTakenOver, Lease, lease_on
from gateway.store.once import insert_once
from gateway.store.quotas import Quotas
from gateway.store.reading_jobs import ATTEMPT, JOB, JOB_OF_TENANT, PENDING, job_of, job_row, select_jobs
from gateway.store.tables import jobs, outbox, requests
from services.domain.ids import JobId, Revision
from services.domain.scope import TenantId
from services.stores.paging import Listed, Page
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across, OfJob, OfTenant
from services.stores.sql.keyset import page_of

HOLD_SECONDS = 3600.0
"""How long a hold lives without renewal. An unfinished job keeps its hold; this bounds what else may leak."""

_DISPATCH = Across("dispatch")
_EPOCH = func.coalesce(jobs.c.epoch, 0)
_RETRYABLE = and_(
    jobs.c.state.in_([JobState.PARTIAL, JobState.FAILED, JobState.SUCCEEDED]),
    jobs.c.finished_at.is_not(None),
    jobs.c.unfinished_work.is_not(None),
)


class Jobs:
    """Jobs of every tenant."""

    def __init__(
        self,
        database: Database,
        clock: DatabaseClock,
        ledger: Ledger,
        graphs: Graphs,
        quotas: Quotas,
        bell: Bell,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._graphs = graphs
        self._quotas = quotas
        self._bell = bell

    async def accept(
        self, order: Order, max_jobs: int = 0, *, taken: bool = False, marking: Marking | None = None
    ) -> Accepted:
        """Request key, graph, job, hold and payload in one transaction: all of them, or none.

        The same key with the same payload answers the first job, finished or not. `taken`: the caller does
        the job at once; if it dies, the next start finds the job. Raises RequestIdReused (another payload or
        method), InsufficientCredits, TooManyJobs (0: no limit), TooManyGraphs, DailyBytesExceeded.
        """
        job = JobId(str(uuid.uuid4()))
        tenant = order.scope.tenant
        async with self._database.write(order.scope) as connection:
            if not await self._name(connection, order, job):
                return Accepted(await self._first(connection, order), fresh=False)
            await (marking(connection, job) if marking else self._graphs.ensure(connection, order.scope))
            await self._quotas.text_taken(connection, tenant, order.text_bytes)
            if max_jobs and not order.ceiling:
                await self._quotas.lock(connection, tenant)
            await connection.execute(insert(jobs).values(job_row(order, job, self._clock)))
            await self._set_aside(connection, order, job, HoldId(job), max_jobs, taken)
            return Accepted(await self._read(connection, tenant, job), fresh=True)

    async def retry(self, order: Order, job: JobId, max_jobs: int = 0) -> Accepted:
        """Opens an ended job for what is left of it: key, hold (`JOB.n`) and payload in one transaction.

        The same key with the same payload answers the job, as it stands. Raises JobNotFound, JobNotFailed
        (unless it has ended, not by a cancel, with chunks that failed or are held back), and as `accept`.
        """
        tenant = order.scope.tenant
        async with self._database.write(order.scope) as connection:
            if not await self._name(connection, order, job):
                return Accepted(await self._first(connection, order), fresh=False)
            await refuse_erased(connection, self._clock, order.scope, writing=True)
            opened = await connection.execute(
                update(jobs)
                .where(jobs.c.id == job, jobs.c.tenant == tenant, _RETRYABLE)
                .values(
                    state=JobState.QUEUED,
                    version=jobs.c.version + 1,
                    epoch=_EPOCH + 1,
                    attempt=ATTEMPT + 1,
                    hold=jobs.c.id.concat(".").concat(cast(ATTEMPT + 1, Text())),
                    updated_at=self._clock.now(),
                    started_at=None,
                    finished_at=None,
                    cancel_requested=0,
                    error=None,
                    unfinished_work=None,
                )
                .returning(jobs.c.hold)
            )
            hold = opened.scalar_one_or_none()
            if hold is None:
                await self._read(connection, tenant, job)
                raise JobNotFailed
            await self._set_aside(connection, order, job, HoldId(hold), max_jobs, taken=False)
            reopened = await self._read(connection, tenant, job)
        self._bell.ring(job)
        return Accepted(reopened, fresh=True)

    async def asked_before(self, order: Order) -> Job | None:
        """The job that an earlier call with this order's key started. Raises RequestIdReused."""
        tenant = order.scope.tenant
        async with self._database.read(OfTenant(tenant)) as connection:
            query = select(requests.c.key).where(
                requests.c.tenant == tenant, requests.c.key == order.request_key
            )
            if (await connection.execute(query)).first() is None:
                return None
            return await self._first(connection, order)

    async def get(self, tenant: TenantId, job: JobId) -> Job:
        """Raises JobNotFound; the same for a job of another tenant."""
        async with self._database.read(OfTenant(tenant)) as connection:
            return await self._read(connection, tenant, job)

    async def list(self, tenant: TenantId, where: JobFilter, page: Page) -> Listed[Job]:
        """The tenant's jobs, newest first. Raises ValueError for a position that no list of jobs gave."""
        query = select_jobs().where(jobs.c.tenant == tenant)
        if where.graph:
            query = query.where(jobs.c.graph == where.graph)
        if where.states:
            query = query.where(jobs.c.state.in_(where.states))
        if where.kind is not None:
            query = query.where(jobs.c.kind == where.kind)
        async with self._database.read(OfTenant(tenant)) as connection:
            order = [jobs.c.created_at, jobs.c.id]
            listed = await page_of(connection, query, order, page, descending=True)
        return Listed([job_of(row) for row in listed.items], listed.after)

    async def find(self, job: JobId) -> Job:
        """A job of any tenant, for the pipeline, which knows jobs by id alone. Raises JobNotFound."""
        async with self._database.read(OfJob(job)) as connection:
            row = (await connection.execute(JOB, {"of_job": job})).one_or_none()
        if row is None:
            raise JobNotFound(job)
        return job_of(row._mapping)

    async def unfinished(self) -> Sequence[Job]:
        """Every job that must still end, oldest first: what a start-up hands to the pipeline again."""
        query = select_jobs().where(jobs.c.finished_at.is_(None)).order_by(jobs.c.created_at, jobs.c.id)
        async with self._database.read(_DISPATCH) as connection:
            return [job_of(row) for row in (await connection.execute(query)).mappings()]

    async def pending(self, limit: int = 100) -> Sequence[Job]:
        """Accepted jobs that the pipeline has not taken yet, oldest first."""
        async with self._database.read(_DISPATCH) as connection:
            rows = await connection.execute(PENDING, {"most": limit})
            return [job_of(row) for row in rows.mappings()]

    async def payload(self, job: JobId) -> bytes:
        """What the call asked. Raises JobNotFound once the job has ended: text is not kept here."""
        query = select(outbox.c.payload).where(outbox.c.job == job)
        async with self._database.read(OfJob(job)) as connection:
            payload = (await connection.execute(query)).scalar_one_or_none()
        if payload is None:
            raise JobNotFound(job)
        return bytes(payload)

    async def taken(self, job: JobId) -> None:
        """The pipeline has the job, durably. Idempotent."""
        async with self._database.write(OfJob(job)) as connection:
            await connection.execute(
                update(outbox)
                .where(outbox.c.job == job, outbox.c.taken_at.is_(None))
                .values(taken_at=self._clock.now())
            )

    async def claim(self, job: JobId, attempt: int = 0) -> Lease:
        """A run of the job's workflow begins: from now on the runs before it change nothing.

        Raises JobTakenOver for an attempt that is over, JobNotFound.
        """
        async with self._database.write(OfJob(job)) as connection:
            claimed = await connection.execute(
                update(jobs)
                .where(jobs.c.id == job, ATTEMPT.in_([attempt]))
                .values(epoch=_EPOCH + 1)
                .returning(jobs.c.epoch)
            )
            epoch = claimed.scalar_one_or_none()
            if epoch is None:
                known = await connection.execute(select(jobs.c.id).where(jobs.c.id == job))
                raise JobNotFound(job) if known.first() is None else JobTakenOver
        return Lease(job, epoch)

    async def confirm(self, lease: Lease) -> None:
        """Raises JobTakenOver when a later run has the job."""
        async with self._database.read(OfJob(lease.job)) as connection:
            query = select(_EPOCH).where(jobs.c.id == lease.job)
            lease.check((await connection.execute(query)).scalar_one_or_none() or 0)

    async def start(self, job: JobId) -> Job:
        """QUEUED becomes RUNNING. Idempotent; a job that has ended stays as it is. Raises JobNotFound."""
        await self._change(
            job,
            jobs.c.state == JobState.QUEUED,
            {"state": JobState.RUNNING, "started_at": self._clock.now()},
        )
        return await self.find(job)

    async def published(self, job: JobId, revision: Revision) -> None:
        """The job has published a revision. Idempotent; the newest stays."""
        await self._change(job, jobs.c.revision < revision, {"revision": revision})

    async def renew(self, job: JobId) -> None:
        """Lets the hold of an unfinished job live on. Raises HoldExpired, JobNotFound."""
        found = await self.find(job)
        async with self._ledger.books(found.scope.tenant) as books:
            await books.renew(found.scope.tenant, found.hold.id, HOLD_SECONDS)

    async def spend(self, job: JobId, step: str, amount: MicroCredits, tokens: int = 0) -> MicroCredits:
        """Records what a step cost; idempotent by (job, step). Raises HoldExpired, JobNotFound."""
        found = await self.find(job)
        async with self._database.write(OfTenant(found.scope.tenant)) as connection:
            await self._check_lease(connection, job)
            books = self._ledger.within(connection)
            return await books.spend(found.scope.tenant, found.hold.id, step, amount, tokens)

    async def request_cancel(self, tenant: TenantId, job: JobId) -> Job:
        """Asks an unfinished job to stop at its next step. Idempotent. Raises JobNotFound, JobFinished."""
        found = await self.get(tenant, job)
        if found.finished:
            raise JobFinished
        await self._change(job, jobs.c.cancel_requested == 0, {"cancel_requested": 1})
        return await self.get(tenant, job)

    async def cancel_all(self, tenant: TenantId) -> None:
        """Asks every unfinished job of a tenant to stop at its next step. Idempotent."""
        async with self._database.write(OfTenant(tenant)) as connection:
            stopped = await connection.execute(
                update(jobs)
                .where(jobs.c.tenant == tenant, jobs.c.finished_at.is_(None), jobs.c.cancel_requested == 0)
                .values(cancel_requested=1, version=jobs.c.version + 1, updated_at=self._clock.now())
                .returning(jobs.c.id)
            )
            ids = [JobId(row.id) for row in stopped]
        for job in ids:
            self._bell.ring(job)

    async def finish(self, job: JobId, outcome: Outcome) -> Job:
        """Ends a job and settles its hold in one transaction, and removes the text it was asked with.

        Idempotent: a job that has ended stays as it ended, and is answered. Raises JobNotFound.
        """
        found = await self.find(job)
        tenant = found.scope.tenant
        async with self._database.write(OfTenant(tenant)) as connection:
            await self._check_lease(connection, job)
            ended = await connection.execute(
                update(jobs)
                .where(jobs.c.id == job, jobs.c.finished_at.is_(None))
                .values(
                    state=outcome.state,
                    version=jobs.c.version + 1,
                    updated_at=self._clock.now(),
                    finished_at=self._clock.now(),
                    result=outcome.result.SerializeToString(),
                    error=None if outcome.error is None else outcome.error.SerializeToString(),
                    revision=_newest(outcome.revision),
                    unfinished_work=outcome.left or None,
                )
            )
            if ended.rowcount:
                await self._settle(connection, found, outcome)
                if found.scope.graph and max(found.revision, outcome.revision):
                    await want(connection, self._clock, found.scope, job)
                await connection.execute(delete(outbox).where(outbox.c.job == job))
            final = await self._read(connection, tenant, job)
        self._bell.ring(job)
        return final

    async def _settle(self, connection: AsyncConnection, job: Job, outcome: Outcome) -> None:
        reason = outcome.reason or (outcome.state if outcome.state is not JobState.SUCCEEDED else "")
        books = self._ledger.within(connection)
        try:
            await books.settle(
                job.scope.tenant, job.hold.id, outcome.charge, courtesy=outcome.courtesy, reason=reason
            )
        except HoldExpired:
            # Its credits went back when the hold ended: the work is done, and the platform bears it.
            return

    async def _name(self, connection: AsyncConnection, order: Order, job: JobId) -> bool:
        row = {
            "tenant": order.scope.tenant,
            "key": order.request_key,
            "method": order.method,
            "payload_hash": order.payload_hash,
            "job": job,
            "owner": job,
            "created_at": self._clock.now(),
            "graph": order.scope.graph,
        }
        return await insert_once(connection, requests, row) is not None

    async def _first(self, connection: AsyncConnection, order: Order) -> Job:
        tenant = order.scope.tenant
        query = select(requests).where(requests.c.tenant == tenant, requests.c.key == order.request_key)
        first = (await connection.execute(query)).one()
        if (first.method, first.payload_hash) != (order.method, order.payload_hash) or first.job is None:
            raise RequestIdReused(order.request_key)
        return await self._read(connection, tenant, first.job)

    async def _set_aside(
        self,
        connection: AsyncConnection,
        order: Order,
        job: JobId,
        hold: HoldId,
        max_jobs: int,
        taken: bool,
    ) -> None:
        """Credits held and the payload kept, for a job that is there, unfinished."""
        # A hold of credits locks the tenant's account: from here on its accepts follow one another.
        await self._ledger.within(connection).hold(
            order.scope.tenant,
            hold,
            order.ceiling,
            HOLD_SECONDS,
            price_version=order.price_version,
            job=job,
            request_key=order.request_key,
        )
        if max_jobs and await self._unfinished_count(connection, order.scope.tenant) > max_jobs:
            raise TooManyJobs(max_jobs)
        await connection.execute(
            insert(outbox).values(
                job=job,
                payload=order.payload,
                created_at=self._clock.now(),
                taken_at=self._clock.now() if taken else None,
            )
        )

    async def _check_lease(self, connection: AsyncConnection, job: JobId) -> None:
        """Raises JobTakenOver when what is about to be written is of a run that lost its job."""
        lease = lease_on(job)
        if lease is not None:
            query = select(_EPOCH).where(jobs.c.id == job).with_for_update(key_share=True)
            lease.check((await connection.execute(query)).scalar_one_or_none() or 0)

    async def _unfinished_count(self, connection: AsyncConnection, tenant: TenantId) -> int:
        query = select(func.count()).where(jobs.c.tenant == tenant, jobs.c.finished_at.is_(None))
        return int((await connection.execute(query)).scalar_one())

    async def _change(self, job: JobId, condition: Any, values: dict[str, Any]) -> None:
        async with self._database.write(OfJob(job)) as connection:
            await self._check_lease(connection, job)
            changed = await connection.execute(
                update(jobs)
                .where(and_(jobs.c.id == job, jobs.c.finished_at.is_(None), condition))
                .values(version=jobs.c.version + 1, updated_at=self._clock.now(), **values)
            )
        if changed.rowcount:
            self._bell.ring(job)

    async def _read(self, connection: AsyncConnection, tenant: TenantId, job: JobId) -> Job:
        row = (await connection.execute(JOB_OF_TENANT, {"of_job": job, "of_tenant": tenant})).one_or_none()
        if row is None:
            raise JobNotFound(job)
        return job_of(row._mapping)


def _newest(revision: Revision) -> ColumnElement[int]:
    return case((jobs.c.revision > revision, jobs.c.revision), else_=revision)
