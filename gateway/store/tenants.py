"""Tenants: who may call, and how much at a time."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from sqlalchemy import select, update

from gateway.credits.journal import open_accounts
from gateway.errors import TenantExists, TenantNotFound
from gateway.store.clock import DatabaseClock
from gateway.store.once import insert_once
from gateway.store.tables import tenants
from services.domain.instants import Instant
from services.domain.scope import TenantId
from services.stores.sql.database import Database
from services.stores.sql.isolation import OfTenant


class TenantState(StrEnum):
    """Whether a tenant may call."""

    ACTIVE = "ACTIVE"
    SUSPENDED = "SUSPENDED"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a tenant may do at a time; 0 is the service's default. As palimpsest.v1.TenantLimits."""

    requests_per_second: int = 0
    request_burst: int = 0
    max_in_flight: int = 0
    max_jobs: int = 0
    max_bytes_per_day: int = 0
    max_graphs: int = 0
    goodwill_micros_per_day: int = 0

    def over(self, defaults: "Limits") -> "Limits":
        """These limits, with those of the service where they are 0."""
        # Asked by every call, also by those that are refused: `asdict` would be a tenth of what these cost.
        if self == _NONE:
            return defaults
        return Limits(*(getattr(self, name) or getattr(defaults, name) for name in _NAMES))


_NONE = Limits()
_NAMES = tuple(field.name for field in fields(Limits))


@dataclass(frozen=True, slots=True)
class Tenant:
    """A client of the service."""

    id: TenantId
    display_name: str
    state: TenantState
    limits: Limits
    created_at: Instant


class Tenants:
    """All tenants. Making one opens its accounts, in the same transaction."""

    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def create(self, tenant: TenantId, display_name: str) -> tuple[Tenant, bool]:
        """Makes a tenant with empty accounts; False if it was there. Raises TenantExists (other name)."""
        row = {
            "id": tenant,
            "display_name": display_name or tenant,
            "state": TenantState.ACTIVE,
            "limits": "{}",
            "created_at": self._clock.now(),
        }
        async with self._database.write(OfTenant(tenant)) as connection:
            created = await insert_once(connection, tenants, row) is not None
            await open_accounts(connection, tenant)
        found = await self.get(tenant)
        if found.display_name != (display_name or tenant):
            raise TenantExists(tenant)
        return found, created

    async def get(self, tenant: TenantId) -> Tenant:
        """Raises TenantNotFound."""
        async with self._database.read(OfTenant(tenant)) as connection:
            row = (await connection.execute(select(tenants).where(tenants.c.id == tenant))).one_or_none()
        if row is None:
            raise TenantNotFound(tenant)
        return tenant_of(row._asdict())

    async def set_state(self, tenant: TenantId, state: TenantState) -> Tenant:
        """Suspends a tenant, or lifts that. Idempotent. Raises TenantNotFound."""
        async with self._database.write(OfTenant(tenant)) as connection:
            await connection.execute(update(tenants).where(tenants.c.id == tenant).values(state=state))
        return await self.get(tenant)

    async def set_limits(self, tenant: TenantId, limits: Limits) -> Tenant:
        """Sets all limits of a tenant. Idempotent. Raises TenantNotFound."""
        kept = json.dumps({name: limit for name, limit in asdict(limits).items() if limit})
        async with self._database.write(OfTenant(tenant)) as connection:
            await connection.execute(update(tenants).where(tenants.c.id == tenant).values(limits=kept))
        return await self.get(tenant)


def tenant_of(row: Mapping[str, Any]) -> Tenant:
    """A tenant from its columns by name."""
    return Tenant(
        TenantId(row["id"]),
        row["display_name"],
        TenantState(row["state"]),
        Limits(**json.loads(row["limits"])),
        Instant(row["created_at"]),
    )
