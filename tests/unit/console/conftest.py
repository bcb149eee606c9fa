"""A console in this process over a scripted server, and a page's way of asking it."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from palimpsest.connection import Connection
from palimpsest.console.app import make_app
from palimpsest.console.page import Page
from tests.unit.cli.serving import Scripted, serving

KEY = "pk_test_0123456789_secret"
HERE = "http://127.0.0.1:7235"


@pytest.fixture(scope="module")
def one_server() -> Iterator[Scripted]:
    with serving() as scripted:
        yield scripted


@pytest.fixture
def server(one_server: Scripted) -> Scripted:
    for kept in (one_server.script, one_server.asked, one_server.keys):
        kept.clear()
    return one_server


@pytest.fixture
def page(tmp_path: Path) -> Page:
    (tmp_path / "index.html").write_text("<!doctype html><title>Page</title>", encoding="utf-8")
    (tmp_path / "page.js").write_text("let x = 1;", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no file of a page", encoding="utf-8")
    return Page(tmp_path)


@dataclass(frozen=True, slots=True)
class Browser:
    """Asks as the page does; `headers` go with every request."""

    client: httpx.AsyncClient
    headers: dict[str, str] = field(
        default_factory=lambda: {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    )

    async def ask(self, call: str, body: Any = None, **headers: str) -> httpx.Response:
        content = body if isinstance(body, bytes | str) else None
        json = None if content is not None else (body or {})
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post(
            f"/api/{call}", content=content, json=json, headers=self.headers | named
        )

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers={n.replace("_", "-"): v for n, v in headers.items()})


async def opened(server: Scripted, page: Page, allow_changes: bool) -> AsyncIterator[Browser]:
    async with Connection(server.target) as connection:
        app = make_app(connection, page, allow_changes=allow_changes)
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            yield Browser(client)


@pytest.fixture
async def reading(server: Scripted, page: Page) -> AsyncIterator[Browser]:
    """A console as it starts by itself."""
    async for browser in opened(server, page, allow_changes=False):
        yield browser


@pytest.fixture
async def changing(server: Scripted, page: Page) -> AsyncIterator[Browser]:
    """One that was started with --allow-changes."""
    async for browser in opened(server, page, allow_changes=True):
        yield browser
