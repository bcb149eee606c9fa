"""`add-many`: takes in many texts, one a line of JSON."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from google.protobuf import json_format
from rich.console import RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.exits import Exit, complain
from palimpsest.cli.facts import GraphId
from palimpsest.cli.jobs import progress_of
from palimpsest.cli.shell import Shell, command
from palimpsest.connection import new_request_id
from palimpsest.v1 import episode_pb2, memory_ingest_pb2

BATCH = 100
"""Texts of one call: as many as it may have."""
BATCH_BYTES = 12 * 1024 * 1024
"""Bytes of one call: below what it may have, as JSON is longer than what is sent."""
STDIN = "-"

Request = memory_ingest_pb2.AddEpisodeRequest


def add_to(app: typer.Typer) -> None:
    command(app, "add-many", panel="Memory")(add_many)


async def add_many(
    shell: Shell,
    graph: GraphId,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Lines of JSON, each a text with the fields of AddEpisode; - reads standard input.",
        ),
    ],
    request_id: Annotated[
        str,
        typer.Option(
            help="Names the lines, ID-1, ID-2, …: repeated with it, each takes effect once. "
            "(default: a fresh one)"
        ),
    ] = "",
) -> None:
    """Takes in many texts, in order. Answers a job for each; exit code 1 when some were refused.

    A line such as {"text": "I moved to Linz.", "sessionId": "s1", "referenceTime": "2025-06-02T00:00:00Z"};
    kind is conversation unless it says otherwise.
    """
    name = request_id or new_request_id()
    requests = [_read(line, number, graph, name) for number, line in _lines(file)]
    if not requests:
        raise complain(f"{file}: no texts", Exit.USAGE)
    response = memory_ingest_pb2.BatchAddEpisodesResponse()
    for part in _parts(requests):
        asked = memory_ingest_pb2.BatchAddEpisodesRequest(requests=part)
        answer = await shell.connection.call(shell.connection.memory.BatchAddEpisodes, asked)
        response.MergeFrom(answer)
    shell.show(response, listed)
    refused = sum(result.HasField("error") for result in response.results)
    if refused:
        raise complain(f"{refused} of {len(requests)} texts were refused", Exit.FAILED)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        text = sys.stdin.buffer.read() if str(file) == STDIN else file.read_bytes()
        lines = text.decode().split("\n")
    except OSError as error:
        raise complain(f"{file}: {error.strerror}", Exit.USAGE) from error
    except UnicodeDecodeError as error:
        raise complain(f"{file} is not UTF-8", Exit.USAGE) from error
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def _read(line: str, number: int, graph: str, name: str) -> Request:
    try:
        request = Request(
            graph_id=graph, request_id=f"{name}-{number}", kind=episode_pb2.EPISODE_KIND_CONVERSATION
        )
        request.MergeFrom(json_format.Parse(line, Request()))
    except json_format.ParseError as error:
        raise complain(f"line {number}: {error}", Exit.USAGE) from error
    return request


def _parts(requests: Sequence[Request]) -> Iterator[list[Request]]:
    """As many as fit into a call, in order."""
    part: list[Request] = []
    size = 0
    for request in requests:
        if part and (len(part) == BATCH or size + request.ByteSize() > BATCH_BYTES):
            yield part
            part, size = [], 0
        part.append(request)
        size += request.ByteSize()
    yield part


def listed(response: memory_ingest_pb2.BatchAddEpisodesResponse) -> RenderableType:
    """Each text by its request id: its job, or why it was refused."""
    table = words.listing("request", "job", "outcome")
    for result in response.results:
        if result.HasField("error"):
            table.add_row(escape(result.request_id), "", escape(words.error(result.error)))
        else:
            job = result.response.job
            known = " (known before)" if result.response.replayed else ""
            table.add_row(escape(result.request_id), escape(job.job_id), progress_of(job) + known)
    return table
