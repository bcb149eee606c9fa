"""`source rule` and `source rules`."""

from typing import Annotated

import typer
from rich.console import RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.pages import Limit, whole
from palimpsest.cli.shell import Shell, command
from palimpsest.v1 import graph_pb2

OfGraph = Annotated[str, typer.Option("--graph", help="For this graph alone; without: for every graph.")]


def add_to(sources: typer.Typer) -> None:
    """Adds both to the commands about sources."""
    command(sources, "rule")(rule)
    command(sources, "rules")(rules)


async def rule(
    shell: Shell,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="As it is given with episodes.")],
    graph: OfGraph = "",
    trust: Annotated[
        float | None, typer.Option(min=0, max=1, help="What its claims weigh, 0 to 1; 1 when not said.")
    ] = None,
    instructions: Annotated[
        str, typer.Option(help="What to keep or leave out, in words for the model.")
    ] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Take away the rule that is there.")] = False,
) -> None:
    """Says how texts of a source are read from now on, in place of the rule that is there."""
    if remove == (trust is not None or bool(instructions.strip())):
        raise typer.BadParameter("say --trust or --instructions, or --remove")
    asked = graph_pb2.IngestionRule(graph_id=graph, source=source, trust=trust, instructions=instructions)
    request = graph_pb2.SetIngestionRuleRequest(rule=asked)
    response = await shell.connection.call(shell.connection.graphs.SetIngestionRule, request)
    shell.show(response, rule_of)


def rule_of(response: graph_pb2.SetIngestionRuleResponse) -> RenderableType:
    one = response.rule
    return words.pairs(
        [
            ("source", one.source),
            ("graph", one.graph_id or "every graph"),
            ("trust", _trust(one)),
            ("instructions", one.instructions),
        ]
    )


async def rules(shell: Shell, graph: OfGraph = "", limit: Limit = 50) -> None:
    """Lists the rules of a graph, or those for every graph, by source."""
    request = graph_pb2.ListIngestionRulesRequest(graph_id=graph)
    method = shell.connection.graphs.ListIngestionRules
    shell.show(await whole(shell, method, request, "rules", limit), _listed)


def _listed(response: graph_pb2.ListIngestionRulesResponse) -> RenderableType:
    if not response.rules:
        return "no rules"
    table = words.listing("source", "trust", "instructions")
    for one in response.rules:
        table.add_row(*map(escape, [one.source, _trust(one), one.instructions]))
    return table


def _trust(rule: graph_pb2.IngestionRule) -> str:
    return f"{rule.trust:g}" if rule.HasField("trust") else "1 (not said)"
