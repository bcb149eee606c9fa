"""`palimpsest up`: stores, services and gateway of one machine, started in one go and stopped cleanly."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import structlog
import typer
from pydantic import SecretStr
from rich.console import Console

from gateway.configured import BadSettings, read_settings
from gateway.console import DEFAULT_PORT, ConsoleNotStarted, ConsoleOptions, open_console
from gateway.ingest.steps import StepSettings
from gateway.lifetime import Say, serve_until_stopped, told
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
from services.runtime.heap import settle
from services.runtime.inprocess import serve_inprocess
from services.runtime.ray_cluster import RayServices
from services.runtime.ray_settings import RaySettings
from services.runtime.resources import Resources, clock, open_resources, prepare
from services.runtime.settings import ServiceSettings
from services.stores.errors import StoreError
from services.stores.vectors.lite import DataDirInUse, LiteServerError

_SECRET_BYTES = 32


CANT_START = (BadSettings, OSError, LiteServerError, StoreError, EngineError, ConsoleNotStarted)
_HINTS: Mapping[type[Exception], str] = {
    PortTaken: "; if it isn't `palimpsest up` already, --port 0 takes a free one",
    DataDirInUse: "; with another --data-dir a second server runs beside it",
    ConsoleNotStarted: "; --console-port 0 takes a free port",
}


class Runtime(StrEnum):
    """Where the five services run."""

    RAY = "ray"
    INPROCESS = "inprocess"


_WHERE = {Runtime.RAY: "five applications on Ray", Runtime.INPROCESS: "in process"}


@dataclass(frozen=True, slots=True)
class Running:
    """What is up, and where."""

    gateway: OpenGateway
    services_target: str
    engine: str
    runtime: Runtime = Runtime.INPROCESS
    console: str = ""
    """URL of the console; empty without one."""


async def bring_up(
    services: ServiceSettings,
    gateway: GatewaySettings,
    stack: AsyncExitStack,
    now: Callable[[], Instant] = clock,
    steps: StepSettings | None = None,
    say: Say = lambda _: None,
) -> Running:
    """Starts everything in this process; `stack` stops it, the gateway first. `say` is told each stage."""
    say("opening the stores")
    resources = await open_resources(services, stack, now)
    return await bring_up_on(resources, gateway, stack, steps, say, providers_of(services))


async def bring_up_on(
    resources: Resources,
    gateway: GatewaySettings,
    stack: AsyncExitStack,
    steps: StepSettings | None = None,
    say: Say = lambda _: None,
    providers: frozenset[str] = frozenset(),
) -> Running:
    """Starts services and gateway on stores that are open. `providers` see texts."""
    secret = gateway.assertion_secret.get_secret_value().encode() or secrets.token_bytes(_SECRET_BYTES)
    signer = Signer(secret, clock)
    say("starting the services")
    running = await serve_inprocess(resources, signer)
    stack.push_async_callback(running.stop)
    say("starting the gateway")
    targets = dict.fromkeys(ServiceName, running.target)
    opened = await open_gateway(
        gateway, targets, signer, stack, resources.now, resources.engine.name, steps, providers
    )
    return Running(opened, running.target, resources.engine.name)


async def bring_up_on_ray(
    services: ServiceSettings,
    gateway: GatewaySettings,
    ray: RaySettings,
    stack: AsyncExitStack,
    steps: StepSettings | None = None,
    say: Say = lambda _: None,
) -> Running:
    """Starts the services on Ray, in processes of their own, and the gateway in this one.

    `stack` stops everything, the gateway first. Raises RayNotStarted.
    """
    secret = gateway.assertion_secret.get_secret_value() or secrets.token_hex(_SECRET_BYTES)
    say("opening the stores")
    shared = await prepare(services, stack)
    shared = shared.model_copy(update={"assertion_secret": SecretStr(secret)})
    running = await RayServices.start(shared, ray, say)
    stack.push_async_callback(running.stop)
    say("starting the gateway")
    targets = dict.fromkeys(ServiceName, running.target)
    signer = Signer(secret.encode(), clock)
    opened = await open_gateway(
        gateway, targets, signer, stack, clock, services.engine, steps, providers_of(services)
    )
    return Running(opened, running.target, services.engine, Runtime.RAY)


def providers_of(services: ServiceSettings) -> frozenset[str]:
    """The providers that see texts: of the language model and of the embeddings, where they are remote."""
    found = set()
    if services.engine == "openai" and services.model is not None:
        found.add(services.model.provider)
    if services.embedder == "openai" and services.embedding is not None:
        found.add(services.embedding.provider)
    return frozenset(found)


def command(
    runtime: Annotated[
        Runtime, typer.Option(help="Where the services run: on Ray, each by itself, or in this process.")
    ] = Runtime.RAY,
    ray_address: Annotated[
        str | None, typer.Option(help="host:port of a Ray cluster to join (default: one of its own).")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of the embedded stores and logs (default: .palimpsest).")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port of the gateway on 127.0.0.1; 0 takes a free one.")
    ] = None,
    console_too: Annotated[
        bool, typer.Option("--console", help="Also serve the page that shows what a memory holds.")
    ] = False,
    console_port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port of the console on 127.0.0.1; 0 takes a free one.")
    ] = DEFAULT_PORT,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Let the console end, deny, restore, merge and split.")
    ] = False,
) -> None:
    """Starts the embedded stores, the five services and the gateway; Ctrl-C stops them.

    Exit code 0: it was stopped. 1: it could not start.
    """
    console = Console(stderr=True)
    folder: dict[str, object] = {} if data_dir is None else {"data_dir": data_dir}
    listen: dict[str, object] = {} if port is None else {"gateway_port": port}
    with told(console, CANT_START, _HINTS):
        services = read_settings(ServiceSettings, **folder)
        gateway = read_settings(GatewaySettings, **folder, **listen)
        joined: dict[str, object] = {} if ray_address is None else {"address": ray_address}
        ray = read_settings(RaySettings, **joined)
        check_port(gateway)
        log = log_to(services.data_dir / FOLDER)
        structlog.get_logger(__name__).info("settings", **in_use([gateway, services, ray]))
        page = ConsoleOptions(console_port, allow_changes) if console_too else None
        asyncio.run(_serve(runtime, services, gateway, ray, log, console, page))


async def _serve(
    runtime: Runtime,
    services: ServiceSettings,
    gateway: GatewaySettings,
    ray: RaySettings,
    log: Path,
    console: Console,
    page: ConsoleOptions | None,
) -> None:
    def product(stack: AsyncExitStack, say: Say) -> Coroutine[Any, Any, Running]:
        if runtime is Runtime.RAY:
            return bring_up_on_ray(services, gateway, ray, stack, say=say)
        return bring_up(services, gateway, stack, say=say)

    async def start(stack: AsyncExitStack, say: Say) -> Running:
        running = await product(stack, say)
        if page is None:
            return running
        say("starting the console")
        return replace(running, console=await open_console(running.gateway.target, page, stack))

    def started(stack: AsyncExitStack, running: Running) -> None:
        _tell(console, running, services.data_dir, log)
        # Clients on this machine find the gateway by it; withdrawn before the gateway drains.
        local.announce(gateway.data_dir, running.gateway.target)
        stack.callback(local.withdraw, gateway.data_dir, running.gateway.target)
        settle()

    await serve_until_stopped(console, start, started)


def _tell(console: Console, running: Running, data_dir: Path, log: Path) -> None:
    console.print(f"gateway   [bold]{running.gateway.target}[/bold]")
    console.print(f"services  {running.services_target} ({_WHERE[running.runtime]})")
    if running.console:
        console.print(f"console   {running.console}")
    console.print(f"data      {data_dir}")
    console.print(f"log       {log}")
    if running.gateway.metrics_port:
        console.print(f"metrics   http://127.0.0.1:{running.gateway.metrics_port}/metrics")
    if running.engine == "offline":
        console.print(
            "[yellow]engine    offline: rules for English and Chinese, no language model[/yellow]\n"
            "[dim]          PALIMPSEST_ENGINE=openai takes a real one[/dim]"
        )
    console.print("Ctrl-C stops.")
