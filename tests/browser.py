"""A headless Chromium of this machine, and a reader of the console's page in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from urllib.parse import urlencode

from playwright.async_api import Browser, ConsoleMessage, Error, Page, Request, async_playwright

from tests.machine import chromium_program

PATIENCE_MILLIS = 40_000
"""For anything that is waited for: no test depends on a quick machine."""
EPOCH = date(1970, 1, 1).toordinal()


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser of its own."""
    program = chromium_program()
    assert program is not None
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program, timeout=PATIENCE_MILLIS, args=["--disable-gpu"]
        )
        try:
            yield browser
        finally:
            await browser.close()


@dataclass(slots=True)
class Reader:
    """Somebody who looks at a console: the page, where it is, and what went wrong or was asked meanwhile."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)
    asked: list[Request] = field(default_factory=list)

    async def enter(self, key: str) -> None:
        """Opens the page and gives the key."""
        await self.page.goto(self.url)
        await self.page.locator("input.secret").fill(key)
        await self.page.keyboard.press("Enter")

    async def go(self, where: str, **params: str) -> None:
        """To a page of the console, without loading anything anew; waits until what it asks for is there."""
        query = f"?{urlencode(params)}" if params else ""
        moved = (
            "hash => new Promise(done => {"
            " if (location.hash === '#' + hash) { done(); return; }"
            " addEventListener('hashchange', () => setTimeout(done, 50), { once: true });"
            " location.hash = hash })"
        )
        await self.page.evaluate(moved, f"/{where}{query}")
        await self.settled()

    async def settled(self) -> None:
        """Waits until nothing is being read."""
        await self.page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")

    async def slide(self, label: str, value: int) -> None:
        """Moves a slider, as a hand does."""
        await self.page.get_by_label(label).fill(str(value))

    async def slide_to_day(self, day: str) -> None:
        """Moves the slider of world time."""
        await self.slide("As of (when it held)", date.fromisoformat(day).toordinal() - EPOCH)

    async def text(self) -> str:
        """All that is to be read."""
        return await self.page.locator("#root").inner_text()

    async def struck(self) -> list[str]:
        """What is struck through."""
        return await self.page.locator("s").all_text_contents()

    async def stored(self) -> list[Any]:
        """What the browser keeps for the page beyond its life, and what its address says."""
        kept = (
            "[Object.entries(localStorage), Object.entries(sessionStorage), document.cookie, location.href]"
        )
        return list(await self.page.evaluate(kept))


@asynccontextmanager
async def reader(browser: Browser, url: str, **options: Any) -> AsyncIterator[Reader]:
    """A reader in a fresh profile. Nothing may have gone wrong in the page, or been asked elsewhere."""
    context = await browser.new_context(locale=options.pop("locale", "en-GB"), **options)
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_MILLIS)
    found = Reader(page, url)

    def hear(message: ConsoleMessage) -> None:
        # A refused call is told by the browser too; the page tells it to the reader.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            found.complaints.append(message.text)

    def fail(error: Error) -> None:
        found.complaints.append(str(error))

    def note(request: Request) -> None:
        found.asked.append(request)

    page.on("console", hear)
    page.on("pageerror", fail)
    page.on("request", note)
    try:
        yield found
        assert not found.complaints, found.complaints
        assert {request.url.startswith(url) for request in found.asked} <= {True}
    finally:
        await context.close()
