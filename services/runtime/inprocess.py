"""The five services in one process, on one grpc.aio server on loopback."""

from collections.abc import Sequence
from dataclasses import dataclass

import grpc.aio
from google.protobuf.descriptor import FileDescriptor

from palimpsest.internal.v1 import (
    classifier_pb2,
    extractor_pb2,
    preprocessor_pb2,
    recall_pb2,
    resolver_pb2,
)
from services.classifier.service import Classifier
from services.domain.predicates import default_vocabulary
from services.extractor.service import Extractor
from services.preprocessor.service import Preprocessor
from services.recall.parts import Parts as RecallParts
from services.recall.service import Recall
from services.resolver.publish import Stores
from services.resolver.service import Parts, Resolver
from services.runtime.assertion import Signer
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

    @property
    def target(self) -> str:
        return f"{HOST}:{self.port}"

    async def stop(self, grace_seconds: float = 5.0) -> None:
        """Lets calls in flight end, then stops."""
        await self.server.stop(grace_seconds)


async def serve_inprocess(resources: Resources, signer: Signer, port: int = 0) -> InProcessServices:
    """Starts all five services on one loopback port; 0 takes a free one."""
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", _MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MESSAGE_BYTES),
            ("grpc.so_reuseport", 0),
        ]
    )
    for file, service in _services(resources):
        name = next(iter(file.services_by_name))
        mount(server, file.services_by_name[name], service, signer)
    bound = server.add_insecure_port(f"{HOST}:{port}")
    await server.start()
    return InProcessServices(server, bound)


def _services(resources: Resources) -> Sequence[tuple[FileDescriptor, object]]:
    memory = resources.memory
    parts = Parts(
        stores=Stores(resources.graph, memory.revisions, memory.voice, memory.decisions),
        text=memory.text,
        staging=memory.staging,
        vectors=resources.vectors,
        embedder=resources.embedder,
        engine=resources.engine,
        vocabulary=default_vocabulary(),
        now=resources.now,
    )
    preprocessor = Preprocessor(memory.text, resources.vectors, resources.embedder, resources.now)
    recall = Recall(
        RecallParts(
            graph=resources.graph,
            text=memory.text,
            voice=memory.voice,
            revisions=memory.revisions,
            vectors=resources.vectors,
            embedder=resources.embedder,
            vocabulary=default_vocabulary(),
        )
    )
    return (
        (preprocessor_pb2.DESCRIPTOR, preprocessor),
        (extractor_pb2.DESCRIPTOR, Extractor(resources.engine)),
        (classifier_pb2.DESCRIPTOR, Classifier(resources.engine)),
        (resolver_pb2.DESCRIPTOR, Resolver(parts)),
        (recall_pb2.DESCRIPTOR, recall),
    )
