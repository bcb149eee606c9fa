"""Ranking of facts: fused scores, what holds before what has ended, what replaced a fact before that fact."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from services.domain.ids import Revision, StatementId
from services.domain.instants import BEGINNING, Instant
from services.domain.records import Claim
from services.recall.asking import Asking
from services.recall.confidence import confidence
from services.recall.fuse import Found, Fused, Leg, fuse, ranked
from services.recall.slots import Slots, replaced_by, successors
from services.recall.standing import Standing, Time, standing_of
from services.recall.walking import Reached
from services.stores.graph.port import Records, StatementView

ENDED_SHARE = 0.7
"""What a fact that does not hold is worth beside one that does, unless the question looks back."""
UNSURE_SHARE = 0.6
"""What a fact of no confidence is worth beside a sure one: little trust in a source ranks what it claims."""
CUED = 0.1
ASPECT_CUED = 0.03
"""What a fact gains whose predicate, whose aspect the question's words point to."""


@dataclass(frozen=True, slots=True)
class FactFound:
    """A fact that matters, with all its spans believed as known."""

    view: StatementView
    standing: Standing
    fused: Fused
    reached: Reached | None = None
    replaced: Sequence[StatementView] = ()


Checked = Mapping[str, tuple[StatementView, Standing]]
"""Statements that stand to the time asked about, by id."""


def rank_facts(
    asking: Asking, legs: Sequence[Leg], checked: Checked, reached: Mapping[StatementId, Reached], limit: int
) -> list[FactFound]:
    """The first of what was checked, best first."""
    fusion = fuse(legs, checked)
    topics, looks_back = asking.topics, asking.plan.intent.looks_back
    scores: dict[str, float] = {}
    for id, (view, standing) in checked.items():
        score = fusion.scores[id] + _gain(asking, view) + topics.lift(view.episodes)
        if not standing.holds and not looks_back:
            score *= ENDED_SHARE
        scores[id] = min(1.0, score)
    order = _in_order(scores, {id: view for id, (view, _) in checked.items()}, limit)
    return [
        FactFound(*checked[item.id], item, reached.get(StatementId(item.id)))
        for item in fusion.items(order, scores)
    ]


def by_confidence(found: Sequence[FactFound], records: Records | None, known_at: Revision) -> list[FactFound]:
    """The facts in order again, with each score weighed by what its claims come to; as they are without."""
    claims: dict[StatementId, list[Claim]] = {}
    for claim in records.claims if records else ():
        if claim.recorded_at <= known_at and (claim.revoked_at is None or claim.revoked_at > known_at):
            claims.setdefault(claim.statement, []).append(claim)
    facts: dict[str, FactFound] = {}
    for fact in found:
        own = claims.get(fact.view.statement.id)
        # Of one that is held up by others alone, as duplicates are, nothing is known here.
        sure = confidence(own, any(span.contested for span in fact.view.spans)) if own else 1.0
        share = UNSURE_SHARE + (1 - UNSURE_SHARE) * sure
        fused = Fused(fact.fused.id, fact.fused.score * share, fact.fused.found)
        facts[fused.id] = FactFound(fact.view, fact.standing, fused, fact.reached)
    scores = {id: fact.fused.score for id, fact in facts.items()}
    order = _in_order(scores, {id: fact.view for id, fact in facts.items()}, len(facts))
    return [facts[id] for id in order]


def _in_order(scores: Mapping[str, float], views: Mapping[str, StatementView], limit: int) -> list[str]:
    return ranked(
        scores,
        limit,
        newest=lambda id: _latest_start(views[id]),
        sources=lambda id: len(views[id].episodes),
    )


def _gain(asking: Asking, view: StatementView) -> float:
    cues = asking.plan.cues
    gain = CUED if view.predicate.id in cues.predicates else 0.0
    return gain + (ASPECT_CUED if view.statement.aspect in cues.aspects else 0.0)


def _latest_start(view: StatementView) -> Instant:
    return max((span.valid_at for span in view.spans if span.valid_at is not None), default=BEGINNING)


def with_slots(time: Time, found: Sequence[FactFound], slots: Slots) -> list[FactFound]:
    """Facts with what they replaced; what has replaced an ended fact stands before it, found or not."""
    by_id = {fact.view.statement.id: fact for fact in found}
    placed: dict[StatementId, FactFound] = {}
    for fact in found:
        slot = slots.get((fact.view.subject.id, fact.view.predicate.id), ())
        if time.names_none and not fact.standing.holds:
            for rival in successors(fact.view, slot):
                lifted = _lifted(rival, fact, by_id.get(rival.statement.id), time)
                if lifted is not None:
                    placed.setdefault(rival.statement.id, lifted)
        placed.setdefault(fact.view.statement.id, fact)
    return [
        replace(
            fact,
            replaced=replaced_by(fact.view, slots.get((fact.view.subject.id, fact.view.predicate.id), ())),
        )
        for fact in placed.values()
    ]


def _lifted(rival: StatementView, over: FactFound, found: FactFound | None, time: Time) -> FactFound | None:
    """A fact that holds, with at least the score of one that it replaced; None when it does not hold."""
    standing = standing_of(rival.spans, time)
    if standing is None or not standing.holds:
        return None
    if found is None:
        by = Found("replaced", 1, over.fused.score)
        return FactFound(rival, standing, Fused(rival.statement.id, over.fused.score, (by,)))
    return replace(found, fused=replace(found.fused, score=max(found.fused.score, over.fused.score)))
