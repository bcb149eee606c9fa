"""A tiny HTTP/1.1 server on loopback that can also misbehave. Runs in a thread with a loop of its own."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class HttpReply:
    """`drop`: the connection is closed instead of an answer. `delay_ms` is before the first byte,
    `body_delay_ms` between the head and the body."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_ms: float = 0
    body_delay_ms: float = 0
    drop: bool = False


Handler = Callable[[HttpRequest], Awaitable[HttpReply]]


class HttpServer:
    """Serves `handler` between `start` and `stop`; as a context manager too."""

    def __init__(self, handler: Handler, port: int = 0) -> None:
        self._handler = handler
        self.port = port
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    def start(self) -> None:
        started: threading.Event = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)), daemon=True)
        self._thread.start()
        if not started.wait(10):
            raise RuntimeError("the server did not start")

    def stop(self) -> None:
        """Closes every connection and waits for the thread."""
        if self._thread is None or self._loop is None or self._stopping is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)
        self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _serve(self, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        connections: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._connection(reader, writer))
            connections.add(task)
            task.add_done_callback(connections.discard)
            # a task that is cancelled before its first step closes nothing itself
            task.add_done_callback(lambda _: writer.transport.abort())

        server = await asyncio.start_server(accept, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self._stopping.wait()
        for listening in server.sockets:
            self._loop.remove_reader(listening.fileno())
        # Accepting is a task too, which becomes a connection.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in list(connections):
                task.cancel()
            await asyncio.wait(others)
        server.close()  # not before: Python 3.11 forgets the sockets of those who are being accepted
        await server.wait_closed()
        await asyncio.sleep(0)  # a transport that was closed lets go of its socket a round later

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                reply = await self._handler(request)
                await asyncio.sleep(reply.delay_ms / 1000)
                if reply.drop:
                    return
                await _write(writer, reply)
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the client went away
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def _read(reader: asyncio.StreamReader) -> HttpRequest | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return HttpRequest(method, path, headers, body)


async def _write(writer: asyncio.StreamWriter, reply: HttpReply) -> None:
    body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
    headers = {"content-type": "application/json", **reply.headers, "content-length": str(len(body))}
    head = f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(head.encode("latin-1") + b"\r\n")
    await writer.drain()
    await asyncio.sleep(reply.body_delay_ms / 1000)
    writer.write(body)
    await writer.drain()
