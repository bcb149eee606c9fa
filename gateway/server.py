"""The gateway's gRPC server: the chain, the servicers, health; started, drained and stopped."""

import asyncio
import errno
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health
from grpc_reflection.v1alpha import reflection

from gateway.api.mount import Servicers, mount
from gateway.health import Health, Probe
from gateway.interceptors.authenticate import Authenticate
from gateway.interceptors.keep import KeepCalls
from gateway.interceptors.limits import Admission, TenantLimits
from gateway.interceptors.observe import CallMeter, Metrics, OpenTelemetryMeter
from gateway.interceptors.order import Steps, chain
from gateway.keys import Authenticator, FailedAttempts, KeyStore
from gateway.rpcs import SERVICES
from gateway.settings import GatewaySettings
from gateway.store.calls import CallLog
from gateway.tls import Certificates
from services.domain.instants import Instant

_HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
_LAST_SECONDS = 1.0
"""For answers on their way, once all calls have ended; health watches never do."""
_KEEPALIVE_LEAST_MS = 10_000
"""Clients that ping more often than this are cut off."""
_KEEPALIVE_ANSWER_MS = 20_000
_ONE_SERVER = ("grpc.so_reuseport", 0)
"""Two servers on one port would share its calls without a word."""


def wall_clock() -> Instant:
    """The machine's clock: for the expiry of keys. Money goes by the database's."""
    return Instant(time.time_ns() // 1000)


class PortTaken(OSError):
    """Another process listens where the gateway should."""


def check_port(settings: GatewaySettings) -> None:
    """Finds out before anything is started whether the gateway can listen.

    Raises PortTaken, TlsUnusable, or another OSError.
    """
    if settings.gateway_tls.certificate:
        Certificates(settings.gateway_tls).credentials()
    host, port = settings.gateway_host, settings.gateway_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(f"can't listen on {host}:{port}: the port is taken") from error
        raise OSError(f"can't listen on {host}:{port}: {error.strerror or error}") from error


@dataclass(slots=True)
class Gateway:
    """A running server. `port` is the one it listens on."""

    server: grpc.aio.Server
    health: Health
    admission: Admission
    keep: KeepCalls
    port: int
    drain_wait_seconds: float
    drain_seconds: float
    probed: grpc.aio.Server | None = None
    """Answers for health alone, on `health_port`."""
    health_port: int = 0

    async def stop(self) -> None:
        """Says NOT_SERVING, waits until no new calls are sent here, drains, stops.

        While it drains, calls that are handled go on for `drain_seconds` and are then cancelled; new ones and
        streams get UNAVAILABLE, to be repeated, elsewhere.
        """
        await self.health.stop()
        await asyncio.sleep(self.drain_wait_seconds)
        await self.admission.drain(self.drain_seconds)
        await self.server.stop(min(self.drain_seconds, _LAST_SECONDS))
        if self.probed is not None:
            await self.probed.stop(None)
        await self.keep.close(self.drain_seconds)


async def serve(
    servicers: Servicers,
    keys: KeyStore,
    calls: CallLog,
    settings: GatewaySettings,
    meter: CallMeter | None = None,
    probes: Mapping[str, Probe] | None = None,
) -> Gateway:
    """Starts the public API: RPCs of `servicers` (by service name), all others as NOT_IMPLEMENTED.

    `probes` ask by name what it stands on (gateway/health.py).
    Raises PortTaken, TlsUnusable.
    """
    admission = Admission(
        settings.max_in_flight_calls,
        settings.max_waiting_calls,
        settings.max_streams,
        settings.admission_wait_seconds,
    )
    keep = KeepCalls(calls)
    steps = Steps(
        metrics=Metrics(meter or OpenTelemetryMeter()),
        authenticate=Authenticate(
            Authenticator(
                keys,
                FailedAttempts(settings.failed_keys_per_minute, time.monotonic),
                wall_clock,
                time.monotonic,
            )
        ),
        tenant_limits=TenantLimits(settings.tenant_limits, settings.max_streams_per_tenant, time.monotonic),
        admission=admission,
        keep=keep,
    )
    server = grpc.aio.server(interceptors=[chain(steps)], options=_options(settings))
    mount(server, servicers)
    checks = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    names = [service.full_name for service in SERVICES]
    if settings.reflection:
        reflection.enable_server_reflection([*names, _HEALTH, reflection.SERVICE_NAME], server)
    tls = Certificates(settings.gateway_tls).credentials() if settings.gateway_tls.certificate else None
    port = _listen(server, settings.gateway_host, settings.gateway_port, tls)
    probed, health_port = _probed(checks, settings)
    watched = Health(checks, probes or {}, settings.health_seconds, settings.health_probe_seconds)
    await watched.start()
    await server.start()
    if probed is not None:
        await probed.start()
    return Gateway(
        server,
        watched,
        admission,
        keep,
        port,
        settings.drain_wait_seconds,
        settings.drain_seconds,
        probed,
        health_port,
    )


def _probed(checks: health.HealthServicer, settings: GatewaySettings) -> tuple[grpc.aio.Server | None, int]:
    """The server for probes alone, and its port."""
    if settings.health_port is None:
        return None, 0
    server = grpc.aio.server(options=[_ONE_SERVER])
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    return server, _listen(server, settings.gateway_host, settings.health_port, None)


def _listen(server: grpc.aio.Server, host: str, port: int, tls: grpc.ServerCredentials | None) -> int:
    address = f"{host}:{port}"
    try:
        return server.add_insecure_port(address) if tls is None else server.add_secure_port(address, tls)
    except RuntimeError as error:
        raise PortTaken(f"can't listen on {address}: the port is taken") from error


def _options(settings: GatewaySettings) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_send_message_length", settings.max_message_bytes),
        ("grpc.max_concurrent_streams", settings.max_concurrent_streams),
        ("grpc.max_connection_age_ms", settings.max_connection_age_seconds * 1000),
        ("grpc.max_connection_age_grace_ms", round(settings.drain_seconds * 1000)),
        ("grpc.http2.min_ping_interval_without_data_ms", _KEEPALIVE_LEAST_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        # Who has gone without a word is found out: a watch would hold its place for an hour.
        ("grpc.keepalive_time_ms", settings.keepalive_seconds * 1000),
        ("grpc.keepalive_timeout_ms", _KEEPALIVE_ANSWER_MS),
        _ONE_SERVER,
    ]
