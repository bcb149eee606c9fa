"""The five services in one process, on one grpc.aio server on loopback."""

from collections.abc import Sequence
from dataclasses import dataclass

import grpc.aio

from services.runtime.assertion import Signer
from services.runtime.catalogue import Closes, all_services
from services.runtime.descriptors import DESCRIPTORS
from services.runtime.front import Front
from services.runtime.mount import mount
from services.runtime.resources import Resources

HOST = "127.0.0.1"
_MESSAGE_BYTES = 32 * 1024 * 1024
"""Above the gateway's cap of 16 MiB: a message between services can be larger than what caused it."""


@dataclass(frozen=True, slots=True)
class InProcessServices:
    """A running server of all five."""

    server: grpc.aio.Server
    port: int
    services: Sequence[object]

    @property
    def target(self) -> str:
        return f"{HOST}:{self.port}"

    async def stop(self, grace_seconds: float = 5.0) -> None:
        """Lets calls in flight end, then stops."""
        await self.server.stop(grace_seconds)
        for service in self.services:
            if isinstance(service, Closes):
                await service.close()


async def serve_inprocess(resources: Resources, signer: Signer, port: int = 0) -> InProcessServices:
    """Starts all five services on one loopback port; 0 takes a free one."""
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", _MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MESSAGE_BYTES),
            ("grpc.so_reuseport", 0),
        ]
    )
    services = all_services(resources)
    for name, service in services.items():
        mount(server, DESCRIPTORS[name], Front(name, service, signer))
    bound = server.add_insecure_port(f"{HOST}:{port}")
    await server.start()
    return InProcessServices(server, bound, list(services.values()))
