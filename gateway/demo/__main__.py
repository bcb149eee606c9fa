"""`python -m gateway.demo`: starts the product, tells the story, stops what it started.

Exit code 0: every fact that the story tells holds. 1: some don't, or the product did not start.
KEEP=1 leaves it running and says how to talk to it. STORES=production takes other stores than the embedded.
"""

import asyncio
import os
import shlex
import signal
import sys
import time
from contextlib import AsyncExitStack
from typing import Annotated

import typer
from rich.console import Console

from gateway.demo import changes, conversation, handbook, money
from gateway.demo.child import Child, NotUp, admin, product
from gateway.demo.stage import Stage
from gateway.demo.stores import chosen, stores
from palimpsest.connection import Connection, new_request_id
from palimpsest.errors import CallError
from palimpsest.v1 import admin_pb2

TENANT = "acme"
PIPE_WIDTH = 140
"""Columns where the output is no terminal."""
CREDITS = 5_000_000
"""Micro-credits that the tenant is granted: five credits."""


def main(
    short: Annotated[
        bool, typer.Option("--short", help="Take the short conversation that is shipped.")
    ] = False,
) -> None:
    """Starts Palimpsest for itself alone, tells a story by real calls, stops what it started.

    KEEP=1 leaves it running. STORES=production runs it on PostgreSQL, Milvus and NebulaGraph on loopback.
    Exit code 0: every fact held.
    """
    sys.exit(tell(short))


def tell(short: bool) -> int:
    """Tells the story; returns the exit code."""
    console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH)
    # As Ctrl-C: what was started is stopped on the way out.
    # SIGINT too: a shell that starts programs in the background has them ignore it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        return asyncio.run(_run(console, short, keep=os.environ.get("KEEP", "") not in {"", "0"}))
    except KeyboardInterrupt:
        console.print("interrupted; everything was stopped")
        return 130


async def _run(console: Console, short: bool, keep: bool) -> int:
    started = time.monotonic()
    console.print("[bold]Palimpsest[/]: facts that stop being true are struck through, dated and attributed.")
    try:
        async with AsyncExitStack() as stack:
            settings = stack.enter_context(stores(chosen(), console, keep))
            console.print("Starting `palimpsest up` in a folder of its own …")
            child = await stack.enter_async_context(product(keep, settings))
            console.print(f"It serves on {child.target} after {time.monotonic() - started:.0f} s.")
            operator = _operator_key(child)
            key = await _make_tenant(child.target, operator)
            async with Connection(child.target, key) as connection:
                stage = Stage(connection, console)
                _loudly_offline(stage)
                await conversation.play(stage, conversation.shipped() if short else conversation.load())
                await handbook.play(stage)
                await changes.play(stage)
                await money.play(stage)
                _where(stage, child)
                _audit(stage, child)
            if keep:
                _how_to_talk(console, child, key, operator)
    except NotUp as error:
        console.print(f"[red]The product did not start:[/] {error}")
        return 1
    except CallError as error:
        console.print(f"[red]A call failed:[/] {error}")
        return 1
    return _verdict(console, stage, time.monotonic() - started, keep)


def _operator_key(child: Child) -> str:
    done = admin(child, "init")
    if done.returncode != 0:
        raise NotUp(done.stderr)
    return done.stdout.strip()


async def _make_tenant(target: str, operator: str) -> str:
    """Makes the tenant with credits and a key; returns the key."""
    async with Connection(target, operator) as connection:
        await connection.call(
            connection.admin.CreateTenant,
            admin_pb2.CreateTenantRequest(tenant_id=TENANT, display_name="Acme"),
        )
        await connection.call(
            connection.admin.GrantCredits,
            admin_pb2.GrantCreditsRequest(
                tenant_id=TENANT, amount_micros=CREDITS, reason="welcome", request_id=new_request_id()
            ),
        )
        made = await connection.call(
            connection.admin.CreateApiKey,
            admin_pb2.CreateApiKeyRequest(
                tenant_id=TENANT, display_name="demo", scopes=[admin_pb2.API_KEY_SCOPE_ERASE]
            ),
        )
    return made.secret


def _loudly_offline(stage: Stage) -> None:
    stage.tell(
        f"Tenant {TENANT} has a key and {CREDITS // 1_000_000} credits.\n\n"
        "[bold black on yellow] engine: offline [/] No language model is behind this, rules read the text. "
        "They catch plain sentences of English and miss much; a model is one setting away "
        "(PALIMPSEST_ENGINE=openai)."
    )


def _where(stage: Stage, child: Child) -> None:
    """In which processes the first text was worked on, as the services' logs tell."""
    stage.chapter("Where it ran")
    found = child.processes(stage.jobs[0])
    stage.show("\n".join(f"{name:14} {', '.join(map(str, sorted(pids)))}" for name, pids in found.items()))
    once = set[int]().union(*found.values())
    stage.expect(
        "the first text passed through five services on Ray, each in a process of its own",
        all(found.values()) and len(once) == sum(len(pids) for pids in found.values()),
    )


def _audit(stage: Stage, child: Child) -> None:
    done = admin(child, "audit")
    stage.show(f"[dim]$ palimpsest-admin audit[/]\n{done.stdout.strip()}")
    stage.expect("the ledger's audit finds nothing", done.returncode == 0)


def _how_to_talk(console: Console, child: Child, key: str, operator: str) -> None:
    folder = shlex.quote(str(child.folder))
    console.rule("It goes on running", align="left")
    lines = [
        f"export PALIMPSEST_TARGET={child.target}",
        f"export PALIMPSEST_KEY={key}",
        f"export PALIMPSEST_OPERATOR_KEY={operator}",
        "palimpsest recall changes 'Where does John work?' --as-of 2025-01-01",
        "palimpsest timeline changes John works_at",
        "palimpsest add changes 'I live in Graz.' --wait",
        "palimpsest ledger",
        "",
        "To stop it and remove its data:",
        f"kill -INT {child.process.pid}; while kill -0 {child.process.pid} 2>/dev/null; do sleep 1; done; "
        f"rm -r {folder}",
    ]
    for line in lines:
        console.out(line, highlight=False)


def _verdict(console: Console, stage: Stage, seconds: float, keep: bool) -> int:
    console.print()
    left = "it goes on running" if keep else "everything was stopped, nothing is left"
    if stage.broken:
        console.print(f"[bold red]{len(stage.broken)} facts did not hold:[/] {'; '.join(stage.broken)}")
        return 1
    console.print(f"[bold green]Every fact held.[/] {seconds:.0f} s; {left}.")
    return 0


if __name__ == "__main__":
    typer.run(main)
