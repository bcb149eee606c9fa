"""What a shell completes: commands, choices, and names of graphs where a server tells them."""

import grpc
import pytest

from palimpsest.v1 import graph_pb2
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted, refusal


def completed(run: Run, typed: str) -> list[str]:
    environment = {
        "_PALIMPSEST_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split(" ")) - 1),
    }
    done = run(**environment)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("palimpsest jo", ["job"]),
        ("palimpsest add --ki", ["--kind"]),
        ("palimpsest add --kind c", ["conversation", "compacted-session"]),
    ],
)
def test_commands_options_and_choices_are_completed(run: Run, typed: str, offered: list[str]) -> None:
    assert completed(run, typed) == offered


def test_graphs_are_those_of_the_server(server: Scripted, run: Run) -> None:
    graphs = [graph_pb2.Graph(graph_id=name) for name in ("mara", "max", "lena")]
    server.answers("ListGraphs", graph_pb2.ListGraphsResponse(graphs=graphs))
    assert completed(run, "palimpsest recall ma") == ["mara", "max"]


def test_a_server_that_refuses_completes_nothing(server: Scripted, run: Run) -> None:
    server.answers("ListGraphs", refusal(grpc.StatusCode.UNAUTHENTICATED, "API_KEY_INVALID"))
    assert completed(run, "palimpsest recall ma") == []
