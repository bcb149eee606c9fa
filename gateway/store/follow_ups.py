"""Follow-ups that are wanted: a row for each graph that changed since its summaries were made.

A wish is written in the transaction that tells a change to be done, so none is lost. It says only that there
is something to do: what it is, whoever takes it reads off the graph's own log (services/recall/changed.py).
Wishes of a burst are one row, taken once the graph is quiet, or when the first has waited long enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, case, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.store.clock import DatabaseClock
from gateway.store.once import insert_once
from gateway.store.tables import follow_ups
from services.domain.ids import JobId
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across

LEASE_SECONDS = 60.0
"""How long one who took a follow-up may be silent. He renews it four times as often."""
_WHOSE = Across("follow-ups")
_C = follow_ups.c
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class FollowUp:
    """One that was taken. `wanted` counts the wishes until then; `job` is of the latest, "" for a call."""

    scope: Scope
    wanted: int
    job: JobId
    attempts: int


async def want(connection: AsyncConnection, clock: DatabaseClock, scope: Scope, job: str = "") -> None:
    """In the caller's transaction: the graph has changed."""
    row = {
        "tenant": scope.tenant,
        "graph": scope.graph,
        "wanted": 1,
        "first_at": clock.now(),
        "last_at": clock.now(),
        "not_before": 0,
        "owner": "",
        "leased_until": 0,
        "attempts": 0,
        "job": job,
    }
    again = {
        "wanted": _C.wanted + 1,
        "last_at": clock.now(),
        "job": case((func.length(job) > 0, job), else_=_C.job),
    }
    for _ in range(_ATTEMPTS):
        if await insert_once(connection, follow_ups, row) is not None:
            return
        if (await connection.execute(update(follow_ups).where(_is(scope)).values(again))).rowcount:
            return
    raise AssertionError("a row that is there is there, unless others do nothing else")


class FollowUps:
    """The follow-ups of all graphs. Raises StoreUnavailable."""

    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def want(self, scope: Scope) -> None:
        """As `want`, in a transaction of its own."""
        async with self._database.write(scope) as connection:
            await want(connection, self._clock, scope)

    async def take(
        self, owner: str, quiet_seconds: float, longest_seconds: float, limit: int
    ) -> Sequence[FollowUp]:
        """At most `limit` that are due and nobody has, those that wait longest first; `owner` has them now.

        Due: the graph is quiet for `quiet_seconds`, or the first wish is `longest_seconds` old.
        """
        due = and_(
            or_(
                _C.last_at <= self._clock.after(-quiet_seconds),
                _C.first_at <= self._clock.after(-longest_seconds),
            ),
            _C.not_before <= self._clock.now(),
            _C.leased_until <= self._clock.now(),
        )
        async with self._database.read(_WHOSE) as connection:
            query = select(_C.tenant, _C.graph).where(due).order_by(_C.first_at).limit(limit)
            found = (await connection.execute(query)).all()
        if not found:
            return []
        taken: list[FollowUp] = []
        async with self._database.write(_WHOSE) as connection:
            for place in found:
                scope = Scope(TenantId(place.tenant), GraphId(place.graph))
                mine = {"owner": owner, "leased_until": self._clock.after(LEASE_SECONDS)}
                taking = update(follow_ups).where(_is(scope), due).values(mine).returning(follow_ups)
                row = (await connection.execute(taking)).one_or_none()
                if row is not None:
                    taken.append(FollowUp(scope, row.wanted, JobId(row.job), row.attempts))
        return taken

    async def renew(self, taken: FollowUp, owner: str) -> bool:
        """Lets a lease live on; False when it is another's, or the graph was erased."""
        later = {"leased_until": self._clock.after(LEASE_SECONDS)}
        async with self._database.write(taken.scope) as connection:
            query = update(follow_ups).where(_is(taken.scope), _C.owner == owner).values(later)
            return bool((await connection.execute(query)).rowcount)

    async def done(self, taken: FollowUp, owner: str) -> bool:
        """All that was wished when it was taken is made. False where more was wished since, which waits."""
        mine = and_(_is(taken.scope), _C.owner == owner)
        async with self._database.write(taken.scope) as connection:
            gone = await connection.execute(delete(follow_ups).where(mine, _C.wanted == taken.wanted))
            if gone.rowcount:
                return True
            freed = {"owner": "", "leased_until": 0, "attempts": 0, "first_at": self._clock.now()}
            await connection.execute(update(follow_ups).where(mine).values(freed))
        return False

    async def give_back(self, taken: FollowUp, owner: str, wait_seconds: float = 0.0, tried: int = 0) -> None:
        """It is not made yet; to be taken again after a while. `tried` adds to its attempts."""
        freed = {
            "owner": "",
            "leased_until": 0,
            "attempts": _C.attempts + tried,
            "not_before": self._clock.after(wait_seconds),
        }
        async with self._database.write(taken.scope) as connection:
            mine = and_(_is(taken.scope), _C.owner == owner)
            await connection.execute(update(follow_ups).where(mine).values(freed))

    async def drop(self, scope: Scope) -> None:
        """Nothing is to be made of a graph that is not there."""
        async with self._database.write(scope) as connection:
            await connection.execute(delete(follow_ups).where(_is(scope)))

    async def waiting(self) -> int:
        """How many graphs wait for one."""
        async with self._database.read(_WHOSE) as connection:
            query = select(func.count()).select_from(follow_ups)
            return int((await connection.execute(query)).scalar_one())


def _is(scope: Scope) -> ColumnElement[bool]:
    return and_(_C.tenant == scope.tenant, _C.graph == scope.graph)
