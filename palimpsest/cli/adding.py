"""`add`: takes in a text, or all of a folder, a file or a chat export."""

import re
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from palimpsest.bulk import IN_FLIGHT
from palimpsest.cli import words
from palimpsest.cli.dates import FORMS, Dated, read_date
from palimpsest.cli.exits import Exit, complain
from palimpsest.cli.facts import GraphId
from palimpsest.cli.jobs import finish, follow, progress_of
from palimpsest.cli.loading import Given, load
from palimpsest.cli.operating import RequestId, read_credits
from palimpsest.cli.shell import Shell, command
from palimpsest.connection import new_request_id
from palimpsest.texts import Format
from palimpsest.v1 import episode_pb2, job_pb2, memory_ingest_pb2

STDIN = "-"
_LONGEST_PATH = 1_000
_LIKE_A_PATH = re.compile(r"\S*[\w.~]/\S*|\./\S*|/\S+|\S+\.(?:txt|text|md|markdown|rst|jsonl|ndjson|json)")


class Kind(StrEnum):
    """What kind of text."""

    CONVERSATION = "conversation"
    DOCUMENT = "document"
    COMPACTED_SESSION = "compacted-session"


def add_to(app: typer.Typer) -> None:
    command(app, "add", panel="Memory")(add)


TextGiven = Annotated[
    str,
    typer.Argument(
        metavar="TEXT|FOLDER|FILE|-",
        help="The text; or a folder or file, all of which is taken in; - reads standard input.",
    ),
]
FileGiven = Annotated[Path | None, typer.Option("--file", "-f", help="Take one text from a file (UTF-8).")]
FormatGiven = Annotated[
    Format | None,
    typer.Option(
        help="How files, or standard input, are read. (default: by their names)", show_default=False
    ),
]
InFlight = Annotated[int, typer.Option(min=1, max=200, help="Of files: texts that are at work at once.")]
KindGiven = Annotated[
    Kind | None,
    typer.Option(
        help="What kind of text. (default: document with --file or --document, else conversation)",
        show_default=False,
    ),
]
Said = Annotated[
    Dated | None,
    typer.Option(
        "--said", "--reference-time", parser=read_date, metavar="DATE", help=f"When it was said: {FORMS}."
    ),
]
ValidateOnly = Annotated[
    bool, typer.Option("--validate-only", help="Only check and quote; store and spend nothing.")
]
MaxCredits = Annotated[
    int | None, typer.Option(parser=read_credits, metavar="CREDITS", help="Refuse if it may cost more.")
]


async def add(
    shell: Shell,
    graph: GraphId,
    text: TextGiven = "",
    file: FileGiven = None,
    format: FormatGiven = None,
    in_flight: InFlight = IN_FLIGHT,
    kind: KindGiven = None,
    session: Annotated[str, typer.Option(help="The conversation it belongs to.")] = "",
    document: Annotated[str, typer.Option(help="The document of which this is a version.")] = "",
    title: Annotated[str, typer.Option(help="Title of the document or conversation.")] = "",
    source: Annotated[str, typer.Option(help="Where it comes from, such as slack.")] = "",
    reference_time: Said = None,
    time_zone: Annotated[str, typer.Option(help="IANA time zone of its relative dates.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    validate_only: ValidateOnly = False,
    max_credits: MaxCredits = None,
    request_id: RequestId = "",
) -> None:
    """Takes in a text. Answers a job at once; the job goes on by itself.

    Of a folder or file: takes in all texts, waits for their jobs, and tells what became of them. The same
    command again goes on where it was interrupted, tries again what failed, and costs nothing for the rest.
    """
    said = reference_time.timestamp if reference_time else None
    if _is_files(text, file, format):
        _refuse({"--kind": kind, "--document": document, "--title": title, "--request-id": request_id})
        given = Given(graph, session, source, said, time_zone, max_credits, in_flight, validate_only)
        await load(shell, text, format, given)
        return
    chosen = kind or (Kind.DOCUMENT if file or document else Kind.CONVERSATION)
    request = memory_ingest_pb2.AddEpisodeRequest(
        graph_id=graph,
        request_id=request_id or new_request_id(),
        text=read_text(text, file),
        kind=episode_pb2.EpisodeKind.Value(f"EPISODE_KIND_{chosen.name}"),
        session_id=session,
        document_id=document,
        title=title,
        source=source,
        reference_time=said,
        time_zone=time_zone,
        validate_only=validate_only,
        max_credits_micros=max_credits,
    )
    await _send(shell, request, wait and not validate_only)


async def _send(shell: Shell, request: memory_ingest_pb2.AddEpisodeRequest, wait: bool) -> None:
    response = await shell.connection.call(shell.connection.memory.AddEpisode, request)
    if wait:
        finish(await follow(shell, response.job.job_id), shell)
    else:
        shell.show(response, accepted)


def _refuse(options: Mapping[str, object]) -> None:
    """Exits when one is given."""
    given = next((name for name, value in options.items() if value), None)
    if given is not None:
        raise complain(f"{given} is of one text; here each file has its own", Exit.USAGE)


def _is_files(text: str, file: Path | None, format: Format | None) -> bool:
    """True for a folder or file that is there. Exits for a name of a file that is not: it is no memory."""
    if not text or file is not None:
        return False
    if text == STDIN:
        return format not in (None, Format.TEXT)
    if "\n" in text or len(text) > _LONGEST_PATH:
        return False
    if Path(text).exists():
        return True
    if format is not None or _LIKE_A_PATH.fullmatch(text):
        raise complain(f"{text}: no such file or folder; a text like this can be piped to -", Exit.USAGE)
    return False


def read_text(text: str, file: Path | None) -> str:
    """The text from where it was said to be. Exits when it was given twice, not at all, or unreadably."""
    if bool(text) == (file is not None):
        raise complain("give the text, or --file, or - for standard input", Exit.USAGE)
    try:
        if file is not None:
            return file.read_bytes().decode()
        return sys.stdin.buffer.read().decode() if text == STDIN else text
    except OSError as error:
        raise complain(f"{file}: {error.strerror}", Exit.USAGE) from error
    except UnicodeDecodeError as error:
        raise complain(f"{file or 'standard input'} is not UTF-8", Exit.USAGE) from error


def accepted(response: memory_ingest_pb2.AddEpisodeResponse) -> RenderableType:
    """The job with what is held for it; the quote alone when it was only validated."""
    rows = quoted(response.quote)
    if not response.HasField("job"):
        return words.pairs(rows)
    job = response.job
    known = " (this request id was known: the first call's job)" if response.replayed else ""
    return Group(
        words.pairs(
            [("job", job.job_id + known), ("state", progress_of(job)), *rows[: 0 if response.replayed else 2]]
        ),
        f"[dim]palimpsest job watch {escape(job.job_id)}[/]",
    )


def quoted(quote: job_pb2.Quote) -> list[tuple[str, str]]:
    """What something would cost at most, of what there is."""
    return [
        ("quote", f"at most {words.amount(quote.credits_micros)} credits (prices {quote.price_version})"),
        ("tokens", f"{quote.token_count:,} in {words.counted(quote.chunk_count, 'chunk')}"),
        ("available", words.amount(quote.available_micros)),
    ]
