"""Which calls the page may make: nothing that is not listed here passes the bridge."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from palimpsest.connection import Connection
from palimpsest.v1 import (
    credits_pb2,
    graph_pb2,
    jobs_pb2,
    memory_entities_pb2,
    memory_episodes_pb2,
    memory_statements_pb2,
    recall_pb2,
    recall_subgraph_pb2,
)


@dataclass(frozen=True, slots=True)
class Call:
    """One RPC: the name of its stub at a Connection, the message it takes, whether it changes something."""

    stub: str
    request: type[Message]
    changes: bool = False

    def method(self, connection: Connection, name: str) -> Any:
        """The callable of the stub."""
        return getattr(getattr(connection, self.stub), name)


CALLS: Mapping[str, Call] = {
    "ListGraphs": Call("graphs", graph_pb2.ListGraphsRequest),
    "GetGraph": Call("graphs", graph_pb2.GetGraphRequest),
    "ListPredicates": Call("graphs", graph_pb2.ListPredicatesRequest),
    "ListStatements": Call("memory", memory_statements_pb2.ListStatementsRequest),
    "GetStatement": Call("memory", memory_statements_pb2.GetStatementRequest),
    "GetTimeline": Call("memory", memory_statements_pb2.GetTimelineRequest),
    "ListEntities": Call("memory", memory_entities_pb2.ListEntitiesRequest),
    "GetEntity": Call("memory", memory_entities_pb2.GetEntityRequest),
    "GetEpisode": Call("memory", memory_episodes_pb2.GetEpisodeRequest),
    "Recall": Call("recall", recall_pb2.RecallRequest),
    "GetSubgraph": Call("recall", recall_subgraph_pb2.GetSubgraphRequest),
    "ListJobs": Call("jobs", jobs_pb2.ListJobsRequest),
    "GetJob": Call("jobs", jobs_pb2.GetJobRequest),
    "GetBalance": Call("credits", credits_pb2.GetBalanceRequest),
    "ListLedgerEntries": Call("credits", credits_pb2.ListLedgerEntriesRequest),
    "EndStatement": Call("memory", memory_statements_pb2.EndStatementRequest, changes=True),
    "DenyStatement": Call("memory", memory_statements_pb2.DenyStatementRequest, changes=True),
    "RestoreStatement": Call("memory", memory_statements_pb2.RestoreStatementRequest, changes=True),
    "MergeEntities": Call("memory", memory_entities_pb2.MergeEntitiesRequest, changes=True),
    "SplitEntity": Call("memory", memory_entities_pb2.SplitEntityRequest, changes=True),
}
"""By name. Those that change something pass only where the console was started with `--allow-changes`."""
