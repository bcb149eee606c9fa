"""`voice list`."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.dates import FORMS, Dated, read_date, shown
from palimpsest.cli.facts import GraphId, KnownAt
from palimpsest.cli.shell import Shell, command
from palimpsest.v1 import memory_voice_pb2, voice_pb2

KINDS = {
    name.removeprefix("VOICE_ASPECT_KIND_").lower(): number
    for name, number in voice_pb2.VoiceAspectKind.items()
}


def read_kind(text: str) -> voice_pb2.VoiceAspectKind.ValueType:
    """A kind by its name in any case. Raises typer.BadParameter."""
    number = KINDS.get(text.strip().lower())
    if not number:
        raise typer.BadParameter(f"{text!r} is no kind; one of {', '.join(sorted(KINDS)[:-1])}")
    return number


def app() -> typer.Typer:
    voices = typer.Typer(no_args_is_help=True, help="Voice: sentences of the user, kept whole.")
    command(voices, "list")(list_)
    return voices


async def list_(
    shell: Shell,
    graph: GraphId,
    kind: Annotated[
        list[int] | None,
        typer.Option("--kind", parser=read_kind, metavar="KIND", help="Only of this kind; repeatable."),
    ] = None,
    episode: Annotated[str, typer.Option(help="Only said in this episode.")] = "",
    as_of: Annotated[
        Dated | None,
        typer.Option(parser=read_date, metavar="DATE", help=f"Only what held then: {FORMS}."),
    ] = None,
    known_at: KnownAt = None,
    ended: Annotated[bool, typer.Option("--ended", help="Also what holds no more.")] = False,
) -> None:
    """Lists sentences of the user's voice, latest first."""
    request = memory_voice_pb2.ListVoiceAspectsRequest(
        graph_id=graph,
        kinds=[voice_pb2.VoiceAspectKind.ValueType(number) for number in kind or ()],
        episode_id=episode,
        valid_at=as_of.timestamp if as_of else None,
        known_at=known_at,
        include_ended=ended,
    )
    response = await shell.connection.call(shell.connection.memory.ListVoiceAspects, request)
    whole = response
    while response.next_page_token:
        request.page_token = response.next_page_token
        response = await shell.connection.call(shell.connection.memory.ListVoiceAspects, request)
        whole.voice_aspects.extend(response.voice_aspects)
    whole.next_page_token = ""
    shell.show(whole, voices_of)


def voices_of(response: memory_voice_pb2.ListVoiceAspectsResponse) -> RenderableType:
    table = words.listing("kind", "sentence", "since", "until", "voice aspect")
    for aspect in response.voice_aspects:
        over = shown(aspect.invalid_at) if aspect.HasField("invalid_at") else ""
        row = [
            words.word(voice_pb2.VoiceAspectKind.Name, aspect.kind, "VOICE_ASPECT_KIND_"),
            aspect.text,
            shown(aspect.valid_at),
            over,
            aspect.voice_aspect_id,
        ]
        table.add_row(*map(escape, row), style="strike" if over else "")
    return Group(table, f"[dim]revision {response.revision}[/]")
