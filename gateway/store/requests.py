"""Request keys: a call that is repeated with the same key and payload answers what the first one did.

Jobs name their request in the same table (gateway/store/jobs.py). Calls without a job use `Requests.once`.
"""

import hashlib
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from google.protobuf.message import Message
from sqlalchemy import ColumnElement, and_, delete, exists, select, update

from gateway.credits.audit import REQUEST_KEYS_KEPT
from gateway.errors import Overloaded, RequestIdReused
from gateway.store.clock import DatabaseClock
from gateway.store.follow_ups import want
from gateway.store.once import insert_once
from gateway.store.tables import jobs, requests
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across, OfTenant

LEASE_SECONDS = 60.0
"""How long the first call may take before a repeated one does its work again: longer than any deadline."""


@dataclass(frozen=True, slots=True)
class RequestName:
    """What a tenant's call is known by: its key, the RPC, and a hash of what it asks."""

    tenant: TenantId
    method: str
    key: str
    payload_hash: str
    graph: str = ""
    """Which graph it is about, so that the call is forgotten with it."""


def fingerprint(message: Message, *ignored: str) -> str:
    """A hash of a request. `ignored` are fields that don't change what is asked, such as how long to wait."""
    copy = type(message)()
    copy.CopyFrom(message)
    for field in ignored:
        copy.ClearField(field)
    return hashlib.sha256(copy.SerializeToString(deterministic=True)).hexdigest()


class Requests:
    """Idempotency of calls whose whole work is done before they answer."""

    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def once(self, name: RequestName, work: Callable[[], Awaitable[bytes]]) -> tuple[bytes, bool]:
        """Does `work` once for a name; answers its bytes, and whether they are of an earlier call.

        `work` must be idempotent itself: after a crash, and after LEASE_SECONDS, a repeated call does it
        again. When it raises, the key is free again. Raises RequestIdReused (another payload), Overloaded
        (the first call is still at it: repeat later).
        """
        owner = uuid.uuid4().hex
        known = await self._begin(name, owner)
        if known is not None:
            return known, True
        try:
            response = await work()
        except BaseException:
            await self._forget(name, owner)
            raise
        await self._finish(name, owner, response)
        return response, False

    async def sweep(self) -> int:
        """Removes keys that are older than they are kept; those of unfinished jobs stay."""
        live = exists().where(jobs.c.id == requests.c.job, jobs.c.finished_at.is_(None))
        old = requests.c.created_at < self._clock.now() - REQUEST_KEYS_KEPT
        async with self._database.write(Across("sweep")) as connection:
            return (await connection.execute(delete(requests).where(old, ~live))).rowcount

    async def _begin(self, name: RequestName, owner: str) -> bytes | None:
        row = {
            "tenant": name.tenant,
            "key": name.key,
            "method": name.method,
            "payload_hash": name.payload_hash,
            "owner": owner,
            "leased_until": self._clock.after(LEASE_SECONDS),
            "created_at": self._clock.now(),
            "graph": name.graph,
        }
        async with self._database.write(OfTenant(name.tenant)) as connection:
            if await insert_once(connection, requests, row) is not None:
                return None
            taken_over = await connection.execute(
                update(requests)
                .where(
                    self._is(name),
                    requests.c.method == name.method,
                    requests.c.payload_hash == name.payload_hash,
                    requests.c.job.is_(None),
                    requests.c.response.is_(None),
                    requests.c.leased_until < self._clock.now(),
                )
                .values(owner=owner, leased_until=self._clock.after(LEASE_SECONDS))
            )
            if taken_over.rowcount:
                return None
            first = (await connection.execute(select(requests).where(self._is(name)))).one_or_none()
        if first is None:
            raise Overloaded("the first call of this request_id")
        if (first.method, first.payload_hash) != (name.method, name.payload_hash):
            raise RequestIdReused(name.key)
        if first.response is None:
            raise Overloaded("the first call of this request_id")
        return bytes(first.response)

    async def _finish(self, name: RequestName, owner: str, response: bytes) -> None:
        # A call whose lease was taken over leaves the answer to its successor: the work is the same.
        async with self._database.write(OfTenant(name.tenant)) as connection:
            await connection.execute(
                update(requests)
                .where(self._is(name), requests.c.owner == owner)
                .values(response=response, leased_until=None)
            )
            if name.graph:
                await want(connection, self._clock, Scope(name.tenant, GraphId(name.graph)))

    async def _forget(self, name: RequestName, owner: str) -> None:
        mine = and_(self._is(name), requests.c.owner == owner, requests.c.response.is_(None))
        async with self._database.write(OfTenant(name.tenant)) as connection:
            await connection.execute(delete(requests).where(mine))

    @staticmethod
    def _is(name: RequestName) -> ColumnElement[bool]:
        return and_(requests.c.tenant == name.tenant, requests.c.key == name.key)
