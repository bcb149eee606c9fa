"""`graph create`, `graph show`, `graph list` and `graph update`; erasing is in erasing.py."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer
from google.protobuf.field_mask_pb2 import FieldMask
from rich.console import RenderableType
from rich.markup import escape

from palimpsest.cli import carrying, erasing, words
from palimpsest.cli.dates import shown
from palimpsest.cli.facts import GraphId
from palimpsest.cli.pages import Limit, whole
from palimpsest.cli.shell import Shell, command
from palimpsest.v1 import graph_pb2

MediumModel = Annotated[
    str | None, typer.Option(help='Model that reads texts, of those offered; "" for the operator\'s.')
]
LowModel = Annotated[str | None, typer.Option(help="Model of lesser tasks, likewise.")]


class Redacted(StrEnum):
    """What is blacked out of texts before they are stored."""

    SECRETS = "secrets"
    CARDS = "cards"
    NOTHING = "nothing"


class Profiled(StrEnum):
    """How thoroughly texts are understood."""

    FULL = "full"
    ECONOMY = "economy"


class Saved(StrEnum):
    """Whether something is done that saves model calls."""

    ON = "on"
    OFF = "off"
    DEFAULT = "default"


_SAVINGS = {
    Saved.ON: graph_pb2.SAVING_ON,
    Saved.OFF: graph_pb2.SAVING_OFF,
    Saved.DEFAULT: graph_pb2.SAVING_UNSPECIFIED,
}
_PROFILES = {
    Profiled.FULL: graph_pb2.EXTRACTION_PROFILE_FULL,
    Profiled.ECONOMY: graph_pb2.EXTRACTION_PROFILE_ECONOMY,
}
Profile = Annotated[
    Profiled | None, typer.Option(help="How texts are understood: a model call a step, or few calls.")
]
Gate = Annotated[
    Saved | None, typer.Option(help="Whether plain small talk is kept from the model; by default on.")
]
Batching = Annotated[
    Saved | None,
    typer.Option(help="Whether short messages of a session that wait are read in one go; default: economy."),
]
Redact = Annotated[
    list[Redacted] | None,
    typer.Option(help="What to black out before anything is stored or read; repeatable; replaces all."),
]
AllowProvider = Annotated[
    list[str] | None,
    typer.Option(help='Model provider that may see texts; repeatable; replaces all; "" for every one.'),
]


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
    allow_provider: AllowProvider = None,
) -> None:
    """Makes a graph with settings. The first `add` or `assert` makes one without, too."""
    settings = graph_pb2.GraphSettings(user_name=user_name, time_zone=time_zone, languages=language or ())
    _choose(settings, medium_model, low_model)
    _save(settings, profile, gate, batching)
    _protect(settings, redact, allow_provider)
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
    allow_provider: AllowProvider = None,
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
        "redaction": redact,
        "models.allowed_providers": allow_provider,
    }
    chosen = sorted(name for name, value in given.items() if value is not None)
    if not chosen:
        raise typer.BadParameter("name a setting to change")
    settings = graph_pb2.GraphSettings(
        user_name=user_name or "", time_zone=time_zone or "", languages=language or ()
    )
    _choose(settings, medium_model, low_model)
    _save(settings, profile, gate, batching)
    _protect(settings, redact, allow_provider)
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


def _save(
    settings: graph_pb2.GraphSettings, profile: Profiled | None, gate: Saved | None, batching: Saved | None
) -> None:
    if profile is not None:
        settings.extraction_profile = _PROFILES[profile]
    if gate is not None:
        settings.relevance_gate = _SAVINGS[gate]
    if batching is not None:
        settings.batching = _SAVINGS[batching]


def _savings(settings: graph_pb2.GraphSettings) -> str:
    """How it is understood, where that is not the default: `economy · gate off`."""
    parts = ["economy"] if settings.extraction_profile == graph_pb2.EXTRACTION_PROFILE_ECONOMY else []
    for name, saving in (("gate", settings.relevance_gate), ("batching", settings.batching)):
        parts += [f"{name} {word.value}" for word, value in _SAVINGS.items() if value == saving and value]
    return " · ".join(parts)


def _protect(
    settings: graph_pb2.GraphSettings, redact: Sequence[Redacted] | None, providers: Sequence[str] | None
) -> None:
    if redact is not None:
        settings.redaction.secrets = Redacted.SECRETS in redact
        settings.redaction.card_numbers = Redacted.CARDS in redact
    if providers is not None:
        settings.models.allowed_providers.extend(filter(None, providers))


def _redacts(redaction: graph_pb2.RedactionSettings) -> str:
    kinds = {Redacted.SECRETS: redaction.secrets, Redacted.CARDS: redaction.card_numbers}
    return ", ".join(kind.value for kind, chosen in kinds.items() if chosen)


def graph_of(graph: graph_pb2.Graph) -> RenderableType:
    counts, settings, revision = graph.counts, graph.settings, graph.revision
    return words.pairs(
        [
            ("graph", graph.graph_id),
            ("user", settings.user_name),
            ("time zone", settings.time_zone),
            ("languages", ", ".join(settings.languages)),
            ("models", " · ".join(filter(None, [settings.models.medium_model, settings.models.low_model]))),
            ("profile", _savings(settings)),
            ("providers", ", ".join(settings.models.allowed_providers)),
            ("redacts", _redacts(settings.redaction)),
            (
                "holds",
                " · ".join(
                    words.counted(number, noun)
                    for number, noun in (
                        (counts.statements, "statements"),
                        (counts.entities, "entities"),
                        (counts.claims, "claims"),
                        (counts.episodes, "episodes"),
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
