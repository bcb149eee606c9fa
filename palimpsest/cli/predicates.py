"""`predicate declare` and `predicate list`."""

from typing import Annotated

import typer
from rich.console import RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.facts import GraphId
from palimpsest.cli.pages import Limit, whole
from palimpsest.cli.shell import Shell, command
from palimpsest.v1 import entity_pb2, graph_pb2

Name = Annotated[str, typer.Argument(metavar="PREDICATE", help='Its name; "works at" is works_at.')]


def app() -> typer.Typer:
    predicates = typer.Typer(no_args_is_help=True, help="Predicates: what facts say of their subjects.")
    command(predicates, "declare")(declare)
    command(predicates, "list")(list_)
    return predicates


async def declare(
    shell: Shell,
    graph: GraphId,
    predicate: Name,
    single: Annotated[
        bool, typer.Option("--single/--multi", help="One object at a time, or many.", show_default=False)
    ],
    alias: Annotated[
        list[str] | None, typer.Option(help="A name that reads as it; repeatable, in place of those before.")
    ] = None,
    inverse: Annotated[
        str, typer.Option(help="The predicate that says the same from object to subject.")
    ] = "",
) -> None:
    """Says of a predicate how many objects it has at a time, its aliases and its inverse."""
    request = graph_pb2.DeclarePredicateRequest(
        graph_id=graph,
        name=predicate,
        cardinality=entity_pb2.CARDINALITY_SINGLE if single else entity_pb2.CARDINALITY_MULTI,
        aliases=alias or (),
        inverse=inverse,
    )
    response = await shell.connection.call(shell.connection.graphs.DeclarePredicate, request)
    shell.show(response, _declared)


def _declared(response: graph_pb2.DeclarePredicateResponse) -> RenderableType:
    predicate = response.predicate
    return words.pairs(
        [
            ("name", predicate.name),
            ("predicate", predicate.predicate_id),
            ("objects at a time", _many(predicate)),
            ("also", ", ".join(predicate.aliases)),
            ("inverse", predicate.inverse),
            ("revision", f"{response.revision:,}"),
        ]
    )


async def list_(
    shell: Shell,
    graph: GraphId,
    declared: Annotated[bool, typer.Option("--declared", help="Only declared ones.")] = False,
    limit: Limit = 50,
) -> None:
    """Lists predicates by name: declared ones, those that ship, and those met in texts."""
    request = graph_pb2.ListPredicatesRequest(graph_id=graph, declared_only=declared)
    shell.show(
        await whole(shell, shell.connection.graphs.ListPredicates, request, "predicates", limit), _listed
    )


def _listed(response: graph_pb2.ListPredicatesResponse) -> RenderableType:
    table = words.listing("name", "objects", "inverse", "also", "since")
    for one in response.predicates:
        since = f"{'declared' if one.declared else 'met'}, revision {one.revision.revision}"
        known = since if one.revision.revision else "ships"
        table.add_row(*map(escape, [one.name, _many(one), one.inverse, ", ".join(one.aliases), known]))
    return table


def _many(predicate: entity_pb2.Predicate) -> str:
    return words.word(entity_pb2.Cardinality.Name, predicate.cardinality, "CARDINALITY_")
