"""Cassettes: answers of a model endpoint kept in a file, by what was asked, and given again without it.

A line of the file is one exchange. Its key is a digest of the request in canonical form, without host,
headers and credentials, so what was recorded at one endpoint replays at any address. For development and
tests: the file holds the texts that were sent.
"""

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import httpx2

from services.llm.port import ModelMisconfigured

_LASTING = frozenset({400, 404, 422})
"""Refusals that say what a model takes, by which the ladder climbs down; other failures are not kept."""


class UnknownRecording(ModelMisconfigured):
    """Nothing was recorded for this request. Says which one it is: its key, its task and its model."""


class BadCassette(ModelMisconfigured):
    """A file that can't be read as a cassette."""


def canonical(path: str, body: Any) -> str:
    """A request as it is digested: equal for equal requests, however their JSON was written."""
    return json.dumps({"path": path, "body": body}, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def key_of(path: str, body: Any) -> str:
    """32 hex digits."""
    return hashlib.sha256(canonical(path, body).encode()).hexdigest()[:32]


class Cassette:
    """The exchanges of one file, in memory. A file that is not there is empty."""

    def __init__(self, file: Path) -> None:
        """Raises BadCassette."""
        self.file = file
        self._kept: dict[str, dict[str, Any]] = {}
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else ()
        for number, line in enumerate(lines, start=1):
            try:
                exchange = json.loads(line)
                self._kept[exchange["key"]] = exchange
            except (ValueError, KeyError, TypeError) as error:
                raise BadCassette(f"line {number} of {file.name} is no exchange") from error

    @property
    def exchanges(self) -> list[dict[str, Any]]:
        """In the order of the file: `key`, `path`, `request`, `status`, `response`."""
        return list(self._kept.values())

    def find(self, key: str) -> httpx2.Response | None:
        exchange = self._kept.get(key)
        return None if exchange is None else httpx2.Response(exchange["status"], json=exchange["response"])

    def keep(self, key: str, path: str, request: Any, status: int, response: Any) -> None:
        """Adds an exchange to the file; the first of a key stays. Blocking."""
        if key in self._kept:
            return
        exchange = {"key": key, "path": path, "request": request, "status": status, "response": response}
        self._kept[key] = exchange
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(exchange, ensure_ascii=False, sort_keys=True) + "\n")


class CassetteTransport(httpx2.AsyncBaseTransport):
    """Answers from a cassette. With `inner`, what it lacks is asked there and kept; without, refused."""

    def __init__(self, cassette: Cassette, base_url: str, inner: httpx2.AsyncBaseTransport | None) -> None:
        self._cassette = cassette
        self._prefix = httpx2.URL(base_url).path.rstrip("/")
        self._inner = inner
        self._writing = asyncio.Lock()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises UnknownRecording, and what `inner` raises."""
        path = request.url.path.removeprefix(self._prefix)
        body = json.loads(await request.aread() or b"null")
        key = key_of(path, body)
        if (known := self._cassette.find(key)) is not None:
            return known
        if self._inner is None:
            raise UnknownRecording(_unknown(self._cassette.file, key, path, body))
        response = await self._inner.handle_async_request(request)
        await response.aread()
        if response.is_success or response.status_code in _LASTING:
            answer = _json(response)
            if answer is not None:
                async with self._writing:
                    await asyncio.to_thread(
                        self._cassette.keep, key, path, body, response.status_code, answer
                    )
        return response

    async def aclose(self) -> None:
        if self._inner is not None:
            await self._inner.aclose()


def _unknown(file: Path, key: str, path: str, body: Any) -> str:
    """Names a request without its texts."""
    asked = body if isinstance(body, dict) else {}
    messages = asked.get("messages") or [{}]
    head = str(messages[0].get("content", "")).partition("\n")[0].removeprefix("# task: ")
    named = f"{head or path.strip('/')} for {asked.get('model', 'no model')}"
    return f"{file.name} has no recording of {named} (key {key}); record it at an endpoint that answers"


def _json(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None  # a page of some gateway; not an answer of a model
