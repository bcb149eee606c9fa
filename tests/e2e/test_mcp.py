"""The tools of the Model Context Protocol, by the protocol's own client: in this process, and over stdio.

The protocol is imported where it is used: it takes half a second, in every process that only collects tests.
"""

import asyncio
import re
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer
from typer.testing import CliRunner

from palimpsest import Client, Memory
from palimpsest.cli.exits import Exit
from services.llm.offline import OfflineEngine
from tests.doubles.product import Product, Tenant, a_product
from tests.e2e.test_following import NOW, followed
from tests.e2e.up_process import clean_environment

if TYPE_CHECKING:
    from mcp import Client as Assistant
    from mcp_types import CallToolResult

PROGRAM = "import typer; from palimpsest.mcp_server import command; typer.run(command)"


@pytest.fixture
async def product(tmp_path: Path) -> AsyncIterator[Product]:
    async with a_product(tmp_path, OfflineEngine(), settings=NOW) as product:
        yield product


@pytest.fixture
async def tenant(product: Product) -> Tenant:
    return await product.tenant("acme")


@asynccontextmanager
async def assisted(product: Product, tenant: Tenant) -> "AsyncIterator[Assistant]":
    from palimpsest.mcp_server import server

    async with (
        Client(product.running.gateway.target, tenant.key) as client,
        assistant_of(server(Memory(client, "mara"))) as assistant,
    ):
        yield assistant


def assistant_of(server: Any) -> "Assistant":
    """The protocol's own client, of a server in this process, at a URL, or that is a program."""
    from mcp import Client as Assistant

    return Assistant(server)


async def said(assistant: "Assistant", tool: str, **arguments: Any) -> str:
    answer = await assistant.call_tool(tool, arguments)
    assert not answer.is_error, answer
    return text_of(answer)


async def refused(assistant: "Assistant", tool: str, **arguments: Any) -> str:
    answer = await assistant.call_tool(tool, arguments)
    assert answer.is_error
    return text_of(answer)


def text_of(answer: "CallToolResult") -> str:
    from mcp_types import TextContent

    return "".join(part.text for part in answer.content if isinstance(part, TextContent))


async def test_what_it_is_told_it_tells(product: Product, tenant: Tenant) -> None:
    async with assisted(product, tenant) as assistant:
        assert "new facts" in await said(
            assistant, "remember", text="Ada lives in Oslo.", said_at="2024-01-01"
        )
        await said(assistant, "remember", text="Ada moved to Graz.", said_at="2025-03-01")
        assert "Graz" in await said(assistant, "recall", question="Where does Ada live?")
        assert "Oslo" in await said(assistant, "recall", question="Where did Ada live?", as_of="2024-06")
        told = (await said(assistant, "timeline", subject="Ada", predicate="lives_in")).splitlines()
        assert ["Oslo" in told[0], "Graz" in told[1]] == [True, True]
        assert "until" in told[0]
        changed = await said(assistant, "what_changed", since="2025-01-01", until="2025-12-31")
        assert "Graz" in changed


async def test_it_forgets_only_what_was_shown_and_confirmed(product: Product, tenant: Tenant) -> None:
    async with assisted(product, tenant) as assistant:
        await said(assistant, "remember", text="Ada lives in Oslo.", said_at="2024-01-01")
        found = re.search(
            r"is episode (\S+)", await said(assistant, "recall", question="Where does Ada live?")
        )
        assert found is not None
        asked = await said(assistant, "forget", episode_id=found[1])
        assert "Ada lives in Oslo." in asked
        assert "nothing was deleted" in await said(assistant, "forget", episode_id=found[1], confirm="yes")
        word = re.search(r"confirm='(\w+)'", asked)
        assert word is not None
        assert (await said(assistant, "forget", episode_id=found[1], confirm=word[1])).startswith("deleted")
        assert "nothing is known" in await said(assistant, "recall", question="Where does Ada live?")


async def test_it_tells_who_the_user_is(product: Product, tenant: Tenant) -> None:
    async with assisted(product, tenant) as assistant:
        assert await said(assistant, "about_user") == "nothing is known about the user"
        await said(assistant, "remember", text="I live in Oslo. I prefer short answers.")
        await followed(product)
        told = await said(assistant, "about_user")
        assert told.startswith("## ")
        assert "short answers" in told


async def test_annotations_are_honest(product: Product, tenant: Tenant) -> None:
    async with assisted(product, tenant) as assistant:
        told = {tool.name: tool.annotations for tool in (await assistant.list_tools()).tools}
        reads = {name for name, one in told.items() if one is not None and one.read_only_hint}
        deletes = {name for name, one in told.items() if one is not None and one.destructive_hint}
        assert reads == {"recall", "timeline", "what_changed", "about_user"}
        assert deletes == {"forget"}
        assert set(told) - reads - deletes == {"remember"}


async def test_mistakes_are_told_to_the_model(product: Product, tenant: Tenant) -> None:
    async with assisted(product, tenant) as assistant:
        assert "is no date" in await refused(assistant, "recall", question="x", as_of="yesterday-ish")
        assert "NOT_FOUND" in await refused(assistant, "timeline", subject="Ada", predicate="lives_in")
        assert "NOT_FOUND" in await refused(assistant, "forget", episode_id="none")


@pytest.mark.slow
async def test_it_is_a_program_over_http(product: Product, tenant: Tenant) -> None:
    arguments = ["--graph", "mara", "--transport", "http", "--port", "0"]
    settings = {"PALIMPSEST_KEY": tenant.key, "PALIMPSEST_TARGET": product.running.gateway.target}
    program = await asyncio.create_subprocess_exec(
        *[sys.executable, "-c", PROGRAM, *arguments],
        env=clean_environment(settings),
        stderr=asyncio.subprocess.PIPE,
    )
    assert program.stderr is not None
    try:
        url = (await program.stderr.readline()).decode().split()[1]
        async with assistant_of(url) as assistant:
            assert "new facts" in await said(assistant, "remember", text="Ada lives in Oslo.")
            assert "Oslo" in await said(assistant, "recall", question="Where does Ada live?")
    finally:
        program.terminate()
        await program.wait()
        await program.stderr.read()


async def test_a_port_that_is_taken_is_a_line() -> None:
    from palimpsest.mcp_server import command

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        alone = typer.Typer()
        alone.command()(command)
        done = await asyncio.to_thread(
            CliRunner().invoke, alone, ["--graph", "g", "--transport", "http", "--port", port]
        )
    assert done.exit_code == Exit.USAGE
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"palimpsest: can't listen on 127.0.0.1:{port}")


async def test_it_is_a_program_over_stdio(product: Product, tenant: Tenant) -> None:
    from mcp import StdioServerParameters

    settings = {"PALIMPSEST_KEY": tenant.key, "PALIMPSEST_TARGET": product.running.gateway.target}
    program = StdioServerParameters(
        command=sys.executable, args=["-c", PROGRAM, "--graph", "mara"], env=clean_environment(settings)
    )
    async with assistant_of(program) as assistant:
        assert "new facts" in await said(assistant, "remember", text="Ada lives in Oslo.")
        assert "Oslo" in await said(assistant, "recall", question="Where does Ada live?")
