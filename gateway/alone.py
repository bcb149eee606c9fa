"""`palimpsest gateway`: the gateway alone, before services elsewhere; it takes calls, runs jobs, or both.

All processes of one installation share databases, the services' target and the assertion secret.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import structlog
import typer
from rich.console import Console

from gateway.configured import BadSettings, read_settings
from gateway.lifetime import Say, serve_until_stopped, told
from gateway.logs import FOLDER, log_to
from gateway.main import OpenGateway, open_gateway
from gateway.server import check_port
from gateway.services import ServiceName
from gateway.settings import GatewaySettings
from gateway.settings_page import in_use
from gateway.up import providers_of
from palimpsest import local
from services.runtime.assertion import Signer
from services.runtime.heap import settle
from services.runtime.resources import clock
from services.runtime.settings import ServiceSettings
from services.stores.errors import StoreError


def command(
    services_target: Annotated[
        str | None, typer.Option(help="host:port of the services (default: PALIMPSEST_SERVICES_TARGET).")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of logs (default: .palimpsest).")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the gateway; 0 takes a free one.")] = None,
) -> None:
    """Starts a gateway before services that run elsewhere; Ctrl-C or SIGTERM drains and stops it.

    Exit code 0: it was stopped. 1: it could not start.
    """
    console = Console(stderr=True)
    given = {"services_target": services_target, "data_dir": data_dir, "gateway_port": port}
    with told(console, (BadSettings, OSError, StoreError), {}):
        gateway = read_settings(GatewaySettings, **{name: it for name, it in given.items() if it is not None})
        services = read_settings(ServiceSettings)
        _check(gateway)
        check_port(gateway)
        log_to(gateway.data_dir / FOLDER)
        structlog.get_logger(__name__).info("settings", **in_use([gateway, services]))
        asyncio.run(_serve(gateway, services, console))


async def open_alone(
    gateway: GatewaySettings, services: ServiceSettings, stack: AsyncExitStack
) -> OpenGateway:
    """Opens the gateway's databases and serves; `stack` drains and closes it.

    Raises SchemaUnusable, StoreUnavailable.
    """
    signer = Signer(gateway.assertion_secret.get_secret_value().encode(), clock)
    targets = dict.fromkeys(ServiceName, gateway.services_target)
    return await open_gateway(
        gateway, targets, signer, stack, clock, services.engine, providers=providers_of(services)
    )


async def _serve(gateway: GatewaySettings, services: ServiceSettings, console: Console) -> None:
    def start(stack: AsyncExitStack, say: Say) -> Coroutine[Any, Any, OpenGateway]:
        say("starting the gateway")
        return open_alone(gateway, services, stack)

    def started(stack: AsyncExitStack, opened: OpenGateway) -> None:
        local.announce(gateway.data_dir, opened.target)
        stack.callback(local.withdraw, gateway.data_dir, opened.target)
        console.print(f"gateway   [bold]{opened.target}[/bold]")
        console.print(f"jobs      up to {gateway.workflow_concurrency} at once")
        console.print(f"services  {gateway.services_target}")
        settle()

    await serve_until_stopped(console, start, started)


def _check(gateway: GatewaySettings) -> None:
    if not gateway.services_target:
        raise BadSettings("PALIMPSEST_SERVICES_TARGET names no services")
    if not gateway.assertion_secret.get_secret_value():
        raise BadSettings("PALIMPSEST_ASSERTION_SECRET is needed, the same as the services'")
