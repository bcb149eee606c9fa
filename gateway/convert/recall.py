"""Questions and answers of recall, public to internal and back."""

from gateway.convert.episodes import passage_out
from gateway.convert.names import aspect_in, aspect_out, voice_kind_in, voice_kind_out
from gateway.convert.statements import entity_out, statement_out
from gateway.convert.times import instant_of, known_at_in, stamp, timestamp
from palimpsest.internal.v1 import recall_pb2 as internal
from palimpsest.internal.v1 import values_pb2
from palimpsest.v1 import common_pb2, recall_pb2, recall_subgraph_pb2, voice_pb2
from palimpsest.v1.graph_pb2 import GraphSettings
from services.domain.instants import Instant

DEFAULT_HOPS = 2
DEFAULT_FACTS = 20
DEFAULT_PASSAGES = 10
DEFAULT_TOKENS = 2_000
DEFAULT_INCLUDE = frozenset(
    {recall_pb2.RECALL_INCLUDE_FACTS, recall_pb2.RECALL_INCLUDE_PASSAGES, recall_pb2.RECALL_INCLUDE_VOICE}
)

_TARGETS = {
    "statements": recall_pb2.RECALL_TARGET_STATEMENTS,
    "passages": recall_pb2.RECALL_TARGET_PASSAGES,
    "entities": recall_pb2.RECALL_TARGET_ENTITIES,
    "voice": recall_pb2.RECALL_TARGET_VOICE,
}
_LEGS = {
    "dense": recall_pb2.RECALL_LEG_DENSE,
    "lexical": recall_pb2.RECALL_LEG_LEXICAL,
    "walk": recall_pb2.RECALL_LEG_WALK,
    "time": recall_pb2.RECALL_LEG_TIME,
    "neighbour": recall_pb2.RECALL_LEG_NEIGHBOUR,
    "replaced": recall_pb2.RECALL_LEG_REPLACED,
}
_COMPONENTS = {
    "graph": recall_pb2.RECALL_COMPONENT_GRAPH_STORE,
    "vectors": recall_pb2.RECALL_COMPONENT_VECTOR_STORE,
    "memory": recall_pb2.RECALL_COMPONENT_MEMORY_STORE,
    "embedder": recall_pb2.RECALL_COMPONENT_EMBEDDER,
}
_LEGS_WITHOUT = {
    "graph": (recall_pb2.RECALL_LEG_WALK, recall_pb2.RECALL_LEG_TIME, recall_pb2.RECALL_LEG_REPLACED),
    "vectors": (recall_pb2.RECALL_LEG_DENSE,),
    "memory": (recall_pb2.RECALL_LEG_NEIGHBOUR,),
    "embedder": (recall_pb2.RECALL_LEG_DENSE,),
}
"""The legs that can find nothing without a component."""


def question_in(
    request: recall_pb2.RecallRequest, now: Instant, settings: GraphSettings, timeout_seconds: float
) -> internal.RecallRequest:
    """One question to a graph of these settings: its time zone counts where the caller names none."""
    include = set(request.include) or DEFAULT_INCLUDE
    asked = internal.RecallRequest(
        query=request.query,
        now=instant_of(request.now) if request.HasField("now") else now,
        time_zone=request.time_zone or settings.time_zone or "UTC",
        user_name=settings.user_name,
        known_at=known_at_in(request.known_at, timeout_seconds),
        graph_aspects=[aspect_in(aspect) for aspect in request.graph_aspects],
        voice_aspects=[voice_kind_in(kind) for kind in request.voice_aspects],
        labels=request.labels,
        entity_hints=[hint.entity_id or hint.name for hint in request.entity_hints],
        max_hops=request.max_hops if request.HasField("max_hops") else DEFAULT_HOPS,
        max_facts=request.max_facts if request.HasField("max_facts") else DEFAULT_FACTS,
        max_passages=request.max_passages if request.HasField("max_passages") else DEFAULT_PASSAGES,
        token_budget=request.token_budget if request.HasField("token_budget") else DEFAULT_TOKENS,
        include_facts=recall_pb2.RECALL_INCLUDE_FACTS in include,
        include_passages=recall_pb2.RECALL_INCLUDE_PASSAGES in include,
        include_voice=recall_pb2.RECALL_INCLUDE_VOICE in include,
        include_summaries=recall_pb2.RECALL_INCLUDE_SUMMARIES in include,
        include_persona=recall_pb2.RECALL_INCLUDE_PERSONA in include,
        explain=request.explain,
        allow_degraded=request.allow_degraded,
        min_revision=request.min_revision,
        include_ended=True,  # where no time is asked for, what has ended comes after what holds
    )
    if request.HasField("as_of"):
        asked.as_of = instant_of(request.as_of)
    if request.time_range.HasField("start"):
        asked.range_start = instant_of(request.time_range.start)
    if request.time_range.HasField("end"):
        asked.range_end = instant_of(request.time_range.end)
    return asked


def fact_out(fact: internal.RecalledFact, graph_id: str) -> recall_pb2.RecalledFact:
    return recall_pb2.RecalledFact(
        statement=statement_out(fact.statement, graph_id),
        score=fact.score,
        current=fact.holds,
        evidence=fact.evidence,
        path=[
            recall_pb2.PathStep(
                from_entity=entity_out(getattr(step, "from")),
                statement_id=step.statement_id,
                to_entity=entity_out(step.to),
            )
            for step in fact.path
        ],
        replaced_statement_ids=[statement.id for statement in fact.replaced],
        found_by=[found_out(leg) for leg in fact.legs],
        in_context=fact.in_context,
    )


def recalled_passage_out(found: internal.RecalledPassage, graph_id: str) -> recall_pb2.RecalledPassage:
    return recall_pb2.RecalledPassage(
        passage=passage_out(found.passage),
        graph_id=graph_id,
        session_id=found.session_id,
        document_id=found.document_id,
        score=found.score,
        evidence=found.evidence,
        found_by=[found_out(leg) for leg in found.legs],
        in_context=found.in_context,
    )


def recalled_voice_out(found: internal.RecalledVoice, graph_id: str) -> recall_pb2.RecalledVoice:
    return recall_pb2.RecalledVoice(
        voice_aspect=voice_out(found.voice, graph_id),
        score=found.score,
        current=not found.voice.HasField("invalid_at"),
        evidence=found.evidence,
        found_by=[found_out(leg) for leg in found.legs],
        in_context=found.in_context,
    )


def voice_out(voice: values_pb2.VoiceAspect, graph_id: str) -> voice_pb2.VoiceAspect:
    return voice_pb2.VoiceAspect(
        voice_aspect_id=voice.id,
        graph_id=graph_id,
        kind=voice_kind_out(voice.kind),
        text=voice.text,
        valid_at=timestamp(voice.valid_at),
        invalid_at=timestamp(voice.invalid_at if voice.HasField("invalid_at") else None),
        episode_ids=voice.episode_ids,
        passage_ids=voice.passage_ids,
        replaced_by=voice.replaced_by,
        invalidated_by=voice.invalidated_by,
        confidence=voice.confidence,
        known_from=stamp(voice.known_from, voice.known_from_at) if voice.known_from_at else None,
    )


def found_out(leg: internal.LegRank) -> recall_pb2.FoundBy:
    """`statements_dense` is the dense leg over statements; a leg of one word is over statements."""
    target, _, kind = leg.leg.rpartition("_")
    return recall_pb2.FoundBy(
        leg=_LEGS[kind], target=_TARGETS[target or "statements"], rank=leg.rank, score=leg.score
    )


def degraded_out(component: str) -> recall_pb2.DegradedComponent:
    return recall_pb2.DegradedComponent(component=_COMPONENTS[component], legs=_LEGS_WITHOUT[component])


def plan_out(plan: internal.Plan) -> recall_pb2.RecallPlan:
    shown = recall_pb2.RecallPlan(
        intent=recall_pb2.RecallIntent.Value(f"RECALL_INTENT_{(plan.intent or 'open').upper()}"),
        seeds=[entity_out(entity) for entity in plan.entities],
        unmatched_hints=plan.unmatched_hints,
        graph_aspects=[aspect_out(aspect) for aspect in plan.graph_aspects],
        voice_aspects=[voice_kind_out(kind) for kind in plan.voice_aspects],
    )
    if plan.HasField("range_start") or plan.HasField("range_end"):
        shown.dates.append(
            common_pb2.TimeInterval(
                start=timestamp(plan.range_start if plan.HasField("range_start") else None),
                end=timestamp(plan.range_end if plan.HasField("range_end") else None),
            )
        )
    return shown


def subgraph_out(walk: internal.WalkResponse, graph_id: str) -> recall_subgraph_pb2.GetSubgraphResponse:
    """Nodes by their nearest distance, edges in the walk's order."""
    distances: dict[str, int] = {entity.id: 0 for entity in walk.seeds}
    nodes = {entity.id: entity for entity in walk.seeds}
    for step in walk.steps:
        ends = [step.statement.subject]
        if step.statement.HasField("entity"):
            ends.append(step.statement.entity)
        for entity in ends:
            nodes.setdefault(entity.id, entity)
            distances.setdefault(entity.id, step.hop)
    return recall_subgraph_pb2.GetSubgraphResponse(
        nodes=[
            recall_subgraph_pb2.SubgraphNode(entity=entity_out(entity), distance=distances[key])
            for key, entity in nodes.items()
        ],
        edges=[
            recall_subgraph_pb2.SubgraphEdge(
                statement=statement_out(step.statement, graph_id), distance=step.hop
            )
            for step in walk.steps
        ],
        revision=walk.revision,
    )
