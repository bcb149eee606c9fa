"""A subject with 5,000 statements on the console's page: all of them come, and are found."""

from contextlib import AsyncExitStack

import pytest

from gateway.console import ConsoleOptions, open_console
from tests.browser import chromium, reader
from tests.doubles.long_life import GRAPH, NAME, remember
from tests.unit.cli.serving import serving

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(600)]
COUNT = 5_000


async def test_five_thousand_statements_are_shown_and_found() -> None:
    with serving() as server:
        ended = remember(server, COUNT)
        async with AsyncExitStack() as stack:
            url = await open_console(server.target, ConsoleOptions(port=0), stack)
            browser = await stack.enter_async_context(chromium())
            one = await stack.enter_async_context(reader(browser, url))
            await one.enter("pk_any")
            await one.page.locator("nav").wait_for()
            await one.go("timeline", graph=GRAPH, entity=NAME)
            await one.page.get_by_text(f"{COUNT} facts").wait_for()
            await one.page.wait_for_function(f"() => document.querySelectorAll('.entry').length === {COUNT}")
            assert await one.page.locator("s").count() == ended
            await one.page.locator("input[type=search]").fill("Thing 4321")
            await one.page.get_by_text(f"1 of {COUNT} facts").wait_for()
            assert await one.page.locator(".entry button").first.inner_text() == "Thing 4321"
