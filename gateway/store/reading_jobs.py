"""Rows of jobs: how one is written when it is accepted, and read with the credits of all its attempts."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from google.rpc.status_pb2 import Status
from sqlalchemy import ColumnElement, Integer, ScalarSelect, Select, bindparam, func, select

from gateway.credits.books import hold_of
from gateway.credits.money import MicroCredits
from gateway.store.clock import DatabaseClock
from gateway.store.job_values import Earlier, Job, JobKind, JobState, Order
from gateway.store.tables import holds, jobs, outbox
from palimpsest.v1.job_pb2 import JobResult
from services.domain.ids import JobId, Revision
from services.domain.instants import Instant
from services.domain.scope import GraphId, Scope, TenantId

_HOLD_COLUMNS = [column.label(f"hold_{column.name}") for column in holds.columns]
_earlier = holds.alias("earlier")

ATTEMPT: ColumnElement[int] = func.coalesce(jobs.c.attempt, 0)
"""How often a job was retried."""


@cache
def select_jobs() -> Select[Any]:
    """Jobs with the hold of their present attempt, and what the attempts before it came to; made once."""
    return select(
        jobs,
        *_HOLD_COLUMNS,
        _of_earlier(_earlier.c.settled).label("earlier_settled"),
        _of_earlier(_earlier.c.ceiling - _earlier.c.settled + _earlier.c.refunded).label("earlier_returned"),
    ).join(holds, holds.c.id == jobs.c.hold)


def job_row(order: Order, job: JobId, clock: DatabaseClock) -> dict[str, Any]:
    """A job as it is accepted."""
    return {
        "id": job,
        "tenant": order.scope.tenant,
        "graph": order.scope.graph,
        "kind": order.kind,
        "state": JobState.QUEUED,
        "version": 1,
        "request_key": order.request_key,
        "hold": job,
        "created_at": clock.now(),
        "updated_at": clock.now(),
        "cancel_requested": 0,
        "revision": 0,
    }


def job_of(row: Mapping[Any, Any]) -> Job:
    """A job from a row of `select_jobs`, by name."""
    return Job(
        id=JobId(row["id"]),
        scope=Scope(TenantId(row["tenant"]), GraphId(row["graph"])),
        kind=JobKind(row["kind"]),
        state=JobState(row["state"]),
        version=row["version"],
        request_key=row["request_key"],
        created_at=Instant(row["created_at"]),
        started_at=_instant(row["started_at"]),
        updated_at=Instant(row["updated_at"]),
        finished_at=_instant(row["finished_at"]),
        cancel_requested=bool(row["cancel_requested"]),
        result=JobResult.FromString(row["result"] or b""),
        error=None if row["error"] is None else Status.FromString(row["error"]),
        revision=Revision(row["revision"]),
        hold=hold_of({name[5:]: value for name, value in row.items() if name.startswith("hold_")}),
        attempt=row["attempt"] or 0,
        left=bytes(row["unfinished_work"] or b""),
        earlier=Earlier(
            MicroCredits(int(row["earlier_settled"])), MicroCredits(int(row["earlier_returned"]))
        ),
    )


def _of_earlier(amount: Any) -> ScalarSelect[Any]:
    """Summed over the holds of a job's earlier attempts; only a job that was retried has some."""
    return (
        select(func.coalesce(func.sum(amount), 0))
        .where(ATTEMPT > 0, _earlier.c.job == jobs.c.id, _earlier.c.id != jobs.c.hold)
        .correlate(jobs)
        .scalar_subquery()
    )


# Made once: to make so large a statement, and to see that it was compiled before, costs more than to send it.
JOB = select_jobs().where(jobs.c.id == bindparam("of_job"))
JOB_OF_TENANT = JOB.where(jobs.c.tenant == bindparam("of_tenant"))
PENDING = (
    select_jobs()
    .join(outbox, outbox.c.job == jobs.c.id)
    .where(outbox.c.taken_at.is_(None), jobs.c.finished_at.is_(None))
    .order_by(outbox.c.created_at, outbox.c.job)
    .limit(bindparam("most", type_=Integer))
)
"""Accepted jobs that no pipeline has taken, oldest first."""


def _instant(value: int | None) -> Instant | None:
    return None if value is None else Instant(value)
