"""The front of a service: streams end with their status, and no key can be slipped in behind another."""

from collections.abc import AsyncIterator

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.wrappers_pb2 import StringValue

from services.domain.errors import GraphNotFound
from services.domain.scope import GraphId, Scope, TenantId
from services.runtime.assertion import METADATA_KEY, Signer
from services.runtime.front import Front, method_name
from services.runtime.names import APPLICATION, ServiceName
from services.runtime.probing import NOBODYS, PROBE, probing_method
from services.runtime.status import Rendered
from services.stores.errors import StoreUnavailable
from tests.builders import SAID

SIGNER = Signer(b"a secret of these tests", lambda: SAID)
SCOPE = Scope(TenantId("acme"), GraphId("mara"))
OTHER = Scope(TenantId("evil"), GraphId("mara"))


class Export:
    """Streams two messages, then breaks if it is told to."""

    async def export_graph(self, scope: Scope, request: Message) -> AsyncIterator[Message]:
        yield StringValue(value=scope.tenant)
        yield StringValue(value=scope.graph)
        if request == StringValue(value="break"):
            raise GraphNotFound(scope.graph)

    async def name(self, scope: Scope, request: Message) -> Message:
        del request
        return StringValue(value=scope.tenant)


FRONT = Front("export", Export(), SIGNER)
METADATA = ((APPLICATION, "export"), (METADATA_KEY, SIGNER.sign(SCOPE)))


async def streamed(request: str, metadata: tuple[tuple[str, str], ...] = METADATA) -> list[object]:
    found = [one async for one in FRONT.stream("ExportGraph", StringValue(value=request), metadata)]
    return [one.code if isinstance(one, Rendered) else getattr(one, "value", None) for one in found]


async def test_a_stream_is_answered_for_its_scope() -> None:
    assert await streamed("") == ["acme", "mara"]


async def test_a_stream_that_breaks_ends_with_its_status() -> None:
    assert await streamed("break") == ["acme", "mara", grpc.StatusCode.NOT_FOUND]


async def test_a_stream_without_an_assertion_is_only_its_status() -> None:
    assert await streamed("", METADATA[:1]) == [grpc.StatusCode.UNAUTHENTICATED]


async def test_a_second_assertion_changes_nothing() -> None:
    doubled = (*METADATA, (METADATA_KEY, SIGNER.sign(OTHER)))
    assert await FRONT.answer("Name", StringValue(), doubled) == StringValue(value="acme")


async def test_bytes_that_are_no_text_are_refused_and_break_nothing() -> None:
    answer = await FRONT.answer("Name", StringValue(), (METADATA[0], (METADATA_KEY, b"\xff\xfe")))
    assert isinstance(answer, Rendered)
    assert answer.code is grpc.StatusCode.UNAUTHENTICATED


class Reader:
    """Answers for stores; the one called `down` is."""

    async def probe(self, scope: Scope, store: str) -> None:
        assert scope == NOBODYS
        if store == "down":
            raise StoreUnavailable("graph")


async def probed(service: object, store: str, assertion: str = SIGNER.sign(NOBODYS)) -> object:
    front = Front(ServiceName.RECALL, service, SIGNER)
    rpc = probing_method(ServiceName.RECALL)
    given = ((APPLICATION, "recall"), (METADATA_KEY, assertion), (PROBE, store))
    answer = await front.answer(rpc.name, StringValue(), given)
    return answer.code if isinstance(answer, Rendered) else answer == GetMessageClass(rpc.output_type)()


async def test_a_probe_asks_for_a_store_and_carries_nothing_out() -> None:
    assert await probed(Reader(), "") is True
    assert await probed(Reader(), "up") is True
    assert await probed(Reader(), "down") is grpc.StatusCode.UNAVAILABLE
    assert await probed(Export(), "") is True, "a service without stores answers for itself"


async def test_a_probe_is_signed_like_any_call() -> None:
    assert await probed(Reader(), "", "forged") is grpc.StatusCode.UNAUTHENTICATED


def test_every_service_has_a_method_that_carries_probes() -> None:
    assert all(not probing_method(service).server_streaming for service in ServiceName)


def test_methods_are_named_in_snake_case() -> None:
    assert [method_name(rpc) for rpc in ("Recall", "ReadEpisode", "Assert")] == [
        "recall",
        "read_episode",
        "assert_",
    ]
