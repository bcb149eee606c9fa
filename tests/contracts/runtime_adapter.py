"""What every runtime does around a service: who may call, what errors become, how calls end early."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import grpc
import grpc.aio
import pytest

from palimpsest.internal.v1 import extractor_pb2_grpc
from palimpsest.internal.v1.extractor_pb2 import ExtractRequest, ExtractResponse
from palimpsest.internal.v1.values_pb2 import Setting
from services.domain.errors import DocumentTooLarge, InternalFailure, ServiceError
from services.domain.instants import Instant
from services.domain.scope import GraphId, Scope, TenantId
from services.runtime.assertion import LIFETIME_SECONDS, METADATA_KEY, Signer
from services.runtime.names import APPLICATION as APPLICATION_KEY
from services.runtime.resources import clock
from services.runtime.status import error_of_call
from tests.doubles.odd_service import APPLICATION, LIMIT, SECRET, SIZE

SCOPE = Scope(TenantId("acme"), GraphId("mara"))
_MEGABYTE = 1024 * 1024
_CAP = 32 * _MEGABYTE
_LOOKS, _PAUSE_SECONDS = 400, 0.05


@dataclass
class Caller:
    """Calls the odd service as the gateway would, or not quite."""

    channel: grpc.aio.Channel
    signer: Signer = field(default_factory=lambda: Signer(SECRET, clock))

    async def __call__(
        self,
        task: str = "",
        payload: str = "",
        application: str | None = APPLICATION,
        assertion: str | None = "",
        seconds: float = 30,
    ) -> ExtractResponse:
        metadata = []
        if application is not None:
            metadata.append((APPLICATION_KEY, application))
        if assertion is not None:
            metadata.append((METADATA_KEY, assertion or self.signer.sign(SCOPE)))
        asked = ExtractRequest(setting=Setting(user_name=task, time_zone=payload))
        stub = extractor_pb2_grpc.ExtractorServiceStub(self.channel)
        answer: ExtractResponse = await stub.Extract(asked, metadata=metadata, timeout=seconds)
        return answer

    async def refused(
        self, task: str = "", application: str | None = APPLICATION, assertion: str | None = ""
    ) -> grpc.aio.AioRpcError:
        """The status of a call that must fail."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self(task, application=application, assertion=assertion)
        return caught.value

    async def counted(self, what: str, times: int) -> None:
        """Waits until the service has counted something so often."""
        for _ in range(_LOOKS):
            if list((await self("count")).warnings).count(what) >= times:
                return
            await asyncio.sleep(_PAUSE_SECONDS)
        raise AssertionError(f"{what} was not counted {times} times")


class RuntimeContract:
    """Subclasses give `target`: where the odd service is served."""

    @pytest.fixture
    async def call(self, target: str) -> AsyncIterator[Caller]:
        options = [("grpc.max_receive_message_length", _CAP), ("grpc.max_send_message_length", _CAP)]
        async with grpc.aio.insecure_channel(target, options=options) as channel:
            yield Caller(channel)

    async def test_a_call_is_answered_for_the_scope_that_was_signed(self, call: Caller) -> None:
        assert (await call()).nothing == "acme/mara"

    async def test_an_error_arrives_with_all_its_details(self, call: Caller) -> None:
        error = error_of_call(await call.refused("refuse"))
        assert isinstance(error, DocumentTooLarge)
        assert error.metadata == {"limit": str(LIMIT), "size": str(SIZE)}
        assert [violation.field for violation in error.violations] == ["text"]

    async def test_a_bug_tells_nothing_of_itself(self, call: Caller) -> None:
        failure = await call.refused("break")
        assert failure.code() is grpc.StatusCode.INTERNAL
        assert failure.details() == InternalFailure().message
        assert isinstance(error_of_call(failure), InternalFailure)
        assert "Miso" not in str(failure.trailing_metadata()), "what broke it is in our log alone"

    @pytest.mark.parametrize("application", ["recall", "nobody", None])
    async def test_a_call_for_another_application_is_not_served(
        self, call: Caller, application: str | None
    ) -> None:
        failure = await call.refused(application=application)
        assert failure.code() is grpc.StatusCode.NOT_FOUND
        assert "Traceback" not in (failure.details() or "")

    async def test_a_call_without_an_assertion_is_refused(self, call: Caller) -> None:
        assert await self.reason(call, None) == "ASSERTION_INVALID"

    async def test_a_forged_assertion_is_refused(self, call: Caller) -> None:
        forger = Signer(b"another secret of somebody", clock)
        assert await self.reason(call, forger.sign(SCOPE)) == "ASSERTION_INVALID"

    @pytest.mark.parametrize("age_seconds", [LIFETIME_SECONDS + 60, -120])
    async def test_an_assertion_of_another_time_is_refused(self, call: Caller, age_seconds: int) -> None:
        then = Signer(SECRET, lambda: Instant(clock() - age_seconds * 1_000_000))
        assert await self.reason(call, then.sign(SCOPE)) == "ASSERTION_INVALID"

    async def test_three_megabytes_go_there_and_back(self, call: Caller) -> None:
        payload = "palimpsest" * (3 * _MEGABYTE // 10)
        assert (await call("echo", payload)).nothing == payload

    async def test_a_deadline_ends_the_call_on_both_sides(self, call: Caller) -> None:
        before = list((await call("count")).warnings).count("cancelled")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call("dawdle", seconds=1)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await call.counted("cancelled", before + 1)

    async def test_a_caller_who_leaves_ends_the_work(self, call: Caller) -> None:
        counts = list((await call("count")).warnings)
        task = asyncio.ensure_future(call("dawdle"))
        await call.counted("begun", counts.count("begun") + 1)
        task.cancel()
        await call.counted("cancelled", counts.count("cancelled") + 1)

    async def test_many_calls_at_once_keep_apart(self, call: Caller) -> None:
        answers = await asyncio.gather(*(call("echo", str(number)) for number in range(50)))
        assert [answer.nothing for answer in answers] == [str(number) for number in range(50)]

    @staticmethod
    async def reason(call: Caller, assertion: str | None) -> str:
        """The reason with which an assertion is refused."""
        error: ServiceError = error_of_call(await call.refused(assertion=assertion))
        return error.reason
