"""The public API as a contract: each promised call is there, and its rules refuse what they must."""

import importlib
import pkgutil
from collections.abc import Iterator

import protovalidate
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor, MethodDescriptor
from google.protobuf.message import Message

import palimpsest.v1
from palimpsest.v1 import (
    admin_pb2,
    common_pb2,
    entity_pb2,
    episode_pb2,
    errors_pb2,
    graph_pb2,
    memory_ingest_pb2,
    memory_statements_pb2,
    recall_pb2,
)

PROMISED = """
GraphService: CreateGraph GetGraph UpdateGraph ListGraphs DeclarePredicate ListPredicates
    SetIngestionRule ListIngestionRules
MemoryService: AddEpisode BatchAddEpisodes AssertTriples GetEpisode ListEpisodes DeleteEpisode GetDocument
    DeleteDocument RetractSource GetStatement ListStatements GetTimeline EndStatement DenyStatement
    RestoreStatement JudgePair GetEntity ListEntities MergeEntities SplitEntity ListVoiceAspects
    EndVoiceAspect RestoreVoiceAspect DiffGraph RestoreArchived RebuildGraph
RecallService: Recall GetSubgraph GetPersona UpdatePersona ListLabels GetSessionSummary
JobService: GetJob ListJobs CancelJob RetryJob WatchJob
CreditService: GetBalance ListLedgerEntries WatchBalance
PrivacyService: EraseGraph EraseEntity EraseTenant GetErasure ExportGraph ImportGraph ListAuditEvents
AdminService: CreateTenant SuspendTenant CreateApiKey ListApiKeys RevokeApiKey GrantCredits RefundCharge
    SetLimits SetPrices GetUsage
"""
# Calls that spend, grant, refund, merge, end, deny, restore, judge or delete. BatchAddEpisodes and
# ImportGraph carry the key one level down.
KEYED = """
AddEpisode AssertTriples RebuildGraph RetryJob GrantCredits RefundCharge MergeEntities SplitEntity
EndStatement EndVoiceAspect DenyStatement RestoreStatement RestoreVoiceAspect RestoreArchived JudgePair
DeleteEpisode DeleteDocument RetractSource EraseGraph EraseEntity EraseTenant
"""
REASONS = """
INSUFFICIENT_CREDITS RATE_LIMITED TOO_MANY_JOBS API_KEY_INVALID TENANT_SUSPENDED SCOPE_MISSING
VALIDATION_FAILED DOCUMENT_TOO_LARGE REQUEST_ID_REUSED OVERLOADED STORE_UNAVAILABLE CONFLICT
CURSOR_EXPIRED REVISION_NOT_READY JOB_FINISHED NOT_MERGED DEADLINE_TOO_SHORT NOT_IMPLEMENTED INTERNAL
"""
ANYTHING = '`") or true or ("` it\'s a graph | - _ 图 \\ %'


def files() -> Iterator[FileDescriptor]:
    for module in pkgutil.iter_modules(palimpsest.v1.__path__, "palimpsest.v1."):
        if module.name.endswith("_pb2"):
            yield importlib.import_module(module.name).DESCRIPTOR


def messages() -> Iterator[Descriptor]:
    return (message for file in files() for message in file.message_types_by_name.values())


def methods() -> dict[str, MethodDescriptor]:
    services = (service for file in files() for service in file.services_by_name.values())
    return {method.name: method for service in services for method in service.methods}


def broken(message: Message) -> set[str]:
    """The ids of the rules that a message breaks."""
    return {violation.proto.rule_id for violation in protovalidate.collect_violations(message)}


def test_every_promised_call_is_there_and_no_other() -> None:
    found = [
        word
        for file in files()
        for name, service in file.services_by_name.items()
        for word in [f"{name}:", *(method.name for method in service.methods)]
    ]
    assert sorted(found) == sorted(PROMISED.split())


@pytest.mark.parametrize("message", list(messages()), ids=lambda message: message.name)
def test_the_rules_of_every_message_compile(message: Descriptor) -> None:
    protovalidate.collect_violations(message_factory.GetMessageClass(message)())


@pytest.mark.parametrize("call", KEYED.split())
def test_a_call_that_changes_something_needs_a_request_id(call: str) -> None:
    request = message_factory.GetMessageClass(methods()[call].input_type)()
    paths = [
        v.proto.field
        for v in protovalidate.collect_violations(request)
        if v.proto.rule_id == "string.request_id"
    ]
    assert [path.elements[0].field_name for path in paths if path] == ["request_id"]


def test_every_list_pages() -> None:
    for name, method in methods().items():
        if name.startswith("List"):
            assert {"page_size", "page_token"} <= set(method.input_type.fields_by_name), name
            assert "next_page_token" in method.output_type.fields_by_name, name


def test_every_reason_of_the_table_is_documented() -> None:
    names = {value.name.removeprefix("ERROR_REASON_") for value in errors_pb2.ErrorReason.DESCRIPTOR.values}
    assert set(REASONS.split()) <= names


@pytest.mark.parametrize(
    ("graph_id", "fits"),
    [(ANYTHING, True), ("图" * 85, True), ("图" * 86, False), ("", False), ("a\x00b", False), ("a\n", False)],
)
def test_ids_that_tenants_choose_may_be_anything_printable(graph_id: str, fits: bool) -> None:
    assert (not broken(graph_pb2.CreateGraphRequest(graph_id=graph_id))) is fits


def episode(**changes: object) -> memory_ingest_pb2.AddEpisodeRequest:
    request = memory_ingest_pb2.AddEpisodeRequest(
        graph_id="g", request_id="r", text="I live in Graz.", kind=episode_pb2.EPISODE_KIND_CONVERSATION
    )
    request.MergeFrom(memory_ingest_pb2.AddEpisodeRequest(**changes))  # type: ignore[arg-type]  # by field name
    return request


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({}, set()),
        ({"text": "x" * 5_000_000}, set()),  # its size is refused by the call, with a reason of its own
        ({"text": " \n\u3000"}, {"string.text"}),
        ({"text": "a\x00b"}, {"string.text"}),
        ({"kind": 99}, {"enum.in"}),
        ({"kind": episode_pb2.EPISODE_KIND_ASSERTION}, {"enum.in"}),
        ({"wait_for": episode_pb2.CHUNK_STAGE_FAILED}, {"enum.in"}),
        (
            {"kind": episode_pb2.EPISODE_KIND_COMPACTED_SESSION},
            {"add_episode.compacted_session_needs_session"},
        ),
        ({"document_id": "d"}, {"add_episode.document_id_is_for_documents"}),
        ({"max_credits_micros": -1}, {"int64.gte"}),
        ({"reference_time": {"seconds": 10**12}}, {"timestamp.instant"}),
        ({"time_zone": "Europe/Vienna"}, set()),
        ({"time_zone": "../etc"}, {"string.time_zone"}),
    ],
)
def test_what_an_episode_may_be(changes: dict[str, object], rules: set[str]) -> None:
    assert broken(episode(**changes)) == rules


def test_messages_are_for_conversations() -> None:
    said = memory_ingest_pb2.EpisodeMessage(role=episode_pb2.MESSAGE_ROLE_USER, text="Hello")
    talk = memory_ingest_pb2.EpisodeMessages(messages=[said])
    assert not broken(episode(messages=talk))
    assert broken(episode(messages=talk, kind=episode_pb2.EPISODE_KIND_DOCUMENT)) == {
        "add_episode.messages_are_conversation"
    }


def claim(**changes: object) -> memory_ingest_pb2.ClaimInput:
    request = memory_ingest_pb2.ClaimInput(
        subject=entity_pb2.EntityRef(name="Mara"),
        predicate="lives_in",
        object=entity_pb2.ObjectRef(entity=entity_pb2.EntityRef(name="Paris")),
    )
    request.MergeFrom(memory_ingest_pb2.ClaimInput(**changes))  # type: ignore[arg-type]  # by field name
    return request


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({}, set()),
        ({"valid_at": {"seconds": 5}, "invalid_at": {"seconds": 5}}, {"claim.invalid_at_after_valid_at"}),
        (
            # A coarse end is written as the first instant of its period, which may lie before the start.
            {"valid_at": {"seconds": 5}, "invalid_at": {}, "invalid_at_precision": common_pb2.PRECISION_YEAR},
            set(),
        ),
        ({"confidence": float("nan")}, {"double.unit"}),
        ({"confidence": 1.1}, {"double.unit"}),
        ({"predicate": "__"}, {"string.predicate"}),
        ({"quote": "a\x00"}, {"string.prose"}),
    ],
)
def test_what_a_claim_may_be(changes: dict[str, object], rules: set[str]) -> None:
    assert broken(claim(**changes)) == rules


def test_an_assertion_holds_one_to_a_thousand_records() -> None:
    def request(count: int) -> memory_ingest_pb2.AssertTriplesRequest:
        return memory_ingest_pb2.AssertTriplesRequest(graph_id="g", request_id="r", claims=[claim()] * count)

    assert broken(request(0)) == {"assert_triples.size"}
    assert not broken(request(1000))
    assert "assert_triples.size" in broken(request(1001))


@pytest.mark.parametrize("query", ["?!", "_", "x" * 10_000, "😀" * 10_000, "主数据库是什么"])
def test_every_query_may_be_asked(query: str) -> None:
    assert not broken(recall_pb2.RecallRequest(graph_ids=["g"], query=query))


def test_a_revision_needs_one_graph() -> None:
    at = common_pb2.KnownAt(revision=3)
    for graphs, rules in ((["g"], set()), (["g", "h"], {"recall.revision_needs_one_graph"})):
        assert broken(recall_pb2.RecallRequest(graph_ids=graphs, query="?", known_at=at)) == rules
        assert broken(recall_pb2.RecallRequest(graph_ids=graphs, query="?", min_revision=3)) == rules


def test_filters_that_exclude_each_other_are_refused() -> None:
    request = memory_statements_pb2.ListStatementsRequest(graph_id="g")
    request.valid_at.seconds = 5
    assert not broken(request)
    request.include_ended = True
    assert broken(request) == {"list_statements.valid_at_or_ended"}


def test_an_unknown_value_of_a_filter_is_refused() -> None:
    field = memory_statements_pb2.ListStatementsRequest.ASPECTS_FIELD_NUMBER
    unknown = memory_statements_pb2.ListStatementsRequest.FromString(bytes([field << 3, 99]))
    unknown.graph_id = "g"
    assert broken(unknown) == {"enum.defined_only"}


def test_an_operators_key_has_no_tenant_and_one_scope() -> None:
    rule = {"create_api_key.operator_alone"}
    operator, write = admin_pb2.API_KEY_SCOPE_OPERATOR, admin_pb2.API_KEY_SCOPE_WRITE
    assert not broken(admin_pb2.CreateApiKeyRequest(tenant_id="t", scopes=[write]))
    assert not broken(admin_pb2.CreateApiKeyRequest(scopes=[operator]))
    assert broken(admin_pb2.CreateApiKeyRequest(scopes=[write])) == rule
    assert broken(admin_pb2.CreateApiKeyRequest(tenant_id="t", scopes=[operator])) == rule
