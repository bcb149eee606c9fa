"""The app: the page at `/`, the bridge at `/api/`, guards around both."""

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from palimpsest.connection import Connection
from palimpsest.console.bridge import Bridge
from palimpsest.console.guards import Guards
from palimpsest.console.page import Page
from palimpsest.console.refusals import Refusal, Refused


def make_app(connection: Connection, page: Page, *, allow_changes: bool = False) -> ASGIApp:
    """The console over one server. The caller closes the connection."""

    async def about(_: Request) -> Response:
        return JSONResponse({"changesAllowed": allow_changes})

    bridge = Bridge(connection, allow_changes).answer
    routes = [
        Route("/", page.answer),
        Route("/api/{call}", bridge, methods=["POST"]),
        Route("/about", about),
        Route("/{name}", page.answer),
    ]
    handlers = {Refused: _refused, HTTPException: _http_error}
    # Inside the guards, so that what goes wrong is answered with their headers too.
    return Guards(Starlette(routes=routes, exception_handlers=handlers))


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    refusal = error.refusal
    return JSONResponse(refusal.body, refusal.status, headers=dict(refusal.headers))


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    refusal = Refusal(
        error.status_code, "NO_SUCH_PAGE" if error.status_code == 404 else "METHOD_NOT_ALLOWED", "no"
    )
    return JSONResponse(refusal.body, refusal.status, headers=error.headers)
