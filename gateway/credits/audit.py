"""The audit: every invariant of the ledger as a query that finds what breaks it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, and_, case, cast, exists, func, literal, or_, select

from gateway.credits.values import TENANT_ACCOUNTS, Account, EntryKind, HoldState
from gateway.store.clock import DAY, SECOND, DatabaseClock
from gateway.store.tables import accounts, holds, jobs, journal_entries, journal_groups, requests, spends
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across

REQUEST_KEYS_KEPT = 30 * DAY
"""How long a request key names its first call, in microseconds."""
SWEEP_GRACE = 300 * SECOND
"""How long after its time a hold may still be open: several rounds of the sweep."""

FINDINGS_A_CHECK = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that breaks an invariant: which, and the ids it is about."""

    invariant: str
    subject: str


Check = Callable[[DatabaseClock], Select[Any]]
"""A query whose rows, one text each, are what breaks an invariant. It puts the rows of a table beside those
of another by an index or by grouping, never each beside all: ledgers grow."""


def _named(*parts: Any) -> ColumnElement[str]:
    """The parts as one text, with blanks between."""
    texts: list[ColumnElement[str]] = [cast(part, Text()) for part in parts]
    return reduce(lambda left, right: left.concat(" ").concat(right), texts)


def groups_sum_to_zero(_clock: DatabaseClock) -> Select[Any]:
    return (
        select(_named(literal("group"), journal_entries.c.group))
        .group_by(journal_entries.c.group)
        .having(func.sum(journal_entries.c.amount) != 0)
    )


def tenant_accounts_never_negative(_clock: DatabaseClock) -> Select[Any]:
    return select(_named(accounts.c.tenant, accounts.c.account)).where(
        accounts.c.account.in_(TENANT_ACCOUNTS), accounts.c.balance < 0
    )


def projection_equals_journal(_clock: DatabaseClock) -> Select[Any]:
    written = (
        select(
            journal_entries.c.tenant,
            journal_entries.c.account,
            func.sum(journal_entries.c.amount).label("total"),
        )
        .group_by(journal_entries.c.tenant, journal_entries.c.account)
        .subquery()
    )
    same = and_(accounts.c.tenant == written.c.tenant, accounts.c.account == written.c.account)
    return (
        select(_named(accounts.c.tenant, accounts.c.account))
        .outerjoin(written, same)
        .where(accounts.c.balance != func.coalesce(written.c.total, 0))
    )


def all_accounts_sum_to_zero(_clock: DatabaseClock) -> Select[Any]:
    total = func.coalesce(func.sum(accounts.c.balance), 0)
    return select(_named(literal("total"), total)).having(total != 0)


def held_equals_open_holds(_clock: DatabaseClock) -> Select[Any]:
    open_holds = (
        select(func.coalesce(func.sum(holds.c.ceiling), 0))
        .where(holds.c.tenant == accounts.c.tenant, holds.c.state == HoldState.OPEN)
        .scalar_subquery()
    )
    return select(_named(accounts.c.tenant)).where(
        accounts.c.account == Account.HELD, accounts.c.balance != open_holds
    )


def a_hold_ends_once(_clock: DatabaseClock) -> Select[Any]:
    ends = (
        select(func.count())
        .where(
            journal_groups.c.tenant == holds.c.tenant,
            journal_groups.c.key == literal("end:").concat(holds.c.id),
        )
        .scalar_subquery()
    )
    expected = case((holds.c.state == HoldState.OPEN, 0), else_=1)
    return select(_named(holds.c.tenant, holds.c.id)).where(
        or_(ends != expected, (holds.c.state == HoldState.OPEN) != holds.c.ended_at.is_(None))
    )


def settled_within_hold(_clock: DatabaseClock) -> Select[Any]:
    return select(_named(holds.c.tenant, holds.c.id)).where(
        or_(holds.c.settled > holds.c.ceiling, holds.c.settled < 0)
    )


def spends_equal_settled_and_goodwill(_clock: DatabaseClock) -> Select[Any]:
    spent = (
        select(func.coalesce(func.sum(spends.c.amount), 0))
        .where(spends.c.hold == holds.c.id)
        .scalar_subquery()
    )
    accounted = and_(holds.c.state != HoldState.OPEN, holds.c.spent != holds.c.settled + holds.c.goodwill)
    return select(_named(holds.c.tenant, holds.c.id)).where(or_(holds.c.spent != spent, accounted))


def one_job_for_a_request(_clock: DatabaseClock) -> Select[Any]:
    before = func.lag(jobs.c.created_at).over(
        partition_by=(jobs.c.tenant, jobs.c.request_key), order_by=(jobs.c.created_at, jobs.c.id)
    )
    each = select(jobs.c.tenant, jobs.c.id, jobs.c.created_at, before.label("before")).subquery()
    soon = each.c.created_at < each.c.before + REQUEST_KEYS_KEPT
    return select(_named(each.c.tenant, each.c.id)).where(soon)


def one_request_for_an_attempt(_clock: DatabaseClock) -> Select[Any]:
    """Each attempt of a job was asked for by one request; old ones are not kept."""
    attempts = select(func.coalesce(jobs.c.attempt, 0)).where(jobs.c.id == requests.c.job).scalar_subquery()
    return (
        select(_named(requests.c.tenant, requests.c.job))
        .where(requests.c.job.is_not(None))
        .group_by(requests.c.tenant, requests.c.job)
        .having(func.count() > func.coalesce(attempts, 0) + 1)
    )


def one_hold_for_an_attempt(_clock: DatabaseClock) -> Select[Any]:
    made = select(func.count()).where(holds.c.job == jobs.c.id).scalar_subquery()
    return select(_named(jobs.c.tenant, jobs.c.id)).where(made != func.coalesce(jobs.c.attempt, 0) + 1)


def one_open_hold_for_a_live_job(_clock: DatabaseClock) -> Select[Any]:
    open_holds = (
        select(func.count())
        .where(holds.c.job == jobs.c.id, holds.c.state == HoldState.OPEN)
        .scalar_subquery()
    )
    expected = case((jobs.c.finished_at.is_(None), 1), else_=0)
    return select(_named(jobs.c.tenant, jobs.c.id)).where(open_holds != expected)


def no_hold_outlives_its_time(clock: DatabaseClock) -> Select[Any]:
    live = exists().where(jobs.c.hold == holds.c.id, jobs.c.finished_at.is_(None))
    return select(_named(holds.c.tenant, holds.c.id)).where(
        holds.c.state == HoldState.OPEN, holds.c.expires_at + SWEEP_GRACE < clock.now(), ~live
    )


def refunds_within_settled(_clock: DatabaseClock) -> Select[Any]:
    given = (
        select(
            journal_groups.c.tenant, journal_groups.c.job, func.sum(journal_entries.c.amount).label("given")
        )
        .join(journal_entries, journal_entries.c.group == journal_groups.c.id)
        .where(
            journal_entries.c.account == Account.AVAILABLE,
            journal_entries.c.kind == EntryKind.REFUND,
        )
        .group_by(journal_groups.c.tenant, journal_groups.c.job)
        .subquery()
    )
    charged = (
        select(
            holds.c.tenant,
            holds.c.job,
            func.sum(holds.c.settled).label("settled"),
            func.sum(holds.c.refunded).label("refunded"),
        )
        .group_by(holds.c.tenant, holds.c.job)
        .subquery()
    )
    same = and_(given.c.tenant == charged.c.tenant, given.c.job == charged.c.job)
    return (
        select(_named(charged.c.tenant, charged.c.job))
        .outerjoin(given, same)
        .where(
            or_(
                charged.c.refunded > charged.c.settled,
                charged.c.refunded != func.coalesce(given.c.given, 0),
            )
        )
    )


CHECKS: Sequence[Check] = (
    groups_sum_to_zero,
    tenant_accounts_never_negative,
    projection_equals_journal,
    all_accounts_sum_to_zero,
    held_equals_open_holds,
    a_hold_ends_once,
    settled_within_hold,
    spends_equal_settled_and_goodwill,
    one_job_for_a_request,
    one_request_for_an_attempt,
    one_hold_for_an_attempt,
    one_open_hold_for_a_live_job,
    no_hold_outlives_its_time,
    refunds_within_settled,
)
"""Every invariant, by the name of its function. At most one spend for a (job, step) is a primary key."""


async def audit(database: Database, clock: DatabaseClock) -> Sequence[Finding]:
    """What breaks an invariant, at most FINDINGS_A_CHECK for each, from one snapshot. Changes nothing."""
    findings: list[Finding] = []
    async with database.read(Across("audit")) as connection:
        for check in CHECKS:
            rows = await connection.execute(check(clock).limit(FINDINGS_A_CHECK))
            findings += [Finding(check.__name__, str(row[0]).strip()) for row in rows]
    return findings
