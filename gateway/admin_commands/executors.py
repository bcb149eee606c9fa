"""`palimpsest-admin executors` and `recover`: processes that run jobs, and what one left that is gone."""

import asyncio
import json
from collections.abc import Sequence
from typing import Annotated

import typer

from gateway.admin_commands.installation import FAILED, DataDir, settings_in
from gateway.configured import BadSettings
from gateway.ingest.durable import hand_over
from gateway.main import open_gateway_stores
from gateway.settings import GatewaySettings
from gateway.store.backlog import SILENT_SECONDS
from gateway.store.executors import Executor
from services.stores.errors import StoreError


def executors_command(
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Lists the processes that run jobs, each by its executor id, with how long it has been silent.

    Exit code 0: none is missing. 1: one is silent and has not said that it ended: see `recover`.
    """
    found, _ = _look(data_dir)
    for one in found:
        typer.echo(_json(one) if as_json else f"{one.id}  {_state(one)}  {one.silent_seconds:.0f} s ago")
    if any(_state(one) == "silent" for one in found):
        raise typer.Exit(FAILED)


def recover_command(
    executor: Annotated[str, typer.Option("--executor", help="Id of the process that is gone.")],
    force: Annotated[bool, typer.Option("--force", help="Though it was heard of just now.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Gives what a process left unfinished to the others. What it still does, if it wakes, changes nothing.

    A process that starts again under its own id does this by itself. Prints the ids of the jobs. Exit code 0:
    done. 1: the process lives (--force does it all the same). 2: it could not be looked.
    """
    found, settings = _look(data_dir)
    if any(one.id == executor and _state(one) == "alive" for one in found) and not force:
        typer.echo(f"palimpsest-admin: {executor} lives; --force takes its jobs all the same", err=True)
        raise typer.Exit(FAILED)
    try:
        jobs = hand_over(settings.url(settings.workflows_url, "workflows.db"), executor)
    except StoreError as error:
        typer.echo(f"palimpsest-admin: {error}", err=True)
        raise typer.Exit(2) from error
    for job in jobs:
        typer.echo(job.partition(":")[0])
    typer.echo(f"{len(jobs)} jobs of {executor} go on elsewhere", err=True)


def _look(data_dir: DataDir) -> tuple[Sequence[Executor], GatewaySettings]:
    async def look(settings: GatewaySettings) -> Sequence[Executor]:
        stores = await open_gateway_stores(settings)
        try:
            return await stores.executors.list()
        finally:
            await stores.close()

    try:
        settings = settings_in(GatewaySettings, data_dir)
        return asyncio.run(look(settings)), settings
    except (BadSettings, StoreError) as error:
        typer.echo(f"palimpsest-admin: {error}", err=True)
        raise typer.Exit(2) from error


def _state(one: Executor) -> str:
    if one.stopped:
        return "ended"
    return "silent" if one.silent_seconds >= SILENT_SECONDS else "alive"


def _json(one: Executor) -> str:
    return json.dumps({"id": one.id, "state": _state(one), "silent_seconds": round(one.silent_seconds, 1)})
