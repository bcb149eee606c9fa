"""Idempotency of calls without a job, on SQLite and on PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.errors import Overloaded, RequestIdReused
from gateway.store.clock import SkewedClock
from gateway.store.requests import LEASE_SECONDS, RequestName, fingerprint
from gateway.store.stores import Stores, open_stores
from palimpsest.v1.memory_ingest_pb2 import AddEpisodeRequest
from services.stores.sql.engine import postgres_engine
from tests.doubles.gateway import ACME, GLOBEX, graph, order, sqlite_stores

NAME = RequestName(ACME, "DeleteEpisode", "r1", "hash")


@pytest.fixture
def clock() -> SkewedClock:
    return SkewedClock()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def stores(request: pytest.FixtureRequest, tmp_path: Path, clock: SkewedClock) -> AsyncIterator[Stores]:
    if request.param == "sqlite":
        stores = await sqlite_stores(tmp_path, clock)
    else:
        url = request.getfixturevalue("server_url")
        stores = await open_stores(postgres_engine(url), postgres_engine(url), clock=clock)
    yield stores
    await stores.close()


class Work:
    """Counts how often it is done; waits, or fails, when told to."""

    def __init__(self, answer: bytes = b"done") -> None:
        self.answer = answer
        self.times = 0
        self.failure: Exception | None = None
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def __call__(self) -> bytes:
        self.times += 1
        self.begun.set()
        await self.go_on.wait()
        if self.failure is not None:
            raise self.failure
        return self.answer


async def test_work_is_done_once_and_its_answer_kept(stores: Stores) -> None:
    work = Work()
    assert await stores.requests.once(NAME, work) == (b"done", False)
    assert await stores.requests.once(NAME, work) == (b"done", True)
    assert work.times == 1


async def test_an_empty_answer_is_an_answer(stores: Stores) -> None:
    work = Work(b"")
    assert await stores.requests.once(NAME, work) == (b"", False)
    assert await stores.requests.once(NAME, work) == (b"", True)


@pytest.mark.parametrize(
    "other",
    [
        RequestName(ACME, "DeleteEpisode", "r1", "another hash"),
        RequestName(ACME, "EndStatement", "r1", "hash"),
    ],
)
async def test_a_key_names_one_payload_of_one_call(stores: Stores, other: RequestName) -> None:
    await stores.requests.once(NAME, Work())
    with pytest.raises(RequestIdReused):
        await stores.requests.once(other, Work())
    theirs = RequestName(GLOBEX, NAME.method, NAME.key, "another hash")
    assert await stores.requests.once(theirs, Work(b"theirs")) == (b"theirs", False)


async def test_failed_work_leaves_its_key_free(stores: Stores) -> None:
    work = Work()
    work.failure = KeyError("lost")
    with pytest.raises(KeyError):
        await stores.requests.once(NAME, work)
    work.failure = None
    assert await stores.requests.once(NAME, work) == (b"done", False)


async def test_a_call_beside_the_first_is_told_to_come_again(stores: Stores) -> None:
    work = Work()
    work.go_on.clear()
    first = asyncio.ensure_future(stores.requests.once(NAME, work))
    await work.begun.wait()
    with pytest.raises(Overloaded) as refusal:
        await stores.requests.once(NAME, work)
    assert refusal.value.retry_after_seconds is not None
    work.go_on.set()
    assert await first == (b"done", False)
    assert work.times == 1


async def test_after_a_crash_the_next_call_takes_over(stores: Stores, clock: SkewedClock) -> None:
    crashed = Work(b"late")
    crashed.go_on.clear()
    first = asyncio.ensure_future(stores.requests.once(NAME, crashed))
    await crashed.begun.wait()
    clock.skew_seconds = LEASE_SECONDS + 1
    assert await stores.requests.once(NAME, Work()) == (b"done", False)
    # The first one wakes: it changes nothing any more.
    crashed.go_on.set()
    await first
    assert await stores.requests.once(NAME, Work()) == (b"done", True)


async def test_a_jobs_key_is_no_other_calls(stores: Stores) -> None:
    await stores.tenants.create(ACME, "")
    await stores.jobs.accept(order(graph(ACME), "r1", ceiling=0))
    with pytest.raises(RequestIdReused):
        await stores.requests.once(NAME, Work())


def test_a_fingerprint_leaves_out_what_changes_nothing() -> None:
    asked = AddEpisodeRequest(graph_id="g", text="a", metadata={"x": "1", "y": "2"})
    patient = AddEpisodeRequest(graph_id="g", text="a", metadata={"y": "2", "x": "1"}, validate_only=True)
    assert fingerprint(asked) != fingerprint(patient)
    assert fingerprint(asked) == fingerprint(patient, "validate_only")
    assert fingerprint(asked) != fingerprint(AddEpisodeRequest(graph_id="g", text="b"))
