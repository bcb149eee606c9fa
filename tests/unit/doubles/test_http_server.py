"""What the tests' HTTP server promises to tests that run beside it."""

import gc
import socket
import warnings

from tests.doubles.http_server import HttpReply, HttpRequest, HttpServer


async def _answer(_: HttpRequest) -> HttpReply:
    return HttpReply(body={})


def test_who_connects_while_it_stops_is_let_go() -> None:
    """A socket that is left open is told of when it is collected, in whatever test runs by then."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        for _ in range(20):
            server = HttpServer(_answer)
            server.start()
            with socket.create_connection(("127.0.0.1", server.port)):
                server.stop()
            gc.collect()
    assert [str(warning.message) for warning in told] == []
