"""The log of calls that changed something: who, what, when. No text of users; it outlives request keys."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, select, tuple_

from gateway.store.clock import DatabaseClock
from gateway.store.once import insert_once
from gateway.store.tables import calls
from services.domain.instants import Instant
from services.domain.scope import GraphId, TenantId
from services.stores.sql.database import Database
from services.stores.sql.isolation import OfTenant
from services.stores.storable import is_storable


@dataclass(frozen=True, slots=True)
class Call:
    """A call that succeeded. `id` is the same when the call is repeated. `at`: when it was recorded.

    `operator`: made with an operator's key, on the tenant; `reason`: why, of such a call alone, since a
    tenant's words are text of users, which the graph keeps and can forget. `revision`: the graph's, else 0.
    """

    tenant: TenantId
    id: str
    action: str
    key: str
    graph: str = ""
    operator: bool = False
    targets: tuple[str, ...] = ()
    request: str = ""
    revision: int = 0
    reason: str = ""
    at: Instant | None = None


@dataclass(frozen=True, slots=True)
class CallFilter:
    """Which calls are wanted. "" and None don't filter; times are half-open.

    `after`: only what a list by time, newest first, has after a call of this time and id.
    """

    graph: str = ""
    action: str = ""
    target: str = ""
    since: Instant | None = None
    until: Instant | None = None
    after: tuple[Instant, str] | None = None


class CallLog:
    """Calls of every tenant; each reads its own. Raises StoreUnavailable."""

    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def record(self, call: Call) -> None:
        """Adds a call; a repeated one is there already and stays as it is."""
        row = {
            "tenant": call.tenant,
            "id": call.id,
            "at": self._clock.now(),
            "action": call.action,
            "graph": call.graph,
            "key": call.key,
            "operator": int(call.operator),
            "targets": json.dumps(call.targets),
            "request": call.request,
            "revision": call.revision,
            "reason": call.reason,
        }
        async with self._database.write(OfTenant(call.tenant)) as connection:
            await insert_once(connection, calls, row)

    async def find(self, tenant: TenantId, where: CallFilter, limit: int) -> Sequence[Call]:
        """The newest by time, then by id, at most `limit`. What can't be stored finds nothing."""
        texts = [where.graph, where.action, where.target, where.after[1] if where.after else ""]
        if not all(map(is_storable, texts)):
            return []
        query = select(calls).where(calls.c.tenant == tenant, *_conditions(where))
        query = query.order_by(calls.c.at.desc(), calls.c.id.desc()).limit(limit)
        async with self._database.read(OfTenant(tenant)) as connection:
            return [_call(row) for row in await connection.execute(query)]


def _conditions(where: CallFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if where.graph:
        found.append(calls.c.graph == where.graph)
    if where.action:
        found.append(calls.c.action == where.action)
    if where.target:
        found.append(calls.c.targets.contains(json.dumps(where.target), autoescape=True))
    if where.since is not None:
        found.append(calls.c.at >= where.since)
    if where.until is not None:
        found.append(calls.c.at < where.until)
    if where.after is not None:
        found.append(tuple_(calls.c.at, calls.c.id) < where.after)
    return found


def _call(row: Row[Any]) -> Call:
    return Call(
        TenantId(row.tenant),
        row.id,
        row.action,
        row.key,
        GraphId(row.graph),
        bool(row.operator),
        tuple(json.loads(row.targets)),
        row.request,
        row.revision,
        row.reason,
        Instant(row.at),
    )
