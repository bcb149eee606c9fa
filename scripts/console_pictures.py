"""Takes the pictures of docs/console.md: a console over what the shipped texts teach, in a headless Chromium.

Run: python -m scripts.console_pictures [FOLDER]
"""

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from gateway.console import ConsoleOptions, open_console
from palimpsest.connection import Connection
from tests.browser import Reader, chromium, reader
from tests.doubles.console_story import tell
from tests.e2e.up_process import UpProcess

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "console"
SIZE = {"width": 1280, "height": 800}
CREDITS = 5_000_000


async def main(folder: Path) -> None:
    """Starts what is needed, takes every picture, stops what was started."""
    with tempfile.TemporaryDirectory() as data, UpProcess(Path(data) / "data") as up:
        key = up.tenant(credits_micros=CREDITS, name="harbour").key
        async with Connection(up.target, key) as connection:
            await tell(connection)
        await take_all(up.target, key, folder)


async def take_all(target: str, key: str, folder: Path) -> None:
    """Every picture, over a server that knows the texts."""
    async with AsyncExitStack() as stack:
        url = await open_console(target, ConsoleOptions(port=0, allow_changes=True), stack)
        browser = await stack.enter_async_context(chromium())
        for theme, locale, take in (("light", "en-GB", _every_page), ("dark", "zh-CN", _in_chinese)):
            one = await stack.enter_async_context(
                reader(browser, url, locale=locale, viewport=SIZE, color_scheme=theme)
            )
            await one.enter(key)
            await one.page.locator("nav").wait_for()
            await take(one, folder)


async def _every_page(one: Reader, folder: Path) -> None:
    async def take(name: str) -> None:
        await one.settled()
        await one.page.screenshot(path=folder / f"{name}.png", animations="disabled")

    await one.go("overview", graph="conversation")
    await take("overview")
    await one.go("timeline", graph="conversation", entity="Ben")
    await take("timeline")
    await one.page.get_by_role("button", name="Globex").click()
    await take("statement")
    await one.page.keyboard.press("Escape")
    await one.go("graph", graph="conversation", entity="Ben", depth="2")
    await take("graph")
    await one.go("recall", graph="conversation")
    await one.page.get_by_label("Question").fill("Where does Ben's wife work?")
    await one.page.get_by_role("button", name="Ask").click()
    await one.page.locator(".found li").first.wait_for()
    await take("recall")
    await one.go("jobs", graph="handbook")
    await one.page.locator("tbody a").nth(1).click()
    await one.page.locator("section.job").wait_for()
    await take("jobs")
    await one.go("ledger", graph="handbook")
    await take("ledger")
    await one.go("contested", graph="changes")
    await take("contested")


async def _in_chinese(one: Reader, folder: Path) -> None:
    await one.go("timeline", graph="changes", entity="John")
    await one.settled()
    await one.page.screenshot(path=folder / "dark-chinese.png", animations="disabled")


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    chosen.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(chosen))
