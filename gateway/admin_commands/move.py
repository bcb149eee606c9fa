"""`palimpsest-admin move`: graphs into the stores of other settings, under the same ids."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from dotenv import dotenv_values
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from gateway.admin_commands.installation import (
    DataDir,
    Graph,
    Installation,
    Tenant,
    UsageError,
    open_stores,
    run,
)
from gateway.configured import read_settings
from services.runtime.settings import ServiceSettings
from services.upkeep.backup import WritersActive
from services.upkeep.intake import Into
from services.upkeep.move import Move

_URLS: Mapping[Into, str] = {
    Into.GRAPH: "graph_url",
    Into.MEMORY: "memory_url",
    Into.VECTORS: "vectors_uri",
}
"""The setting that says where a store is; empty is in the data folder."""


class TargetSettings(ServiceSettings):
    """Settings of services where a file says more than the environment."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What is given, then the file, then the environment."""
        return init_settings, dotenv_settings, env_settings


def command(
    to: Annotated[
        Path,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="File of settings (NAME=value lines) that name the other stores; "
            "what it does not name is as it is here.",
        ),
    ],
    tenant: Tenant = None,
    graph: Graph = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a move stopped: keep what is there already.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Copies graphs into other stores, verifies them there, and leaves those here as they are.

    The server must be down: a graph that is written to is refused. Once every graph is there, start it with
    the settings of the file. Exit code 0: all are there, and the same. 1: one was refused. 2: a store could
    not be reached, or the file names no other store.
    """

    async def copy(installation: Installation) -> None:
        target = target_settings(installation.named, to)
        into = others(installation.named, target)
        if not into:
            raise UsageError(f"{to} names no other store than those in use")
        busy = {job.scope for job in await installation.gateway.jobs.unfinished()}
        rows = await installation.graphs(tenant, graph)
        for row in rows:
            if row.scope in busy:
                raise WritersActive(f"{row.scope.tenant}/{row.scope.graph} has unfinished jobs")
        if Into.VECTORS not in into:
            target = target.model_copy(update={"vectors_uri": installation.settings.vectors_uri})
        async with open_stores(target) as stores:
            move = Move(installation.stores, stores, into, installation.vocabulary)
            for row in rows:
                moved = await move(row.scope, resume=resume)
                told = f"revision {moved.revision}, {moved.items} items"
                typer.echo(f"{row.scope.tenant}/{row.scope.graph}  {told}")
        stores_told = ", ".join(sorted(into))
        typer.echo(f"copied {len(rows)} graphs ({stores_told}); start the server with {to}", err=True)

    run(data_dir, copy)


def target_settings(source: ServiceSettings, file: Path) -> TargetSettings:
    """The settings of the file over those in use. Raises BadSettings."""
    named = {name.upper() for name in dotenv_values(file)}
    folder: dict[str, object] = {} if "PALIMPSEST_DATA_DIR" in named else {"data_dir": source.data_dir}
    return read_settings(TargetSettings, _env_file=file, **folder)


def others(source: ServiceSettings, target: ServiceSettings) -> frozenset[Into]:
    """The stores that are not the same in both."""
    return frozenset(into for into in Into if _place(source, into) != _place(target, into))


def _place(settings: ServiceSettings, into: Into) -> Mapping[str, Any]:
    named = settings.model_dump()
    if into is Into.GRAPH and named.get("graph") == "nebula":
        return {name: named["nebula"][name] for name in ("addresses", "space")}
    url = named[_URLS[into]]
    return {"url": url} if url else {"folder": settings.data_dir.resolve()}
