"""`diff`: what changed in a graph between two points."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.dates import FORMS, read_date, read_known_at
from palimpsest.cli.facts import GraphId, KnownAt
from palimpsest.cli.pages import whole
from palimpsest.cli.shell import Shell, command
from palimpsest.v1 import memory_graph_pb2, statement_pb2

_MARKS = {
    memory_graph_pb2.CHANGE_KIND_ADDED: "+",
    memory_graph_pb2.CHANGE_KIND_ENDED: "✗",
    memory_graph_pb2.CHANGE_KIND_RESTORED: "↺",
    memory_graph_pb2.CHANGE_KIND_EXPIRED: "−",
    memory_graph_pb2.CHANGE_KIND_REDATED: "~",
}


def add_to(app: typer.Typer) -> None:
    command(app, "diff", panel="Memory")(diff)


async def diff(
    shell: Shell,
    graph: GraphId,
    before: Annotated[str, typer.Argument(metavar="BEFORE", help=f"The earlier date: {FORMS}.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The later date.")] = "now",
    believed: Annotated[
        bool,
        typer.Option("--believed", help="Compare beliefs instead; a plain number is a revision then."),
    ] = False,
    known_at: KnownAt = None,
) -> None:
    """Shows what held on one date and not on the other, or what came to be believed."""
    request = memory_graph_pb2.DiffGraphRequest(graph_id=graph, known_at=known_at)
    if believed:
        request.system.before.CopyFrom(read_known_at(before))
        if after != "now":
            request.system.after.CopyFrom(read_known_at(after))
    else:
        request.world.before.CopyFrom(read_date(before).timestamp)
        request.world.after.CopyFrom(read_date(after).timestamp)
    listed = await whole(shell, shell.connection.memory.DiffGraph, request, "changes")
    shell.show(listed, changes_of)


def changes_of(response: memory_graph_pb2.DiffGraphResponse) -> RenderableType:
    table = words.listing("", "change", "fact", "before", "after")
    for change in response.changes:
        text = (
            change.statement.fact
            if change.HasField("statement")
            else f"\u201c{change.voice_aspect.text}\u201d"
        )
        kind = words.word(memory_graph_pb2.ChangeKind.Name, change.kind, "CHANGE_KIND_")
        row = [
            _MARKS.get(change.kind, "?"),
            kind,
            text,
            _dates(change.before) if change.HasField("before") else "",
            _dates(change.after) if change.HasField("after") else "",
        ]
        table.add_row(*map(escape, row))
    lines: list[RenderableType] = [table, f"[dim]revision {response.revision}[/]"]
    return Group(*lines) if response.changes else Group("nothing changed", lines[1])


def _dates(span: statement_pb2.Span) -> str:
    return f"{words.since(span)} to {words.until(span) or 'now'}"
