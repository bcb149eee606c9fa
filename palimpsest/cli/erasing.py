"""`graph erase`, `entity erase`, `tenant erase`, `erasure`: what goes for good, and how far it has come."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.dates import shown
from palimpsest.cli.exits import Exit, complain
from palimpsest.cli.facts import GraphId
from palimpsest.cli.jobs import word_of_state
from palimpsest.cli.operating import RequestId
from palimpsest.cli.shell import Shell, command
from palimpsest.connection import new_request_id
from palimpsest.v1 import entity_pb2, job_pb2, privacy_pb2

Sure = Annotated[bool, typer.Option("--yes", help="Don't ask: it can't be undone.")]
Wait = Annotated[bool, typer.Option(help="Wait until it has ended.")]
_POLL_SECONDS = 0.5
_ENDED = {job_pb2.JOB_STATE_SUCCEEDED, job_pb2.JOB_STATE_FAILED}


def add_to(app: typer.Typer) -> None:
    command(app, "erasure", panel="Memory")(erasure)


def add_to_graphs(app: typer.Typer) -> None:
    command(app, "erase")(erase_graph)


def add_to_entities(app: typer.Typer) -> None:
    command(app, "erase")(erase_entity)


def add_to_tenants(app: typer.Typer) -> None:
    command(app, "erase", operator=True)(erase_tenant)


async def erase_graph(
    shell: Shell, graph: GraphId, yes: Sure = False, request_id: RequestId = "", wait: Wait = True
) -> None:
    """Erases a graph from every store, for good. Needs a key that may erase."""
    confirm(yes, f"Erase graph {graph!r} with all that it holds, for good?")
    request = privacy_pb2.EraseGraphRequest(graph_id=graph, request_id=request_id or new_request_id())

    async def ask() -> privacy_pb2.Erasure:
        return (await shell.connection.call(shell.connection.privacy.EraseGraph, request)).erasure

    await _carried_out(shell, ask, wait)


async def erase_entity(
    shell: Shell,
    graph: GraphId,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="A name of it, or with --id its id.")],
    by_id: Annotated[bool, typer.Option("--id", help="ENTITY is an id.")] = False,
    yes: Sure = False,
    request_id: RequestId = "",
    wait: Wait = True,
) -> None:
    """Erases one person or thing from a graph, with all texts that name it. Needs a key that may erase."""
    confirm(yes, f"Erase {entity!r} from graph {graph!r}, with every passage that names it, for good?")
    ref = entity_pb2.EntityRef(entity_id=entity) if by_id else entity_pb2.EntityRef(name=entity)
    request = privacy_pb2.EraseEntityRequest(
        graph_id=graph, entity=ref, request_id=request_id or new_request_id()
    )

    async def ask() -> privacy_pb2.Erasure:
        return (await shell.connection.call(shell.connection.privacy.EraseEntity, request)).erasure

    await _carried_out(shell, ask, wait)


async def erase_tenant(
    shell: Shell,
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="The tenant.")],
    yes: Sure = False,
    request_id: RequestId = "",
    wait: Wait = True,
) -> None:
    """Erases all graphs of a tenant and revokes its keys, for good. Its ledger stays, without words."""
    confirm(yes, f"Erase tenant {tenant!r} with all of its graphs, for good?")
    request = privacy_pb2.EraseTenantRequest(tenant_id=tenant, request_id=request_id or new_request_id())

    async def ask() -> privacy_pb2.Erasure:
        return (await shell.connection.call(shell.connection.privacy.EraseTenant, request)).erasure

    await _carried_out(shell, ask, wait)


async def erasure(
    shell: Shell,
    erasure_id: Annotated[str, typer.Argument(metavar="ERASURE", help="Id of the erasure.")],
) -> None:
    """Shows how an erasure stands, and what it removed from each store."""
    request = privacy_pb2.GetErasureRequest(erasure_id=erasure_id)
    response = await shell.connection.call(shell.connection.privacy.GetErasure, request)
    shell.show(response.erasure, erasure_of)


def confirm(yes: bool, question: str) -> None:
    """Asks, unless told not to. Raises typer.Abort."""
    if not yes:
        typer.confirm(question, abort=True, err=True)


async def _carried_out(shell: Shell, ask: Callable[[], Awaitable[privacy_pb2.Erasure]], wait: bool) -> None:
    """Asking again by the same request id tells how it stands."""
    erasure = await ask()
    while wait and erasure.state not in _ENDED:
        await asyncio.sleep(_POLL_SECONDS)
        erasure = await ask()
    shell.show(erasure, erasure_of)
    if erasure.state == job_pb2.JOB_STATE_FAILED:
        text = f"erasure {erasure.erasure_id} failed; what it began stays refused: erase again"
        raise complain(text, Exit.JOB_FAILED)


def erasure_of(erasure: privacy_pb2.Erasure) -> RenderableType:
    """An erasure, and what it removed."""
    head = words.pairs(
        [
            ("erasure", erasure.erasure_id),
            ("graph", erasure.graph_id or "all of the tenant"),
            ("entity", erasure.entity_id),
            ("state", word_of_state(erasure.state)),
            ("asked for", shown(erasure.created_at)),
            ("ended", shown(erasure.finished_at) if erasure.HasField("finished_at") else ""),
        ]
    )
    if not erasure.reports:
        return head
    table = words.listing("store", "removed", "empty")
    for report in erasure.reports:
        counts = sorted(report.removed.items())
        table.add_row(
            escape(report.store),
            escape(" · ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in counts) or "nothing"),
            "verified" if report.verified_empty else "",
        )
    return Group(head, "", table)
