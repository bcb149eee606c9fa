"""The ledger on SQLite."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.stores.sql.database import Database
from services.stores.sql.engine import Synchronous, sqlite_engine
from tests.contracts.ledger import LedgerContract
from tests.doubles.sqlite_files import laid


class TestSqliteLedger(LedgerContract):
    @pytest.fixture
    async def database(self, tmp_path: Path) -> AsyncIterator[Database]:
        engine = sqlite_engine(laid(tmp_path / "ledger.db"), synchronous=Synchronous.FULL)
        database = Database(engine, "ledger")
        yield database
        await database.close()
