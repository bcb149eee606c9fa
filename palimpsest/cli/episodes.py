"""`episode show`, `episode list` and `episode delete`."""

from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.dates import Dated, read_date, shown
from palimpsest.cli.facts import GraphId
from palimpsest.cli.operating import RequestId
from palimpsest.cli.pages import whole
from palimpsest.cli.shell import Shell, command
from palimpsest.connection import new_request_id
from palimpsest.v1 import episode_pb2, memory_episodes_pb2

EpisodeId = Annotated[str, typer.Argument(metavar="EPISODE", help="Id of the episode.")]


def app() -> typer.Typer:
    episodes = typer.Typer(no_args_is_help=True, help="Episodes: what was taken in, chunk by chunk.")
    command(episodes, "show")(show)
    command(episodes, "list")(list_)
    command(episodes, "delete")(delete)
    return episodes


async def show(shell: Shell, graph: GraphId, episode: EpisodeId) -> None:
    """Shows an episode with its text."""
    request = memory_episodes_pb2.GetEpisodeRequest(graph_id=graph, episode_id=episode)
    response = await shell.connection.call(shell.connection.memory.GetEpisode, request)
    shell.show(response, episode_of)


def episode_of(response: memory_episodes_pb2.GetEpisodeResponse) -> RenderableType:
    episode = response.episode
    head = words.pairs(
        [
            ("episode", episode.episode_id),
            ("kind", words.word(episode_pb2.EpisodeKind.Name, episode.kind, "EPISODE_KIND_")),
            ("stage", words.word(episode_pb2.ChunkStage.Name, episode.stage, "CHUNK_STAGE_")),
            ("why", words.nothing(episode.nothing_reason) if episode.nothing_reason else ""),
            ("session", episode.session_id),
            (
                "document",
                f"{episode.document_id} version {episode.document_version}" if episode.document_id else "",
            ),
            ("title", episode.title),
            ("source", episode.source),
            ("said", shown(episode.reference_time)),
            ("tokens", f"{episode.token_count:,}"),
            ("job", episode.job_id),
        ]
    )
    return Group(head, "", escape(response.text))


async def list_(
    shell: Shell,
    graph: GraphId,
    session: Annotated[str, typer.Option(help="Only of this session.")] = "",
    document: Annotated[str, typer.Option(help="Only of this document.")] = "",
    source: Annotated[str, typer.Option(help="Only of this source.")] = "",
    said_from: Annotated[
        Dated | None, typer.Option("--from", parser=read_date, metavar="DATE", help="Only said from then on.")
    ] = None,
    until: Annotated[
        Dated | None, typer.Option(parser=read_date, metavar="DATE", help="Only said before then.")
    ] = None,
    quarantined: Annotated[
        bool, typer.Option("--quarantined", help="Only those held back: `job retry --release`, or `delete`.")
    ] = False,
    limit: Annotated[int, typer.Option(help="Most episodes; 0: all.", min=0)] = 100,
) -> None:
    """Lists episodes, latest first."""
    request = memory_episodes_pb2.ListEpisodesRequest(
        graph_id=graph,
        session_id=session,
        document_id=document,
        source=source,
        quarantined=quarantined,
        reference_from=said_from.timestamp if said_from else None,
        reference_until=until.timestamp if until else None,
    )
    listed = await whole(shell, shell.connection.memory.ListEpisodes, request, "episodes", limit)
    shell.show(listed, episodes_of)


def episodes_of(response: memory_episodes_pb2.ListEpisodesResponse) -> RenderableType:
    table = words.listing("said", "kind", "stage", "session or document", "source", "episode", "job")
    for episode in response.episodes:
        version = f" version {episode.document_version}" if episode.document_id else ""
        row = [
            shown(episode.reference_time),
            words.word(episode_pb2.EpisodeKind.Name, episode.kind, "EPISODE_KIND_"),
            words.word(episode_pb2.ChunkStage.Name, episode.stage, "CHUNK_STAGE_") if episode.stage else "",
            episode.session_id or episode.document_id + version,
            episode.source,
            episode.episode_id,
            episode.job_id,
        ]
        table.add_row(*map(escape, row))
    return table


async def delete(shell: Shell, graph: GraphId, episode: EpisodeId, request_id: RequestId = "") -> None:
    """Deletes an episode with its text; what it had struck out holds again. Needs a key that may erase."""
    request = memory_episodes_pb2.DeleteEpisodeRequest(
        graph_id=graph, episode_id=episode, request_id=request_id or new_request_id()
    )
    response = await shell.connection.call(shell.connection.memory.DeleteEpisode, request)
    shell.show(response, deleted)


def deleted(response: memory_episodes_pb2.DeleteEpisodeResponse) -> RenderableType:
    counts = response.counts
    done = " · ".join(words.counted(value, field.name) for field, value in counts.ListFields())
    return words.pairs(
        [
            ("deleted", done or "nothing was left of it"),
            ("holds again", ", ".join(response.restored_statement_ids)),
            ("no longer believed", ", ".join(response.expired_statement_ids)),
            ("revision", str(response.revision)),
        ]
    )
