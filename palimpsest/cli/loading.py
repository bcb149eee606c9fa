"""`add` of a folder or a file: many texts, a bar while they are taken in, and what became of them."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from palimpsest import texts
from palimpsest.bulk import Bulk, Outcome
from palimpsest.chats import Unreadable
from palimpsest.cli import words
from palimpsest.cli.exits import Exit, complain
from palimpsest.cli.jobs import word_of_state
from palimpsest.cli.shell import Shell
from palimpsest.errors import CallError, OutOfCredits, error_of_status
from palimpsest.texts import File, Format, NotTaken, Text
from palimpsest.v1 import errors_pb2, job_pb2

STDIN = "-"
SHOWN = 20
"""Failures, and files left out, that are listed for people; `--json` tells all."""


@dataclass(frozen=True, slots=True)
class Given:
    """What holds for all texts, where the command says it; and how they are sent."""

    graph: str
    session: str = ""
    source: str = ""
    said: Timestamp | None = None
    time_zone: str = ""
    max_credits_micros: int | None = None
    in_flight: int = 1
    validate_only: bool = False


@dataclass(slots=True)
class Summary:
    """What became of all texts."""

    texts: int = 0
    known: int = 0
    nothing: int = 0
    unsent: int = 0
    spent_micros: int = 0
    quoted_micros: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, str]] = field(default_factory=list)
    left_out: list[NotTaken] = field(default_factory=list)
    stopped: CallError | None = None

    def add(self, outcome: Outcome) -> None:
        self.texts += 1
        text, job = outcome.text, outcome.job
        if outcome.error is not None:
            self._failed(text.name, text.request.request_id, "", outcome.error)
        elif job is None:
            self.quoted_micros += outcome.quote.credits_micros if outcome.quote else 0
        else:
            self.ended[word_of_state(job.state)] += 1
            self.known += outcome.known
            self.spent_micros += job.credits.spent_micros
            self.nothing += job.state == job_pb2.JOB_STATE_SUCCEEDED and not _taught(job)
            if job.state != job_pb2.JOB_STATE_SUCCEEDED:
                self._failed(text.name, text.request.request_id, job.job_id, error_of_status(job.error))

    def not_taken(self, one: NotTaken) -> None:
        if one.broken:
            self.failures.append({"text": one.name, "reason": "NOT_READ", "message": one.why})
        else:
            self.left_out.append(one)

    def _failed(self, name: str, request: str, job: str, error: CallError) -> None:
        told = {
            "text": name,
            "requestId": request,
            "jobId": job,
            "reason": error.reason,
            "message": str(error),
        }
        self.failures.append({key: value for key, value in told.items() if value})

    @property
    def exit(self) -> Exit:
        if isinstance(self.stopped, OutOfCredits):
            return Exit.CREDITS
        if self.stopped is not None:
            return Exit.TRY_AGAIN
        if any("jobId" not in one for one in self.failures):
            return Exit.FAILED
        return Exit.JOB_FAILED if self.failures else Exit.OK

    def to_json(self) -> dict[str, Any]:
        return {
            "texts": self.texts,
            "ended": dict(sorted(self.ended.items())),
            "known": self.known,
            "nothing": self.nothing,
            "unsent": self.unsent,
            "spentMicros": str(self.spent_micros),
            "quotedMicros": str(self.quoted_micros),
            "failures": self.failures,
            "leftOut": [{"file": one.name, "why": one.why} for one in self.left_out],
        }


async def load(shell: Shell, what: str, format: Format | None, given: Given) -> None:
    """Takes in all of a folder, a file or standard input. Exits with the code that the summary comes to."""
    size, found = _opened(what, format, given)
    summary = Summary()
    bulk = Bulk(shell.connection, given.graph, given.in_flight, given.validate_only)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=shell.errors, transient=True, disable=not shell.errors.is_terminal
    ) as bar:
        task = bar.add_task("taking in", total=max(1, size), told="")

        def left_out(one: NotTaken) -> None:
            summary.not_taken(one)
            bar.update(task, advance=one.weight)

        try:
            async with aclosing(bulk.send(_as_given(found, given), left_out)) as outcomes:
                async for outcome in outcomes:
                    summary.add(outcome)
                    bar.update(task, advance=outcome.text.weight, told=_told(summary))
        finally:
            summary.stopped, summary.unsent = bulk.stopped, bulk.unsent
    _show(shell, summary, given)


def _opened(what: str, format: Format | None, given: Given) -> tuple[int, Iterator[Text | NotTaken]]:
    """The bytes of all files, and what they hold."""
    if what == STDIN:
        raw = sys.stdin.buffer.read()
        try:
            return len(raw), iter(
                list(
                    texts.read_bytes(raw, "standard input", format or Format.TEXT, given.said, given.session)
                )
            )
        except Unreadable as error:
            raise complain(f"standard input: {error}", Exit.USAGE) from error
    try:
        files: Sequence[File] = texts.find(Path(what), format)
    except OSError as error:
        raise complain(f"{what}: {error.strerror}", Exit.USAGE) from error
    if not files:
        raise complain(f"{what}: no files", Exit.USAGE)
    return sum(file.size for file in files), (
        one for file in files for one in texts.read(file, given.said, given.session)
    )


def _as_given(found: Iterator[Text | NotTaken], given: Given) -> Iterator[Text | NotTaken]:
    for one in found:
        if isinstance(one, Text):
            request = one.request
            request.source = request.source or given.source
            request.time_zone = request.time_zone or given.time_zone
            if given.max_credits_micros is not None:
                request.max_credits_micros = given.max_credits_micros
        yield one


def _taught(job: job_pb2.Job) -> bool:
    """Known afterwards, by a chunk of it, is something."""
    return any(chunk.nothing_reason == errors_pb2.NOTHING_REASON_UNSPECIFIED for chunk in job.chunks)


def _told(summary: Summary) -> str:
    failed = f", [red]{len(summary.failures)} failed[/]" if summary.failures else ""
    return f"{words.counted(summary.texts, 'texts')}{failed}"


def _show(shell: Shell, summary: Summary, given: Given) -> None:
    if shell.json:
        shell.console.out(json.dumps(summary.to_json(), ensure_ascii=False, indent=2), highlight=False)
    else:
        shell.console.print(_summary(summary, given), highlight=False)
    code = summary.exit
    if summary.stopped is not None:
        told = f"{summary.stopped}; {words.counted(summary.unsent, 'texts')} not sent"
        raise complain(f"{told}; the same command goes on from there", code)
    if code is not Exit.OK:
        failed = words.counted(len(summary.failures), "texts")
        raise complain(f"{failed} of {summary.texts + _unread(summary)} failed", code)


def _unread(summary: Summary) -> int:
    return sum(one["reason"] == "NOT_READ" for one in summary.failures)


def _summary(summary: Summary, given: Given) -> RenderableType:
    ended = " · ".join(f"{number:,} {state}" for state, number in sorted(summary.ended.items()))
    rows = [
        ("texts", f"{summary.texts:,}"),
        ("jobs", ended),
        ("known before", f"{summary.known:,}" if summary.known else ""),
        ("taught nothing", f"{summary.nothing:,}" if summary.nothing else ""),
        ("not sent", f"{summary.unsent:,}" if summary.unsent else ""),
        ("credits", f"{words.amount(summary.spent_micros)} spent" if not given.validate_only else ""),
        ("quote", f"at most {words.amount(summary.quoted_micros)} credits" if given.validate_only else ""),
    ]
    parts: list[RenderableType] = [words.pairs(rows)]
    parts += _listing("failed", [(one["text"], one["message"]) for one in summary.failures])
    parts += _listing("left out", [(one.name, one.why) for one in summary.left_out])
    return Group(*parts)


def _listing(title: str, rows: Sequence[tuple[str, str]]) -> list[RenderableType]:
    if not rows:
        return []
    table = words.listing("text", "why", title=f"{title}: {len(rows):,}")
    for row in rows[:SHOWN]:
        table.add_row(*map(escape, row))
    more = [f"[dim]… and {len(rows) - SHOWN:,} more; --json lists all[/]"] if len(rows) > SHOWN else []
    return [table, *more]
