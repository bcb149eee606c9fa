"""What guards the Milvus server: gives it a network without a way out, and carries calls in.

Arguments: a listening socket (its descriptor), the folder of the programs, the folder of the data. Prints
`ready` when the server answers. Ends with the server; ends it on SIGTERM, at once on SIGUSR1, and when
standard input closes. With `--try` alone: exit code 0 if such a network can be made here.
"""

import asyncio
import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import urllib.request
from pathlib import Path

_PROXY = ("127.0.0.1", 19530)
_HEALTH = "http://127.0.0.1:9091/healthz"
_READY_SECONDS = 120.0
_GRACE_SECONDS = 5.0

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x1 | 0x40
_DIE_WITH_PARENT = 1

_C = ctypes.CDLL(None, use_errno=True)


def enter_network() -> None:
    """Puts this process into a network with loopback alone. Raises OSError where that isn't allowed."""
    # Root of a container may lack the right for the first; others have it in a user namespace of their own.
    if _C.unshare(_NEW_NETWORK) != 0 and _C.unshare(_NEW_USER | _NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "no network namespace")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))


def spawn(programs: Path, folder: Path) -> subprocess.Popen[bytes]:
    settings = {
        "DEPLOY_MODE": "STANDALONE",
        "METRICS_PORT": "9091",
        "MILVUS_RUN_DIR": str(folder / "run"),
        "MILVUSCONF": str(folder / "configs"),
        "LD_LIBRARY_PATH": str(programs),
    }
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "TMPDIR"}}
    with (folder / "milvus.log").open("ab") as log:
        return subprocess.Popen(
            [programs / "milvus", "run", "standalone"],
            env=kept | settings,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=lambda: _C.prctl(_DIE_WITH_PARENT, signal.SIGKILL),
        )


class _Pipe(asyncio.Protocol):
    """One direction of a connection; what it reads the other end writes."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _Pipe | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()


async def carry(listening: socket.socket) -> None:
    """Connects whoever calls with the server."""
    loop = asyncio.get_running_loop()
    listening.setblocking(False)
    while True:
        caller, _ = await loop.sock_accept(listening)
        try:
            _, inner = await loop.create_connection(_Pipe, *_PROXY)
        except OSError:
            caller.close()
            continue
        assert isinstance(inner, _Pipe)
        assert inner.transport is not None
        inner.transport.pause_reading()
        _, outer = await loop.connect_accepted_socket(_Pipe, caller)
        assert isinstance(outer, _Pipe)
        inner.other, outer.other = outer, inner
        inner.transport.resume_reading()


async def guard(listening: socket.socket, server: subprocess.Popen[bytes]) -> None:
    """Returns when the server is gone."""
    loop = asyncio.get_running_loop()

    def terminate() -> None:
        # With sessions open the server may take minutes.
        server.terminate()
        loop.call_later(_GRACE_SECONDS, server.kill)

    loop.add_signal_handler(signal.SIGTERM, terminate)
    loop.add_signal_handler(signal.SIGINT, terminate)
    loop.add_signal_handler(signal.SIGUSR1, server.kill)
    loop.add_reader(0, lambda: None if os.read(0, 1) else server.kill())
    gone = asyncio.create_task(asyncio.to_thread(server.wait))
    carrying = asyncio.create_task(carry(listening))
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while not gone.done() and not await asyncio.to_thread(_healthy):  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.1)
        if not gone.done():
            print("ready", flush=True)  # noqa: T201 - the parent waits for it
        await asyncio.wait({gone})
    finally:
        server.kill()
        carrying.cancel()


def _healthy() -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(_HEALTH, timeout=5) as answer:
        return b"OK" in answer.read()
    return False


def main() -> None:
    enter_network()
    if sys.argv[1] == "--try":
        return
    server = spawn(Path(sys.argv[2]), Path(sys.argv[3]))
    try:
        with socket.socket(fileno=int(sys.argv[1])) as listening:
            asyncio.run(guard(listening, server))
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
