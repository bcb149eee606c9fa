"""`graph create`, `graph show`, `graph list` and `graph update`; erasing is in erasing.py."""

from typing import Annotated

import typer
from google.protobuf.field_mask_pb2 import FieldMask
from rich.console import RenderableType
from rich.markup import escape

from palimpsest.cli import carrying, erasing, words
from palimpsest.cli.dates import shown
from palimpsest.cli.facts import GraphId
from palimpsest.cli.pages import Limit, whole
from palimpsest.cli.protecting import (
    AllowProvider,
    ArchiveAfter,
    Redact,
    RedactPattern,
    archives,
    protect,
    redacts,
)
from palimpsest.cli.saving import Batching, Gate, Profile, save, savings
from palimpsest.cli.shell import Shell, command
from palimpsest.v1 import graph_pb2

MediumModel = Annotated[
    str | None, typer.Option(help='Model that reads texts, of those offered; "" for the operator\'s.')
]
LowModel = Annotated[str | None, typer.Option(help="Model of lesser tasks, likewise.")]


def app() -> typer.Typer:
    graphs = typer.Typer(no_args_is_help=True, help="Graphs: one isolated memory each.")
    command(graphs, "create")(create)
    command(graphs, "show")(show)
    command(graphs, "list")(list_graphs)
    command(graphs, "update")(update)
    erasing.add_to_graphs(graphs)
    carrying.add_to(graphs)
    return graphs


async def create(
    shell: Shell,
    graph: GraphId,
    user_name: Annotated[str, typer.Option(help='Name of the user: whom "I" means.')] = "",
    time_zone: Annotated[
        str, typer.Option(help="IANA time zone of relative dates, such as Europe/Vienna.")
    ] = "",
    language: Annotated[
        list[str] | None, typer.Option(help="BCP 47 tag, such as en or zh; repeatable.")
    ] = None,
    medium_model: MediumModel = None,
    low_model: LowModel = None,
    profile: Profile = None,
    gate: Gate = None,
    batching: Batching = None,
    redact: Redact = None,
    redact_pattern: RedactPattern = None,
    allow_provider: AllowProvider = None,
    archive_after: ArchiveAfter = None,
) -> None:
    """Makes a graph with settings. The first `add` or `assert` makes one without, too."""
    settings = graph_pb2.GraphSettings(user_name=user_name, time_zone=time_zone, languages=language or ())
    _choose(settings, medium_model, low_model)
    save(settings, profile, gate, batching)
    protect(settings, redact, redact_pattern, allow_provider, archive_after)
    request = graph_pb2.CreateGraphRequest(graph_id=graph, settings=settings)
    response = await shell.connection.call(shell.connection.graphs.CreateGraph, request)
    shell.show(response, lambda answer: graph_of(answer.graph))


async def show(shell: Shell, graph: GraphId) -> None:
    """Shows a graph's settings, counts and revision."""
    request = graph_pb2.GetGraphRequest(graph_id=graph)
    response = await shell.connection.call(shell.connection.graphs.GetGraph, request)
    shell.show(response, lambda answer: graph_of(answer.graph))


async def list_graphs(shell: Shell, limit: Limit = 50) -> None:
    """Lists the tenant's graphs with their settings, by id."""
    request = graph_pb2.ListGraphsRequest()
    shell.show(await whole(shell, shell.connection.graphs.ListGraphs, request, "graphs", limit), _listed)


def _listed(response: graph_pb2.ListGraphsResponse) -> RenderableType:
    if not response.graphs:
        return "no graphs"
    table = words.listing("graph", "user", "time zone", "languages", "created")
    for graph in response.graphs:
        settings = graph.settings
        table.add_row(
            escape(graph.graph_id),
            escape(settings.user_name),
            settings.time_zone,
            ", ".join(settings.languages),
            shown(graph.created_at),
        )
    return table


async def update(
    shell: Shell,
    graph: GraphId,
    user_name: Annotated[str | None, typer.Option(help='Whom "I" means; "" for nobody.')] = None,
    time_zone: Annotated[str | None, typer.Option(help='IANA time zone; "" for UTC.')] = None,
    language: Annotated[list[str] | None, typer.Option(help="BCP 47 tag; repeatable; replaces all.")] = None,
    medium_model: MediumModel = None,
    low_model: LowModel = None,
    profile: Profile = None,
    gate: Gate = None,
    batching: Batching = None,
    redact: Redact = None,
    redact_pattern: RedactPattern = None,
    allow_provider: AllowProvider = None,
    archive_after: ArchiveAfter = None,
) -> None:
    """Changes the settings that are given, for texts from now on."""
    given = {
        "user_name": user_name,
        "time_zone": time_zone,
        "languages": language,
        "models.medium_model": medium_model,
        "models.low_model": low_model,
        "extraction_profile": profile,
        "relevance_gate": gate,
        "batching": batching,
        "redaction.secrets": redact,
        "redaction.card_numbers": redact,
        "redaction.patterns": redact_pattern,
        "models.allowed_providers": allow_provider,
        "retention": archive_after,
    }
    chosen = sorted(name for name, value in given.items() if value is not None)
    if not chosen:
        raise typer.BadParameter("name a setting to change")
    settings = graph_pb2.GraphSettings(
        user_name=user_name or "", time_zone=time_zone or "", languages=language or ()
    )
    _choose(settings, medium_model, low_model)
    save(settings, profile, gate, batching)
    protect(settings, redact, redact_pattern, allow_provider, archive_after)
    request = graph_pb2.UpdateGraphRequest(
        graph_id=graph, settings=settings, update_mask=FieldMask(paths=chosen)
    )
    response = await shell.connection.call(shell.connection.graphs.UpdateGraph, request)
    shell.show(response, lambda answer: graph_of(answer.graph))


def _choose(settings: graph_pb2.GraphSettings, medium: str | None, low: str | None) -> None:
    if medium:
        settings.models.medium_model = medium
    if low:
        settings.models.low_model = low


def graph_of(graph: graph_pb2.Graph) -> RenderableType:
    counts, settings, revision = graph.counts, graph.settings, graph.revision
    return words.pairs(
        [
            ("graph", graph.graph_id),
            ("user", settings.user_name),
            ("time zone", settings.time_zone),
            ("languages", ", ".join(settings.languages)),
            ("models", " · ".join(filter(None, [settings.models.medium_model, settings.models.low_model]))),
            ("profile", savings(settings)),
            ("providers", ", ".join(settings.models.allowed_providers)),
            ("redacts", redacts(settings.redaction)),
            ("archives", archives(settings)),
            (
                "holds",
                " · ".join(
                    words.counted(number, noun)
                    for number, noun in (
                        (counts.statements, "statements"),
                        (counts.entities, "entities"),
                        (counts.claims, "claims"),
                        (counts.episodes, "episodes"),
                        *([(counts.archived, "archived")] if counts.archived else []),
                    )
                ),
            ),
            (
                "revision",
                f"{revision.revision}" + (f" of {shown(revision.time)}" if revision.revision else ""),
            ),
            ("created", shown(graph.created_at)),
        ]
    )
