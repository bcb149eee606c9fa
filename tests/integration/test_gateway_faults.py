"""Every RPC, by its descriptor: who may call it, how long it may take, what becomes of an exception in it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import httpx
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from gateway.interceptors.call import DOWNSTREAM_MARGIN_SECONDS, current_caller
from gateway.interceptors.validate import Validate
from gateway.keys import KeyScope
from gateway.rpcs import ACCEPT_SECONDS, READ_SECONDS, RECALL_SECONDS, RPCS, SERVICES, WATCH_SECONDS, path
from gateway.settings import GatewaySettings
from gateway.store.tenants import TenantState
from palimpsest.v1 import credits_pb2, credits_pb2_grpc
from palimpsest.v1.errors_pb2 import ErrorReason
from services.domain import errors
from services.domain.errors import ServiceError
from services.llm import port as models
from services.runtime.assertion import METADATA_KEY, Signer
from services.runtime.descriptors import DESCRIPTORS
from services.runtime.front import Front, method_name
from services.runtime.names import APPLICATION
from services.runtime.probing import NOBODYS
from services.runtime.resources import clock
from services.runtime.status import Rendered
from services.stores import errors as stores
from tests.doubles.gateway import ACME, GLOBEX, Refusal, RunningGateway, running_gateway
from tests.e2e.asked import ASKED, Ids, sent
from tests.e2e.asked import NOBODYS as NOBODY
from tests.unit.gateway.test_errors import documented

SECRET = "canary at db-7.internal:5432: SELECT text FROM passages WHERE scope = 'Traceback'"
PUBLIC = {value.name.removeprefix("ERROR_REASON_") for value in ErrorReason.DESCRIPTOR.values}
METHODS: Sequence[MethodDescriptor] = [method for service in SERVICES for method in service.methods]
SOMEBODYS = Ids("notes", NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, NOBODY, ("Xanthrop", "Zyglomat"))


def bare(code: grpc.StatusCode, *trailers: tuple[str, bytes]) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailers), SECRET, SECRET)


def caused(error: Exception) -> Exception:
    error.__cause__ = RuntimeError(SECRET)
    error.add_note(SECRET)
    return error


# What anything below a handler may raise, and the reason that its caller is told.
INJECTED: Mapping[str, tuple[Callable[[], BaseException], str]] = {
    "bug": (lambda: RuntimeError(SECRET), "INTERNAL"),
    "key": (lambda: KeyError(SECRET), "INTERNAL"),
    "assertion": (lambda: AssertionError(SECRET), "INTERNAL"),
    "file": (lambda: FileNotFoundError(2, SECRET, SECRET), "INTERNAL"),
    "socket": (lambda: ConnectionRefusedError(111, SECRET), "INTERNAL"),
    "time out": (lambda: TimeoutError(SECRET), "INTERNAL"),
    "json": (lambda: json.JSONDecodeError(SECRET, SECRET, 0), "INTERNAL"),
    "bytes": (lambda: UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET), "INTERNAL"),
    "proto": (lambda: DecodeError(SECRET), "INTERNAL"),
    "sql": (lambda: OperationalError(SECRET, {"text": SECRET}, RuntimeError(SECRET)), "INTERNAL"),
    "http": (lambda: httpx.ConnectError(SECRET), "INTERNAL"),
    "group": (lambda: ExceptionGroup(SECRET, [ValueError(SECRET), stores.WriteConflict()]), "INTERNAL"),
    "not ours to cancel": (lambda: asyncio.CancelledError(SECRET), "INTERNAL"),
    "store": (lambda: caused(stores.StoreUnavailable("graph")), "STORE_UNAVAILABLE"),
    "conflict": (lambda: caused(stores.WriteConflict(SECRET)), "CONFLICT"),
    "text": (lambda: caused(stores.UnstorableText(SECRET)), "VALIDATION_FAILED"),
    "model": (lambda: models.ModelUnavailable(SECRET), "MODEL_UNAVAILABLE"),
    "model's answer": (lambda: models.ModelOutputInvalid(SECRET), "MODEL_OUTPUT_INVALID"),
    "not found": (lambda: caused(errors.GraphNotFound("notes")), "GRAPH_NOT_FOUND"),
    "no replica": (lambda: bare(grpc.StatusCode.UNAVAILABLE), "OVERLOADED"),
    "lost replica": (lambda: bare(grpc.StatusCode.UNKNOWN), "STORE_UNAVAILABLE"),
    "foreign status": (
        lambda: bare(grpc.StatusCode.NOT_FOUND, ("grpc-status-details-bin", b"")),
        "INTERNAL",
    ),
}


class Injecting:
    """Servicers of the whole API: each call raises what is set, or notes how long it may take."""

    def __init__(self) -> None:
        self.raised: Callable[[], BaseException] | None = None
        self.first = False
        """A stream gives an answer before it fails."""
        self.seconds: dict[str, float] = {}

    def servicers(self) -> Mapping[str, object]:
        made = {}
        for service in SERVICES:
            behaviours = {method.name: self._behaviour(method) for method in service.methods}
            made[service.name] = type(service.name, (), behaviours)()
        return made

    def _behaviour(self, method: MethodDescriptor) -> Any:
        answer = GetMessageClass(method.output_type)()

        def meet() -> None:
            self.seconds[path(method)] = current_caller().remaining_seconds()
            if self.raised is not None:
                raise self.raised()

        async def unary(_self: object, _request: object, _context: object) -> Message:
            meet()
            return answer

        async def streaming(_self: object, _request: object, _context: object) -> AsyncIterator[Message]:
            if self.first:
                yield answer
            meet()

        return streaming if method.server_streaming else unary


async def asked(
    running: RunningGateway,
    method: MethodDescriptor,
    key: str = "",
    *,
    seconds: float | None = 60,
    empty: bool = False,
) -> Refusal | None:
    """Calls a method with a request that keeps the rules, or an empty one; None when it was answered."""
    name = f"{method.containing_service.name}/{method.name}"
    requests = sent(ASKED[name](SOMEBODYS)) if name in ASKED and not empty else [_empty(method)]
    words = ("unary", "stream")
    shape = f"{words[method.client_streaming]}_{words[method.server_streaming]}"
    multi = getattr(running.channel, shape)(
        path(method),
        request_serializer=type(requests[0]).SerializeToString,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    key = key or ("operator" if RPCS[path(method)].scope is KeyScope.OPERATOR else "acme")
    shown = (("authorization", f"Bearer {running.keys.get(key, key)}"),)
    call = multi(iter(requests) if method.client_streaming else requests[0], metadata=shown, timeout=seconds)
    try:
        if method.server_streaming:
            async for _ in call:
                pass
        else:
            await call
    except grpc.aio.AioRpcError as error:
        failure = error
    else:
        return None
    assert "canary" not in str(failure.trailing_metadata()) + str(failure.details())
    return Refusal.of(failure)


async def refused(
    running: RunningGateway, method: MethodDescriptor, key: str = "", *, empty: bool = False
) -> Refusal:
    """The refusal of a call that must be refused."""
    refusal = await asked(running, method, key, empty=empty)
    assert refusal is not None, f"{path(method)} was answered"
    return refusal


def _empty(method: MethodDescriptor) -> Message:
    return GetMessageClass(method.input_type)()


def test_every_rpc_meets_every_kind_of_exception() -> None:
    """Each has a request among those of the isolation suite, which its own test demands."""
    assert not {method.name for method in METHODS if not reachable(method)}


def reachable(method: MethodDescriptor) -> bool:
    """Whether its handler can be reached: by a request of the isolation suite, or by an empty one."""
    name = f"{method.containing_service.name}/{method.name}"
    empty = GetMessageClass(method.input_type)()
    return name in ASKED or method.client_streaming or not Validate().violations(empty)


@pytest.fixture
def injecting() -> Injecting:
    return Injecting()


@pytest.fixture
async def running(tmp_path: Path, injecting: Injecting) -> AsyncIterator[RunningGateway]:
    settings = GatewaySettings(
        gateway_port=0,
        drain_seconds=0.2,
        tenant_request_burst=100_000,
        failed_keys_per_minute=10_000,
    )
    async with running_gateway(tmp_path, settings, injecting.servicers()) as running:
        yield running


@pytest.mark.parametrize("each", [11, pytest.param(1, marks=pytest.mark.slow)])
async def test_every_exception_becomes_a_documented_error_and_tells_nothing(
    running: RunningGateway, injecting: Injecting, each: int
) -> None:
    """The chain is the same for all RPCs, so each of them meets one kind of `each`, together all."""
    kinds = list(INJECTED.values())
    with capture_logs() as logs:
        for number, method in enumerate(METHODS):
            if not reachable(method):
                assert (await refused(running, method)).reason == "VALIDATION_FAILED"
                continue
            for injecting.raised, reason in kinds[number % each :: each]:
                for injecting.first in (False, True) if method.server_streaming else (False,):
                    refusal = await refused(running, method)
                    assert refusal.reason == reason, f"{path(method)}: {injecting.raised()!r}"
                    assert reason in PUBLIC
                    kind = ServiceError.by_reason[reason]
                    assert refusal.code.value[0] == int(kind.code)
                    assert refusal.retryable == (kind.retry_default_seconds is not None)
                    assert "canary" not in str(refusal.details) + refusal.text
    assert "canary" not in str(logs)


async def test_every_error_of_the_tree_reaches_its_caller_as_it_is_documented(
    running: RunningGateway, injecting: Injecting
) -> None:
    method = next(one for one in METHODS if one.name == "GetBalance")
    told = documented()
    for reason in sorted(ServiceError.by_reason.keys() & PUBLIC):
        injecting.raised = lambda kind=ServiceError.by_reason[reason]: kind.revive("constant", {})
        refusal = await refused(running, method)
        code, retry = told.get(reason, (refusal.code.name, refusal.retryable))
        assert (refusal.reason, refusal.code.name, refusal.text) == (reason, code, "constant")
        assert refusal.retryable or not retry


async def test_every_rpc_refuses_who_may_not_call_it(running: RunningGateway, injecting: Injecting) -> None:
    async def reason(method: MethodDescriptor, key: str) -> str:
        return (await refused(running, method, key)).reason

    for method in METHODS:
        scope = RPCS[path(method)].scope
        assert await reason(method, "nobody's key") == "API_KEY_INVALID"
        lacking = "acme" if scope is KeyScope.OPERATOR else "operator"
        assert await reason(method, lacking) == "SCOPE_MISSING"
        if scope in (KeyScope.WRITE, KeyScope.ERASE):
            assert await reason(method, "reader") == "SCOPE_MISSING"
    await running.stores.tenants.set_state(GLOBEX, TenantState.SUSPENDED)
    for method in METHODS:
        if RPCS[path(method)].scope is not KeyScope.OPERATOR:
            assert await reason(method, "globex") == "TENANT_SUSPENDED"
    assert injecting.seconds == {}, "no handler was reached"


async def test_every_rpc_refuses_a_bad_request_before_its_handler(
    running: RunningGateway, injecting: Injecting
) -> None:
    bad = [one for one in METHODS if not one.client_streaming and Validate().violations(_empty(one))]
    assert len(bad) > len(METHODS) // 2
    for method in bad:
        refusal = await refused(running, method, empty=True)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "VALIDATION_FAILED")
        assert refusal.details["BadRequest"].field_violations
    assert injecting.seconds == {}


def capped(method: MethodDescriptor) -> float:
    """The cap of the design for a call without a deadline."""
    if method.server_streaming or method.client_streaming:
        return WATCH_SECONDS
    if method.name in ("Recall", "GetSubgraph"):
        return RECALL_SECONDS
    return READ_SECONDS if RPCS[path(method)].scope in (KeyScope.READ, KeyScope.OPERATOR) else ACCEPT_SECONDS


async def test_every_rpc_is_given_no_more_time_than_its_cap(
    running: RunningGateway, injecting: Injecting
) -> None:
    assert (RECALL_SECONDS, ACCEPT_SECONDS, WATCH_SECONDS) == (5, 10, 3600)
    reached = [method for method in METHODS if reachable(method)]
    for method in reached:
        await asked(running, method, seconds=None)
    assert set(injecting.seconds) == {path(method) for method in reached}
    for method in reached:
        assert 0 < injecting.seconds[path(method)] <= capped(method)
    for seconds in (100_000.0, 60.0):
        for method in reached[:: 3 if seconds > 60 else 9]:
            await asked(running, method, seconds=seconds)
            told = seconds * 1.02  # a deadline travels rounded up
            most = min(RPCS[path(method)].longest_seconds, told - DOWNSTREAM_MARGIN_SECONDS)
            assert injecting.seconds[path(method)] <= most


SIGNER = Signer(b"a secret of these tests", clock)


async def test_every_internal_rpc_turns_every_exception_into_a_status() -> None:
    given = ((METADATA_KEY, SIGNER.sign(NOBODYS)),)
    with capture_logs() as logs:
        for application, descriptor in DESCRIPTORS.items():
            for number, rpc in enumerate(descriptor.methods):
                for make, reason in list(INJECTED.values())[number % 3 :: 3]:
                    if isinstance(make(), asyncio.CancelledError):
                        continue
                    front = Front(application, _raising(rpc, make), SIGNER)
                    metadata = ((APPLICATION, application), *given)
                    answers = (
                        [one async for one in front.stream(rpc.name, _empty(rpc), metadata)]
                        if rpc.server_streaming
                        else [await front.answer(rpc.name, _empty(rpc), metadata)]
                    )
                    (answer,) = answers
                    assert isinstance(answer, Rendered)
                    assert answer.code.value[0] == int(ServiceError.by_reason[reason].code)
                    assert "canary" not in answer.details
                    assert all(b"canary" not in value for _, value in answer.trailers)
                unsigned = Front(application, object(), SIGNER)
                refused = await unsigned.answer(rpc.name, _empty(rpc), ((APPLICATION, application),))
                assert isinstance(refused, Rendered)
                assert refused.code is grpc.StatusCode.UNAUTHENTICATED
    assert all("canary" not in str({**line, "exc_info": ""}) for line in logs)


def _raising(rpc: MethodDescriptor, make: Callable[[], BaseException]) -> object:
    async def unary(_self: object, _scope: object, _request: object) -> Message:
        raise make()

    async def streaming(_self: object, _scope: object, _request: object) -> AsyncIterator[Message]:
        answers: list[Message] = []
        for answer in answers:
            yield answer
        raise make()

    behaviour = streaming if rpc.server_streaming else unary
    return type("Raising", (), {method_name(rpc.name): behaviour})()


async def test_a_broken_database_shows_none_of_its_queries(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as running:
        get_balance = credits_pb2_grpc.CreditServiceStub(running.channel).GetBalance
        await running.call(get_balance, credits_pb2.GetBalanceRequest())
        async with running.stores.ledger_database.engine.begin() as connection:
            await connection.exec_driver_sql("DROP TABLE accounts")
        refusal = await running.refused(get_balance, credits_pb2.GetBalanceRequest())
        assert refusal.reason in ("INTERNAL", "STORE_UNAVAILABLE")
        assert not {"SELECT", "accounts"} & set(str(refusal.details).split())
        assert refusal.text in ("internal error", "ledger can't be reached now")
        assert ACME not in refusal.text
