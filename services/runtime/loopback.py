"""Loopback: in the processes of Ray Serve on one machine, gRPC servers listen on 127.0.0.1 alone.

Serve binds its gRPC proxy and every replica to all interfaces and has no setting for it. Ray runs this
function first in each of its worker processes (`worker_process_setup_hook`).
"""

from collections.abc import Callable
from typing import Any

from grpc.aio import _server

HOOK = "services.runtime.loopback.bind_loopback_only"
_ANYWHERE = frozenset({"[::]", "::", "0.0.0.0", "*", ""})  # noqa: S104  # what is turned away here


def bind_loopback_only() -> None:
    """Has every gRPC server of this process that would listen everywhere listen on loopback. Idempotent."""
    servers: Any = _server.Server  # what grpc.aio.server() makes, and what Serve derives its own from
    bind: Callable[[object, str], int] = servers.add_insecure_port
    if getattr(bind, "loopback_only", False):
        return

    def add_insecure_port(self: object, address: str) -> int:
        return bind(self, on_loopback(address))

    add_insecure_port.loopback_only = True  # type: ignore[attr-defined]  # a mark on a function
    servers.add_insecure_port = add_insecure_port


def on_loopback(address: str) -> str:
    """`[::]:80` → `127.0.0.1:80`; an address that names an interface stays."""
    host, _, port = address.rpartition(":")
    return f"127.0.0.1:{port}" if host in _ANYWHERE else address
