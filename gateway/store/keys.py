"""API keys in the ledger's database: made, found, revoked. Secrets are kept as hashes alone."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import func, insert, or_, select, update

from gateway.errors import ApiKeyNotFound, TenantNotFound
from gateway.keys import ApiKey, KeyId, KeyScope, mint
from gateway.store.clock import DatabaseClock
from gateway.store.tables import api_keys, tenants
from gateway.store.tenants import tenant_of
from services.domain.instants import Instant
from services.domain.scope import TenantId
from services.stores.paging import Listed, Page
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across, OfTenant
from services.stores.sql.keyset import page_of

_FINDING = Across("authenticate: whose a key is shows only when it is found")
_KEYS = Across("keys: an operator's own, and those that an operator revokes")

_TENANT_COLUMNS = [column.label(f"tenant_{column.name}") for column in tenants.columns]


class ApiKeys:
    """All keys; the KeyStore of the authenticator. `environment` is the `<env>` of new ones."""

    def __init__(self, database: Database, clock: DatabaseClock, environment: str) -> None:
        self._database = database
        self._clock = clock
        self._environment = environment

    async def create(
        self,
        tenant: TenantId | None,
        display_name: str,
        scopes: Iterable[KeyScope],
        expires_at: Instant | None = None,
    ) -> tuple[ApiKey, str]:
        """Makes a key; answers it, and its text, which is told nowhere else. Not idempotent.

        Without a tenant it is an operator's. Raises TenantNotFound.
        """
        chosen = sorted(set(scopes))
        assert chosen
        assert (tenant is None) == (chosen == [KeyScope.OPERATOR]), "operators have no tenant"
        minted = mint(self._environment)
        async with self._database.write(_KEYS if tenant is None else OfTenant(tenant)) as connection:
            if tenant is not None:
                known = await connection.execute(select(tenants.c.id).where(tenants.c.id == tenant))
                if known.one_or_none() is None:
                    raise TenantNotFound(tenant)
            await connection.execute(
                insert(api_keys).values(
                    id=minted.id,
                    tenant=tenant or "",
                    display_name=display_name,
                    scopes=" ".join(chosen),
                    secret_sha256=minted.secret_sha256,
                    created_at=self._clock.now(),
                    expires_at=expires_at,
                )
            )
        made = await self.find(minted.id)
        assert made is not None
        return made, minted.text

    async def find(self, key: KeyId) -> ApiKey | None:
        query = (
            select(api_keys, *_TENANT_COLUMNS)
            .outerjoin(tenants, tenants.c.id == api_keys.c.tenant)
            .where(api_keys.c.id == key)
        )
        async with self._database.read(_FINDING) as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else _key_of(row._mapping)

    async def list(self, tenant: TenantId | None, page: Page) -> Listed[ApiKey]:
        """A tenant's keys, or operators', newest first, revoked ones included. Raises TenantNotFound.

        Raises ValueError for a position that no list of keys gave.
        """
        query = (
            select(api_keys, *_TENANT_COLUMNS)
            .outerjoin(tenants, tenants.c.id == api_keys.c.tenant)
            .where(api_keys.c.tenant == (tenant or ""))
        )
        async with self._database.read(_KEYS if tenant is None else OfTenant(tenant)) as connection:
            if tenant is not None:
                known = await connection.execute(select(tenants.c.id).where(tenants.c.id == tenant))
                if known.one_or_none() is None:
                    raise TenantNotFound(tenant)
            order = [api_keys.c.created_at, api_keys.c.id]
            listed = await page_of(connection, query, order, page, descending=True)
        return Listed([_key_of(row) for row in listed.items], listed.after)

    async def revoke(self, key: KeyId) -> ApiKey:
        """Everywhere within 30 seconds. Idempotent: the first time stays. Raises ApiKeyNotFound."""
        async with self._database.write(_KEYS) as connection:
            await connection.execute(
                update(api_keys)
                .where(api_keys.c.id == key, api_keys.c.revoked_at.is_(None))
                .values(revoked_at=self._clock.now())
            )
        found = await self.find(key)
        if found is None:
            raise ApiKeyNotFound(key)
        return found

    async def init_operator(self) -> str | None:
        """The first operator's key, to be shown once; None when an operator's key that works is there."""
        lives = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > self._clock.now())
        working = select(func.count()).where(api_keys.c.tenant == "", api_keys.c.revoked_at.is_(None), lives)
        async with self._database.read(_KEYS) as connection:
            if (await connection.execute(working)).scalar_one():
                return None
        _, text = await self.create(None, "operator", [KeyScope.OPERATOR])
        return text


def _key_of(row: Mapping[Any, Any]) -> ApiKey:
    owner = {name.removeprefix("tenant_"): value for name, value in row.items() if name.startswith("tenant_")}
    return ApiKey(
        id=KeyId(row["id"]),
        tenant=tenant_of(owner) if row["tenant"] else None,
        display_name=row["display_name"],
        scopes=frozenset(KeyScope(scope) for scope in row["scopes"].split()),
        secret_sha256=row["secret_sha256"],
        created_at=Instant(row["created_at"]),
        expires_at=None if row["expires_at"] is None else Instant(row["expires_at"]),
        revoked_at=None if row["revoked_at"] is None else Instant(row["revoked_at"]),
    )
