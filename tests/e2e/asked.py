"""A request of every public RPC that is served, from the ids of somebody; and how each answers strangers."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message

from palimpsest.v1 import (
    admin_pb2,
    common_pb2,
    credits_pb2,
    entity_pb2,
    episode_pb2,
    graph_pb2,
    jobs_pb2,
    memory_entities_pb2,
    memory_episodes_pb2,
    memory_graph_pb2,
    memory_ingest_pb2,
    memory_statements_pb2,
    memory_voice_pb2,
    privacy_pb2,
    recall_pb2,
    recall_subgraph_pb2,
    recall_summaries_pb2,
    statement_pb2,
)
from tests.e2e.talking import day

GRAPH, SESSION, DOCUMENT = "notes", "session-1", "handbook"
NOBODYS = "00000000-0000-5000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Ids:
    """What requests name. `words` are said by one tenant alone."""

    graph: str
    episode: str
    job: str
    statement: str
    subject: str
    predicate: str
    other: str
    voice: str
    words: tuple[str, str]
    trees: tuple[str, str, str] = (NOBODYS, NOBODYS, NOBODYS.replace("5", "4"))
    """Entities, of which the second reads as the first."""

    @property
    def ours(self) -> set[str]:
        """The ids that we made."""
        own = {self.episode, self.job, self.statement, self.subject, self.predicate, self.other, self.voice}
        return {*own, *self.trees}


def a_section(words: tuple[str, str]) -> recall_summaries_pb2.PersonaSection:
    """A user's own section of a persona."""
    who, what = words
    return recall_summaries_pb2.PersonaSection(
        section_id="notes", title="Notes", text=f"{who} is fond of {what}.", protected=True
    )


def an_entity(ids: Ids) -> entity_pb2.EntityRef:
    return entity_pb2.EntityRef(entity_id=ids.subject)


def a_predicate(ids: Ids) -> entity_pb2.PredicateRef:
    return entity_pb2.PredicateRef(predicate_id=ids.predicate)


def add_episode(ids: Ids) -> memory_ingest_pb2.AddEpisodeRequest:
    return memory_ingest_pb2.AddEpisodeRequest(
        graph_id=ids.graph,
        request_id="add",
        text=f"{ids.words[0]} knows {ids.words[1]}.",
        kind=episode_pb2.EPISODE_KIND_CONVERSATION,
        session_id=SESSION,
        reference_time=day("2025-02-01"),
        wait_for=episode_pb2.CHUNK_STAGE_RESOLVED,
    )


def a_batch(ids: Ids) -> Message:
    said = memory_ingest_pb2.AddEpisodeRequest()
    said.CopyFrom(add_episode(ids))
    said.request_id = "of a batch"
    return memory_ingest_pb2.BatchAddEpisodesRequest(requests=[said])


def assert_triples(ids: Ids) -> Message:
    tea = entity_pb2.ObjectRef(entity=entity_pb2.EntityRef(name="tea"))
    claim = memory_ingest_pb2.ClaimInput(subject=an_entity(ids), predicate="likes", object=tea)
    return memory_ingest_pb2.AssertTriplesRequest(
        graph_id=ids.graph, request_id=f"assert-{ids.subject}", claims=[claim], session_id=SESSION
    )


def list_statements(ids: Ids) -> Message:
    return memory_statements_pb2.ListStatementsRequest(
        graph_id=ids.graph, subject=an_entity(ids), predicate=a_predicate(ids), episode_id=ids.episode
    )


def recall(ids: Ids) -> Message:
    query = "What do you know of Xanthrop, Zyglomat, Quibblor and Vortiman?"
    return recall_pb2.RecallRequest(
        graph_ids=[ids.graph], query=query, entity_hints=[an_entity(ids)], explain=True
    )


ASKED: Mapping[str, Callable[[Ids], Message]] = {
    "GraphService/CreateGraph": lambda ids: graph_pb2.CreateGraphRequest(graph_id=ids.graph),
    "GraphService/UpdateGraph": lambda ids: graph_pb2.UpdateGraphRequest(
        graph_id=ids.graph,
        settings=graph_pb2.GraphSettings(),
        update_mask=FieldMask(paths=["time_zone"]),
    ),
    "GraphService/ListGraphs": lambda _: graph_pb2.ListGraphsRequest(),
    "GraphService/GetGraph": lambda ids: graph_pb2.GetGraphRequest(graph_id=ids.graph),
    "GraphService/DeclarePredicate": lambda ids: graph_pb2.DeclarePredicateRequest(
        graph_id=ids.graph, name="wears", cardinality=entity_pb2.CARDINALITY_MULTI, aliases=["dressed in"]
    ),
    "GraphService/ListPredicates": lambda ids: graph_pb2.ListPredicatesRequest(graph_id=ids.graph),
    "GraphService/SetIngestionRule": lambda ids: graph_pb2.SetIngestionRuleRequest(
        rule=graph_pb2.IngestionRule(
            graph_id=ids.graph, source=f"of-{ids.episode}", trust=0.5, instructions=f"Keep {ids.words[0]}."
        )
    ),
    "GraphService/ListIngestionRules": lambda ids: graph_pb2.ListIngestionRulesRequest(graph_id=ids.graph),
    "MemoryService/AddEpisode": add_episode,
    "MemoryService/BatchAddEpisodes": a_batch,
    "MemoryService/AssertTriples": assert_triples,
    "MemoryService/GetEpisode": lambda ids: memory_episodes_pb2.GetEpisodeRequest(
        graph_id=ids.graph, episode_id=ids.episode
    ),
    "MemoryService/DeleteEpisode": lambda ids: memory_episodes_pb2.DeleteEpisodeRequest(
        graph_id=ids.graph, episode_id=ids.episode, request_id=f"delete-{ids.episode}"
    ),
    "MemoryService/MergeEntities": lambda ids: memory_entities_pb2.MergeEntitiesRequest(
        graph_id=ids.graph,
        into_entity_id=ids.trees[0],
        entity_ids=[ids.trees[2]],
        request_id=f"merge-{ids.trees[2]}",
    ),
    "MemoryService/SplitEntity": lambda ids: memory_entities_pb2.SplitEntityRequest(
        graph_id=ids.graph, entity_id=ids.trees[1], request_id=f"split-{ids.trees[1]}"
    ),
    "MemoryService/GetDocument": lambda ids: memory_episodes_pb2.GetDocumentRequest(
        graph_id=ids.graph, document_id=f"of-{ids.episode}"
    ),
    "MemoryService/DeleteDocument": lambda ids: memory_episodes_pb2.DeleteDocumentRequest(
        graph_id=ids.graph, document_id=f"of-{ids.episode}", request_id=f"delete-of-{ids.episode}"
    ),
    "MemoryService/RetractSource": lambda ids: memory_episodes_pb2.RetractSourceRequest(
        graph_id=ids.graph, source=f"of-{ids.episode}", request_id=f"retract-of-{ids.episode}"
    ),
    "MemoryService/RebuildGraph": lambda ids: memory_graph_pb2.RebuildGraphRequest(
        graph_id=ids.graph, request_id="rebuild"
    ),
    "MemoryService/RestoreArchived": lambda ids: memory_graph_pb2.RestoreArchivedRequest(
        graph_id=ids.graph, statement_ids=[ids.statement], request_id=f"back-{ids.statement}"
    ),
    "MemoryService/GetStatement": lambda ids: memory_statements_pb2.GetStatementRequest(
        graph_id=ids.graph, statement_id=ids.statement, include_past_beliefs=True
    ),
    "MemoryService/ListStatements": list_statements,
    "MemoryService/GetTimeline": lambda ids: memory_statements_pb2.GetTimelineRequest(
        graph_id=ids.graph, subject=an_entity(ids), predicate=a_predicate(ids)
    ),
    "MemoryService/ListEpisodes": lambda ids: memory_episodes_pb2.ListEpisodesRequest(
        graph_id=ids.graph, session_id=SESSION
    ),
    "MemoryService/ListVoiceAspects": lambda ids: memory_voice_pb2.ListVoiceAspectsRequest(
        graph_id=ids.graph, include_ended=True
    ),
    "MemoryService/GetEntity": lambda ids: memory_entities_pb2.GetEntityRequest(
        graph_id=ids.graph, entity=an_entity(ids)
    ),
    "MemoryService/DiffGraph": lambda ids: memory_graph_pb2.DiffGraphRequest(
        graph_id=ids.graph, system=memory_graph_pb2.SystemTimes(before=common_pb2.KnownAt(revision=1))
    ),
    "MemoryService/ListEntities": lambda ids: memory_entities_pb2.ListEntitiesRequest(
        graph_id=ids.graph, name_prefix=ids.words[0]
    ),
    "RecallService/Recall": recall,
    "MemoryService/EndStatement": lambda ids: memory_statements_pb2.EndStatementRequest(
        graph_id=ids.graph, statement_id=ids.statement, request_id=f"end-{ids.statement}"
    ),
    "MemoryService/DenyStatement": lambda ids: memory_statements_pb2.DenyStatementRequest(
        graph_id=ids.graph, statement_id=ids.statement, request_id=f"deny-{ids.statement}"
    ),
    "MemoryService/RestoreStatement": lambda ids: memory_statements_pb2.RestoreStatementRequest(
        graph_id=ids.graph, statement_id=ids.statement, request_id=f"restore-{ids.statement}"
    ),
    "MemoryService/JudgePair": lambda ids: memory_statements_pb2.JudgePairRequest(
        graph_id=ids.graph,
        statement_id=ids.statement,
        other_statement_id=ids.other if ids.other != ids.statement else "another",
        verdict=statement_pb2.VERDICT_KIND_COMPATIBLE,
        request_id=f"judge-{ids.statement}",
    ),
    "MemoryService/EndVoiceAspect": lambda ids: memory_voice_pb2.EndVoiceAspectRequest(
        graph_id=ids.graph, voice_aspect_id=ids.voice, request_id=f"end-{ids.voice}"
    ),
    "MemoryService/RestoreVoiceAspect": lambda ids: memory_voice_pb2.RestoreVoiceAspectRequest(
        graph_id=ids.graph, voice_aspect_id=ids.voice, request_id=f"restore-{ids.voice}"
    ),
    "PrivacyService/EraseGraph": lambda ids: privacy_pb2.EraseGraphRequest(
        graph_id=ids.graph, request_id=f"erase-{ids.episode}"
    ),
    "PrivacyService/EraseEntity": lambda ids: privacy_pb2.EraseEntityRequest(
        graph_id=ids.graph, entity=an_entity(ids), request_id=f"erase-{ids.subject}"
    ),
    "PrivacyService/EraseTenant": lambda _: privacy_pb2.EraseTenantRequest(
        tenant_id="one", request_id="erase"
    ),
    "PrivacyService/GetErasure": lambda ids: privacy_pb2.GetErasureRequest(erasure_id=ids.job),
    "PrivacyService/ListAuditEvents": lambda ids: privacy_pb2.ListAuditEventsRequest(
        graph_id=ids.graph, target_id=ids.statement
    ),
    "PrivacyService/ExportGraph": lambda ids: privacy_pb2.ExportGraphRequest(graph_id=ids.graph),
    "PrivacyService/ImportGraph": lambda ids: privacy_pb2.ImportGraphRequest(
        start=privacy_pb2.ImportStart(
            graph_id=f"import-of-{ids.graph}",
            request_id="import",
            header=privacy_pb2.ExportHeader(format_version=1, graph_id=ids.graph),
        )
    ),
    "RecallService/GetSubgraph": lambda ids: recall_subgraph_pb2.GetSubgraphRequest(
        graph_id=ids.graph, seeds=[an_entity(ids)], depth=4
    ),
    "RecallService/GetPersona": lambda ids: recall_summaries_pb2.GetPersonaRequest(graph_id=ids.graph),
    "RecallService/UpdatePersona": lambda ids: recall_summaries_pb2.UpdatePersonaRequest(
        graph_id=ids.graph, sections=[a_section(ids.words)]
    ),
    "RecallService/ListLabels": lambda ids: recall_summaries_pb2.ListLabelsRequest(graph_id=ids.graph),
    "RecallService/GetSessionSummary": lambda ids: recall_summaries_pb2.GetSessionSummaryRequest(
        graph_id=ids.graph, session_id=SESSION
    ),
    "JobService/GetJob": lambda ids: jobs_pb2.GetJobRequest(job_id=ids.job),
    "JobService/CancelJob": lambda ids: jobs_pb2.CancelJobRequest(job_id=ids.job),
    "JobService/RetryJob": lambda ids: jobs_pb2.RetryJobRequest(job_id=ids.job, request_id="retry"),
    "JobService/ListJobs": lambda ids: jobs_pb2.ListJobsRequest(graph_id=ids.graph),
    "JobService/WatchJob": lambda ids: jobs_pb2.WatchJobRequest(job_id=ids.job),
    "CreditService/GetBalance": lambda _: credits_pb2.GetBalanceRequest(),
    "CreditService/ListLedgerEntries": lambda ids: credits_pb2.ListLedgerEntriesRequest(job_id=ids.job),
    "CreditService/WatchBalance": lambda _: credits_pb2.WatchBalanceRequest(),
    "AdminService/CreateTenant": lambda _: admin_pb2.CreateTenantRequest(tenant_id="one"),
    "AdminService/CreateApiKey": lambda _: admin_pb2.CreateApiKeyRequest(
        tenant_id="one", scopes=[admin_pb2.API_KEY_SCOPE_READ]
    ),
    "AdminService/RefundCharge": lambda ids: admin_pb2.RefundChargeRequest(
        tenant_id="one", job_id=ids.job, amount_micros=1, request_id="refund"
    ),
    "AdminService/SetPrices": lambda _: admin_pb2.SetPricesRequest(
        table=admin_pb2.PriceTable(
            version="free", prices=[admin_pb2.Price(item=admin_pb2.PRICE_ITEM_RECALL, micros=0)]
        )
    ),
    "AdminService/SuspendTenant": lambda _: admin_pb2.SuspendTenantRequest(tenant_id="one"),
    "AdminService/SetLimits": lambda _: admin_pb2.SetLimitsRequest(
        tenant_id="one", limits=admin_pb2.TenantLimits(max_jobs=1)
    ),
    "AdminService/ListApiKeys": lambda _: admin_pb2.ListApiKeysRequest(tenant_id="one"),
    "AdminService/RevokeApiKey": lambda _: admin_pb2.RevokeApiKeyRequest(key_id="0" * 16),
    "AdminService/GetUsage": lambda _: admin_pb2.GetUsageRequest(tenant_id="one"),
    "AdminService/GrantCredits": lambda _: admin_pb2.GrantCreditsRequest(
        tenant_id="one", amount_micros=1, request_id="grant"
    ),
}
"""A request of every RPC that is served, from the ids of somebody."""

NO_PLACE = {
    "MemoryService/AssertTriples": "ENTITY_NOT_FOUND",
    "MemoryService/GetEpisode": "EPISODE_NOT_FOUND",
    "MemoryService/DeleteEpisode": "EPISODE_NOT_FOUND",
    "MemoryService/GetDocument": "DOCUMENT_NOT_FOUND",
    "MemoryService/DeleteDocument": "DOCUMENT_NOT_FOUND",
    "MemoryService/RetractSource": "SOURCE_NOT_FOUND",
    "MemoryService/GetStatement": "STATEMENT_NOT_FOUND",
    "MemoryService/EndStatement": "STATEMENT_NOT_FOUND",
    "MemoryService/DenyStatement": "STATEMENT_NOT_FOUND",
    "MemoryService/RestoreStatement": "STATEMENT_NOT_FOUND",
    "MemoryService/RestoreArchived": "STATEMENT_NOT_FOUND",
    "MemoryService/JudgePair": "STATEMENT_NOT_FOUND",
    "MemoryService/EndVoiceAspect": "VOICE_ASPECT_NOT_FOUND",
    "MemoryService/RestoreVoiceAspect": "VOICE_ASPECT_NOT_FOUND",
    "MemoryService/GetTimeline": "ENTITY_NOT_FOUND",
    "MemoryService/GetEntity": "ENTITY_NOT_FOUND",
    "MemoryService/MergeEntities": "ENTITY_NOT_FOUND",
    "MemoryService/SplitEntity": "ENTITY_NOT_FOUND",
    "RecallService/Recall": "ENTITY_NOT_FOUND",
    "RecallService/GetSubgraph": "ENTITY_NOT_FOUND",
    "PrivacyService/EraseEntity": "ENTITY_NOT_FOUND",
    "PrivacyService/GetErasure": "ERASURE_NOT_FOUND",
    "JobService/GetJob": "JOB_NOT_FOUND",
    "JobService/CancelJob": "JOB_NOT_FOUND",
    "JobService/RetryJob": "JOB_NOT_FOUND",
    "JobService/WatchJob": "JOB_NOT_FOUND",
}
"""What an id that is not the caller's is answered with. Filters of lists just find nothing."""
EMPTY = {
    "MemoryService/ListStatements": "statements",
    "CreditService/ListLedgerEntries": "entries",
    "PrivacyService/ListAuditEvents": "events",
}
MAKES_ITS_GRAPH = {
    "GraphService/CreateGraph",
    "GraphService/DeclarePredicate",
    "GraphService/SetIngestionRule",
    "MemoryService/AddEpisode",
    "MemoryService/AssertTriples",
}
ENDLESS = {"CreditService/WatchBalance"}
"""Streams that never end by themselves: their first message is read."""
UNLIKE_A_READ = {
    "MemoryService/DeleteDocument",
    "MemoryService/RetractSource",
    "MemoryService/DeleteEpisode",
    "JobService/CancelJob",
    "PrivacyService/EraseGraph",
    "PrivacyService/EraseEntity",
    "PrivacyService/GetErasure",
    "JobService/RetryJob",
}
"""What is asked for would be gone, or has ended."""
FILTERS_BY_GRAPH = {"JobService/ListJobs"}
"""Lists of the gateway itself: a graph that is not there has none."""
NO_MORE_THAN_A_HEADER = b"""\
{"part":"graph","item":{"origin":"0123456789abcdef","created_at":0,"updated_at":0,"settings":{},"embedder":"","dimension":0}}
"""


def sent(message: Message) -> list[Message]:
    """All messages of a call: of an import with its start the data of a graph that holds nothing."""
    if not isinstance(message, privacy_pb2.ImportGraphRequest):
        return [message]
    digest = hashlib.sha256(NO_MORE_THAN_A_HEADER).hexdigest()
    trailer = privacy_pb2.ExportTrailer(counts={"graph": 1}, sha256=digest)
    return [
        message,
        privacy_pb2.ImportGraphRequest(data=NO_MORE_THAN_A_HEADER),
        privacy_pb2.ImportGraphRequest(trailer=trailer),
    ]


TELLS_WORDS = {
    "RecallService/GetPersona",
    "RecallService/UpdatePersona",
    "PrivacyService/ExportGraph",
    "MemoryService/GetEpisode",
    "MemoryService/GetDocument",
    "MemoryService/GetStatement",
    "MemoryService/ListStatements",
    "MemoryService/GetTimeline",
    "MemoryService/ListVoiceAspects",
    "RecallService/Recall",
    "RecallService/GetSubgraph",
}
