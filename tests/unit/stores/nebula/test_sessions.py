"""Sessions: few, renewed when they are lost, and never more patient than they are told to be."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from services.stores.errors import StoreUnavailable
from services.stores.graph.nebula import layout, statements
from services.stores.graph.nebula.bootstrap import bootstrap
from services.stores.graph.nebula.failures import NebulaFailure, Trouble
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.settings import NebulaSettings, hosts_and_ports
from services.stores.graph.nebula.statements import Sentence
from services.stores.graph.nebula.vids import Kind, vid
from tests.builders import a_scope
from tests.doubles.graphd import Fault, FaultKind, Graphd

HERE = vid(a_scope(), Kind.ENTITY, "here")
ROW: statements.Row = {"body": "told", "forgotten_at": layout.NEVER}
WRITE = statements.insert_vertices(layout.ENTITY, [(HERE, ROW)])
READ = statements.fetch(layout.ENTITY, [HERE])
UPDATE = statements.forget(layout.ENTITY, vid(a_scope(), Kind.ENTITY, "nowhere"), "", 1)


def patient(graphd: Graphd, **chosen: object) -> NebulaSettings:
    """Settings that wait for nothing."""
    given = {
        "addresses": graphd.address,
        "partitions": 2,
        "sessions": 2,
        "call_timeout_ms": 300,
        "max_attempts": 3,
        "retry_first_wait_seconds": 0,
        "retry_longest_wait_seconds": 0,
    }
    return NebulaSettings.model_validate(given | chosen)


@pytest.fixture
async def sessions(graphd_double: Graphd) -> AsyncIterator[Sessions]:
    settings = patient(graphd_double)
    await bootstrap(settings)
    made = Sessions(settings)
    yield made
    graphd_double.faults.clear()
    await made.close()


@pytest.mark.parametrize(
    "kind", [kind for kind in FaultKind if kind is not FaultKind.SILENT], ids=lambda kind: kind.name
)
async def test_what_passes_is_tried_again(sessions: Sessions, graphd_double: Graphd, kind: FaultKind) -> None:
    await sessions.send(READ)
    graphd_double.faults.arm(Fault(kind, times=2))
    await sessions.send(WRITE)
    assert graphd_double.faults.struck == 2
    assert (await sessions.send(READ)).rows == (("told", -1),)


async def test_silence_ends_by_the_timeout_and_is_tried_again(
    sessions: Sessions, graphd_double: Graphd
) -> None:
    graphd_double.faults.arm(Fault(FaultKind.SILENT, statement="INSERT VERTEX"))
    await sessions.send(WRITE)
    assert (await sessions.send(READ)).rows == (("told", -1),)


@pytest.mark.parametrize("kind", [FaultKind.LEADER_CHANGED, FaultKind.DROPPED_BEFORE, FaultKind.SESSION_LOST])
async def test_what_does_not_pass_is_unavailable_and_comes_back(
    sessions: Sessions, graphd_double: Graphd, kind: FaultKind
) -> None:
    graphd_double.faults.arm(Fault(kind, times=1_000, statement="FETCH"))
    with pytest.raises(StoreUnavailable) as refused:
        await sessions.send(READ)
    assert refused.value.component == "graph"
    assert graphd_double.faults.struck == 3
    graphd_double.faults.clear()
    assert (await sessions.send(READ)).rows == ()


@pytest.fixture
async def single(graphd_double: Graphd) -> AsyncIterator[Sessions]:
    """One session, which is open, so that calls can be counted."""
    settings = patient(graphd_double, sessions=1)
    await bootstrap(settings)
    made = Sessions(settings)
    await made.send(READ)
    yield made
    await made.close()


async def test_a_mistake_is_told_at_once(single: Sessions, graphd_double: Graphd) -> None:
    graphd_double.faults.arm()
    with pytest.raises(NebulaFailure) as refused:
        await single.send(Sentence("SELECT 1"))
    assert refused.value.trouble is Trouble.MISTAKE
    assert graphd_double.faults.calls == 1


async def test_what_is_not_repeatable_is_sent_once(single: Sessions, graphd_double: Graphd) -> None:
    graphd_double.faults.arm(Fault(FaultKind.LEADER_CHANGED))
    with pytest.raises(StoreUnavailable):
        await single.send(statements.add_hosts([("storaged", 9779)]))
    assert graphd_double.faults.calls == 1


async def test_there_is_nothing_to_update_in_what_is_not_there(sessions: Sessions) -> None:
    await sessions.update_all([UPDATE, UPDATE])
    with pytest.raises(NebulaFailure) as refused:
        await sessions.send(UPDATE)
    assert refused.value.trouble is Trouble.MISSING


async def test_of_many_the_first_failure_is_told_when_all_have_ended(
    sessions: Sessions, graphd_double: Graphd
) -> None:
    graphd_double.faults.arm(Fault(FaultKind.CONFLICT, times=1_000, statement="INSERT VERTEX"))
    with pytest.raises(StoreUnavailable):
        await sessions.send_all([WRITE, READ, READ])
    calls = graphd_double.faults.calls
    await asyncio.sleep(0)
    assert graphd_double.faults.calls == calls
    with pytest.raises(StoreUnavailable):
        await sessions.update_all([WRITE])


async def test_there_are_no_more_sessions_than_settings_say(
    sessions: Sessions, graphd_double: Graphd
) -> None:
    answers = await sessions.send_all([READ] * 50)
    assert len(answers) == 50
    assert graphd_double.connections <= 2


async def test_closing_signs_out(graphd_double: Graphd) -> None:
    settings = patient(graphd_double)
    await bootstrap(settings)
    made = Sessions(settings)
    await made.send_all([READ] * 9)
    assert graphd_double.sessions.count()
    await made.close()
    await made.close()
    async with asyncio.timeout(30):
        # To sign out is a call without an answer: the server comes to it in its own time.
        while graphd_double.sessions.count():  # noqa: ASYNC110  # in a thread of its own
            await asyncio.sleep(0.001)


async def test_a_cancelled_call_leaves_its_session_of_use(sessions: Sessions, graphd_double: Graphd) -> None:
    graphd_double.faults.arm(Fault(FaultKind.SILENT, statement="FETCH", times=2))
    calls = [asyncio.create_task(sessions.send(READ)) for _ in range(2)]
    while graphd_double.faults.struck < 2:  # noqa: ASYNC110  # the server counts in threads of its own
        await asyncio.sleep(0.001)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert len(await sessions.send_all([READ] * 4)) == 4


async def test_one_address_of_two_is_enough(graphd_double: Graphd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        dead = nobody.getsockname()[1]
    settings = patient(graphd_double, addresses=f"127.0.0.1:{dead}, {graphd_double.address}", sessions=3)
    await bootstrap(settings)
    made = Sessions(settings)
    assert len(await made.send_all([READ] * 9)) == 9
    await made.close()
    gone = Sessions(patient(graphd_double, addresses=f"127.0.0.1:{dead}"))
    with pytest.raises(StoreUnavailable):
        await gone.send(READ)
    await gone.close()


async def test_a_wrong_password_is_no_mistake_of_a_sentence(graphd_double: Graphd) -> None:
    made = Sessions(patient(graphd_double, password="wrong"), in_space=False)
    with pytest.raises(StoreUnavailable):
        await made.send(statements.show("SPACES"))
    await made.close()


@pytest.mark.parametrize("addresses", ["", "a", "a:", ":1", "a:0", "a:65536", "a:1,", "a b:1", "a:1\nb:2"])
def test_addresses_are_hosts_and_ports(addresses: str) -> None:
    with pytest.raises(ValueError):
        NebulaSettings(addresses=addresses)


def test_addresses_are_taken_apart() -> None:
    assert hosts_and_ports("127.0.0.1:9669,[::1]:1, graph-d.svc:2") == [
        ("127.0.0.1", 9669),
        ("::1", 1),
        ("graph-d.svc", 2),
    ]
    assert hosts_and_ports("") == []


@pytest.mark.parametrize("kind", [FaultKind.DROPPED_AFTER, FaultKind.SILENT])
async def test_a_session_outlives_its_connection(
    sessions: Sessions, graphd_double: Graphd, kind: FaultKind
) -> None:
    alone = Sessions(patient(graphd_double, sessions=1))  # a second one would sign in when it is needed
    await alone.send(READ)
    before = graphd_double.sessions.count()
    graphd_double.faults.arm(Fault(kind, times=3))
    with pytest.raises(StoreUnavailable):
        await alone.send(READ)
    graphd_double.faults.clear()
    await alone.send_all([READ] * 9)
    assert graphd_double.sessions.count() == before
    await alone.close()
