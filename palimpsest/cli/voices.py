"""`voice list`, `voice end`, `voice restore`."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.dates import FORMS, Dated, read_date, shown
from palimpsest.cli.facts import GraphId, KnownAt
from palimpsest.cli.judging import Reason
from palimpsest.cli.operating import RequestId
from palimpsest.cli.pages import whole
from palimpsest.cli.shell import Shell, command
from palimpsest.connection import new_request_id
from palimpsest.v1 import memory_voice_pb2, voice_pb2

VoiceId = Annotated[str, typer.Argument(metavar="VOICE", help="Its id; `voice list` tells it.")]

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
    command(voices, "end")(end)
    command(voices, "restore")(restore)
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
    listed = await whole(shell, shell.connection.memory.ListVoiceAspects, request, "voice_aspects")
    shell.show(listed, voices_of)


async def end(
    shell: Shell,
    graph: GraphId,
    voice_aspect: VoiceId,
    at: Annotated[
        Dated | None,
        typer.Option(parser=read_date, metavar="DATE", help="When it stopped. (default: now)"),
    ] = None,
    reason: Reason = "",
    request_id: RequestId = "",
) -> None:
    """Ends a sentence: the user means it no more."""
    request = memory_voice_pb2.EndVoiceAspectRequest(
        graph_id=graph,
        voice_aspect_id=voice_aspect,
        ended_at=at.timestamp if at else None,
        reason=reason,
        request_id=request_id or new_request_id(),
    )
    response = await shell.connection.call(shell.connection.memory.EndVoiceAspect, request)
    shell.show(response, lambda done: _one(done.voice_aspect, done.revision))


async def restore(
    shell: Shell, graph: GraphId, voice_aspect: VoiceId, reason: Reason = "", request_id: RequestId = ""
) -> None:
    """Makes a sentence hold again."""
    request = memory_voice_pb2.RestoreVoiceAspectRequest(
        graph_id=graph,
        voice_aspect_id=voice_aspect,
        reason=reason,
        request_id=request_id or new_request_id(),
    )
    response = await shell.connection.call(shell.connection.memory.RestoreVoiceAspect, request)
    shell.show(response, lambda done: _one(done.voice_aspect, done.revision))


def _one(aspect: voice_pb2.VoiceAspect, revision: int) -> RenderableType:
    return voices_of(memory_voice_pb2.ListVoiceAspectsResponse(voice_aspects=[aspect], revision=revision))


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
