"""Every public RPC with the scope that its caller needs and the time that it may take."""

from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor

from gateway.keys import KeyScope
from palimpsest.v1 import admin_pb2, credits_pb2, graph_pb2, jobs_pb2, memory_pb2, privacy_pb2, recall_pb2

SERVICES: tuple[ServiceDescriptor, ...] = (
    graph_pb2.DESCRIPTOR.services_by_name["GraphService"],
    memory_pb2.DESCRIPTOR.services_by_name["MemoryService"],
    recall_pb2.DESCRIPTOR.services_by_name["RecallService"],
    jobs_pb2.DESCRIPTOR.services_by_name["JobService"],
    credits_pb2.DESCRIPTOR.services_by_name["CreditService"],
    privacy_pb2.DESCRIPTOR.services_by_name["PrivacyService"],
    admin_pb2.DESCRIPTOR.services_by_name["AdminService"],
)
"""The public API, in the order in which 10-api tells it."""

RECALL_SECONDS = 5.0
LONG_RECALL_SECONDS = 30.0
"""For callers who give a longer deadline: over many graphs, or those that nobody asked lately."""
ACCEPT_SECONDS = 10.0
WAIT_SECONDS = 300.0
"""For accepts whose caller gives a longer deadline: they wait for a stage of the job."""
READ_SECONDS = 10.0
WATCH_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Rpc:
    """What the gateway asks of a call: `capped_seconds` without a deadline, `longest_seconds` with one."""

    scope: KeyScope
    capped_seconds: float = READ_SECONDS
    longest_seconds: float = READ_SECONDS
    stream: bool = False


_READ = Rpc(KeyScope.READ)
_RECALL = Rpc(KeyScope.READ, RECALL_SECONDS, LONG_RECALL_SECONDS)
_WRITE = Rpc(KeyScope.WRITE, ACCEPT_SECONDS, ACCEPT_SECONDS)
_ACCEPT = Rpc(KeyScope.WRITE, ACCEPT_SECONDS, WAIT_SECONDS)
_ERASE = Rpc(KeyScope.ERASE, ACCEPT_SECONDS, ACCEPT_SECONDS)
_OPERATE = Rpc(KeyScope.OPERATOR)
_WATCH = Rpc(KeyScope.READ, WATCH_SECONDS, WATCH_SECONDS, stream=True)

_BY_SERVICE: Mapping[str, Mapping[Rpc, str]] = {
    "GraphService": {
        _WRITE: "CreateGraph UpdateGraph DeclarePredicate SetIngestionRule",
        _READ: "GetGraph ListGraphs ListPredicates ListIngestionRules",
    },
    "MemoryService": {
        _ACCEPT: "AddEpisode BatchAddEpisodes AssertTriples",
        _READ: (
            "GetEpisode ListEpisodes GetDocument GetStatement ListStatements GetTimeline GetEntity "
            "ListEntities ListVoiceAspects DiffGraph"
        ),
        _WRITE: (
            "EndStatement DenyStatement RestoreStatement JudgePair MergeEntities SplitEntity EndVoiceAspect "
            "RestoreVoiceAspect RestoreArchived RebuildGraph"
        ),
        _ERASE: "DeleteEpisode DeleteDocument RetractSource",
    },
    "RecallService": {
        _RECALL: "Recall GetSubgraph",
        _READ: "GetPersona ListLabels GetSessionSummary",
        _WRITE: "UpdatePersona",
    },
    "JobService": {
        _READ: "GetJob ListJobs",
        _WRITE: "CancelJob RetryJob",
        _WATCH: "WatchJob",
    },
    "CreditService": {_READ: "GetBalance ListLedgerEntries", _WATCH: "WatchBalance"},
    "PrivacyService": {
        _ERASE: "EraseGraph EraseEntity",
        _OPERATE: "EraseTenant",
        _READ: "GetErasure ListAuditEvents",
        Rpc(KeyScope.ERASE, WATCH_SECONDS, WATCH_SECONDS, stream=True): "ExportGraph ImportGraph",
    },
    "AdminService": {
        _OPERATE: (
            "CreateTenant SuspendTenant CreateApiKey ListApiKeys RevokeApiKey GrantCredits RefundCharge "
            "SetLimits SetPrices GetUsage"
        ),
    },
}


def path(method: MethodDescriptor) -> str:
    """The name under which gRPC calls a method."""
    return f"/{method.containing_service.full_name}/{method.name}"


RPCS: Mapping[str, Rpc] = {
    f"/palimpsest.v1.{service}/{name}": rpc
    for service, groups in _BY_SERVICE.items()
    for rpc, names in groups.items()
    for name in names.split()
}
"""By path. A test holds it against the descriptors, so that a new RPC without a row fails."""
