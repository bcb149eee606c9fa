"""Jobs on SQLite: the ledger's file and the jobs' file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.store.clock import SkewedClock
from gateway.store.stores import Stores
from tests.contracts.job_runs import JobRunsContract
from tests.contracts.jobs import JobsContract
from tests.contracts.money import MoneyContract
from tests.doubles.gateway import sqlite_stores


@pytest.fixture
async def stores(tmp_path: Path, clock: SkewedClock) -> AsyncIterator[Stores]:
    stores = await sqlite_stores(tmp_path, clock)
    yield stores
    await stores.close()


@pytest.fixture
def clock() -> SkewedClock:
    return SkewedClock()


class TestSqliteJobs(JobsContract, JobRunsContract):
    pass


class TestSqliteMoney(MoneyContract):
    pass
