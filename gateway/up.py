"""`palimpsest up`: stores, services and gateway of one machine, started in one go and stopped cleanly."""

import asyncio
import secrets
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import structlog
import typer
from rich.console import Console

from gateway.configured import BadSettings, read_settings
from gateway.ingest.steps import StepSettings
from gateway.logs import FOLDER, log_to
from gateway.main import OpenGateway, open_gateway
from gateway.server import PortTaken, check_port
from gateway.services import ServiceName
from gateway.settings import GatewaySettings
from gateway.settings_page import in_use
from palimpsest import local
from services.domain.instants import Instant
from services.llm.port import EngineError
from services.runtime.assertion import Signer
from services.runtime.inprocess import serve_inprocess
from services.runtime.resources import Resources, clock, open_resources
from services.runtime.settings import ServiceSettings
from services.stores.errors import StoreError
from services.stores.vectors.lite import DataDirInUse, LiteServerError

_SECRET_BYTES = 32

CANT_START = (BadSettings, OSError, LiteServerError, StoreError, EngineError)
"""What a user can mend: told as a line. Anything else is a bug of ours, and shows its traceback."""


_HINTS: tuple[tuple[type[Exception], str], ...] = (
    (PortTaken, "; if it isn't `palimpsest up` already, --port 0 takes a free one"),
    (DataDirInUse, "; with another --data-dir a second server runs beside it"),
)


class Runtime(StrEnum):
    """Where the five services run."""

    INPROCESS = "inprocess"


@dataclass(frozen=True, slots=True)
class Running:
    """What is up, and where."""

    gateway: OpenGateway
    services_target: str
    engine: str


async def bring_up(
    services: ServiceSettings,
    gateway: GatewaySettings,
    stack: AsyncExitStack,
    now: Callable[[], Instant] = clock,
    steps: StepSettings | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Running:
    """Starts everything in this process; `stack` stops it, the gateway first. `say` is told each stage."""
    say("opening the stores")
    resources = await open_resources(services, stack, now)
    return await bring_up_on(resources, gateway, stack, steps, say)


async def bring_up_on(
    resources: Resources,
    gateway: GatewaySettings,
    stack: AsyncExitStack,
    steps: StepSettings | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Running:
    """Starts services and gateway on stores that are open."""
    secret = gateway.assertion_secret.get_secret_value().encode() or secrets.token_bytes(_SECRET_BYTES)
    signer = Signer(secret, clock)
    say("starting the services")
    running = await serve_inprocess(resources, signer)
    stack.push_async_callback(running.stop)
    say("starting the gateway")
    targets = dict.fromkeys(ServiceName, running.target)
    opened = await open_gateway(gateway, targets, signer, stack, resources.now, resources.engine.name, steps)
    return Running(opened, running.target, resources.engine.name)


def command(
    runtime: Annotated[Runtime, typer.Option(help="Where the services run.")] = Runtime.INPROCESS,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of the embedded stores and logs (default: .palimpsest).")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port of the gateway on 127.0.0.1; 0 takes a free one.")
    ] = None,
) -> None:
    """Starts the embedded stores, the five services and the gateway; Ctrl-C stops them.

    Exit code 0: it was stopped. 1: it could not start.
    """
    assert runtime is Runtime.INPROCESS, "the only one there is"
    console = Console(stderr=True)
    folder: dict[str, object] = {} if data_dir is None else {"data_dir": data_dir}
    listen: dict[str, object] = {} if port is None else {"gateway_port": port}
    try:
        services = read_settings(ServiceSettings, **folder)
        gateway = read_settings(GatewaySettings, **folder, **listen)
        check_port(gateway)
        log = log_to(services.data_dir / FOLDER)
        structlog.get_logger(__name__).info("settings", **in_use([gateway, services]))
        asyncio.run(_serve(services, gateway, log, console))
    except CANT_START as error:
        hint = "".join(text for kind, text in _HINTS if isinstance(error, kind))
        console.print(
            f"can't start: {error}{hint}", style="red", markup=False, highlight=False, soft_wrap=True
        )
        raise typer.Exit(1) from error


async def _serve(services: ServiceSettings, gateway: GatewaySettings, log: Path, console: Console) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        with console.status("starting") as status:
            running = await bring_up(services, gateway, stack, say=lambda stage: status.update(f"{stage} …"))
        # Clients on this machine find the gateway by it; withdrawn before the gateway drains.
        local.announce(gateway.data_dir, running.gateway.target)
        stack.callback(local.withdraw, gateway.data_dir, running.gateway.target)
        console.print(f"gateway   [bold]{running.gateway.target}[/bold]")
        console.print(f"services  {running.services_target} (in process)")
        console.print(f"data      {services.data_dir}")
        console.print(f"log       {log}")
        if running.engine == "offline":
            console.print(
                "[yellow]engine    offline: rules for English, no language model[/yellow]\n"
                "[dim]          PALIMPSEST_ENGINE=openai takes a real one[/dim]"
            )
        console.print("Ctrl-C stops.")
        await stop.wait()
        console.print("stopping …")
    console.print("stopped.")
