"""`add-many` and `job retry`: what they ask of the server."""

from pathlib import Path

import pytest
from google.rpc import status_pb2

from palimpsest.cli.exits import Exit
from palimpsest.v1 import episode_pb2, job_pb2, jobs_pb2, memory_ingest_pb2
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted


def test_many_texts_are_lines_of_json(server: Scripted, run: Run, tmp_path: Path) -> None:
    batch = memory_ingest_pb2.BatchAddEpisodesResponse
    refused = status_pb2.Status(code=9, message="too dear")
    results = [
        memory_ingest_pb2.BatchAddEpisodesResult(request_id="x-1", response={"job": {"job_id": "j1"}}),  # type: ignore[arg-type]
        memory_ingest_pb2.BatchAddEpisodesResult(request_id="x-3", error=refused),
    ]
    server.answers("BatchAddEpisodes", batch(results=results))
    lines = (
        '{"text": "Ana likes tea.", "sessionId": "s"}\n\n{"text": "# Ä", "kind": "EPISODE_KIND_DOCUMENT"}\n'
    )
    (tmp_path / "texts.jsonl").write_text(lines, encoding="utf-8")
    result = run("add-many", "g", "texts.jsonl", "--request-id", "x")
    assert result.exit_code == Exit.FAILED
    assert "j1" in result.stdout
    assert "too dear" in result.stdout
    assert "1 of 2 texts were refused" in result.stderr
    one, two = server.last.requests
    assert (one.graph_id, one.request_id, one.text, one.session_id) == ("g", "x-1", "Ana likes tea.", "s")
    assert one.kind == episode_pb2.EPISODE_KIND_CONVERSATION
    assert (two.request_id, two.kind) == ("x-3", episode_pb2.EPISODE_KIND_DOCUMENT)


@pytest.mark.parametrize(("lines", "says"), [("", "no texts"), ("{", "line 1:"), ('{"txt": 1}', "line 1:")])
def test_lines_that_are_no_texts_are_refused_without_a_call(
    server: Scripted, run: Run, lines: str, says: str
) -> None:
    result = run("add-many", "g", "-", stdin=lines.encode())
    assert result.exit_code == Exit.USAGE
    assert says in result.stderr
    assert not server.asked


def test_more_texts_than_a_call_may_have_are_several_calls(server: Scripted, run: Run) -> None:
    server.answers("BatchAddEpisodes", memory_ingest_pb2.BatchAddEpisodesResponse())
    assert run("add-many", "g", "-", stdin=b'{"text": "x"}\n' * 201).exit_code == 0
    assert [len(asked.requests) for asked in server.asked] == [100, 100, 1]  # type: ignore[attr-defined]


def test_a_retry_names_its_job(server: Scripted, run: Run) -> None:
    server.answers("RetryJob", jobs_pb2.RetryJobResponse(job=job_pb2.Job(job_id="j1")))
    assert run("job", "retry", "j1", "--request-id", "r").exit_code == 0
    assert (server.last.job_id, server.last.request_id) == ("j1", "r")
