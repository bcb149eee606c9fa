"""The chain on a real server: its order, streams, time, load, metrics, and what is not served yet."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.message_factory import GetMessageClass
from structlog.testing import capture_logs

from gateway.api.mount import mount, served, unserved
from gateway.interceptors.call import Call, current_caller
from gateway.interceptors.chain import Chain
from gateway.interceptors.limits import Admission
from gateway.interceptors.order import ORDER
from gateway.interceptors.recover import Recover
from gateway.rpcs import RPCS, SERVICES, path
from gateway.settings import GatewaySettings
from palimpsest.v1 import credits_pb2, credits_pb2_grpc, jobs_pb2, jobs_pb2_grpc
from tests.doubles.gateway import Refusal, RunningGateway, gateway_servicers, running_gateway

NOT_SERVED_BY_THE_GATEWAY_ALONE = {
    "GraphService": "DeclarePredicate ListPredicates",
    "MemoryService": "*",
    "RecallService": "*",
    "JobService": "RetryJob",
    "CreditService": "",
    "PrivacyService": "*",
    "AdminService": "",
}


def test_the_order_is_that_of_the_design() -> None:
    assert [step.__name__ for step in ORDER] == [
        "RequestIds",
        "LogAndTrace",
        "Metrics",
        "Recover",
        "DeadlineCap",
        "Authenticate",
        "TenantLimits",
        "Admission",
        "Validate",
        "KeepCalls",
    ]


def test_every_rpc_has_its_scope_and_its_time() -> None:
    assert RPCS.keys() == {path(method) for service in SERVICES for method in service.methods}
    streams = {
        path(method)
        for service in SERVICES
        for method in service.methods
        if method.server_streaming or method.client_streaming
    }
    assert {name for name, rpc in RPCS.items() if rpc.stream} == streams
    assert all(rpc.capped_seconds <= rpc.longest_seconds for rpc in RPCS.values())


async def test_what_is_not_served_is_listed_and_answers_so(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as running:
        servicers = gateway_servicers(running.stores, running.facts)
        expected = {
            path(method)
            for service in SERVICES
            for method in service.methods
            if NOT_SERVED_BY_THE_GATEWAY_ALONE[service.name] == "*"
            or method.name in NOT_SERVED_BY_THE_GATEWAY_ALONE[service.name].split()
        }
        assert unserved(servicers) == expected
        assert served(servicers) == RPCS.keys() - expected
        answers = {}
        for service in SERVICES:
            for method in service.methods:
                if path(method) in expected:
                    answers[path(method)] = await told(running, method)
        # A request without its fields may be refused for that before.
        assert set(answers.values()) <= {"NOT_IMPLEMENTED", "VALIDATION_FAILED"}
        assert "NOT_IMPLEMENTED" in answers.values()


async def told(running: RunningGateway, method: Any) -> str:
    """The reason that an empty request gets, whatever shape the method has."""
    request = GetMessageClass(method.input_type)()
    serialize, parse = type(request).SerializeToString, GetMessageClass(method.output_type).FromString
    key = running.keys["operator" if RPCS[path(method)].scope == "OPERATOR" else "acme"]
    options: Any = {"timeout": 10, "metadata": (("authorization", f"Bearer {key}"),)}
    channel: Any = running.channel
    words = ("unary", "stream")
    shape = f"{words[method.client_streaming]}_{words[method.server_streaming]}"
    multi = getattr(channel, shape)(path(method), request_serializer=serialize, response_deserializer=parse)
    try:
        call = multi(iter([request]) if method.client_streaming else request, **options)
        if method.server_streaming:
            async for _ in call:
                raise AssertionError("it is served")
        else:
            await call
    except grpc.aio.AioRpcError as error:
        return Refusal.of(error).reason
    raise AssertionError("it is served")


class Noting:
    """A step that notes when it is entered and left; a caller may have its answer before that."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self._name = name
        self._notes = notes
        self._left = asyncio.Event()

    @asynccontextmanager
    async def around(self, call: Call) -> AsyncIterator[None]:
        self._notes.append(f"+{self._name}")
        try:
            yield
        finally:
            self._notes.append(f"-{self._name}:{call.code.name}")
            self._left.set()

    async def noted(self) -> list[str]:
        """All notes since the last time, once this step has been left."""
        await self._left.wait()
        self._left.clear()
        notes = list(self._notes)
        self._notes.clear()
        return notes


class ScriptedCredits:
    """Answers, streams, waits or fails, as the threshold says."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.left = asyncio.Event()
        self.go_on = asyncio.Event()

    async def GetBalance(self, request: Any, context: Any) -> credits_pb2.GetBalanceResponse:
        self.entered.set()
        await self.go_on.wait()
        return credits_pb2.GetBalanceResponse()

    async def WatchBalance(
        self, request: credits_pb2.WatchBalanceRequest, context: Any
    ) -> AsyncIterator[credits_pb2.WatchBalanceResponse]:
        try:
            yield credits_pb2.WatchBalanceResponse(cursor="1")
            if request.threshold_micros == 1:
                raise ValueError("a canary in the text")
            self.entered.set()
            await self.go_on.wait()
            yield credits_pb2.WatchBalanceResponse(cursor="2")
        finally:
            self.left.set()


@asynccontextmanager
async def served_by_chain(chain: Chain, servicer: ScriptedCredits) -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server(interceptors=[chain])
    mount(server, {"CreditService": servicer})
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        await server.stop(0.2)


async def test_steps_are_entered_in_order_and_left_backwards_for_calls_and_streams() -> None:
    notes: list[str] = []
    servicer = ScriptedCredits()
    servicer.go_on.set()
    outer = Noting("a", notes)
    chain = Chain([outer, Recover(), Noting("b", notes)])
    async with served_by_chain(chain, servicer) as channel:
        stub: Any = credits_pb2_grpc.CreditServiceStub(channel)
        await stub.GetBalance(credits_pb2.GetBalanceRequest())
        assert await outer.noted() == ["+a", "+b", "-b:OK", "-a:OK"]
        cursors = [answer.cursor async for answer in stub.WatchBalance(credits_pb2.WatchBalanceRequest())]
        assert cursors == ["1", "2"]
        assert await outer.noted() == ["+a", "+b", "-b:OK", "-a:OK"]
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            async for _ in stub.WatchBalance(credits_pb2.WatchBalanceRequest(threshold_micros=1)):
                pass
        assert failure.value.code() is grpc.StatusCode.INTERNAL
        assert failure.value.details() == "internal error"
        assert await outer.noted() == ["+a", "+b", "-b:OK", "-a:INTERNAL"]


async def test_a_cancelled_stream_is_unwound(tmp_path: Path) -> None:
    notes: list[str] = []
    servicer = ScriptedCredits()
    outer = Noting("a", notes)
    async with served_by_chain(Chain([outer, Recover()]), servicer) as channel:
        stub: Any = credits_pb2_grpc.CreditServiceStub(channel)
        call = stub.WatchBalance(credits_pb2.WatchBalanceRequest())
        assert (await call.read()).cursor == "1"
        await servicer.entered.wait()
        call.cancel()
        await servicer.left.wait()
        assert await outer.noted() == ["+a", "-a:CANCELLED"]


async def test_admission_lets_a_few_wait_and_refuses_the_rest() -> None:
    servicer = ScriptedCredits()
    admission = Admission(max_in_flight=1, max_waiting=1, max_streams=1, wait_seconds=30)
    async with served_by_chain(Chain([Recover(), admission]), servicer) as channel:
        stub: Any = credits_pb2_grpc.CreditServiceStub(channel)
        first = asyncio.ensure_future(stub.GetBalance(credits_pb2.GetBalanceRequest()))
        await servicer.entered.wait()
        others = [asyncio.ensure_future(stub.GetBalance(credits_pb2.GetBalanceRequest())) for _ in range(3)]
        done, waiting = await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
        while len(done) < 2:
            more, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            done |= more
        assert {failed.exception().code() for failed in done} == {grpc.StatusCode.UNAVAILABLE}
        servicer.go_on.set()
        await asyncio.gather(first, *waiting)


async def test_a_call_that_takes_too_long_is_ended_before_its_deadline(tmp_path: Path) -> None:
    servicer = ScriptedCredits()
    async with running_gateway(tmp_path, more={"CreditService": servicer}) as running:
        stub = credits_pb2_grpc.CreditServiceStub(running.channel)
        refusal = await running.refused(stub.GetBalance, credits_pb2.GetBalanceRequest(), seconds=1.0)
        assert (refusal.code, refusal.reason) == (
            grpc.StatusCode.DEADLINE_EXCEEDED,
            "DEADLINE_TOO_SHORT",
        )


class Telling:
    """Keeps who called."""

    def __init__(self) -> None:
        self.callers: list[tuple[str, str, bool]] = []

    async def GetBalance(self, request: Any, context: Any) -> credits_pb2.GetBalanceResponse:
        caller = current_caller()
        await asyncio.sleep(0)
        assert current_caller() is caller
        self.callers.append((caller.tenant, caller.request_id, 0 < caller.remaining_seconds() <= 10))
        return credits_pb2.GetBalanceResponse()


async def test_concurrent_calls_of_two_tenants_never_see_each_others_caller(tmp_path: Path) -> None:
    servicer = Telling()
    async with running_gateway(tmp_path, more={"CreditService": servicer}) as running:
        stub = credits_pb2_grpc.CreditServiceStub(running.channel)
        named = [("acme" if number % 2 else "globex", f"call-{number}") for number in range(50)]
        await asyncio.gather(
            *(
                running.call(
                    stub.GetBalance,
                    credits_pb2.GetBalanceRequest(),
                    tenant,
                    metadata=(("x-request-id", name),),
                )
                for tenant, name in named
            )
        )
    assert sorted(servicer.callers) == sorted((tenant, name, True) for tenant, name in named)


async def test_metrics_count_methods_and_codes_and_name_no_tenant(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as running:
        stub = credits_pb2_grpc.CreditServiceStub(running.channel)
        await running.call(stub.GetBalance, credits_pb2.GetBalanceRequest())
        await running.refused(stub.GetBalance, credits_pb2.GetBalanceRequest(), "")
        await told_twice(running.meter.calls)
        method = "/palimpsest.v1.CreditService/GetBalance"
        assert running.meter.calls == [(method, "OK"), (method, "UNAUTHENTICATED")]


async def test_logs_hold_no_key_no_text_and_no_tenants_words(tmp_path: Path) -> None:
    servicer = ScriptedCredits()
    async with running_gateway(tmp_path, more={"CreditService": servicer}) as running:
        stub: Any = credits_pb2_grpc.CreditServiceStub(running.channel)
        shown = (("authorization", f"Bearer {running.keys['acme']}"),)
        request = credits_pb2.WatchBalanceRequest(threshold_micros=1, cursor="a canary in the request")
        with capture_logs() as logs:
            with pytest.raises(grpc.aio.AioRpcError):
                async for _ in stub.WatchBalance(request, metadata=shown):
                    pass
            await told_twice(logs)
    assert [line["event"] for line in logs] == ["internal failure", "call"]
    assert "canary" not in str(logs)
    assert running.keys["acme"].rpartition("_")[2] not in str(logs)
    assert "WatchBalance" in str(logs[0]["raised"])


async def told_twice(logs: Sequence[object]) -> None:
    """Waits for two lines: a caller has its answer before the last one is written."""
    for _ in range(1_000):
        if len(logs) >= 2:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{len(logs)} lines")


async def test_a_tenants_streams_are_limited(tmp_path: Path) -> None:
    settings = GatewaySettings(gateway_port=0, max_streams_per_tenant=1, drain_seconds=0.2)
    servicer = ScriptedCredits()
    async with running_gateway(tmp_path, settings, {"CreditService": servicer}) as running:
        stub: Any = credits_pb2_grpc.CreditServiceStub(running.channel)
        shown = (("authorization", f"Bearer {running.keys['acme']}"),)
        first = stub.WatchBalance(credits_pb2.WatchBalanceRequest(), metadata=shown)
        assert (await first.read()).cursor == "1"
        second = stub.WatchBalance(credits_pb2.WatchBalanceRequest(), metadata=shown)
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await second.read()
        assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        first.cancel()
        await servicer.left.wait()


async def test_an_unknown_job_cannot_be_watched(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as running:
        stub: Any = jobs_pb2_grpc.JobServiceStub(running.channel)
        shown = (("authorization", f"Bearer {running.keys['acme']}"),)
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await stub.WatchJob(jobs_pb2.WatchJobRequest(job_id="x"), metadata=shown, timeout=10).read()
        assert failure.value.code() is grpc.StatusCode.NOT_FOUND
