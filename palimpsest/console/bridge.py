"""The bridge: one call of the API, as JSON in and JSON out, with the caller's own key.

The key is taken from the request and goes with the call; nothing here keeps it or writes it down.
"""

import asyncio
import json
from collections.abc import Mapping

from google.protobuf.json_format import MessageToJson, ParseDict, ParseError
from google.protobuf.message import Message
from starlette.requests import Request
from starlette.responses import Response

from palimpsest.connection import Connection
from palimpsest.console.calls import CALLS, Call
from palimpsest.console.refusals import Refused, refusal_of, refused
from palimpsest.errors import CallError

MAX_BODY_BYTES = 64 * 1024
"""Enough for a recall's longest question; a page asks, it does not send documents."""
BODY_SECONDS = 10.0
CALL_SECONDS = 30.0
MAX_KEY_CHARACTERS = 512
CONFIRMED = "x-palimpsest-confirmed"
"""A header that names the call which the user has confirmed. A page of another origin can't send it."""
_BEARER = "bearer "


class Bridge:
    """Carries the listed calls to one server. `allow_changes` lets those pass that change something."""

    def __init__(
        self, connection: Connection, allow_changes: bool, calls: Mapping[str, Call] = CALLS
    ) -> None:
        self._connection = connection
        self._allow_changes = allow_changes
        self._calls = calls

    async def answer(self, request: Request) -> Response:
        """Answers `POST /api/<call>`. Raises Refused."""
        name = request.path_params["call"]
        call = self._permitted(name, request)
        key = _key_of(request)
        message = _read(call, await _body_of(request))
        if call.changes and not getattr(message, "request_id", ""):
            raise refused(
                400, "VALIDATION_FAILED", "requestId is needed: repeating a change must not make two"
            )
        connection = self._connection.keyed(key)
        try:
            answer: Message = await connection.call(call.method(connection, name), message, CALL_SECONDS)
        except CallError as error:
            raise Refused(refusal_of(error)) from error
        return Response(MessageToJson(answer, indent=None, ensure_ascii=False), media_type="application/json")

    def _permitted(self, name: str, request: Request) -> Call:
        call = self._calls.get(name)
        if call is None:
            raise refused(404, "CALL_NOT_LISTED", "the console makes no such call")
        if call.changes and not self._allow_changes:
            raise refused(
                403, "CHANGES_NOT_ALLOWED", "this console only reads; start it with --allow-changes"
            )
        if call.changes and request.headers.get(CONFIRMED) != name:
            raise refused(412, "NOT_CONFIRMED", f"a change is confirmed by the header {CONFIRMED}")
        return call


def _key_of(request: Request) -> str:
    """The key that came with a request. What can't be one is not sent on."""
    given = request.headers.get("authorization", "")
    key = given[len(_BEARER) :].strip() if given.lower().startswith(_BEARER) else ""
    if not key or len(key) > MAX_KEY_CHARACTERS or not key.isascii() or not key.isprintable():
        raise refused(401, "API_KEY_INVALID", "a key is needed: Authorization: Bearer pk_…")
    return key


async def _body_of(request: Request) -> bytes:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise refused(415, "NOT_JSON", "the body must be application/json")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY_BYTES:
                    raise refused(
                        413, "BODY_TOO_LARGE", f"at most {MAX_BODY_BYTES} bytes", Connection="close"
                    )
    except TimeoutError as error:
        raise refused(408, "BODY_TOO_SLOW", "the body did not come in time", Connection="close") from error
    return bytes(body)


def _read(call: Call, body: bytes) -> Message:
    """The request of a call. What its message does not have is refused, not ignored."""
    try:
        read = json.loads(body)
        if not isinstance(read, dict):
            raise ParseError("no object")
        return ParseDict(read, call.request())
    except (ParseError, ValueError, TypeError, RecursionError) as error:
        raise refused(
            400, "VALIDATION_FAILED", f"the body is not a {call.request.DESCRIPTOR.name}"
        ) from error
