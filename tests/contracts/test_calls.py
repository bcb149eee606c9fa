"""The log of calls that changed something, on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.store.calls import Call, CallFilter
from gateway.store.clock import SkewedClock
from gateway.store.stores import Stores, open_stores
from services.domain.instants import Instant
from services.stores.sql.engine import postgres_engine
from tests.doubles.gateway import ACME, GLOBEX, sqlite_stores

END = Call(ACME, "a", "EndStatement", "k1", "notes", targets=("s-1", "s_2"), request="r1", revision=3)


@pytest.fixture
def clock() -> SkewedClock:
    return SkewedClock()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest) -> str:
    """Of a PostgreSQL with the tables of all stores; empty for SQLite."""
    return "" if request.param == "sqlite" else str(request.getfixturevalue("server_url"))


@pytest.fixture
async def stores(url: str, tmp_path: Path, clock: SkewedClock) -> AsyncIterator[Stores]:
    if url:
        stores = await open_stores(postgres_engine(url), postgres_engine(url), clock=clock)
    else:
        stores = await sqlite_stores(tmp_path, clock)
    yield stores
    await stores.close()


async def test_a_repeated_call_is_there_once(stores: Stores, clock: SkewedClock) -> None:
    await stores.calls.record(END)
    clock.skew_seconds = 60
    await stores.calls.record(replace(END, revision=9))
    (found,) = await stores.calls.find(ACME, CallFilter(), 10)
    assert replace(found, at=None) == END
    assert found.at is not None


async def test_calls_are_found_by_their_own_tenant_newest_first(stores: Stores, clock: SkewedClock) -> None:
    made = [
        END,
        replace(
            END, id="b", action="SuspendTenant", graph="other", targets=(), operator=True, reason="unpaid"
        ),
        replace(END, id="c", tenant=GLOBEX),
    ]
    for minute, call in enumerate(made):
        clock.skew_seconds = 60 * minute
        await stores.calls.record(call)

    async def found(limit: int = 10, **where: Any) -> list[str]:
        return [one.id for one in await stores.calls.find(ACME, CallFilter(**where), limit)]

    assert await found() == ["b", "a"]
    assert await found(1) == ["b"]
    newest, oldest = await stores.calls.find(ACME, CallFilter(), 10)
    assert (newest.operator, newest.reason, oldest.reason) == (True, "unpaid", "")
    assert newest.at is not None
    assert oldest.at is not None
    assert await found(after=(newest.at, newest.id)) == ["a"]
    assert await found(since=newest.at) == ["b"]
    assert await found(until=newest.at) == ["a"]
    assert await found(graph="other") == ["b"]
    assert await found(action="EndStatement") == ["a"]
    assert await found(target="s_2") == ["a"]
    for absent in ("s", "s-2", "sx2", "%", "nul\x00", '"'):
        assert await found(target=absent) == []
    assert [one.id for one in await stores.calls.find(GLOBEX, CallFilter(), 10)] == ["c"]
    assert await found(until=Instant(0)) == []
