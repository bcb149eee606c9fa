"""Each fault of the double does what it says: what the client is told, and what was executed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from nebula3.common.ttypes import ErrorCode
from nebula3.Exception import IOErrorException
from nebula3.gclient.net.Connection import Connection

from tests.doubles.graphd import Fault, FaultKind, Graphd
from tests.doubles.graphd.client import Client

VIDS = [f"v{number}" for number in range(20)]
INSERT = "INSERT EDGE IF NOT EXISTS knows() VALUES " + ", ".join(f'"hub"->"{vid}"@0:()' for vid in VIDS)
FORTH = 'GO FROM "hub" OVER knows YIELD dst(edge) AS d'
ENDS = ", ".join(f'"{vid}"' for vid in VIDS)
BACK = f"GO FROM {ENDS} OVER knows REVERSELY YIELD dst(edge) AS d"


@pytest.fixture
def client(graphd_double: Graphd) -> Iterator[Client]:
    with Client(graphd_double.address, timeout_ms=500) as client:
        prepare(client)
        yield client


def prepare(client: Client) -> None:
    for statement in (
        "CREATE SPACE IF NOT EXISTS s(partition_num = 7, replica_factor = 1, vid_type = FIXED_STRING(64))",
        "USE s",
        "CREATE EDGE IF NOT EXISTS knows()",
    ):
        assert client.ask(statement).code == ErrorCode.SUCCEEDED


def written(client: Client) -> tuple[int, int]:
    """How many edges are seen from the hub, and from their other ends."""
    return len(client.ask(FORTH).rows), len(client.ask(BACK).rows)


@pytest.mark.parametrize(
    ("kind", "message", "executed"),
    [
        (FaultKind.LEADER_CHANGED, "Storage Error: Not the leader of 1. Please retry later.", False),
        (FaultKind.CONFLICT, "Storage Error: More than one request trying to add/update/delete", False),
        (FaultKind.RPC_FAILURE, "Storage Error: RPC failure, probably timeout.", True),
    ],
)
def test_errors_that_pass(
    graphd_double: Graphd, client: Client, kind: FaultKind, message: str, executed: bool
) -> None:
    graphd_double.faults.arm(Fault(kind))
    answer = client.ask(INSERT)
    assert answer.code == ErrorCode.E_EXECUTION_ERROR
    assert answer.message.startswith(message)
    assert written(client) == ((20, 20) if executed else (0, 0))


def test_a_lost_session_stays_lost(graphd_double: Graphd, client: Client) -> None:
    graphd_double.faults.arm(Fault(FaultKind.SESSION_LOST))
    for _ in range(2):
        assert client.ask(INSERT).code == ErrorCode.E_SESSION_INVALID
    assert graphd_double.sessions.count() == 0
    with Client(graphd_double.address) as other:
        other.ask("USE s")
        assert written(other) == (0, 0)


@pytest.mark.parametrize(
    ("kind", "executed"),
    [(FaultKind.DROPPED_BEFORE, False), (FaultKind.DROPPED_AFTER, True), (FaultKind.SILENT, True)],
)
def test_no_answer_at_all(graphd_double: Graphd, client: Client, kind: FaultKind, executed: bool) -> None:
    graphd_double.faults.arm(Fault(kind))
    with pytest.raises(IOErrorException):
        client.ask(INSERT)
    with Client(graphd_double.address) as other:
        other.ask("USE s")
        assert written(other) == ((20, 20) if executed else (0, 0))


def test_a_part_of_a_write_leaves_edges_with_one_end(graphd_double: Graphd, client: Client) -> None:
    graphd_double.faults.arm(Fault(FaultKind.PARTIAL))
    assert "Not the leader" in client.ask(INSERT).message
    forth, back = written(client)
    assert forth in {0, 20}, "all of them begin in one partition"
    assert 0 < back < 20
    client.ask(INSERT)
    assert written(client) == (20, 20)


def test_a_part_of_a_read_is_none(graphd_double: Graphd, client: Client) -> None:
    client.ask(INSERT)
    graphd_double.faults.arm(Fault(FaultKind.PARTIAL))
    answer = client.ask(FORTH)
    assert (answer.code, answer.rows) == (ErrorCode.E_EXECUTION_ERROR, [])


def test_faults_strike_at_their_calls_alone(graphd_double: Graphd, client: Client) -> None:
    faults = graphd_double.faults
    faults.arm(Fault(FaultKind.CONFLICT, at=2, times=2, statement="go from"))
    statements = ["SHOW TAGS", FORTH, "SHOW TAGS", FORTH, "SHOW EDGES", BACK, FORTH]
    codes = [client.ask(statement).code for statement in statements]
    failed = ErrorCode.E_EXECUTION_ERROR
    assert codes == [0, 0, 0, failed, 0, failed, 0]
    assert (faults.calls, faults.struck) == (7, 2)
    faults.clear()
    assert (client.ask(FORTH).code, faults.calls, faults.struck) == (0, 1, 0)


def test_a_server_that_stops_lets_silent_calls_go(graphd_double: Graphd) -> None:
    connection = Connection()
    connection.open("127.0.0.1", graphd_double.port, 20_000)
    session = connection.authenticate("root", "nebula").get_session_id()
    graphd_double.faults.arm(Fault(FaultKind.SILENT))
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(connection.execute, session, b"SHOW SPACES")
        while not graphd_double.faults.struck:
            assert not asked.done()
        graphd_double.stop()
        with pytest.raises(IOErrorException):
            asked.result()
    connection.close()
    assert graphd_double.connections == 0
