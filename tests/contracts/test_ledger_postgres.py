"""The ledger on PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from gateway.store.schema import LEDGER_SCHEMA
from services.stores.sql.database import Database
from services.stores.sql.engine import postgres_engine
from services.stores.sql.migrations import upgrade
from tests.contracts.ledger import LedgerContract


@pytest.mark.postgres
class TestPostgresLedger(LedgerContract):
    @pytest.fixture
    async def database(self, postgres_url: str) -> AsyncIterator[Database]:
        engine = postgres_engine(postgres_url)
        await upgrade(engine, LEDGER_SCHEMA)
        database = Database(engine, "ledger")
        yield database
        await database.close()
