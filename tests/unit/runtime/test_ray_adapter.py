"""The Ray adapter without Ray: errors are told by the context, whatever carries the call."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, MethodDescriptorProto, ServiceDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.wrappers_pb2 import DESCRIPTOR as WRAPPERS
from google.protobuf.wrappers_pb2 import StringValue

from services.domain.errors import GraphNotFound
from services.domain.scope import GraphId, Scope, TenantId
from services.runtime.assertion import METADATA_KEY, Signer
from services.runtime.front import Front
from services.runtime.names import APPLICATION
from services.runtime.ray_adapter import replica_class
from services.runtime.status import TRAILER
from tests.builders import SAID

SIGNER = Signer(b"a secret of these tests", lambda: SAID)
METADATA = [(APPLICATION, "export"), (METADATA_KEY, SIGNER.sign(Scope(TenantId("acme"), GraphId("mara"))))]


def service_descriptor() -> Any:
    """A service with a call and a stream, known to no generated code."""
    text = ".google.protobuf.StringValue"
    pool = DescriptorPool()
    wrappers = FileDescriptorProto()
    WRAPPERS.CopyToProto(wrappers)
    pool.Add(wrappers)
    pool.Add(
        FileDescriptorProto(
            name="tests/export.proto",
            package="tests",
            syntax="proto3",
            dependency=[wrappers.name],
            service=[
                ServiceDescriptorProto(
                    name="ExportService",
                    method=[
                        MethodDescriptorProto(name="Name", input_type=text, output_type=text),
                        MethodDescriptorProto(
                            name="Export", input_type=text, output_type=text, server_streaming=True
                        ),
                    ],
                )
            ],
        )
    )
    return pool.FindServiceByName("tests.ExportService")


class Export:
    def __init__(self) -> None:
        self.closed = 0

    async def name(self, scope: Scope, request: Message) -> Message:
        if request == StringValue(value="break"):
            raise GraphNotFound(scope.graph)
        if request == StringValue(value="bug"):
            raise RuntimeError("my cat is called Miso")
        return StringValue(value=scope.tenant)

    async def export(self, scope: Scope, request: Message) -> AsyncIterator[Message]:
        yield StringValue(value=scope.graph)
        if request == StringValue(value="break"):
            raise GraphNotFound(scope.graph)


@dataclass
class Context:
    """What Serve hands to a call: metadata in, status out."""

    metadata: list[tuple[str, str]] = field(default_factory=lambda: METADATA)
    told: dict[str, Any] = field(default_factory=dict)

    def invocation_metadata(self) -> list[tuple[str, str]]:
        return self.metadata

    def set_code(self, code: grpc.StatusCode) -> None:
        self.told["code"] = code

    def set_details(self, details: str) -> None:
        self.told["details"] = details

    def set_trailing_metadata(self, trailers: list[tuple[str, bytes]]) -> None:
        self.told["trailers"] = dict(trailers)


EXPORT = Export()


async def open_export(stack: AsyncExitStack) -> Front:
    def close() -> None:
        EXPORT.closed += 1

    stack.callback(close)
    return Front("export", EXPORT, SIGNER)


@pytest.fixture
async def replica() -> AsyncIterator[Any]:
    """Made, opened and closed as Serve does it: it awaits the constructor and the destructor."""
    kind: Any = replica_class("ExportReplica", __name__, service_descriptor())
    made = kind.__new__(kind)
    await made.__init__(open_export)
    yield made
    await made.__del__()
    kind.__del__ = lambda _: None  # as Serve does, or Python would call it once more


async def test_a_call_is_answered(replica: Any) -> None:
    context = Context()
    assert (await replica.Name(StringValue(), grpc_context=context)).value == "acme"
    assert context.told == {}


async def test_an_error_is_set_and_not_raised(replica: Any) -> None:
    context = Context()
    assert (await replica.Name(StringValue(value="break"), grpc_context=context)).value == ""
    assert context.told["code"] is grpc.StatusCode.NOT_FOUND
    assert TRAILER in context.told["trailers"]


async def test_a_bug_is_told_by_constant_words(replica: Any) -> None:
    context = Context()
    await replica.Name(StringValue(value="bug"), grpc_context=context)
    assert context.told["code"] is grpc.StatusCode.INTERNAL
    assert "Miso" not in repr(context.told)


async def test_a_stream_is_answered_and_ends_with_its_status(replica: Any) -> None:
    context = Context()
    found = [one.value async for one in replica.Export(StringValue(value="break"), grpc_context=context)]
    # The status travels with a message, an empty one: Serve's proxy has no other way for it.
    assert found == ["mara", ""]
    assert context.told["code"] is grpc.StatusCode.NOT_FOUND


async def test_a_replica_closes_what_it_opened(replica: Any) -> None:
    before = EXPORT.closed
    await replica.check_health()
    await replica.__del__()
    assert EXPORT.closed == before + 1
