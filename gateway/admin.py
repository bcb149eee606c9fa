"""`palimpsest-admin`: what an operator does beside the server, on its databases."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from gateway.admin_commands import backup, bootstrap, executors, migrate, move, reembed, verify
from gateway.admin_commands.installation import DataDir, settings_in
from gateway.configured import BadSettings, Settings
from gateway.credits.audit import CHECKS, Finding
from gateway.credits.audit import audit as find
from gateway.main import open_gateway_stores
from gateway.settings import GatewaySettings
from gateway.settings_page import PROCESSES, in_use, page
from gateway.store.stores import Stores
from palimpsest.cli.lines import OneLine
from services.stores.errors import StoreError

Answer = TypeVar("Answer")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON: of a list a line for each.")]

app = typer.Typer(
    help="Runs a Palimpsest installation. Works on the databases that the settings name, server up or not.",
    cls=OneLine,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

app.command("bootstrap")(bootstrap.command)
app.command("migrate")(migrate.command)
app.command("verify")(verify.command)
app.command("backup")(backup.backup_command)
app.command("restore")(backup.restore_command)
app.command("move")(move.command)
app.command("reembed")(reembed.command)
app.command("executors")(executors.executors_command)
app.command("recover")(executors.recover_command)


def main() -> None:
    """Entry point of `palimpsest-admin`."""
    app(prog_name="palimpsest-admin")


@app.command()
def init(data_dir: DataDir = None) -> None:
    """Makes the first operator's key and prints it, once: alone on standard output.

    Exit code 0: the key was made. 1: an operator's key that works is there already; nothing was changed.
    """

    async def make(stores: Stores) -> str | None:
        return await stores.keys.init_operator()

    key = asyncio.run(_with_stores(_read(GatewaySettings, data_dir), make))
    if key is None:
        typer.echo("palimpsest-admin: an operator's key is there already; it can't be shown again", err=True)
        raise typer.Exit(1)
    typer.echo("The operator's key. It is shown this once, and kept as a hash alone:", err=True)
    typer.echo(key)


@app.command()
def audit(as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Checks every invariant of the ledger in one snapshot. Changes nothing.

    Exit code 0: all hold. 1: some are broken; each finding is a line, `invariant  what breaks it`.
    """

    async def check(stores: Stores) -> Sequence[Finding]:
        return await find(stores.ledger_database, stores.clock)

    findings = asyncio.run(_with_stores(_read(GatewaySettings, data_dir), check))
    for finding in findings:
        told = {"invariant": finding.invariant, "subject": finding.subject}
        typer.echo(json.dumps(told) if as_json else f"{finding.invariant}  {finding.subject}")
    if findings:
        typer.echo(f"palimpsest-admin: {len(findings)} findings", err=True)
        raise typer.Exit(1)
    typer.echo(f"all {len(CHECKS)} invariants of the ledger hold", err=as_json)


@app.command()
def settings(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print docs/configuration.md: every setting there is.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Prints the settings in use, one `NAME=value` a line, without secrets.

    Exit code 0: they can be used. 1: some can't; each is told by name.
    """
    if markdown:
        typer.echo(page(), nl=False)
        return
    found = in_use([_read(model) for _, model in PROCESSES])
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False, indent=2))
        return
    for name, value in found.items():
        typer.echo(f"{name}={value}")


def _read(kind: type[Settings], data_dir: Path | None = None) -> Settings:
    try:
        return settings_in(kind, data_dir)
    except BadSettings as error:
        typer.echo(f"palimpsest-admin: {error}", err=True)
        raise typer.Exit(1) from error


async def _with_stores(settings: GatewaySettings, work: Callable[[Stores], Awaitable[Answer]]) -> Answer:
    try:
        stores = await open_gateway_stores(settings)
    except StoreError as error:
        typer.echo(f"palimpsest-admin: {error}", err=True)
        raise typer.Exit(1) from error
    try:
        return await work(stores)
    finally:
        await stores.close()


if __name__ == "__main__":
    main()
