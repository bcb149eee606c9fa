"""`palimpsest console`: where it listens, and how it says that it can't."""

import pytest

from palimpsest.console.command import listen, loopback


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("localhost:7235", ("localhost", 7235)),
        (":7235", ("127.0.0.1", 7235)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_loopback_addresses(address: str, found: tuple[str, int]) -> None:
    assert loopback(address) == found


@pytest.mark.parametrize(
    "address", ["0.0.0.0:7235", "example.org:80", "127.0.0.1", "127.0.0.1:x", "[::]:1", ":70000"]
)
def test_nothing_else_is_listened_on(address: str) -> None:
    with pytest.raises(ValueError, match=r"loopback|host:port"):
        loopback(address)


def test_a_port_that_is_taken_is_an_error() -> None:
    with listen("127.0.0.1", 0) as first, pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", first.getsockname()[1])
