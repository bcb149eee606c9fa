"""The console in a browser, in short: a key, a struck fact, two times on two sliders."""

from contextlib import AsyncExitStack

import pytest

from gateway.console import ConsoleOptions, open_console
from palimpsest.connection import Connection
from tests.browser import chromium, reader
from tests.doubles.console_story import employ
from tests.e2e.up_process import UpProcess

pytestmark = [pytest.mark.milvus, pytest.mark.chromium, pytest.mark.timeout(400)]


async def test_a_memory_is_looked_at_by_whoever_has_its_key(running: UpProcess) -> None:
    mine, another = running.tenant(), running.tenant()
    async with Connection(running.target, mine.key) as connection:
        first, _ = await employ(
            connection, "people", ("John", "Google", "2024-02-01"), ("John", "Meta", "2026-03-01")
        )
    async with AsyncExitStack() as stack:
        url = await open_console(running.target, ConsoleOptions(port=0), stack)
        browser = await stack.enter_async_context(chromium())
        one = await stack.enter_async_context(reader(browser, url))
        page = one.page

        await one.enter(f"{mine.key}x")
        await page.get_by_role("alert").get_by_text("API_KEY_INVALID").wait_for()

        await one.enter(mine.key)
        await page.get_by_role("heading", name="Overview").wait_for()
        await one.go("timeline", graph="people", entity="John")
        await page.get_by_text("2 facts").wait_for()
        assert await one.struck() == ["Google (ended)"]
        assert "replaced by Meta" in await one.text()

        await one.go("graph", graph="people", entity="John")
        table = page.get_by_role("table", name="What holds then")
        await table.get_by_text("Meta").wait_for()
        await one.slide_to_day("2025-01-01")
        await table.get_by_text("Google").wait_for()
        assert "Meta" not in await table.inner_text()
        await one.slide_to_day("2026-06-01")
        await table.get_by_text("Meta").wait_for()
        await one.slide("Known at (what was believed)", first)
        await table.get_by_text("Google").wait_for()
        assert "Meta" not in await table.inner_text()

        address = f"{url}#/graph?graph=people&entity=John"
        assert await one.stored() == [[], [], "", address]
        await page.get_by_role("button", name="Forget the key").click()
        await one.enter(another.key)
        await page.get_by_text("This tenant has no graph yet.").wait_for()
        await one.go("timeline", graph="people", entity="John")
        await page.get_by_text("GRAPH_NOT_FOUND").wait_for()
        assert "Meta" not in await one.text()
