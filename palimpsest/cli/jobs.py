"""`job show`, `job list`, `job cancel`, `job retry` and `job watch`: stages, credits, receipt."""

from collections import Counter
from enum import StrEnum
from typing import Annotated

import typer
from google.protobuf.json_format import MessageToJson
from rich.console import Group, RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.dates import shown
from palimpsest.cli.exits import Exit, complain
from palimpsest.cli.operating import RequestId
from palimpsest.cli.pages import Limit, whole
from palimpsest.cli.shell import Shell, command
from palimpsest.connection import new_request_id
from palimpsest.v1 import episode_pb2, job_pb2, jobs_pb2
from palimpsest.watching import watch_job


class State(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


JobId = Annotated[str, typer.Argument(metavar="JOB", help="Id of the job.")]

_FIELDS = {
    "nothing_chunks": "chunks with nothing to remember",
    "voice_aspects_added": "sentences of voice added",
    "voice_aspects_ended": "sentences of voice ended",
}
"""Counts that would not read well by their field's name."""

_ENDED = frozenset(
    {episode_pb2.CHUNK_STAGE_RESOLVED, episode_pb2.CHUNK_STAGE_NOTHING, episode_pb2.CHUNK_STAGE_FAILED}
)

SHOWN_CHUNKS = 20
"""Chunks in the table; of longer jobs the ones that failed, and the counts of all."""


def app() -> typer.Typer:
    jobs = typer.Typer(no_args_is_help=True, help="Ingest and other jobs: stages, credits, receipt.")
    command(jobs, "show")(show)
    command(jobs, "list")(list_jobs)
    command(jobs, "cancel")(cancel)
    command(jobs, "retry")(retry)
    command(jobs, "watch")(watch)
    return jobs


async def show(shell: Shell, job: JobId) -> None:
    """Shows a job as it stands."""
    request = jobs_pb2.GetJobRequest(job_id=job)
    response = await shell.connection.call(shell.connection.jobs.GetJob, request)
    shell.show(response, lambda answer: job_of(answer.job))


async def list_jobs(
    shell: Shell,
    graph: Annotated[str, typer.Option(help="Only of this graph.")] = "",
    state: Annotated[
        list[State] | None, typer.Option(help="Only in this state; repeatable. (default: all)")
    ] = None,
    limit: Limit = 50,
) -> None:
    """Lists jobs, newest first."""
    states = [job_pb2.JobState.Value(f"JOB_STATE_{one.name}") for one in state or ()]
    request = jobs_pb2.ListJobsRequest(graph_id=graph, states=states)
    shell.show(await whole(shell, shell.connection.jobs.ListJobs, request, "jobs", limit), _listed)


def _listed(response: jobs_pb2.ListJobsResponse) -> RenderableType:
    if not response.jobs:
        return "no jobs"
    table = words.listing("created", "job", "graph", "kind", "state", "spent")
    table.columns[5].justify = "right"
    for job in response.jobs:
        table.add_row(
            shown(job.created_at),
            escape(job.job_id),
            escape(job.graph_id),
            words.word(job_pb2.JobKind.Name, job.kind, "JOB_KIND_"),
            _state(job),
            words.amount(job.credits.spent_micros),
        )
    return table


async def cancel(shell: Shell, job: JobId) -> None:
    """Asks a job to stop at its next step; what is resolved stays and is paid for, the rest is refunded."""
    request = jobs_pb2.CancelJobRequest(job_id=job)
    response = await shell.connection.call(shell.connection.jobs.CancelJob, request)
    shell.show(response, lambda answer: job_of(answer.job))


async def retry(
    shell: Shell,
    job: JobId,
    release: Annotated[
        bool, typer.Option("--release", help="Also what is held back: `episode list --quarantined`.")
    ] = False,
    request_id: RequestId = "",
) -> None:
    """Tries again the chunks of a job that failed; only they are paid for, by a hold of their own."""
    request = jobs_pb2.RetryJobRequest(job_id=job, request_id=request_id or new_request_id(), release=release)
    response = await shell.connection.call(shell.connection.jobs.RetryJob, request)
    shell.show(response, lambda answer: job_of(answer.job))


async def watch(shell: Shell, job: JobId) -> None:
    """Watches a job until it ends; exit code 7 unless it succeeds. With --json one line a change."""
    finish(await follow(shell, job), shell)


async def follow(shell: Shell, job_id: str) -> job_pb2.Job:
    """Watches a job, showing progress; returns it in its final state."""
    last = job_pb2.Job()
    with shell.progress("waiting") as bar:
        async for job in watch_job(shell.connection, job_id):
            last = job
            if shell.json:
                shell.console.out(MessageToJson(job, indent=None, ensure_ascii=False), highlight=False)
            else:
                ended = sum(chunk.stage in _ENDED for chunk in job.chunks)
                bar.show(escape(progress_of(job)), ended, len(job.chunks) or None)
    return last


def finish(job: job_pb2.Job, shell: Shell) -> None:
    """Shows a job that has ended; exits with JOB_FAILED unless it succeeded."""
    if not shell.json:
        shell.console.print(job_of(job), highlight=False)
    if job.state != job_pb2.JOB_STATE_SUCCEEDED:
        reason = words.error(job.error) if job.HasField("error") else "see its chunks"
        raise complain(f"job {job.job_id} ended {_state(job)}: {reason}", Exit.JOB_FAILED)


def _state(job: job_pb2.Job) -> str:
    return word_of_state(job.state)


def word_of_state(state: job_pb2.JobState.ValueType) -> str:
    return words.word(job_pb2.JobState.Name, state, "JOB_STATE_")


def progress_of(job: job_pb2.Job) -> str:
    """One line: the state, and how many chunks are at which stage."""
    counts = Counter(_stage(chunk) for chunk in job.chunks)
    stages = " · ".join(f"{count} {stage}" for stage, count in counts.items())
    return f"{_state(job)}  {stages}".strip()


def _stage(chunk: job_pb2.JobChunk) -> str:
    return words.word(episode_pb2.ChunkStage.Name, chunk.stage, "CHUNK_STAGE_")


def job_of(job: job_pb2.Job) -> RenderableType:
    """A job: state, credits, what it changed, its chunks, what was spent on models."""
    money = job.credits
    rows = [
        ("job", job.job_id),
        ("graph", job.graph_id),
        ("state", _state(job) + (", cancel asked for" if job.cancel_requested else "")),
        ("error", words.error(job.error) if job.HasField("error") else ""),
        ("accepted", shown(job.created_at) if job.HasField("created_at") else ""),
        ("seconds", _seconds(job)),
        (
            "credits",
            f"{words.amount(money.spent_micros)} spent · {words.amount(money.held_micros)} held · "
            f"{words.amount(money.refunded_micros)} given back (prices {money.price_version})",
        ),
        ("changed", _changed(job.result.counts)),
        ("rebuilt", _rebuilt(job.result)),
        ("document", f"{job.result.document_id} version {job.result.document_version}")
        if job.result.document_id
        else ("", ""),
        ("revision", str(job.revision) if job.revision else ""),
    ]
    parts: list[RenderableType] = [words.pairs(rows)]
    if job.chunks:
        parts.append(_chunks(job))
    if job.HasField("receipt"):
        parts.append(receipt_of(job.receipt))
    return Group(*parts)


def _seconds(job: job_pb2.Job) -> str:
    if not job.HasField("finished_at"):
        return ""
    taken = job.finished_at.ToNanoseconds() - job.created_at.ToNanoseconds()
    return f"{taken / 1e9:.1f}"


def _rebuilt(result: job_pb2.JobResult) -> str:
    """Of a rebuild: `12 vectors made anew · 1 spans differ repaired`."""
    if not result.HasField("rebuilt"):
        return ""
    report = result.rebuilt
    mended = [f"{count} {kind}: repaired" for kind, count in sorted(report.repaired.items())]
    left = [f"{count} {kind}: left" for kind, count in sorted(report.left.items())]
    return " · ".join([words.counted(report.vectors, "vectors made anew"), *mended, *left])


def _changed(counts: job_pb2.JobCounts) -> str:
    """Every count that is not zero, by its name: `3 statements added · 1 statement ended`."""
    return " · ".join(
        words.counted(value, _FIELDS.get(field.name, field.name)) for field, value in counts.ListFields()
    )


def _chunks(job: job_pb2.Job) -> RenderableType:
    failed = [chunk for chunk in job.chunks if chunk.stage == episode_pb2.CHUNK_STAGE_FAILED]
    few = len(job.chunks) <= SHOWN_CHUNKS
    table = words.listing("chunk", "stage", "tokens", "why", "episode")
    for chunk in job.chunks if few else failed[:SHOWN_CHUNKS]:
        why = words.nothing(chunk.nothing_reason) if chunk.nothing_reason else ""
        if chunk.HasField("error"):
            why = words.error(chunk.error)
        elif chunk.dropped:
            why = "left out: " + ", ".join(f"{count} {name}" for name, count in sorted(chunk.dropped.items()))
        table.add_row(
            str(chunk.index), _stage(chunk), f"{chunk.token_count:,}", escape(why), escape(chunk.episode_id)
        )
    return table if few else Group(f"{len(job.chunks)} chunks: {progress_of(job)}", table)


def receipt_of(receipt: job_pb2.JobReceipt) -> RenderableType:
    """What was spent on models; says loudly when there was none."""
    table = words.listing("stage", "model", "calls", "tokens in", "tokens out", "cached", "ms")
    for stage in receipt.stages:
        table.add_row(
            escape(stage.stage),
            escape(stage.model),
            f"{stage.calls:,}",
            f"{stage.tokens_in:,}",
            f"{stage.tokens_out:,}",
            f"{stage.tokens_cached:,}",
            f"{stage.duration_millis:,}",
        )
    if receipt.engine == "offline":
        engine = "[bold black on yellow] engine: offline [/] rules for English and Chinese, no language model"
    else:
        engine = f"engine: {escape(receipt.engine) or 'none was asked'}"
    return Group(engine, table) if receipt.stages else engine
