"""`palimpsest-admin reembed`: replaces every vector by those of the embedder that the settings name."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Annotated

import typer

from gateway.admin_commands.installation import FAILED, UNAVAILABLE, DataDir, end
from gateway.configured import BadSettings, read_settings
from gateway.main import open_gateway_stores
from gateway.settings import GatewaySettings
from services.domain.scope import Scope
from services.llm.port import EngineError
from services.runtime.reembedding import reembed_all
from services.runtime.settings import ServiceSettings
from services.stores.errors import StoreError
from services.stores.vectors.lite import DataDirInUse, LiteServerError
from services.stores.vectors.reembed import NotCaughtUp


def command(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the former vectors for now; the next run drops them.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Replaces every vector by those of the embedder in the settings, from what the other stores hold.

    With a Milvus server the others may go on running, with the former embedder: they are read and written
    until the new vectors are whole, then they answer that the vector store is unavailable until they are
    restarted with the new one. Texts taken in meanwhile wait for that. Started again, it goes on where it
    was cut off. Exit code 0: done. 1: it was not agreed to, or writers were faster: start it again. 2: it
    could not be begun, or a store or model was lost.
    """
    folder: dict[str, object] = {} if data_dir is None else {"data_dir": data_dir}
    try:
        gateway = read_settings(GatewaySettings, **folder)
        services = read_settings(ServiceSettings, **folder)
        written = asyncio.run(_run(gateway, services, keep, yes))
    except NotCaughtUp as error:
        end(str(error), FAILED, error)
    except DataDirInUse as error:
        end(f"{error}; stop the server first: its embedded stores have one owner", UNAVAILABLE, error)
    except (BadSettings, StoreError, EngineError, LiteServerError, OSError) as error:
        end(str(error), UNAVAILABLE, error)
    typer.echo(f"{written} rows written")


def _ask(live: str, ours: str) -> None:
    """Asks the operator: with the wrong settings it would stop every server. Raises typer.Abort."""
    typer.echo(f"in use are vectors of {live}; all are replaced by those of {ours}", err=True)
    typer.echo("servers that have the former embedder must be restarted with the new one", err=True)
    typer.confirm("replace them?", abort=True, err=True)


async def _run(gateway: GatewaySettings, services: ServiceSettings, keep: bool, yes: bool) -> int:
    async with AsyncExitStack() as stack:
        stores = await open_gateway_stores(gateway)
        stack.push_async_callback(stores.close)

        async def scopes() -> Sequence[Scope]:
            return [row.scope for row in await stores.graphs.every()]

        ask = (lambda *_: None) if yes else _ask
        return await reembed_all(services, scopes, keep, lambda line: typer.echo(line, err=True), ask)
