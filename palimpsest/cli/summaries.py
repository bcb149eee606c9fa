"""`session show`, `label list`, `persona show`, `persona set`, `persona release`: what follows ingests."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.dates import shown
from palimpsest.cli.facts import GraphId
from palimpsest.cli.pages import Limit, whole
from palimpsest.cli.shell import Shell, command
from palimpsest.v1 import recall_summaries_pb2 as pb

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="As it was given with episodes.")]
SectionId = Annotated[str, typer.Argument(metavar="SECTION", help="Its name; `persona show` tells it.")]
Version = Annotated[
    int, typer.Option("--version", min=0, help="Only if this is the newest; 0: whichever is there.")
]


def sessions() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True, help="Sessions: what is left of them in short.")
    command(app, "show")(show_session)
    return app


def labels() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True, help="Labels: topic names of sessions.")
    command(app, "list")(list_labels)
    return app


def personas() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True, help="Persona: the document about a graph's user.")
    command(app, "show")(show_persona)
    command(app, "set")(set_section)
    command(app, "release")(release_section)
    return app


async def show_session(shell: Shell, graph: GraphId, session: SessionId) -> None:
    """Shows title, labels and cited summary of a session."""
    request = pb.GetSessionSummaryRequest(graph_id=graph, session_id=session)
    shell.show(await shell.connection.call(shell.connection.recall.GetSessionSummary, request), summary_of)


def summary_of(response: pb.GetSessionSummaryResponse) -> RenderableType:
    one = response.summary
    made = shown(one.updated_at) if one.HasField("updated_at") else "not yet"
    table = words.listing("sentence", "rests on")
    for sentence in one.sentences:
        cited = [*sentence.statement_ids, *sentence.voice_aspect_ids]
        table.add_row(escape(sentence.text), escape(" ".join(cited)))
    head = words.pairs(
        [
            ("title", one.title),
            ("labels", ", ".join(one.labels)),
            ("made", made),
            ("revision", str(one.revision)),
        ]
    )
    return Group(head, table)


async def list_labels(shell: Shell, graph: GraphId, limit: Limit = 50) -> None:
    """Lists the labels of a graph, most used first."""
    request = pb.ListLabelsRequest(graph_id=graph)
    shell.show(await whole(shell, shell.connection.recall.ListLabels, request, "labels", limit), _labels)


def _labels(response: pb.ListLabelsResponse) -> RenderableType:
    if not response.labels:
        return "no labels"
    table = words.listing("label", "sessions")
    for one in response.labels:
        table.add_row(escape(one.name), str(one.session_count))
    return table


async def show_persona(shell: Shell, graph: GraphId) -> None:
    """Shows the document about the graph's user."""
    request = pb.GetPersonaRequest(graph_id=graph)
    response = await shell.connection.call(shell.connection.recall.GetPersona, request)
    shell.show(response, lambda answer: persona_of(answer.persona))


def persona_of(persona: pb.Persona) -> RenderableType:
    parts: list[RenderableType] = []
    for section in persona.sections:
        mine = " [dim](yours)[/]" if section.protected else ""
        parts += [f"[bold]{escape(section.title)}[/] [dim]{escape(section.section_id)}[/]{mine}"]
        parts += [escape(section.text), ""]
    return Group(*parts, f"[dim]version {persona.version} · revision {persona.revision}[/]")


async def set_section(
    shell: Shell,
    graph: GraphId,
    section: SectionId,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="In Markdown; a file as @FILE, the input as -.")
    ],
    title: Annotated[str, typer.Option(help="Its heading. (default: its name)")] = "",
    version: Version = 0,
) -> None:
    """Writes a section of the persona; no ingest overwrites it from now on."""
    edited = pb.PersonaSection(section_id=section, title=title or section, text=_read(text), protected=True)
    await _update(shell, graph, edited, version)


async def release_section(shell: Shell, graph: GraphId, section: SectionId, version: Version = 0) -> None:
    """Gives a section of the persona back to the service, which writes it anew or leaves it out."""
    await _update(shell, graph, pb.PersonaSection(section_id=section, title=section), version)


async def _update(shell: Shell, graph: str, section: pb.PersonaSection, version: int) -> None:
    request = pb.UpdatePersonaRequest(graph_id=graph, sections=[section], expected_version=version)
    response = await shell.connection.call(shell.connection.recall.UpdatePersona, request)
    shell.show(response, lambda answer: persona_of(answer.persona))


def _read(text: str) -> str:
    if text == "-":
        return sys.stdin.read()
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{text[1:]} can't be read as text") from error
