"""`add` of files: what is asked of the server, and what is refused without asking."""

import json
from pathlib import Path

import pytest
from google.rpc import status_pb2

from palimpsest.cli.exits import Exit
from palimpsest.v1 import episode_pb2, job_pb2, memory_ingest_pb2
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted

Response = memory_ingest_pb2.BatchAddEpisodesResponse
Result = memory_ingest_pb2.BatchAddEpisodesResult


def succeeded(job: str) -> Result:
    done = job_pb2.Job(job_id=job, state=job_pb2.JOB_STATE_SUCCEEDED)
    return Result(request_id=job, response=memory_ingest_pb2.AddEpisodeResponse(job=done))


def test_lines_of_standard_input_are_texts_of_one_call(server: Scripted, run: Run) -> None:
    refused = status_pb2.Status(code=9, message="too dear")
    server.answers(
        "BatchAddEpisodes", Response(results=[succeeded("a"), Result(request_id="b", error=refused)])
    )
    lines = (
        '{"text": "Ana likes tea.", "sessionId": "s"}\n\n{"text": "# Ä", "kind": "EPISODE_KIND_DOCUMENT"}\n'
    )
    told = ["--format", "jsonl", "--source", "disk", "--time-zone", "Europe/Vienna", "--max-credits", "1"]
    result = run("add", "g", "-", *told, stdin=lines.encode())
    assert result.exit_code == Exit.FAILED
    assert "too dear" in result.stdout
    assert "1 text of 2 failed" in result.stderr
    one, two = server.last.requests
    assert (one.graph_id, one.text, one.session_id, one.source) == ("g", "Ana likes tea.", "s", "disk")
    assert (one.time_zone, one.max_credits_micros) == ("Europe/Vienna", 1_000_000)
    assert one.request_id != two.request_id
    assert (one.kind, two.kind) == (episode_pb2.EPISODE_KIND_CONVERSATION, episode_pb2.EPISODE_KIND_DOCUMENT)


def test_more_texts_than_may_be_in_flight_are_several_calls(server: Scripted, run: Run) -> None:
    server.answers("BatchAddEpisodes", Response(results=[succeeded("a"), succeeded("b")]))
    lines = "".join(json.dumps({"text": f"Ana has {n} cats."}) + "\n" for n in range(4))
    done = run("add", "g", "-", "--format", "jsonl", "--in-flight", "2", "--json", stdin=lines.encode())
    assert (done.exit_code, json.loads(done.stdout)["texts"]) == (Exit.OK, 4)
    assert [len(asked.requests) for asked in server.asked] == [2, 2]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent.jsonl"], "no such file"),
        (["./absent"], "no such file"),
        (["absent", "--format", "text"], "no such file"),
        (["empty"], "no files"),
        (["here.txt", "--kind", "conversation"], "--kind is of one text"),
        (["here.txt", "--request-id", "x"], "--request-id is of one text"),
        (["-", "--format", "chatgpt"], "no chat export"),
    ],
)
def test_what_names_no_texts_is_refused(
    server: Scripted, run: Run, tmp_path: Path, arguments: list[str], says: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "here.txt").write_text("x", encoding="utf-8")
    refused = run("add", "g", *arguments, stdin=b"{}")
    assert refused.exit_code == Exit.USAGE
    assert says in refused.stderr
    assert not server.asked


def test_a_text_is_a_text_still(server: Scripted, run: Run) -> None:
    server.answers("AddEpisode", memory_ingest_pb2.AddEpisodeResponse(job=job_pb2.Job(job_id="j1")))
    for arguments in (["I read a/b.md today."], ["-"]):
        assert run("add", "g", *arguments, stdin=b"I live in Graz.").exit_code == Exit.OK
    assert [asked.text for asked in server.asked] == ["I read a/b.md today.", "I live in Graz."]  # type: ignore[attr-defined]
