"""Free ports for servers that start a while after their port was chosen."""

import random
import socket

CHOICE = range(20_000, 32_000)
"""Below those that Linux gives to connections that go out: no client takes one in between."""


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens now. Raises OSError where all are taken."""
    for port in random.sample(CHOICE, len(CHOICE)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"no port from {CHOICE.start} to {CHOICE.stop} is free")
