"""The composition root of upkeep: an installation's stores, opened as its settings name them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn, TypeVar, cast

import typer

from gateway.configured import BadSettings, Settings, read_settings
from gateway.main import open_gateway_stores
from gateway.settings import GatewaySettings
from gateway.store.graphs import GraphRow
from gateway.store.stores import Stores as GatewayStores
from services.domain.predicates import Vocabulary, default_vocabulary
from services.domain.scope import TenantId
from services.llm.port import EngineError
from services.resolver.service import Resolver
from services.runtime.catalogue import all_services
from services.runtime.names import ServiceName
from services.runtime.resources import Resources, open_resources, prepare
from services.runtime.settings import ServiceSettings
from services.stores.errors import StoreError
from services.stores.vectors.lite import DataDirInUse, LiteServerError
from services.upkeep.archive import ArchiveError
from services.upkeep.backup import CopyError
from services.upkeep.parts import Mends, Stores

Answer = TypeVar("Answer")

FAILED, UNAVAILABLE = 1, 2
"""Exit codes: the work was refused or left something; it could not be begun."""

DataDir = Annotated[
    Path | None, typer.Option(help="Folder of the embedded databases (default: .palimpsest).")
]
Tenant = Annotated[str | None, typer.Option("--tenant", help="Of this tenant alone.")]
Graph = Annotated[str | None, typer.Option("--graph", help="Of this graph of the tenant alone.")]


class UsageError(Exception):
    """What was asked for can't be done as it was asked."""


@dataclass(frozen=True, slots=True)
class Installation:
    """The stores of one installation: as `named` by its settings, and with what was started for it.

    `settings` also find that: the server of Milvus Lite.
    """

    stores: Stores
    mends: Mends
    vocabulary: Vocabulary
    gateway: GatewayStores
    named: ServiceSettings
    settings: ServiceSettings

    async def graphs(self, tenant: str | None, graph: str | None) -> Sequence[GraphRow]:
        """Those asked for. Raises UsageError where none is of these names."""
        if graph is not None and tenant is None:
            raise UsageError("--graph needs --tenant")
        found = await self.gateway.graphs.every(None if tenant is None else TenantId(tenant))
        named = [row for row in found if graph is None or row.scope.graph == graph]
        if not named and tenant is not None:
            raise UsageError(f"no graph {tenant}/{graph}" if graph else f"tenant {tenant} has no graphs")
        return named


@asynccontextmanager
async def open_installation(
    gateway: GatewaySettings, services: ServiceSettings
) -> AsyncIterator[Installation]:
    """Opens everything. Raises StoreError, LiteServerError or EngineError when a part can't be had."""
    async with AsyncExitStack() as stack:
        shared = await prepare(services, stack)
        resources = await open_resources(shared, stack)
        stores = await open_gateway_stores(gateway)
        stack.push_async_callback(stores.close)
        resolver = cast("Resolver", all_services(resources)[ServiceName.RESOLVER])
        vocabulary = default_vocabulary()
        opened = upkeep_stores(resources)
        yield Installation(opened, resolver.mending, vocabulary, stores, services, shared)


@asynccontextmanager
async def open_stores(services: ServiceSettings) -> AsyncIterator[Stores]:
    """The stores of services alone, without a gateway's. Raises as `open_installation` does."""
    async with AsyncExitStack() as stack:
        yield upkeep_stores(await open_resources(services, stack))


def upkeep_stores(resources: Resources) -> Stores:
    memory = resources.memory
    return Stores(
        graph=resources.graph,
        text=memory.text,
        voice=memory.voice,
        revisions=memory.revisions,
        decisions=memory.decisions,
        readings=memory.readings,
        archive=memory.archive,
        summaries=memory.summaries,
        snapshots=memory.snapshots,
        vectors=resources.vectors,
        embedder=resources.embedder,
        now=resources.now,
    )


def settings_in(kind: type[Settings], data_dir: Path | None) -> Settings:
    """Settings from the environment, on another data folder where one is given. Raises BadSettings."""
    return read_settings(kind) if data_dir is None else read_settings(kind, data_dir=data_dir)


def run(data_dir: Path | None, work: Callable[[Installation], Awaitable[Answer]]) -> Answer:
    """Does work on the installation that the settings name. Exits with a line where it can't be done."""

    async def opened() -> Answer:
        gateway = settings_in(GatewaySettings, data_dir)
        services = settings_in(ServiceSettings, data_dir)
        async with open_installation(gateway, services) as installation:
            return await work(installation)

    try:
        return asyncio.run(opened())
    except (CopyError, ArchiveError) as error:
        end(str(error), FAILED, error)
    except DataDirInUse as error:
        end(f"{error}; stop the server first: its embedded stores have one owner", UNAVAILABLE, error)
    except (UsageError, BadSettings, StoreError, EngineError, LiteServerError, OSError) as error:
        end(str(error), UNAVAILABLE, error)


def end(line: str, code: int, error: Exception | None = None) -> NoReturn:
    """Says why on standard error and exits."""
    typer.echo(f"palimpsest-admin: {line}", err=True)
    raise typer.Exit(code) from error
