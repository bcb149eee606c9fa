"""`import`: takes in what other memories exported, and tells of every record what became of it."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from palimpsest.chats import Unreadable
from palimpsest.cli import words
from palimpsest.cli.dates import FORMS, Dated, read_date
from palimpsest.cli.exits import Exit, complain
from palimpsest.cli.shell import Shell, command
from palimpsest.errors import CallError, OutOfCredits
from palimpsest.importing import graphiti, mem0, tables
from palimpsest.importing.reading import File, opened
from palimpsest.importing.report import Report
from palimpsest.importing.sending import IN_FLIGHT, Sending
from palimpsest.importing.values import Fate, Reading

SHOWN = 20
"""Records that were not taken in, and other lists, as listed for people; `--json` tells all."""
_WORDS = {
    Fate.IMPORTED: "imported",
    Fate.READY: "to import",
    Fate.KNOWN: "known before",
    Fate.SAME: "same as another",
    Fate.REFUSED: "refused",
    Fate.FAILED: "failed",
    Fate.LEFT_OUT: "left out",
    Fate.UNSENT: "not sent",
}

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="The export; several files are read as one.")
]
Graph = Annotated[
    str, typer.Option("--graph", "-g", metavar="GRAPH", help="The graph; made if it isn't there.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only read and report; no server is asked, nothing changes.")
]
SaidOf = Annotated[
    Dated | None,
    typer.Option(
        "--said",
        parser=read_date,
        metavar="DATE",
        help=f"When those records were said that don't tell: {FORMS}. (default: when their file was written)",
        show_default=False,
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="FILE", dir_okay=False, help="Write one line of JSON for each record into a file."
    ),
]
After = Annotated[
    list[Path] | None,
    typer.Option(
        "--after", metavar="FILE", help="Leave out what an earlier --report of this graph tells as taken in."
    ),
]
InFlight = Annotated[int, typer.Option(min=1, max=200, help="Texts that are at work at once.")]
Only = Annotated[str, typer.Option(help="Take one group's records alone (Graphiti's group_id).")]
OnlyUser = Annotated[
    str, typer.Option(help="Take one user's memories alone (mem0's user_id, else agent_id).")
]
Texts = Annotated[
    bool, typer.Option("--texts", help="Take episodes in as well, as texts to be understood; costs credits.")
]


@dataclass(frozen=True, slots=True)
class _Given:
    """What holds for every format."""

    graph: str
    dry_run: bool
    report: Path | None
    after: Sequence[Path]
    in_flight: int


def app() -> typer.Typer:
    commands = typer.Typer(help="Takes in what another memory exported.", no_args_is_help=True)
    command(commands, "graphiti")(from_graphiti)
    command(commands, "mem0")(from_mem0)
    command(commands, "csv")(from_csv)
    return commands


async def from_graphiti(
    shell: Shell,
    file: Files,
    graph: Graph,
    dry_run: DryRun = False,
    only: Only = "",
    texts: Texts = False,
    said: SaidOf = None,
    report: ReportFile = None,
    after: After = None,
    in_flight: InFlight = IN_FLIGHT,
) -> None:
    """Graphiti's nodes and edges as facts with their dates; JSON or lines of JSON, as APOC writes it too.

    The same command again goes on where it was interrupted, and adds nothing and costs nothing for the rest.
    """
    reading = _read(file, lambda files: graphiti.read(files, only, _at(said), texts))
    given = _Given(graph, dry_run, report, after or (), in_flight)
    await _take_in(shell, reading, given)


async def from_mem0(
    shell: Shell,
    file: Files,
    graph: Graph,
    dry_run: DryRun = False,
    only: OnlyUser = "",
    said: SaidOf = None,
    report: ReportFile = None,
    after: After = None,
    in_flight: InFlight = IN_FLIGHT,
) -> None:
    """mem0's memories, and what they were before, as texts to be understood; its relations as facts.

    The same command again goes on where it was interrupted, and adds nothing and costs nothing for the rest.
    """
    reading = _read(file, lambda files: mem0.read(files, only, _at(said)))
    given = _Given(graph, dry_run, report, after or (), in_flight)
    await _take_in(shell, reading, given)


async def from_csv(
    shell: Shell,
    file: Files,
    graph: Graph,
    dry_run: DryRun = False,
    said: SaidOf = None,
    report: ReportFile = None,
    after: After = None,
    in_flight: InFlight = IN_FLIGHT,
) -> None:
    """Rows of subject, predicate, object and dates as facts, ends and denials; the first row names columns.

    The same command again goes on where it was interrupted, and adds nothing and costs nothing for the rest.
    """
    reading = _read(file, lambda files: tables.read(files, _at(said)))
    given = _Given(graph, dry_run, report, after or (), in_flight)
    await _take_in(shell, reading, given)


def _at(said: Dated | None) -> datetime | None:
    return said.at.astimezone(UTC) if said else None


def _read(paths: Sequence[Path], read: Callable[[Sequence[File]], Reading]) -> Reading:
    """Everything, before anything is sent. Exits when a file can't be read as a whole."""
    files = []
    for path in paths:
        try:
            files.append(opened(path))
        except OSError as error:
            raise complain(f"{path}: {error.strerror}", Exit.USAGE) from error
        except Unreadable as error:
            raise complain(f"{path}: {error}", Exit.USAGE) from error
    try:
        return read(files)
    except Unreadable as error:
        raise complain(str(error), Exit.USAGE) from error


async def _take_in(shell: Shell, reading: Reading, given: _Given) -> None:
    """Sends all of it and reports. Exits with the code that it comes to."""
    report = Report(reading, given.graph, given.dry_run)
    for path in given.after:
        try:
            report.known_from(path.read_text(encoding="utf-8").splitlines())
        except (OSError, UnicodeDecodeError, Unreadable) as error:
            raise complain(f"{path}: {error}", Exit.USAGE) from error
    sending = Sending(shell.connection, given.graph, given.in_flight)
    with _written(given.report, report):
        if not given.dry_run:
            await _send(shell, sending, report)
    if shell.json:
        told = {"graphId": given.graph, "dryRun": given.dry_run, **report.to_json()}
        shell.console.out(json.dumps(told, ensure_ascii=False, indent=2), highlight=False)
    else:
        shell.console.print(_summary(report, given.dry_run), highlight=False)
    _exit(report, sending.stopped)


async def _send(shell: Shell, sending: Sending, report: Report) -> None:
    left = report.left()
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=shell.errors, transient=True, disable=not shell.errors.is_terminal
    ) as bar:
        task = bar.add_task("importing", total=max(1, len(left)))
        async with aclosing(sending.send(left)) as results:
            async for key, result in results:
                report.add(key, result)
                bar.advance(task)


@contextmanager
def _written(file: Path | None, report: Report) -> Iterator[None]:
    """Writes the report at the end, also of an import that was cut short. Its owner alone can read it."""
    if file is None:
        yield
        return
    try:
        lines = open(  # noqa: SIM115  # closed below, after what is in between
            file, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)
        )
    except OSError as error:
        raise complain(f"{file}: {error.strerror}", Exit.USAGE) from error
    with lines:
        try:
            yield
        finally:
            for line in report.lines():
                lines.write(json.dumps(report.line_to_json(line), ensure_ascii=False) + "\n")


def _exit(report: Report, stopped: CallError | None) -> None:
    total = report.total()
    if stopped is not None:
        told = f"{stopped}; {words.counted(total[Fate.UNSENT], 'records')} not sent"
        code = Exit.CREDITS if isinstance(stopped, OutOfCredits) else Exit.TRY_AGAIN
        raise complain(f"{told}; the same command goes on from there", code)
    whole = words.counted(total.total(), "records")
    if total[Fate.REFUSED]:
        raise complain(f"{total[Fate.REFUSED]:,} of {whole} refused", Exit.FAILED)
    if total[Fate.FAILED]:
        raise complain(f"{total[Fate.FAILED]:,} of {whole} failed", Exit.JOB_FAILED)


def _summary(report: Report, dry_run: bool) -> RenderableType:
    became = [words.counted(number, noun) for noun, number in sorted(report.becomes().items())]
    rows = [
        ("records", f"{report.total().total():,}"),
        ("become", ", ".join(became)),
        ("credits", "" if dry_run else f"{words.amount(report.spent_micros)} spent"),
        ("dry run", "nothing was sent" if dry_run else ""),
    ]
    parts: list[RenderableType] = [words.pairs(rows), *_fates(report.fates())]
    parts += _counts("predicate", "facts", report.predicates())
    parts += _counts("not carried", "records", report.notes())
    return Group(*parts, *_not_taken(report))


def _fates(counts: Mapping[str, Counter[Fate]]) -> list[RenderableType]:
    used = [fate for fate in Fate if any(one[fate] for one in counts.values())]
    table = words.listing("records", *(_WORDS[fate] for fate in used))
    for kind, one in sorted(counts.items()):
        table.add_row(kind, *(f"{one[fate]:,}" if one[fate] else "" for fate in used))
    return [table] if counts else []


def _counts(what: str, of: str, counts: Counter[str]) -> list[RenderableType]:
    if not counts:
        return []
    table = words.listing(what, of)
    for name, number in counts.most_common(SHOWN):
        table.add_row(escape(name), f"{number:,}")
    return [table, *_more(len(counts))]


def _not_taken(report: Report) -> Iterator[RenderableType]:
    """Refused first; what was left out by its reason, since it may be most of the file."""
    refused = [line for line in report.lines() if line.fate in (Fate.REFUSED, Fate.FAILED)]
    if refused:
        table = words.listing("record", "why", title=f"refused or failed: {len(refused):,}")
        for line in refused[:SHOWN]:
            table.add_row(escape(line.record.place), escape(line.why))
        yield table
        yield from _more(len(refused))
    left_out = Counter(line.why for line in report.lines() if line.fate is Fate.LEFT_OUT)
    yield from _counts("left out, as", "records", left_out)


def _more(number: int) -> list[RenderableType]:
    return [f"[dim]… and {number - SHOWN:,} more; --json lists all[/]"] if number > SHOWN else []
