"""The gateway's way to the five services: stubs, the tenant assertion, deadlines, errors of the tree."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from palimpsest.internal.v1 import (
    classifier_pb2_grpc,
    extractor_pb2_grpc,
    preprocessor_pb2_grpc,
    recall_pb2_grpc,
    resolver_pb2_grpc,
)
from services.domain.scope import Scope
from services.runtime.assertion import METADATA_KEY, Signer
from services.runtime.status import error_of_call

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)

_MESSAGE_BYTES = 32 * 1024 * 1024


class ServiceName(StrEnum):
    """The five services; in Ray also the names of their applications."""

    PREPROCESSOR = "preprocessor"
    EXTRACTOR = "extractor"
    CLASSIFIER = "classifier"
    RESOLVER = "resolver"
    RECALL = "recall"


class Services:
    """Stubs of the five services, to be called through `call` alone."""

    def __init__(self, targets: Mapping[ServiceName, str], signer: Signer) -> None:
        """`targets` are host:port; services that share one share a channel."""
        options = [
            ("grpc.max_receive_message_length", _MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MESSAGE_BYTES),
        ]
        self._channels = {
            target: grpc.aio.insecure_channel(target, options=options) for target in set(targets.values())
        }
        self._signer = signer
        by_name = {name: self._channels[target] for name, target in targets.items()}
        self.preprocessor: preprocessor_pb2_grpc.PreprocessorServiceAsyncStub = (
            preprocessor_pb2_grpc.PreprocessorServiceStub(by_name[ServiceName.PREPROCESSOR])
        )
        self.extractor: extractor_pb2_grpc.ExtractorServiceAsyncStub = (
            extractor_pb2_grpc.ExtractorServiceStub(by_name[ServiceName.EXTRACTOR])
        )
        self.classifier: classifier_pb2_grpc.ClassifierServiceAsyncStub = (
            classifier_pb2_grpc.ClassifierServiceStub(by_name[ServiceName.CLASSIFIER])
        )
        self.resolver: resolver_pb2_grpc.ResolverServiceAsyncStub = resolver_pb2_grpc.ResolverServiceStub(
            by_name[ServiceName.RESOLVER]
        )
        self.recall: recall_pb2_grpc.RecallServiceAsyncStub = recall_pb2_grpc.RecallServiceStub(
            by_name[ServiceName.RECALL]
        )

    async def call(
        self,
        scope: Scope,
        method: "grpc.aio.UnaryUnaryMultiCallable[RequestT, ResponseT]",
        request: RequestT,
        timeout_seconds: float,
    ) -> ResponseT:
        """Calls one method for a scope. Raises ServiceError, never a bare gRPC error."""
        metadata = ((METADATA_KEY, self._signer.sign(scope)),)
        try:
            return await method(request, timeout=timeout_seconds, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise error_of_call(error) from error

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()
