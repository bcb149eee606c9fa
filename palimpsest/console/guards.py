"""Guards around every answer: whose page may ask, and what a browser may do with what it gets.

The console listens on loopback, where every page that the user has open could reach it. So a request must
name a loopback host (no rebound DNS name), come from the console's own page where a browser says from where,
and bring the key itself: nothing is ever sent along by the browser, as a cookie would be.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from palimpsest.console.refusals import Refusal

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
OWN_SITES = frozenset({"same-origin", "none"})
"""Of Sec-Fetch-Site: our page's requests, and an address that the user typed."""

_POLICY: Mapping[str, str] = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""On every answer, refusals included."""


class Guards:
    """Wraps an app: refuses strangers before it sees them, and adds HEADERS to what it answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        stranger = stranger_in(Headers(scope=scope))
        answer = self._app if stranger is None else JSONResponse(stranger.body, stranger.status)
        await answer(scope, receive, guarded)


def stranger_in(headers: Headers) -> Refusal | None:
    """Why a request is not our page's; None when it is. One header twice is refused like a wrong one."""
    hosts = headers.getlist("host")
    if len(hosts) != 1 or _name_of(f"//{hosts[0]}") not in LOOPBACK:
        return Refusal(421, "HOST_NOT_ALLOWED", "the console answers under a loopback name alone")
    origins = headers.getlist("origin")
    if origins and origins != [f"http://{hosts[0]}"]:
        return Refusal(403, "ORIGIN_NOT_ALLOWED", "only the console's own page may ask")
    sites = headers.getlist("sec-fetch-site")
    if any(site not in OWN_SITES for site in sites):
        return Refusal(403, "ORIGIN_NOT_ALLOWED", "only the console's own page may ask")
    return None


def _name_of(url: str) -> str:
    """The host name in a URL, lower-cased, without port; empty when there is none to be read."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where it is no number
        plain = parts.username is None and not (parts.path or parts.query or parts.fragment)
        return (parts.hostname or "") if plain else ""
    except ValueError:
        return ""
