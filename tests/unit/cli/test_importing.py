"""`import`: what is sent in which calls, and what it does when the server says no, for now or for good."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest

from palimpsest.cli.exits import Exit
from palimpsest.connection import Connection
from palimpsest.importing import sending, tables
from palimpsest.importing.reading import File
from palimpsest.importing.sending import Result, Sending
from palimpsest.importing.values import Fate, Key, Reading
from palimpsest.v1 import job_pb2, memory_ingest_pb2
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted, refusal

Response = memory_ingest_pb2.AssertTriplesResponse
AWAY = refusal(grpc.StatusCode.UNAVAILABLE, "OVERLOADED")
POOR = refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "INSUFFICIENT_CREDITS")
WRONG = refusal(grpc.StatusCode.INVALID_ARGUMENT, "VALIDATION_FAILED")
REUSED = refusal(grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")
STRANGER = refusal(grpc.StatusCode.UNAUTHENTICATED, "INVALID_API_KEY")
CHANGED = datetime(2025, 7, 1, tzinfo=UTC)


def done(replayed: bool = False) -> Response:
    job = job_pb2.Job(job_id="j", state=job_pb2.JOB_STATE_SUCCEEDED)
    job.credits.spent_micros = 7
    return Response(job=job, replayed=replayed)


def table(number: int, said: str = "2025-01-01") -> str:
    rows = [f"Person {one},works_at,Initech,{said}" for one in range(number)]
    return "\n".join(["subject,predicate,object,said_at", *rows])


def reading(number: int, said: str = "2025-01-01") -> Reading:
    return tables.read([File("f.csv", table(number, said), CHANGED)])


async def sent(server: Scripted, read: Reading, graph: str = "g") -> tuple[dict[Key, Result], Sending]:
    async with Connection(server.target) as connection:
        sends = Sending(connection, graph, 1, tries=3, wait_seconds=0)
        return {key: result async for key, result in sends.send(read.items)}, sends


def asked(server: Scripted) -> list[tuple[str, int]]:
    """Each call's request id, and how many facts it holds."""
    calls: Sequence[Any] = server.asked
    return [(one.request_id, len(one.claims)) for one in calls]


async def test_halves_find_out_which_fact_is_refused(server: Scripted) -> None:
    server.answers("AssertTriples", WRONG, WRONG, WRONG, done())
    read = reading(4)
    results, sends = await sent(server, read)
    sizes = [size for _, size in asked(server)]
    if sizes[0] == 4:  # all of one call, unless content cuts it
        assert sizes == [4, 2, 1, 1, 2]
    refused = [result for result in results.values() if result.fate is Fate.REFUSED]
    assert results.keys() == read.items.keys()
    assert [one.why for one in refused] == ["VALIDATION_FAILED: no"] * len(refused)
    assert 1 <= len(refused) < 4
    assert sends.stopped is None


async def test_an_answer_that_was_lost_is_no_earlier_import(server: Scripted) -> None:
    server.answers("AssertTriples", AWAY, done(replayed=True))
    results, _ = await sent(server, reading(1))
    assert [(one.fate, one.spent_micros) for one in results.values()] == [(Fate.IMPORTED, 7)]
    first, second = asked(server)
    assert first == second


@pytest.mark.parametrize(("no", "calls"), [(AWAY, 3), (POOR, 1)], ids=["away", "poor"])
async def test_it_stops_where_nothing_more_can_be_sent(server: Scripted, no: Any, calls: int) -> None:
    server.answers("AssertTriples", no)
    results, sends = await sent(server, reading(300))
    assert (len(server.asked), results) == (calls, {})
    assert sends.stopped is not None


@pytest.mark.parametrize(("said", "fate"), [("", Fate.KNOWN), ("2025-01-01", Fate.REFUSED)])
async def test_the_date_of_a_file_makes_no_other_fact(server: Scripted, said: str, fate: Fate) -> None:
    server.answers("AssertTriples", REUSED)
    results, _ = await sent(server, reading(1, said))
    assert [one.fate for one in results.values()] == [fate]


async def test_calls_are_named_by_what_they_hold_and_their_graph(server: Scripted) -> None:
    server.answers("AssertTriples", done())
    await sent(server, reading(300))
    first = asked(server)
    server.asked.clear()
    await sent(server, reading(300))
    assert asked(server) == first
    assert all(size <= sending.MOST_FACTS for _, size in first)
    assert sum(size for _, size in first) == 300
    server.asked.clear()
    await sent(server, reading(301))
    assert len(set(asked(server)) - set(first)) <= 2, "one call holds what is new"
    server.asked.clear()
    await sent(server, reading(300), "another")
    assert not set(asked(server)) & set(first)


def test_a_dry_run_asks_nobody(server: Scripted, run: Run, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(table(3) + "\n,,Globex,", encoding="utf-8")
    tried = run("import", "csv", "f.csv", "--graph", "g", "--dry-run", "--json")
    assert (tried.exit_code, server.asked) == (Exit.FAILED, [])
    told = json.loads(tried.stdout)
    assert (told["fates"], told["becomes"]) == ({"ready": 3, "refused": 1}, {"claim": 3})
    assert told["lines"][3] == {
        "place": "f.csv line 5",
        "kind": "row",
        "fate": "refused",
        "why": "`subject` is missing",
    }


def test_how_it_ends_is_told(server: Scripted, run: Run, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(table(2), encoding="utf-8")
    command = ("import", "csv", "f.csv", "--graph", "g")
    server.answers("AssertTriples", done())
    fine = run(*command)
    assert (fine.exit_code, "imported" in fine.stdout) == (Exit.OK, True)
    server.answers("AssertTriples", POOR)
    poor = run(*command, "--report", "r.jsonl")
    assert poor.exit_code == Exit.CREDITS
    assert "2 records not sent; the same command goes on from there" in poor.stderr
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["fate"] for line in lines] == ["unsent", "unsent"]
    server.answers("AssertTriples", STRANGER)
    assert run(*command).exit_code == Exit.FORBIDDEN


@pytest.mark.parametrize(
    ("format", "name", "held", "told"),
    [
        ("csv", "f.csv", "who,what,whom\n", "the first line names no columns"),
        ("csv", "f.csv", "subject,predicate,object,value\n", "several columns are read as object"),
        ("csv", "f.csv", "", "empty"),
        ("graphiti", "f.json", "{", "not JSON"),
        ("graphiti", "f.json", json.dumps([{"name": "A", "group_id": one} for one in "ab"]), "2 groups"),
        ("mem0", "f.json", '"text"', "neither a list nor an object"),
        ("mem0", "no.json", None, "No such file"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused_before_anything_is_sent(
    server: Scripted, run: Run, tmp_path: Path, format: str, name: str, held: str | None, told: str
) -> None:
    if held is not None:
        (tmp_path / name).write_text(held, encoding="utf-8")
    refused = run("import", format, name, "--graph", "g")
    assert (refused.exit_code, server.asked) == (Exit.USAGE, [])
    assert told in refused.stderr
