"""`palimpsest console`: the page over one server, on loopback, until Ctrl-C."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Annotated

import typer
import uvicorn
from starlette.types import ASGIApp

from palimpsest import local
from palimpsest.cli.exits import Exit, complain
from palimpsest.connection import Connection
from palimpsest.console.app import make_app
from palimpsest.console.guards import LOOPBACK
from palimpsest.console.page import Page, PageMissing
from palimpsest.tls import Tls, TlsUnusable

DEFAULT_ADDRESS = "127.0.0.1:7235"
MOST_AT_ONCE = 128
"""Connections and requests; beyond that uvicorn answers 503."""
KEEP_ALIVE_SECONDS = 5


def command(
    address: Annotated[
        str, typer.Option(help="Loopback host:port to listen on; port 0 takes a free one.")
    ] = DEFAULT_ADDRESS,
    target: Annotated[
        str,
        typer.Option(
            envvar="PALIMPSEST_TARGET",
            help="host:port of the server, or https://host:port (default: as for every command).",
        ),
    ] = "",
    allow_changes: Annotated[
        bool,
        typer.Option("--allow-changes", help="Let it end, deny, restore, merge and split, after asking."),
    ] = False,
    with_parent: Annotated[
        bool, typer.Option("--with-parent", hidden=True, help="End when standard input does.")
    ] = False,
) -> None:
    """Serves a web page that shows what a memory holds; Ctrl-C stops it.

    It asks the server with the key that is typed into the page, which keeps it in memory alone. Exit code 0:
    it was stopped. 2: it could not start.
    """
    try:
        host, port = loopback(address)
        page, tls = Page(), Tls.of()
        listening = listen(host, port)
    except (ValueError, PageMissing) as error:
        raise complain(str(error), Exit.USAGE) from error
    except OSError as error:
        raise complain(
            f"can't listen on {address}: {error.strerror}; port 0 takes a free one", Exit.USAGE
        ) from error
    with listening:
        asyncio.run(_serve(listening, local.find(target)[0], tls, page, allow_changes, with_parent))


def loopback(address: str) -> tuple[str, int]:
    """Host and port. Raises ValueError when that is not a loopback address."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if host not in LOOPBACK:
        raise ValueError(
            f"{host} is not loopback: keys would go over the network in clear; use an SSH tunnel"
        )
    if not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"{address!r} is no host:port")
    return host, int(port)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server(("127.0.0.1" if host == "localhost" else host, port), family=family)


async def _serve(
    listening: socket.socket, target: str, tls: Tls | None, page: Page, allow_changes: bool, with_parent: bool
) -> None:
    try:
        connection = Connection(target, "", tls)
    except TlsUnusable as error:
        raise complain(f"TLS: {error}", Exit.USAGE) from error
    async with connection:
        app = make_app(connection, page, allow_changes=allow_changes)
        server = server_of(app)
        host, port = listening.getsockname()[:2]
        print(f"console   http://{f'[{host}]' if ':' in host else host}:{port}/", flush=True)
        watching = asyncio.ensure_future(_end_with_parent(server)) if with_parent else None
        await server.serve(sockets=[listening])
        if watching is not None:
            watching.cancel()


class Server(uvicorn.Server):
    """uvicorn's, which a signal stops without ending the process by it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM end it once what is under way is answered."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        yield

    def _stop(self) -> None:
        self.should_exit = True


def server_of(app: ASGIApp) -> Server:
    """A server that writes no line a request: what is asked is nobody's business, and keys are in headers."""
    return Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            loop="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_AT_ONCE,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=KEEP_ALIVE_SECONDS,
            h11_max_incomplete_event_size=16 * 1024,
        )
    )


async def _end_with_parent(server: uvicorn.Server) -> None:
    """Whoever started us holds our standard input open as long as it lives."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    await reader.read()
    server.should_exit = True
