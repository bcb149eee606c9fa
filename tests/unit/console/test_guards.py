"""The guards: a stranger's page gets nothing, and ours is held to a strict policy."""

import pytest

from palimpsest.console.guards import HEADERS
from palimpsest.console.page import Page, PageMissing
from tests.unit.cli.serving import Scripted
from tests.unit.console.conftest import HERE, Browser


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "", "10.0.0.1:7235", "user@localhost", "[::1", "localhost/x"],
)
async def test_another_host_name_is_refused(server: Scripted, reading: Browser, host: str) -> None:
    assert (await reading.ask("GetBalance", Host=host)).status_code == 421
    assert (await reading.get("/", Host=host)).status_code == 421
    assert not server.asked


@pytest.mark.parametrize("host", ["localhost:7235", "LOCALHOST", "[::1]:80", "127.0.0.1:9"])
async def test_every_name_of_loopback_is_ours(reading: Browser, host: str) -> None:
    assert (await reading.get("/", Host=host)).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:7235", "http://127.0.0.1:1"]
)
async def test_another_pages_origin_is_refused(server: Scripted, reading: Browser, origin: str) -> None:
    answer = await reading.ask("GetBalance", Origin=origin)
    assert (answer.status_code, answer.json()["error"]["reason"]) == (403, "ORIGIN_NOT_ALLOWED")
    assert not server.asked


async def test_a_browser_that_says_cross_site_is_believed(reading: Browser) -> None:
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        assert (await reading.get("/", Sec_Fetch_Site=site)).status_code == status
    assert (await reading.get("/", Origin=HERE)).status_code == 200


async def test_every_answer_carries_the_policy(reading: Browser) -> None:
    answers = [
        await reading.get("/"),
        await reading.get("/page.js"),
        await reading.get("/about"),
        await reading.get("/nothing"),
        await reading.get("/", Host="evil.example"),
        await reading.get("/api/GetBalance"),
        await reading.ask("GetNothing"),
    ]
    assert [one.status_code for one in answers] == [200, 200, 200, 404, 421, 405, 404]
    for answer in answers:
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert "access-control-allow-origin" not in answer.headers
        assert answer.headers["cache-control"] in ("no-store", "no-cache")


def test_the_policy_knows_no_inline_and_no_other_place() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "*" not in policy


async def test_the_page_is_its_files_and_nothing_else(reading: Browser) -> None:
    index = await reading.get("/")
    assert index.headers["content-type"].startswith("text/html")
    again = await reading.get("/", If_None_Match=index.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")
    for path in ("/notes.txt", "/../notes.txt", "/%2e%2e%2fnotes.txt", "/page/index.html", "/.env"):
        assert (await reading.get(path)).status_code == 404


def test_a_page_that_is_not_built_is_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(PageMissing, match="make console"):
        Page(tmp_path_factory.mktemp("empty"))
