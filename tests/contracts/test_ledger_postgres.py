"""The ledger on PostgreSQL, under row-level security."""

from collections.abc import AsyncIterator

import pytest

from services.stores.sql.database import Database
from services.stores.sql.engine import postgres_engine
from tests.contracts.ledger import LedgerContract


@pytest.mark.postgres
class TestPostgresLedger(LedgerContract):
    @pytest.fixture
    async def database(self, server_url: str) -> AsyncIterator[Database]:
        database = Database(postgres_engine(server_url), "ledger")
        yield database
        await database.close()
