"""`status`: whether a server is well, and what it stands on, as grpc.health.v1 tells it. Needs no key."""

import asyncio
import json

import typer
from rich.table import Table

from palimpsest.cli.exits import Exit
from palimpsest.cli.shell import Shell, command
from palimpsest.errors import NotFound

WHOLE = "palimpsest"
STANDS_ON = {
    "": "the gateway takes calls",
    "palimpsest.ledger": "tenants, keys, credits",
    "palimpsest.jobs": "progress of jobs",
    "palimpsest.memory": "texts and revisions",
    "palimpsest.graph": "facts",
    "palimpsest.vectors": "what questions are compared with",
    "palimpsest.preprocessor": "splits texts",
    "palimpsest.extractor": "finds facts",
    "palimpsest.classifier": "sorts them",
    "palimpsest.resolver": "decides what holds",
    "palimpsest.recall": "answers questions",
}
"""By the names that the server answers to (docs/production.md, "Health, and stopping")."""

_STYLES = {"SERVING": "green", "NOT_SERVING": "bold red"}


def add_to(app: typer.Typer) -> None:
    command(app, "status", panel="Credits and jobs")(status)


async def status(shell: Shell) -> None:
    """Shows whether the server is well, and each thing that it stands on.

    Exit code 0: all of it serves. 1: something doesn't. 6: the server can't be reached.
    """
    answers = await asyncio.gather(*(_asked(shell, name) for name in STANDS_ON))
    told = dict(zip(STANDS_ON, answers, strict=True))
    if shell.json:
        shell.console.out(json.dumps({name or WHOLE: how for name, how in told.items()}), highlight=False)
    else:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for name, how in told.items():
            shown = name.removeprefix("palimpsest.") or WHOLE
            table.add_row(shown, f"[{_STYLES.get(how, 'yellow')}]{how}[/]", STANDS_ON[name])
        shell.console.print(table)
    if set(told.values()) != {"SERVING"}:
        raise typer.Exit(Exit.FAILED)


async def _asked(shell: Shell, name: str) -> str:
    try:
        return await shell.connection.health(name)
    except NotFound:
        return "UNKNOWN"  # an older server knows fewer names
