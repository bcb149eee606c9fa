"""`palimpsest-admin migrate`: brings every SQL database of an installation to this version."""

import asyncio
from typing import Annotated

import typer

from gateway.admin_commands.installation import DataDir, settings_in
from gateway.configured import BadSettings
from gateway.ingest.durable import migrate_workflows
from gateway.main import every_database
from gateway.settings import GatewaySettings
from services.runtime.settings import ServiceSettings
from services.stores.errors import StoreError
from services.stores.sql.grants import grant, grant_sql
from services.stores.sql.migrations import Migrated, upgrade, upgrade_sql


def command(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the SQL that would be sent; change nothing.")
    ] = False,
    app_role: Annotated[
        str | None,
        typer.Option(help="PostgreSQL: the role that servers connect as; it may then use the tables."),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Brings every SQL database to this version: the one thing that needs the owner's rights.

    Safe beside running servers of this version, and twice at once. Exit code 0: all are of this version (with
    --dry-run: the SQL was printed). 1: one can't be migrated, or settings can't be used.
    """
    try:
        gateway = settings_in(GatewaySettings, data_dir)
        services = settings_in(ServiceSettings, data_dir)
        asyncio.run(_tell(gateway, services, app_role) if dry_run else _run(gateway, services, app_role))
    except (BadSettings, StoreError) as error:
        typer.echo(f"palimpsest-admin: {error}", err=True)
        raise typer.Exit(1) from error


async def _run(gateway: GatewaySettings, services: ServiceSettings, app_role: str | None) -> None:
    for engine, schema in every_database(gateway, services):
        try:
            done = await upgrade(engine, schema)
            if app_role is not None:
                await grant(engine, schema, app_role)
        finally:
            await engine.dispose()
        typer.echo(_line(done))
    workflows = gateway.url(gateway.workflows_url, "workflows.db")
    await asyncio.to_thread(migrate_workflows, workflows, app_role)
    typer.echo("workflows  migrated by the durable engine")


async def _tell(gateway: GatewaySettings, services: ServiceSettings, app_role: str | None) -> None:
    for engine, schema in every_database(gateway, services):
        try:
            told = await upgrade_sql(engine, schema)
            if app_role is not None:
                told += grant_sql(engine, schema, app_role)
        finally:
            await engine.dispose()
        typer.echo(f"-- {schema.component}: {'as follows' if told else 'nothing to do'}")
        typer.echo(told, nl=False)
    typer.echo("-- workflows: by the durable engine itself (`dbos migrate`)")


def _line(done: Migrated) -> str:
    if done.before == done.after:
        return f"{done.component}  {done.after}, as it was"
    found = "tables of the time before revisions" if done.adopted else done.before or "nothing"
    return f"{done.component}  {done.after}, from {found}"
