"""The error tree: every documented reason, its code, its details, there and back."""

import re
from collections.abc import Iterator

import grpc
import grpc.aio
import pytest
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st

import gateway.errors as gateway_errors
from gateway.services import ServiceName, told
from palimpsest.v1.errors_pb2 import ErrorReason
from services.domain import errors
from services.domain.errors import Quota, Resource, ServiceError, Violation
from services.domain.ids import Revision
from services.llm import port as models
from services.runtime.status import TRAILER, error_of, error_of_call, error_of_status, render, status_of
from services.stores import errors as stores
from tests.machine import ROOT

# Between the gateway and the services alone: no public caller gets it.
INTERNAL_REASONS = {"APPLICATION_UNKNOWN", "ASSERTION_INVALID"}


def documented() -> dict[str, tuple[str, bool]]:
    """The code of each public reason, and whether its comment promises RetryInfo, as errors.proto says."""
    text = (ROOT / "protos/palimpsest/v1/errors.proto").read_text(encoding="utf-8")
    found: dict[str, tuple[str, bool]] = {}
    for comment, name in re.findall(r"((?:  //[^\n]*\n)+)  ERROR_REASON_(\w+) = [1-9]\d*;", text):
        words = " ".join(line.strip().removeprefix("//").strip() for line in comment.splitlines())
        code = re.match(r"(?:In the status of .*? below\. )?([A-Z_]+)[.,:]", words)
        if code:
            found[name] = (code[1], "RetryInfo" in words and "no RetryInfo" not in words)
    return found


def test_every_public_reason_is_in_the_tree_and_no_other() -> None:
    public = {value.name.removeprefix("ERROR_REASON_") for value in ErrorReason.DESCRIPTOR.values}
    assert gateway_errors.ServiceError.by_reason.keys() - INTERNAL_REASONS == public - {"UNSPECIFIED"}


@pytest.mark.parametrize("reason", sorted(documented()))
def test_an_error_has_its_documented_code(reason: str) -> None:
    code, retry = documented()[reason]
    kind = ServiceError.by_reason[reason]
    assert kind.code.name == code
    if retry:
        assert kind.retry_default_seconds is not None


def test_the_documentation_was_read() -> None:
    assert len(documented()) > 40
    assert documented()["INSUFFICIENT_CREDITS"] == ("RESOURCE_EXHAUSTED", False)
    assert documented()["MODEL_UNAVAILABLE"] == ("UNAVAILABLE", False)
    assert documented()["STORE_UNAVAILABLE"] == ("UNAVAILABLE", True)


def test_only_codes_that_mean_later_can_be_retried() -> None:
    later = {errors.Code.UNAVAILABLE, errors.Code.RESOURCE_EXHAUSTED}
    for kind in ServiceError.by_reason.values():
        assert kind.retry_default_seconds is None or kind.code in later
    assert {
        kind.reason
        for kind in ServiceError.by_reason.values()
        if kind.code in later and kind.retry_default_seconds is None
    } == {"INSUFFICIENT_CREDITS", "TOO_MANY_GRAPHS"}


LATER, QUOTA, FIELDS, THING = "RetryInfo", "QuotaFailure", "BadRequest", "ResourceInfo"
TABLE: list[tuple[ServiceError, str, set[str], set[str]]] = [
    (gateway_errors.InsufficientCredits(2, 1), "RESOURCE_EXHAUSTED", {QUOTA}, {"required", "available"}),
    (gateway_errors.RateLimited("calls", "at most 1"), "RESOURCE_EXHAUSTED", {QUOTA, LATER}, set()),
    (gateway_errors.TooManyJobs(1), "RESOURCE_EXHAUSTED", {QUOTA, LATER}, set()),
    (gateway_errors.TooManyGraphs(1), "RESOURCE_EXHAUSTED", {QUOTA}, {"limit"}),
    (gateway_errors.DailyBytesExceeded(2, 1), "RESOURCE_EXHAUSTED", {QUOTA, LATER}, {"limit", "size"}),
    (gateway_errors.ApiKeyInvalid(), "UNAUTHENTICATED", set(), set()),
    (gateway_errors.TenantSuspended(), "PERMISSION_DENIED", set(), set()),
    (gateway_errors.ScopeMissing("READ"), "PERMISSION_DENIED", set(), {"scope"}),
    (errors.ValidationFailed(Violation("a", "b")), "INVALID_ARGUMENT", {FIELDS}, set()),
    (errors.DocumentTooLarge("text", 1, 2), "INVALID_ARGUMENT", {FIELDS}, {"limit", "size"}),
    (gateway_errors.RequestIdReused("r"), "ALREADY_EXISTS", {THING}, set()),
    (errors.Overloaded("recall"), "UNAVAILABLE", {LATER}, {"component"}),
    (errors.StoreDown("graph"), "UNAVAILABLE", {LATER}, {"component"}),
    (errors.Conflict(), "ABORTED", set(), set()),
    (gateway_errors.CursorExpired(), "OUT_OF_RANGE", set(), set()),
    (errors.RevisionNotReady(Revision(2), Revision(1)), "UNAVAILABLE", {LATER}, {"wanted", "published"}),
    (gateway_errors.JobFinished(), "FAILED_PRECONDITION", set(), set()),
    (errors.NotMerged(), "FAILED_PRECONDITION", set(), set()),
    (errors.DeadlineTooShort(), "DEADLINE_EXCEEDED", set(), set()),
    (errors.NotImplementedYet("X.Y"), "UNIMPLEMENTED", set(), {"what"}),
    (errors.InternalFailure(), "INTERNAL", set(), set()),
    *((kind("x"), "NOT_FOUND", {THING}, set()) for kind in errors.NotFound.__subclasses__()),
]
"""The table of errors of the gateway: each with its code, what comes with it, and its metadata."""


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0].reason)
def test_the_table_of_errors(row: tuple[ServiceError, str, set[str], set[str]]) -> None:
    error, code, more, metadata = row
    rendered = render(error, "r1")
    assert rendered.code.name == code
    status = status_pb2.Status.FromString(dict(rendered.trailers)[TRAILER])
    kinds = {packed.type_url.rpartition(".")[2] for packed in status.details}
    assert kinds == {"ErrorInfo", "RequestInfo"} | more
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.domain, info.reason, set(info.metadata)) == ("palimpsest", error.reason, metadata)
    assert code != "NOT_FOUND" or info.reason.endswith("_NOT_FOUND")


texts = st.text(max_size=20).filter(lambda text: not any("\ud800" <= letter <= "\udfff" for letter in text))


@st.composite
def any_error(draw: st.DrawFn) -> ServiceError:
    kind = draw(st.sampled_from(sorted(ServiceError.by_reason.values(), key=lambda kind: kind.reason)))
    wait = draw(st.none() | st.integers(1, 100_000).map(lambda millis: millis / 1000))
    return kind.revive(
        draw(texts),
        draw(st.dictionaries(st.sampled_from(["a", "b"]), texts)),
        draw(st.lists(st.builds(Violation, texts, texts, texts), max_size=3)),
        draw(st.lists(st.builds(Quota, texts, texts), max_size=3)),
        draw(st.none() | st.builds(Resource, texts, texts, texts)),
        wait,
    )


def parts(error: ServiceError) -> Iterator[object]:
    yield type(error)
    yield error.message
    yield dict(error.metadata)
    yield tuple(error.violations)
    yield tuple(error.quotas)
    yield error.resource
    yield error.retry_after_seconds


@given(any_error())
def test_an_error_crosses_the_wire_unchanged(error: ServiceError) -> None:
    wire = status_pb2.Status.FromString(status_of(error, "r1").SerializeToString())
    assert list(parts(error_of_status(wire))) == list(parts(error))


def test_a_call_that_failed_tells_its_error() -> None:
    rendered = render(errors.DocumentTooLarge("text", 10, 12))
    call = grpc.aio.AioRpcError(
        rendered.code,
        grpc.aio.Metadata(),
        grpc.aio.Metadata(*rendered.trailers),
        details=rendered.details,
    )
    error = error_of_call(call)
    assert isinstance(error, errors.DocumentTooLarge)
    assert error.metadata == {"limit": "10", "size": "12"}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.UNAVAILABLE, errors.Overloaded),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.Overloaded),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.DeadlineTooShort),
        (grpc.StatusCode.UNIMPLEMENTED, errors.NotImplementedYet),
        (grpc.StatusCode.UNKNOWN, errors.StoreDown),
    ],
)
def test_a_bare_code_of_the_transport_is_read(code: grpc.StatusCode, kind: type[ServiceError]) -> None:
    call = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details="at 10.0.0.7")
    error = error_of_call(call, "resolver")
    assert type(error) is kind
    assert "10.0.0.7" not in str(status_of(error))


def test_a_status_of_another_domain_is_a_bug_of_ours() -> None:
    foreign = status_pb2.Status(code=5, message="secret")
    foreign.details.add().Pack(error_details_pb2.ErrorInfo(reason="GRAPH_NOT_FOUND", domain="elsewhere"))
    assert type(error_of_status(foreign)) is errors.InternalFailure


def kinds_of(base: type[Exception]) -> set[type[Exception]]:
    return {kind for child in base.__subclasses__() for kind in {child, *kinds_of(child)}}


@pytest.mark.parametrize("base", [stores.StoreError, models.EngineError])
def test_every_error_of_a_port_has_a_place_in_the_tree(base: type[Exception]) -> None:
    arguments = {
        "StoreUnavailable": ("graph",),
        "SchemaUnusable": ("graph", "secret"),
        "SchemaDiffers": ("graph", ("table.secret",)),
        "SchemaBehind": ("graph", "secret", "0002"),
        "SchemaAhead": ("graph", "secret", "0002"),
        "OwnerNeeded": ("graph",),
        "TablesInUse": ("graph",),
        "ModelRateLimited": ("slow", 3.0),
    }
    ports = [kind for kind in kinds_of(base) if kind.__module__ in (stores.__name__, models.__name__)]
    assert ports
    for kind in ports:
        error = error_of(kind(*arguments.get(kind.__name__, ("secret",))))
        assert type(error) is not errors.InternalFailure, f"{kind.__name__} would read as a bug"
        assert "secret" not in str(status_of(error))


def test_a_bug_has_a_constant_text() -> None:
    rendered = render(RuntimeError("secret"), "r1")
    assert (rendered.code, rendered.details) == (grpc.StatusCode.INTERNAL, "internal error")
    (trailer,) = rendered.trailers
    assert trailer[0] == TRAILER
    assert b"secret" not in trailer[1]
    assert b"r1" in trailer[1]


@pytest.mark.parametrize("error", [errors.Unauthenticated(), errors.ApplicationUnknown()])
def test_what_is_between_us_and_a_service_is_no_callers(error: ServiceError) -> None:
    assert error.reason in INTERNAL_REASONS
    rendered = render(error)
    trailers = grpc.aio.Metadata(*rendered.trailers)
    call = grpc.aio.AioRpcError(rendered.code, grpc.aio.Metadata(), trailers, details=rendered.details)
    public = told(call, ServiceName.RECALL)
    assert (public.reason, public.metadata) == ("STORE_UNAVAILABLE", {"component": "recall"})


def test_every_reason_of_ours_alone_is_turned_into_a_public_one() -> None:
    assert {errors.Unauthenticated.reason, errors.ApplicationUnknown.reason} == INTERNAL_REASONS
