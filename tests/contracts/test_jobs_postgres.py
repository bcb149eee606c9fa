"""Jobs on PostgreSQL under row-level security: one database for both."""

from collections.abc import AsyncIterator

import pytest

from gateway.store.clock import SkewedClock
from gateway.store.stores import Stores, open_stores
from services.stores.sql.engine import postgres_engine
from tests.contracts.job_runs import JobRunsContract
from tests.contracts.jobs import JobsContract
from tests.contracts.money import MoneyContract


@pytest.fixture
async def stores(server_url: str, clock: SkewedClock) -> AsyncIterator[Stores]:
    stores = await open_stores(postgres_engine(server_url), postgres_engine(server_url), clock=clock)
    yield stores
    await stores.close()


@pytest.fixture
def clock() -> SkewedClock:
    return SkewedClock()


@pytest.mark.postgres
class TestPostgresJobs(JobsContract, JobRunsContract):
    pass


@pytest.mark.postgres
class TestPostgresMoney(MoneyContract):
    pass
