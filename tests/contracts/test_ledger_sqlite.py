"""The ledger on SQLite."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.store.schema import LEDGER_SCHEMA
from services.stores.sql.database import Database
from services.stores.sql.engine import Synchronous, sqlite_engine
from services.stores.sql.migrations import upgrade
from tests.contracts.ledger import LedgerContract


class TestSqliteLedger(LedgerContract):
    @pytest.fixture
    async def database(self, tmp_path: Path) -> AsyncIterator[Database]:
        engine = sqlite_engine(tmp_path / "ledger.db", synchronous=Synchronous.FULL)
        await upgrade(engine, LEDGER_SCHEMA)
        database = Database(engine, "ledger")
        yield database
        await database.close()
