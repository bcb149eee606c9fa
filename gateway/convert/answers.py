"""Answers of recall: of one graph, or of several as one, internal to public."""

from collections.abc import Sequence

from gateway.convert.recall import degraded_out, fact_out, plan_out, recalled_passage_out, recalled_voice_out
from gateway.convert.summaries import persona_out, summary_out
from palimpsest.internal.v1 import recall_pb2 as internal
from palimpsest.v1 import common_pb2, recall_pb2
from services.domain.scope import GraphId


def answer_out(
    answers: Sequence[internal.RecallResponse], graphs: Sequence[GraphId], *, explain: bool
) -> recall_pb2.RecallResponse:
    """One response; items of several graphs by score, equal ones in the order of the graphs.

    It is as sure as the surest of the answers. The persona is that of the first graph that has one.
    """
    asked = list(zip(graphs, answers, strict=True))
    facts = [fact_out(fact, graph) for graph, answer in asked for fact in answer.facts]
    passages = [recalled_passage_out(one, graph) for graph, answer in asked for one in answer.passages]
    voice = [recalled_voice_out(one, graph) for graph, answer in asked for one in answer.voice]
    if len(answers) > 1:  # sorting keeps the order of equal ones
        facts.sort(key=lambda one: -one.score)
        passages.sort(key=lambda one: -one.score)
        voice.sort(key=lambda one: -one.score)
    personas = [persona_out(answer.persona, graph) for graph, answer in asked if answer.HasField("persona")]
    blocks = [answer for answer in answers if answer.context]
    down = dict.fromkeys(component for answer in answers for component in answer.degraded)
    response = recall_pb2.RecallResponse(
        facts=facts,
        passages=passages,
        voice=voice,
        summaries=[summary_out(one, graph) for graph, answer in asked for one in answer.summaries],
        persona=personas[0] if personas else None,
        context="\n".join(answer.context for answer in blocks),
        evidence={
            item.name: recall_pb2.Evidence(
                passage_id=item.passage_id, graph_id=graph, episode_id=item.episode_id, quote=item.quote
            )
            for graph, answer in asked
            for item in answer.evidence
        },
        degraded=[degraded_out(component) for component in sorted(down)],
        revisions=[
            common_pb2.GraphRevision(graph_id=graph, revision=answer.revision) for graph, answer in asked
        ],
        tokens_used=sum(answer.context_tokens for answer in blocks) + max(0, len(blocks) - 1),
        truncated=any(answer.left_out > 0 for answer in answers),
        abstention_score=1.0 - max(answer.answerable for answer in answers),
    )
    if explain:
        response.plan.CopyFrom(_plan([answer.plan for answer in answers]))
    return response


def _plan(plans: Sequence[internal.Plan]) -> recall_pb2.RecallPlan:
    """The first's, with the seeds of all; a hint is unmatched that no graph knows."""
    shown = plan_out(plans[0])
    for plan in plans[1:]:
        shown.seeds.extend(plan_out(plan).seeds)
    unmatched = [
        name for name in shown.unmatched_hints if all(name in plan.unmatched_hints for plan in plans)
    ]
    del shown.unmatched_hints[:]
    shown.unmatched_hints.extend(unmatched)
    return shown
