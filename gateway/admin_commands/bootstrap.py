"""`palimpsest-admin bootstrap`: makes a NebulaGraph cluster ready: hosts, space, tags, edge types."""

import asyncio

import typer

from gateway.configured import BadSettings, read_settings
from services.runtime.resources import bootstrap_graph
from services.runtime.settings import ServiceSettings
from services.stores.errors import StoreError


def command() -> None:
    """Makes what is missing in the NebulaGraph cluster of the settings, and waits until it can be used.

    Safe to run again, and beside running servers. Exit code 0: it can be used, or no cluster is set. 1: it
    can't be made ready.
    """
    try:
        for line in asyncio.run(bootstrap_graph(read_settings(ServiceSettings))):
            typer.echo(line)
    except (BadSettings, StoreError) as error:
        typer.echo(f"palimpsest-admin: {error}", err=True)
        raise typer.Exit(1) from error
