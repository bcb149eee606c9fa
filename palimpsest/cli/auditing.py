"""`audit`: who did what to memory, and why."""

from typing import Annotated

import typer
from rich.console import RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.dates import FORMS, Dated, read_date, shown
from palimpsest.cli.pages import Limit, whole
from palimpsest.cli.shell import Shell, command
from palimpsest.v1 import privacy_pb2


def add_to(app: typer.Typer) -> None:
    command(app, "audit", panel="Memory")(audit)


async def audit(
    shell: Shell,
    graph: Annotated[str, typer.Option(help="Only of this graph.")] = "",
    about: Annotated[str, typer.Option(metavar="ID", help="Only about this id.")] = "",
    action: Annotated[
        str, typer.Option(help="Only this: a call (EndStatement) or a decision (end_statement).")
    ] = "",
    since: Annotated[
        Dated | None, typer.Option(parser=read_date, metavar="DATE", help=f"Only from then on: {FORMS}.")
    ] = None,
    until: Annotated[
        Dated | None, typer.Option(parser=read_date, metavar="DATE", help="Only before then.")
    ] = None,
    limit: Limit = 50,
) -> None:
    """Lists calls and decisions that changed something, newest first: who, what, why."""
    request = privacy_pb2.ListAuditEventsRequest(
        graph_id=graph,
        action=action,
        target_id=about,
        created_from=since.timestamp if since else None,
        created_until=until.timestamp if until else None,
    )
    shell.show(
        await whole(shell, shell.connection.privacy.ListAuditEvents, request, "events", limit), audit_of
    )


def audit_of(response: privacy_pb2.ListAuditEventsResponse) -> RenderableType:
    """Events as a table."""
    if not response.events:
        return "no events"
    table = words.listing("when", "who", "what", "to", "why", "graph", "revision")
    for event in response.events:
        who = words.word(privacy_pb2.AuditActor.Name, event.actor, "AUDIT_ACTOR_").replace("_", " ")
        model = " ".join(word for word in (event.model, event.prompt_version) if word)
        row = [
            shown(event.created_at),
            " ".join(word for word in (who, event.key_id, model) if word),
            event.action,
            ", ".join(event.target_ids),
            event.reason,
            event.graph_id,
            str(event.revision or ""),
        ]
        table.add_row(*map(escape, row))
    return table
