"""Price tables by version: the newest is for new holds, older ones stay for the holds that pinned them."""

import json

from sqlalchemy import ScalarSelect, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.credits.money import DEFAULT_PRICES, MicroCredits, PriceItem, PriceTable
from gateway.errors import Conflict
from gateway.store.clock import DatabaseClock
from gateway.store.once import insert_once
from gateway.store.tables import price_tables
from services.stores.sql.database import Database
from services.stores.sql.isolation import Nobody


class Prices:
    """Price tables, published once each and never changed. What ships is there from the start."""

    def __init__(
        self, database: Database, clock: DatabaseClock, default: PriceTable = DEFAULT_PRICES
    ) -> None:
        self._database = database
        self._clock = clock
        self._default = default
        self._known: dict[str, PriceTable] = {}

    async def current(self) -> PriceTable:
        """The table that new holds use: the one published last, else what ships."""
        newest = select(price_tables).order_by(
            price_tables.c.created_at.desc(), price_tables.c.version.desc()
        )
        async with self._database.read(Nobody()) as connection:
            row = (await connection.execute(newest.limit(1))).one_or_none()
        return self._default if row is None else _table(row.version, row.prices)

    async def newest(self, version: str | None) -> PriceTable:
        """The same for who has read `newest_version` with something else; None: nothing was published."""
        return self._default if version is None else await self.of(version)

    async def of(self, version: str) -> PriceTable:
        """The table that a hold pinned, which never changes. Raises LookupError for an unknown version."""
        if version not in self._known:
            async with self._database.read(Nobody()) as connection:
                found = await self._find(connection, version)
            if found is None:
                raise LookupError(f"no price table {version}")
            self._known[version] = found
        return self._known[version]

    async def publish(self, table: PriceTable) -> PriceTable:
        """Makes a table the current one. Idempotent; raises Conflict when the version has other prices."""
        prices = {item.value: amount for item, amount in sorted(table.prices.items())}
        row = {"version": table.version, "prices": json.dumps(prices), "created_at": self._clock.now()}
        async with self._database.write(Nobody()) as connection:
            known = await self._find(connection, table.version)
            if known is None:
                await insert_once(connection, price_tables, row)
                known = await self._find(connection, table.version)
        if known != table:
            raise Conflict("the version has other prices")
        return table

    async def _find(self, connection: AsyncConnection, version: str) -> PriceTable | None:
        row = (
            await connection.execute(select(price_tables).where(price_tables.c.version == version))
        ).one_or_none()
        if row is not None:
            return _table(row.version, row.prices)
        return self._default if version == self._default.version else None


def newest_version() -> ScalarSelect[str]:
    """The version of the table that was published last, as a column of another query."""
    newest = price_tables.c.created_at.desc(), price_tables.c.version.desc()
    return select(price_tables.c.version).order_by(*newest).limit(1).scalar_subquery()


def _table(version: str, prices: str) -> PriceTable:
    return PriceTable(
        version, {PriceItem(item): MicroCredits(amount) for item, amount in json.loads(prices).items()}
    )
