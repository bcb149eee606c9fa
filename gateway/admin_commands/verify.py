"""`palimpsest-admin verify`: finds differences between the stores, and mends them if asked."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from gateway.admin_commands.installation import FAILED, DataDir, Graph, Installation, Tenant, run
from services.upkeep.differences import Report
from services.upkeep.verify import Patience, Verifier

_PATIENCE = Patience()


def command(
    tenant: Tenant = None,
    graph: Graph = None,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what is found.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each graph.")] = False,
    settled_seconds: Annotated[
        float,
        typer.Option(min=0, help="Text and revisions younger than this may still be on their way."),
    ] = _PATIENCE.settled_seconds,
    data_dir: DataDir = None,
) -> None:
    """Finds differences between the graph, the vectors and memory, server up or not.

    Reads in pages, locks nothing. A difference is told once it was seen twice, the second time while nobody
    wrote. Each is a line: what, of which graph, its id, and what was done. Exit code 0: there are none, or
    all were mended. 1: some are left. 2: it could not be looked.
    """

    async def look(installation: Installation) -> Sequence[Report]:
        patience = Patience(settled_seconds=settled_seconds)
        verifier = Verifier(installation.stores, installation.vocabulary, installation.mends, patience)
        reports = []
        for row in await installation.graphs(tenant, graph):
            report = await verifier.verify(row.scope, repair)
            typer.echo(_json(report) if as_json else _lines(report), nl=as_json)
            reports.append(report)
        return reports

    reports = run(data_dir, look)
    left = sum(report.left for report in reports)
    found = sum(len(report.differences) for report in reports)
    graphs = "1 graph" if len(reports) == 1 else f"{len(reports)} graphs"
    typer.echo(f"{graphs}: {found} differences found, {left} left", err=True)
    if left:
        raise typer.Exit(FAILED)


def _lines(report: Report) -> str:
    name = f"{report.scope.tenant}/{report.scope.graph}"
    return "".join(
        f"{one.kind}  {name}  {one.id}{f' ({one.what})' if one.what else ''}  {one.done}\n"
        for one in report.differences
    )


def _json(report: Report) -> str:
    return json.dumps(
        {
            "tenant": report.scope.tenant,
            "graph": report.scope.graph,
            "looked_at": report.looked_at,
            "left": report.left,
            "differences": [
                {"kind": one.kind, "id": one.id, "what": one.what, "done": one.done}
                for one in report.differences
            ],
        },
        ensure_ascii=False,
    )
