"""`graph export`, `graph import`, `graph rebuild` and `graph restore-archived`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from palimpsest.carrying import NotAnExport, export_graph, import_graph
from palimpsest.cli import words
from palimpsest.cli.adding import MaxCredits, ValidateOnly, quoted
from palimpsest.cli.exits import Exit, complain
from palimpsest.cli.facts import GraphId
from palimpsest.cli.jobs import finish, follow, job_of
from palimpsest.cli.operating import RequestId
from palimpsest.cli.shell import Shell, command
from palimpsest.connection import new_request_id
from palimpsest.errors import CallError
from palimpsest.v1 import memory_graph_pb2, privacy_pb2

_TRIES = 5
"""Exports that are begun anew because text was deleted meanwhile."""

File = Annotated[Path, typer.Argument(metavar="FILE", help="A new file.", dir_okay=False)]
Exported = Annotated[
    Path, typer.Argument(metavar="FILE", help="What `graph export` wrote.", exists=True, dir_okay=False)
]


def add_to(graphs: typer.Typer) -> None:
    """Adds all to the commands about graphs."""
    command(graphs, "export")(export)
    command(graphs, "import")(take_in)
    command(graphs, "rebuild")(rebuild)
    command(graphs, "restore-archived")(restore_archived)


async def export(shell: Shell, graph: GraphId, file: File) -> None:
    """Writes everything of a graph into a file, while others go on writing to it.

    The file holds texts of users: its owner alone can read it. Needs a key with the scope `erase`.
    """
    for left in reversed(range(_TRIES)):
        try:
            with shell.progress("exporting") as bar:
                trailer = await export_graph(
                    shell.connection, graph, file, lambda done: bar.show(f"exporting {_size(done)}", 0, None)
                )
            break
        except CallError as error:
            if error.reason != "CONFLICT" or not left:
                raise
            shell.note("something was deleted meanwhile; exporting again")
        except (NotAnExport, OSError) as error:
            raise complain(str(error), Exit.FAILED) from error
    shell.show(trailer, _exported)


def _size(count: int) -> str:
    return f"{count / 1_000_000:,.1f} MB"


def _exported(trailer: privacy_pb2.ExportTrailer) -> RenderableType:
    counts = [(part, str(count)) for part, count in sorted(trailer.counts.items())]
    return words.pairs([*counts, ("sha256", trailer.sha256)])


async def take_in(shell: Shell, graph: GraphId, file: Exported, request_id: RequestId = "") -> None:
    """Makes a graph that is not there from a file: ids, dates and revisions as they were.

    Everything is checked before anything of it can be seen. Needs a key with the scope `erase`.
    """
    try:
        whole = file.stat().st_size
        with shell.progress("importing") as bar:
            response = await import_graph(
                shell.connection,
                graph,
                file,
                request_id or new_request_id(),
                lambda done: bar.show(f"importing {_size(done)}", done, whole),
            )
    except (NotAnExport, OSError) as error:
        raise complain(str(error), Exit.USAGE) from error
    shell.show(response, lambda answer: job_of(answer.job))


async def rebuild(
    shell: Shell,
    graph: GraphId,
    read_anew: Annotated[
        bool, typer.Option("--read-anew", help="Read every text anew; costs what adding them would.")
    ] = False,
    medium_model: Annotated[
        str, typer.Option("--medium-model", metavar="MODEL", help="Read anew by this model.")
    ] = "",
    low_model: Annotated[
        str, typer.Option("--low-model", metavar="MODEL", help="Likewise, of the low tier.")
    ] = "",
    undo: Annotated[
        str, typer.Option("--undo", metavar="JOB", help="Undo what this rebuild read anew; costs nothing.")
    ] = "",
    validate_only: ValidateOnly = False,
    max_credits: MaxCredits = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end.")] = False,
    request_id: RequestId = "",
) -> None:
    """Makes spans, aliases and vectors anew from records and texts, as a job with a report; costs nothing.

    Or reads every text anew, with the prompts of the server's release, by its models or those named here.
    What a text said by the old reading is replaced by what it says now, and stays known as of before.
    """
    request = memory_graph_pb2.RebuildGraphRequest(
        graph_id=graph,
        request_id=request_id or new_request_id(),
        prompt_version="current" if read_anew else "",
        medium_model=medium_model,
        low_model=low_model,
        validate_only=validate_only,
        max_credits_micros=max_credits,
        undo_job_id=undo,
    )
    response = await shell.connection.call(shell.connection.memory.RebuildGraph, request)
    if validate_only:
        shell.show(response, lambda answer: words.pairs(quoted(answer.quote)))
    elif wait:
        finish(await follow(shell, response.job.job_id), shell)
    else:
        shell.show(response, lambda answer: job_of(answer.job))


async def restore_archived(
    shell: Shell,
    graph: GraphId,
    statement: Annotated[
        list[str] | None, typer.Argument(metavar="[STATEMENT]...", help="Ids; none: all that are archived.")
    ] = None,
    request_id: RequestId = "",
) -> None:
    """Brings back what retention archived, as it was; nothing else is different."""
    request = memory_graph_pb2.RestoreArchivedRequest(
        graph_id=graph, statement_ids=statement or (), request_id=request_id or new_request_id()
    )
    response = await shell.connection.call(shell.connection.memory.RestoreArchived, request)
    shell.show(response, _restored)


def _restored(done: memory_graph_pb2.RestoreArchivedResponse) -> RenderableType:
    return f"{words.counted(done.restored_count, 'statements')} came back (revision {done.revision})"
