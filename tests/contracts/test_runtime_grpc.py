"""The runtime contract on a grpc.aio server in this process."""

from collections.abc import AsyncIterator
from dataclasses import replace

import grpc.aio
import pytest

from services.runtime.mount import mount
from tests.contracts.runtime_adapter import Caller, RuntimeContract
from tests.doubles.odd_service import DESCRIPTOR, front

_CAP = 32 * 1024 * 1024


class TestGrpcRuntime(RuntimeContract):
    @pytest.fixture
    async def target(self) -> AsyncIterator[str]:
        options = [("grpc.max_receive_message_length", _CAP), ("grpc.max_send_message_length", _CAP)]
        server = grpc.aio.server(options=options)
        mount(server, DESCRIPTOR, front())
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        yield f"127.0.0.1:{port}"
        await server.stop(None)

    async def test_the_servicer_itself_knows_its_application(self, call: Caller) -> None:
        failure = await call.refused(application="recall")
        assert await self.reason(call, None) == "ASSERTION_INVALID"
        assert "APPLICATION_UNKNOWN" in str(failure.trailing_metadata())


async def test_a_service_that_lacks_a_method_is_not_mounted() -> None:
    with pytest.raises(AttributeError, match="extract"):
        mount(grpc.aio.server(), DESCRIPTOR, replace(front(), service=object()))
