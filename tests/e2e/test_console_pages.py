"""The console in a browser, in full: every page over the shipped texts, changes, keyboard, languages."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from gateway.console import ConsoleOptions, open_console
from palimpsest.connection import Connection
from palimpsest.v1 import admin_pb2
from tests.browser import Reader, chromium, reader
from tests.conftest import lack
from tests.doubles.console_story import employ, tell
from tests.e2e.up_process import Tenant, UpProcess
from tests.machine import ROOT

pytestmark = [
    pytest.mark.milvus,
    pytest.mark.chromium,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.asyncio(loop_scope="module"),
]
AXE = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"
PAGES: dict[str, tuple[dict[str, str], str]] = {
    "overview": ({"graph": "handbook"}, "Priya"),
    "timeline": ({"graph": "conversation", "entity": "Ben"}, "Stripe"),
    "graph": ({"graph": "changes", "entity": "Wen", "depth": "2"}, "Cloudflare Pages"),
    "recall": ({"graph": "conversation"}, "Question"),
    "jobs": ({"graph": "handbook"}, "succeeded"),
    "ledger": ({"graph": "handbook"}, "SMALL_TALK"),
    "contested": ({"graph": "changes"}, "Mirror"),
}
"""Where to look, and what must be there."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A tenant that knows the shipped texts, and two consoles over its server."""

    running: UpProcess
    tenant: Tenant
    browser: Browser
    reading: str
    changing: str

    @asynccontextmanager
    async def entered(self, url: str = "", key: str = "", **options: Any) -> AsyncIterator[Reader]:
        async with reader(self.browser, url or self.reading, **options) as one:
            await one.enter(key or self.tenant.key)
            await one.page.locator("nav").wait_for()
            yield one


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(running: UpProcess) -> AsyncIterator[Stage]:
    tenant = running.tenant()
    async with AsyncExitStack() as stack:
        async with Connection(running.target, tenant.key) as connection:
            await tell(connection)
        reading = await open_console(running.target, ConsoleOptions(port=0), stack)
        changing = await open_console(running.target, ConsoleOptions(port=0, allow_changes=True), stack)
        yield Stage(running, tenant, await stack.enter_async_context(chromium()), reading, changing)


@pytest.fixture(scope="module")
def axe() -> str:
    """The accessibility checker's source."""
    if not AXE.is_file():
        lack("the npm packages of console are not installed: `make node` does it, where npm is")
    return AXE.read_text(encoding="utf-8")


async def serious(one: Reader, axe: str) -> list[str]:
    """What the checker calls serious or critical, with what it is about."""
    await one.page.evaluate(axe)
    found = await one.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{rule['id']}: {node['html']}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize(("theme", "locale"), [("light", "en-GB"), ("dark", "zh-CN")])
async def test_every_page_shows_what_is_there_and_to_everybody(
    stage: Stage, axe: str, theme: str, locale: str
) -> None:
    async with reader(stage.browser, stage.changing, locale=locale, color_scheme=theme) as one:
        await one.page.goto(one.url)
        assert await serious(one, axe) == []
        await one.enter(stage.tenant.key)
        await one.page.locator("nav").wait_for()
        for name, (params, expected) in PAGES.items():
            await one.go(name, **params)
            if locale == "en-GB":
                await one.page.locator("main").get_by_text(expected).first.wait_for()
            assert await serious(one, axe) == [], name
        if locale == "zh-CN":
            headings = await one.page.locator("nav a").all_text_contents()
            assert headings == ["概览", "时间线", "图谱", "回忆", "任务", "账本", "有争议"]
            assert await one.page.locator("html").get_attribute("lang") == "zh-Hans"


async def test_overview_counts_and_tells_credits(stage: Stage) -> None:
    async with stage.entered() as one:
        await one.go("overview", graph="conversation")
        figures = await one.page.locator(".figures").first.inner_text()
        assert "Statements\n18\nEntities\n20\nEpisodes\n3" in figures
        assert "99.9667" in await one.text()


async def test_an_end_is_struck_and_says_which_words_caused_it(stage: Stage) -> None:
    async with stage.entered() as one:
        await one.go("timeline", graph="conversation", entity="Ben")
        await one.page.get_by_text("6 facts").wait_for()
        assert await one.struck() == ["Globex (ended)"]
        await one.page.get_by_role("button", name="Globex").click()
        dialog = one.page.get_by_role("dialog", name="Ben works at Globex.")
        await dialog.get_by_text("I left Globex in October 2025.").wait_for()
        await dialog.get_by_role("button", name="the text").last.click()
        text = one.page.get_by_role("dialog", name="session_3")
        await text.locator("mark", has_text="I left Globex in October 2025.").wait_for()
        await one.page.keyboard.press("Escape")
        await one.page.keyboard.press("Escape")
        assert await one.page.get_by_role("dialog").count() == 0
        await one.page.get_by_label("Find in these facts").fill("stripe")
        await one.page.get_by_text("1 of 6 facts").wait_for()


async def test_what_a_document_no_longer_says_is_told_as_such(stage: Stage) -> None:
    async with stage.entered() as one:
        await one.go("timeline", graph="handbook", entity="Tomas")
        await one.page.get_by_text("the document no longer says so").first.wait_for()


async def test_recall_says_what_found_each_fact_and_on_what_words(stage: Stage) -> None:
    async with stage.entered() as one:
        await one.go("recall", graph="conversation")
        await one.page.get_by_label("Question").fill("Where does Ben's wife work?")
        await one.page.keyboard.press("Enter")
        fact = one.page.locator(".found > li", has_text="Elena works at Umbrella.").first
        await fact.get_by_text("walk · statements #").wait_for()
        assert "Way: Ben → Elena → Umbrella" in await fact.inner_text()
        assert "She joined Umbrella in June 2025." in await fact.inner_text()
        assert "no language model" in await one.text()
        await one.page.get_by_label("As of (day, optional)").fill("2025-04-01")
        await one.page.get_by_role("button", name="Ask").click()
        await one.page.locator(".found > li", has_text="Elena works at Initech.").first.wait_for()


async def test_a_job_shows_its_receipt_and_the_ledger_leads_to_it(stage: Stage) -> None:
    async with stage.entered() as one:
        await one.go("ledger", graph="handbook")
        row = one.page.locator("tr", has_text="SMALL_TALK").first
        await row.get_by_role("link").click()
        await one.page.get_by_text("nothing to remember").wait_for()
        await one.go("jobs", graph="handbook")
        await one.page.locator("tbody a").last.click()
        await one.page.get_by_role("table", name="Receipt · Engine offline").wait_for()
        assert "extract_world" in await one.text()


async def test_a_slot_that_wavers_is_shown_whole(stage: Stage) -> None:
    async with stage.entered() as one:
        await one.go("contested", graph="changes")
        await one.page.get_by_text("2026-03-15 –").wait_for()
        assert await one.struck() == ["MySQL 8.0 (ended)", "PostgreSQL 16 (ended)"]


async def test_a_console_that_reads_offers_no_change(stage: Stage) -> None:
    async with stage.entered() as one:
        await one.go("timeline", graph="conversation", entity="Nadia")
        await one.page.get_by_role("button", name="Graz").first.click()
        await one.page.get_by_role("heading", name="Why").wait_for()
        for change in ("End …", "Deny …", "Restore …", "Merge …"):
            assert await one.page.get_by_role("button", name=change).count() == 0


async def test_changes_are_confirmed_done_and_taken_back(stage: Stage) -> None:
    async with Connection(stage.running.target, stage.tenant.key) as connection:
        await employ(
            connection, "office", ("Ada", "Initech", "2024-01-01"), ("Ada L.", "Initech", "2024-01-02")
        )
    async with stage.entered(stage.changing) as one:
        page = one.page
        await one.go("timeline", graph="office", entity="Ada")
        await _change(one, "Initech", "End", day="2025-01-01")
        await page.locator("s", has_text="Initech").first.wait_for()
        assert "a user ended it" in await one.text()
        await _change(one, "Initech", "Restore")
        await page.get_by_text("2024-01-01 – today").first.wait_for()
        await _change(one, "Initech", "Deny")
        await page.get_by_text("Nothing here.").wait_for()

        await one.go("timeline", graph="office", entity="Ada L.")
        await page.get_by_role("button", name="Merge …").click()
        await page.get_by_label("The other entity").fill("Ada")
        await page.get_by_role("button", name="Merge", exact=True).click()
        await page.get_by_text("Reads as this one too: Ada").wait_for()
        await page.get_by_role("button", name="Split …").click()
        await page.get_by_role("button", name="Split", exact=True).click()
        await page.get_by_text("Reads as this one too").wait_for(state="detached")


async def _change(one: Reader, fact: str, change: str, day: str = "") -> None:
    """By the buttons of a statement's panel; closes it."""
    await one.page.locator(".entries").get_by_role("button", name=fact).first.click()
    await one.page.get_by_role("button", name=f"{change} …").click()
    if day:
        await one.page.get_by_label("Since when (empty: now)").fill(day)
    await one.page.get_by_label("Why, in your words").fill("seen on the page")
    await one.page.get_by_role("button", name=change, exact=True).click()
    await one.page.get_by_label("Why, in your words").wait_for(state="detached")
    await one.settled()
    await one.page.keyboard.press("Escape")


async def test_a_key_that_may_not_is_told(stage: Stage) -> None:
    async with Connection(stage.running.target, stage.running.operator_key) as connection:
        request = admin_pb2.CreateApiKeyRequest(
            tenant_id=stage.tenant.id, scopes=[admin_pb2.API_KEY_SCOPE_READ]
        )
        key = (await connection.call(connection.admin.CreateApiKey, request)).secret
    async with stage.entered(stage.changing, key) as one:
        await one.go("timeline", graph="changes", entity="John")
        await one.page.get_by_role("button", name="Meta").last.click()
        await one.page.get_by_role("button", name="End …").click()
        await one.page.get_by_role("button", name="End", exact=True).click()
        await one.page.get_by_role("alert").get_by_text("SCOPE_MISSING").wait_for()


async def test_the_keyboard_is_enough(stage: Stage) -> None:
    async with reader(stage.browser, stage.reading) as one:
        page = one.page
        await page.goto(one.url)
        await page.locator("input:focus").wait_for()  # the box takes it when it is drawn, after the page
        await page.keyboard.type(stage.tenant.key)
        await page.keyboard.press("Enter")
        await page.locator("nav").wait_for()
        await one.go("graph", graph="changes", entity="John")
        await page.get_by_text("1 facts hold").wait_for()
        await page.get_by_label("As of (when it held)").focus()
        await page.keyboard.press("Home")
        await page.get_by_text("0 facts hold").wait_for()
        await page.keyboard.press("PageUp")
        await page.locator("td", has_text="Google").wait_for()
        node = page.locator("svg a", has_text="Google")
        await node.focus()
        await page.keyboard.press("Enter")
        await page.wait_for_function("() => location.hash.includes('entity=Google')")
        await page.locator("h1", has_text="Graph").wait_for()


async def test_a_key_lives_as_long_as_its_page(stage: Stage) -> None:
    async with stage.entered() as one:
        await one.go("overview", graph="changes")
        assert await one.stored() == [[], [], "", f"{stage.reading}#/overview?graph=changes"]
        assert all(stage.tenant.key not in request.url for request in one.asked)
        await one.page.reload()
        await one.page.get_by_label("API key").wait_for()
        assert await one.page.get_by_label("API key").input_value() == ""
        await one.enter(stage.tenant.key)
        await one.page.locator("nav").wait_for()
        await one.page.goto("about:blank")
        await one.page.go_back()
        await one.page.get_by_label("API key").wait_for()


async def test_up_serves_it_too_and_ends_it(tmp_path: Path) -> None:
    with UpProcess(tmp_path / "data", options=["--console", "--console-port", "0"]) as up:
        line = next(line for line in up.output.splitlines() if line.startswith("console "))
        url = line.partition(" ")[2].strip()
        key = up.tenant().key
        async with chromium() as browser, reader(browser, url) as one:
            await one.enter(key)
            await one.page.get_by_text("This tenant has no graph yet.").wait_for()
        assert up.stop() == 0  # fails itself when a child process is left
    host, _, port = url.removeprefix("http://").rstrip("/").partition(":")
    with pytest.raises(OSError, match="Connect"):
        await asyncio.open_connection(host, int(port))
