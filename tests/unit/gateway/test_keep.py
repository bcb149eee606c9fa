"""What is kept of a call that changed something: ids, no word of a tenant; nothing of what only reads."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.protobuf.message import Message

from gateway.interceptors.call import Call
from gateway.interceptors.keep import MOST_TARGETS, kept_of
from gateway.keys import ApiKey, KeyId, KeyScope
from gateway.rpcs import RPCS
from gateway.store.tenants import Limits, Tenant, TenantState
from palimpsest.v1 import (
    admin_pb2,
    entity_pb2,
    job_pb2,
    memory_entities_pb2,
    memory_ingest_pb2,
    memory_statements_pb2,
)
from services.domain.instants import Instant
from services.domain.scope import TenantId


def a_key(operator: bool) -> ApiKey:
    tenant = Tenant(TenantId("acme"), "", TenantState.ACTIVE, Limits(), Instant(0))
    scope = KeyScope.OPERATOR if operator else KeyScope.ERASE
    return ApiKey(
        KeyId("k1"), None if operator else tenant, "", frozenset({scope}), "", Instant(0), None, None
    )


def a_call(method: str, request: Message, response: Message, operator: bool = False) -> Call:
    path = f"/palimpsest.v1.{method}"
    call = Call(path, RPCS[path], cast("Any", SimpleNamespace()), request, "call-1")
    call.key = a_key(operator)
    call.response = response
    return call


END = memory_statements_pb2.EndStatementRequest(
    graph_id="notes", statement_id="s-1", reason="canary", request_id="r1"
)
ENDED = memory_statements_pb2.EndStatementResponse(revision=7)


def test_ids_are_kept_and_no_words() -> None:
    kept = kept_of(a_call("MemoryService/EndStatement", END, ENDED))
    assert kept is not None
    assert (kept.tenant, kept.action, kept.graph, kept.key) == ("acme", "EndStatement", "notes", "k1")
    assert (kept.targets, kept.request, kept.revision, kept.operator) == (("s-1",), "r1", 7, False)
    assert "canary" not in str(kept)


def test_a_repeated_call_has_the_same_id_and_another_has_not() -> None:
    ids = []
    for reason in ("canary", "canary", "other"):
        request = memory_statements_pb2.EndStatementRequest()
        request.CopyFrom(END)
        request.reason = reason
        kept = kept_of(a_call("MemoryService/EndStatement", request, ENDED))
        assert kept is not None
        ids.append(kept.id)
    assert ids[0] == ids[1] != ids[2]


def test_what_is_named_inside_and_what_was_made_are_targets() -> None:
    merge = memory_entities_pb2.MergeEntitiesRequest(graph_id="g", request_id="r")
    for field, value in merge.DESCRIPTOR.fields_by_name.items():
        if value.message_type is entity_pb2.EntityRef.DESCRIPTOR and not value.is_repeated:
            getattr(merge, field).entity_id = f"e-{field}"
    kept = kept_of(a_call("MemoryService/MergeEntities", merge, memory_entities_pb2.MergeEntitiesResponse()))
    assert kept is not None
    assert all(target.startswith("e-") for target in kept.targets)
    add = memory_ingest_pb2.AddEpisodeRequest(graph_id="g", request_id="r", text="x", session_id="s")
    response = memory_ingest_pb2.AddEpisodeResponse(job=job_pb2.Job(job_id="j1"))
    kept = kept_of(a_call("MemoryService/AddEpisode", add, response))
    assert kept is not None
    assert kept.targets == ("j1",)


def test_a_call_that_names_much_is_kept_with_some() -> None:
    claim = memory_ingest_pb2.ClaimInput()
    asked = memory_ingest_pb2.AssertTriplesRequest(graph_id="g", request_id="r", claims=[claim] * 50)
    for at, one in enumerate(asked.claims):
        one.subject.entity_id = f"e{at}"
    response = memory_ingest_pb2.AssertTriplesResponse()
    kept = kept_of(a_call("MemoryService/AssertTriples", asked, response))
    assert kept is not None
    assert len(kept.targets) == MOST_TARGETS


@pytest.mark.parametrize(
    ("method", "request_", "operator"),
    [
        ("MemoryService/GetStatement", memory_statements_pb2.GetStatementRequest(), False),
        ("MemoryService/AddEpisode", memory_ingest_pb2.AddEpisodeRequest(validate_only=True), False),
        ("AdminService/SetPrices", admin_pb2.SetPricesRequest(), True),
    ],
)
def test_what_changes_nothing_of_a_tenant_is_not_kept(method: str, request_: Message, operator: bool) -> None:
    assert kept_of(a_call(method, request_, ENDED, operator)) is None


def test_an_operators_call_is_the_tenants_that_it_is_about() -> None:
    request = admin_pb2.GrantCreditsRequest(tenant_id="acme", amount_micros=1, request_id="r")
    kept = kept_of(a_call("AdminService/GrantCredits", request, admin_pb2.GrantCreditsResponse(), True))
    assert kept is not None
    assert (kept.tenant, kept.operator, kept.action) == ("acme", True, "GrantCredits")


def test_why_an_operator_did_it_is_kept() -> None:
    asked = admin_pb2.SuspendTenantRequest(tenant_id="acme", reason="unpaid")
    kept = kept_of(a_call("AdminService/SuspendTenant", asked, admin_pb2.SuspendTenantResponse(), True))
    assert kept is not None
    assert (kept.tenant, kept.reason) == ("acme", "unpaid")
    mine = kept_of(a_call("MemoryService/EndStatement", END, ENDED))
    assert mine is not None
    assert mine.reason == ""
