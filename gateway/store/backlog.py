"""The backlog: how much waits and how long, over all tenants, for those who watch the service. No names."""

from collections.abc import Mapping

from sqlalchemy import ColumnElement, func, select

from gateway.credits.values import Account
from gateway.store.clock import SECOND, DatabaseClock
from gateway.store.job_values import JobState
from gateway.store.tables import accounts, executors, holds, jobs
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across

SILENT_SECONDS = 30.0
"""Several heartbeats: a process that was silent for so long is gone, or as good as gone."""

_WHOSE = Across("metrics: counts of every tenant's, no rows")


class Backlog:
    """Counts what lies in the ledger's database, by the names of services/metering.py."""

    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def numbers(self) -> Mapping[str, float]:
        """All of them, of one snapshot. Ages are in seconds, 0 where there is nothing."""
        now = self._clock.now()
        unfinished = jobs.c.finished_at.is_(None)
        queries: Mapping[str, tuple[ColumnElement[int], ColumnElement[bool]]] = {
            "jobs.unfinished": (func.count(), unfinished),
            "jobs.waiting": (func.count(), unfinished & (jobs.c.state == JobState.QUEUED)),
            "jobs.oldest.seconds": (now - func.min(jobs.c.created_at), unfinished),
            "holds.open": (func.count(), holds.c.ended_at.is_(None)),
            "holds.oldest.seconds": (now - func.min(holds.c.created_at), holds.c.ended_at.is_(None)),
            "executors.silent": (
                func.count(),
                executors.c.stopped_at.is_(None) & (executors.c.seen_at < now - int(SILENT_SECONDS * SECOND)),
            ),
            "goodwill.micros": (func.sum(accounts.c.balance), accounts.c.account == Account.GOODWILL),
        }
        tables = {"jobs": jobs, "holds": holds, "executors": executors, "goodwill": accounts}
        found = {}
        async with self._database.read(_WHOSE) as connection:
            for name, (what, where) in queries.items():
                query = select(what).select_from(tables[name.partition(".")[0]]).where(where)
                value = float((await connection.execute(query)).scalar_one() or 0)
                found[f"palimpsest.{name}"] = value / SECOND if name.endswith("seconds") else value
        return found
