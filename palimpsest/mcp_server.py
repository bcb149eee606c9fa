"""`palimpsest mcp`: one graph as tools of the Model Context Protocol, over stdio or streamable HTTP.

What changes something says so in its annotations.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Annotated

import typer
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from rich.console import Console

from palimpsest import local
from palimpsest.cli.exits import Exit, complain
from palimpsest.client import Client
from palimpsest.memory import Memory
from palimpsest.tls import Tls, TlsUnusable
from palimpsest.tools import INSTRUCTIONS, NotDone, Tools, told_as

HOST = "127.0.0.1"
READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=False)


class Transport(StrEnum):
    """How an assistant reaches the server."""

    STDIO = "stdio"
    HTTP = "http"


def server(memory: Memory) -> MCPServer:
    """The tools over one graph, each with what it does to the memory."""
    made, tools = MCPServer("palimpsest", instructions=INSTRUCTIONS, log_level="WARNING"), Tools(memory)
    for tool, annotations in (
        (tools.remember, ADDS),
        (tools.recall, READS),
        (tools.timeline, READS),
        (tools.what_changed, READS),
        (tools.forget, DELETES),
        (tools.about_user, READS),
    ):
        made.tool(annotations=annotations)(told_as(tool, _tool_error))
    return made


def _tool_error(why: NotDone) -> ToolError:
    return ToolError(str(why))


def command(
    graph: Annotated[str, typer.Option(envvar="PALIMPSEST_GRAPH_ID", help="The graph that is the memory.")],
    transport: Annotated[Transport, typer.Option(help="stdio, or http on 127.0.0.1.")] = Transport.STDIO,
    port: Annotated[int, typer.Option(help="Port of http; 0 takes a free one.")] = 8765,
    target: Annotated[str, typer.Option(envvar="PALIMPSEST_TARGET", help="host:port of the server.")] = "",
    key: Annotated[str, typer.Option(envvar="PALIMPSEST_KEY", help="API key.")] = "",
) -> None:
    """Serves one graph to assistants that speak the Model Context Protocol; Ctrl-C stops it."""
    asyncio.run(_serve(graph, transport, port, local.find(target)[0], key))


async def _serve(graph: str, transport: Transport, port: int, target: str, key: str) -> None:
    try:
        async with open_server(target, key, graph) as made:
            if transport is Transport.STDIO:
                await made.run_stdio_async()
            else:
                await _serve_http(made, port)
    except TlsUnusable as error:
        raise complain(f"TLS: {error}", Exit.USAGE) from error


async def _serve_http(made: MCPServer, port: int) -> None:
    """On this machine alone; a page of another site that asks for it is refused by its Host and Origin."""
    import uvicorn

    try:
        listening = socket.create_server((HOST, port))
    except OSError as error:
        raise complain(f"can't listen on {HOST}:{port}: {error.strerror}", Exit.USAGE) from error
    with listening:
        Console(stderr=True).print(f"mcp       http://{HOST}:{listening.getsockname()[1]}/mcp")
        config = uvicorn.Config(made.streamable_http_app(host=HOST), log_level="warning")
        await uvicorn.Server(config).serve(sockets=[listening])


@asynccontextmanager
async def open_server(target: str, key: str, graph: str) -> AsyncIterator[MCPServer]:
    """The server over a client of its own, which is closed afterwards. Raises TlsUnusable."""
    async with Client(target, key, Tls.of()) as client:
        yield server(Memory(client, graph))
