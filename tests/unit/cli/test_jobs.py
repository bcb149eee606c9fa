"""Jobs on the command line: watched over broken streams, shown with stages, credits and receipt."""

import io
import json

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from rich.console import Console

from palimpsest.cli.exits import Exit
from palimpsest.cli.jobs import follow
from palimpsest.cli.shell import Shell
from palimpsest.connection import Connection
from palimpsest.v1 import episode_pb2, errors_pb2, job_pb2, jobs_pb2, memory_ingest_pb2
from palimpsest.watching import TRIES
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted, refusal

BROKEN = refusal(
    grpc.StatusCode.UNAVAILABLE,
    "OVERLOADED",
    "busy",
    error_details_pb2.RetryInfo(retry_delay=Duration(nanos=1_000_000)),
)


def update(state: job_pb2.JobState.ValueType, cursor: str, **fields: object) -> jobs_pb2.WatchJobResponse:
    job = job_pb2.Job(job_id="j1", state=state)
    job.MergeFrom(job_pb2.Job(**fields))  # type: ignore[arg-type]  # by field name
    return jobs_pb2.WatchJobResponse(job=job, cursor=cursor)


RUNNING = update(job_pb2.JOB_STATE_RUNNING, "c1")
DONE = update(
    job_pb2.JOB_STATE_SUCCEEDED,
    "c2",
    credits=job_pb2.JobCredits(spent_micros=1_000, refunded_micros=500, price_version="v1"),
    chunks=[
        job_pb2.JobChunk(index=0, stage=episode_pb2.CHUNK_STAGE_RESOLVED, token_count=1_250, episode_id="e1"),
        job_pb2.JobChunk(
            index=1,
            stage=episode_pb2.CHUNK_STAGE_NOTHING,
            nothing_reason=errors_pb2.NOTHING_REASON_SMALL_TALK,
            episode_id="e2",
        ),
    ],
    receipt=job_pb2.JobReceipt(
        engine="offline", stages=[job_pb2.StageReceipt(stage="extract", model="rules", duration_millis=42)]
    ),
    result=job_pb2.JobResult(counts=job_pb2.JobCounts(statements_added=3, tokens_saved=1_200)),
    revision=5,
)
FAILED = update(
    job_pb2.JOB_STATE_PARTIAL,
    "c3",
    error=refusal(grpc.StatusCode.UNAVAILABLE, "CHUNKS_FAILED", "1 of 2 chunks failed"),
)


def test_a_watch_ends_with_the_job_and_shows_it_whole(server: Scripted, run: Run) -> None:
    server.answers("WatchJob", [RUNNING, DONE])
    result = run("job", "watch", "j1")
    assert result.exit_code == 0
    for part in ("succeeded", "0.001 spent", "0.0005 given back", "3 statements added", "1,200 tokens saved"):
        assert part in result.stdout
    assert "small talk" in result.stdout
    assert "engine: offline" in result.stdout
    assert "no language model" in result.stdout


async def test_a_terminal_shows_how_far_a_job_has_come(server: Scripted) -> None:
    server.answers("WatchJob", [RUNNING, DONE])
    drawn = io.StringIO()
    terminal = Console(file=drawn, force_terminal=True, width=100)
    async with Connection(server.target) as connection:
        await follow(Shell(connection, json=False, console=terminal, errors=terminal), "j1")
    assert "1 resolved" in drawn.getvalue()
    assert "100%" in drawn.getvalue()


def test_a_broken_watch_goes_on_with_the_last_cursor(server: Scripted, run: Run) -> None:
    server.answers("WatchJob", [RUNNING, BROKEN], BROKEN, [DONE])
    assert run("job", "watch", "j1").exit_code == 0
    assert [request.cursor for request in server.asked] == ["", "c1", "c1"]  # type: ignore[attr-defined]


def test_a_watch_whose_cursor_is_too_old_begins_anew(server: Scripted, run: Run) -> None:
    too_old = refusal(grpc.StatusCode.OUT_OF_RANGE, "CURSOR_EXPIRED", "watch again without one")
    server.answers("WatchJob", [RUNNING, BROKEN], too_old, [DONE])
    assert run("job", "watch", "j1").exit_code == 0
    assert [request.cursor for request in server.asked] == ["", "c1", ""]  # type: ignore[attr-defined]


def test_a_server_that_stays_away_is_given_up(server: Scripted, run: Run) -> None:
    server.answers("WatchJob", BROKEN)
    result = run("job", "watch", "j1")
    assert result.exit_code == Exit.TRY_AGAIN
    assert len(server.asked) == TRIES


def test_with_json_a_watch_is_a_line_a_change(server: Scripted, run: Run) -> None:
    server.answers("WatchJob", [RUNNING, DONE])
    lines = run("job", "watch", "j1", "--json").stdout.splitlines()
    states = [json.loads(line)["state"] for line in lines]
    assert states == ["JOB_STATE_RUNNING", "JOB_STATE_SUCCEEDED"]


@pytest.mark.parametrize("command", [["job", "watch", "j1"], ["add", "g", "text", "--wait"]])
def test_a_job_that_did_not_succeed_has_an_exit_code_of_its_own(
    server: Scripted, run: Run, command: list[str]
) -> None:
    accepted = memory_ingest_pb2.AddEpisodeResponse(job=job_pb2.Job(job_id="j1"))
    server.answers("AddEpisode", accepted)
    server.answers("WatchJob", [FAILED])
    result = run(*command)
    assert result.exit_code == Exit.JOB_FAILED
    assert result.stderr.splitlines()[-1] == (
        "palimpsest: job j1 ended partial: CHUNKS_FAILED: 1 of 2 chunks failed"
    )


def test_showing_a_failed_job_is_no_failure(server: Scripted, run: Run) -> None:
    server.answers("GetJob", jobs_pb2.GetJobResponse(job=FAILED.job))
    result = run("job", "show", "j1")
    assert result.exit_code == 0
    assert "CHUNKS_FAILED: 1 of 2 chunks failed" in result.stdout


def test_of_a_long_job_the_chunks_that_failed_are_shown(server: Scripted, run: Run) -> None:
    fine = [job_pb2.JobChunk(index=n, stage=episode_pb2.CHUNK_STAGE_RESOLVED) for n in range(99)]
    wrong = job_pb2.JobChunk(
        index=99,
        stage=episode_pb2.CHUNK_STAGE_FAILED,
        error=status_pb2.Status(code=14, message="model away"),
    )
    job = job_pb2.Job(job_id="j", state=job_pb2.JOB_STATE_PARTIAL, chunks=[*fine, wrong])
    server.answers("GetJob", jobs_pb2.GetJobResponse(job=job))
    shown = run("job", "show", "j").stdout
    assert "100 chunks" in shown
    assert "99 resolved · 1 failed" in shown
    assert "model away" in shown
    assert shown.count("resolved") == 1


def test_an_accepted_text_is_its_job_and_quote(server: Scripted, run: Run) -> None:
    quote = job_pb2.Quote(credits_micros=20_400, price_version="v1", token_count=2_040, chunk_count=2)
    answer = memory_ingest_pb2.AddEpisodeResponse(
        job=job_pb2.Job(job_id="j1", state=job_pb2.JOB_STATE_QUEUED), quote=quote
    )
    server.answers("AddEpisode", answer)
    shown = run("add", "g", "text").stdout
    assert "queued" in shown
    assert "at most 0.0204 credits" in shown
    assert "palimpsest job watch j1" in shown
    answer.ClearField("job")
    server.answers("AddEpisode", answer)
    quoted = run("add", "g", "text", "--validate-only").stdout
    assert "2,040 in 2 chunks" in quoted
    assert "job" not in quoted
