"""The sockets: a thread accepts on 127.0.0.1, one more serves each connection by the generated processor."""

import contextlib
import select
import socket
import threading
from collections.abc import Callable
from types import TracebackType

from nebula3.fbthrift.protocol.THeaderProtocol import THeaderProtocol
from nebula3.fbthrift.transport.THeaderTransport import THeaderTransport
from nebula3.fbthrift.transport.TSocket import TSocket
from nebula3.fbthrift.transport.TTransport import TBufferedTransport, TTransportException
from nebula3.graph import GraphService

from tests.doubles.graphd.engine import GraphEngine
from tests.doubles.graphd.faults import Faults
from tests.doubles.graphd.service import GraphdService, Line
from tests.doubles.graphd.sessions import Sessions

_HOST = "127.0.0.1"
_JOIN_SECONDS = 10


class Graphd:
    """A running graphd with an empty cluster behind it; `with` stops it.

    `heartbeat_seconds`: how long a change of the schema is not seen by statements yet.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        user: str = "root",
        password: str = "nebula",
        max_sessions: int = 300,
        heartbeat_seconds: float = 0,
    ) -> None:
        self.faults = Faults()
        self.engine = GraphEngine(heartbeat_seconds)
        self.sessions = Sessions(user, password, max_sessions)
        self._listener = socket.create_server((_HOST, port))
        self._stopping, self._stop = socket.socketpair()
        self._lock = threading.Lock()
        self._lines: set[_Line] = set()
        self._threads: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, name="graphd", daemon=True)
        self._acceptor.start()

    @property
    def port(self) -> int:
        name: tuple[str, int] = self._listener.getsockname()
        return name[1]

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{_HOST}:{self.port}"

    @property
    def connections(self) -> int:
        with self._lock:
            return len(self._lines)

    def service(self, line: Line) -> GraphdService:
        """What answers a connection."""
        return GraphdService(self.sessions, self.engine, self.faults, line)

    def hang_up_all(self) -> None:
        """Closes every connection, as a restart does; sessions stay."""
        with self._lock:
            lines = list(self._lines)
        for line in lines:
            line.hang_up()

    def stop(self) -> None:
        """Closes everything and waits for the threads. Idempotent."""
        if self._listener.fileno() < 0:
            return
        self._stop.close()
        self._acceptor.join(_JOIN_SECONDS)
        self.hang_up_all()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        self._listener.close()
        self._stopping.close()

    def __enter__(self) -> "Graphd":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _accept(self) -> None:
        while True:
            ready, _, _ = select.select([self._listener, self._stopping], [], [])
            if self._stopping in ready:
                return
            connection, _ = self._listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line = _Line(connection, self._forget)
            service = self.service(line)
            with self._lock:
                self._lines.add(line)
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            thread = threading.Thread(target=line.serve, args=(service,), name="graphd-line", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _forget(self, line: "_Line") -> None:
        with self._lock:
            self._lines.discard(line)


class _Line:
    """One connection."""

    def __init__(self, connection: socket.socket, closed: Callable[["_Line"], None]) -> None:
        self._socket = connection
        self._closed = closed

    def serve(self, service: GraphdService) -> None:
        end = TSocket()
        end.setHandle(self._socket)
        transport = THeaderTransport(TBufferedTransport(end))
        protocol = THeaderProtocol(transport)
        processor = GraphService.Processor(service)
        try:
            while True:
                processor.process(protocol, protocol)
        except TTransportException:
            pass  # the other end has gone, or this one has hung up
        finally:
            self._closed(self)
            transport.close()

    def hang_up(self) -> None:
        with contextlib.suppress(OSError):  # closed already
            self._socket.shutdown(socket.SHUT_RDWR)

    def wait_for_hang_up(self) -> None:
        with contextlib.suppress(OSError):
            while self._socket.recv(4096):
                pass
