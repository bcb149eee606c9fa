"""Walking: from seed entities over statements, both directions: how each fact was reached, how near it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from palimpsest.internal.v1 import recall_pb2 as pb
from services.domain.graph import Entity
from services.domain.ids import EntityId, StatementId
from services.recall.fuse import Leg, best_first
from services.recall.messages import entity_out
from services.stores.graph.port import StatementView, Step

PER_LEVEL = 40
"""Statements that one level of a recall's walk keeps, newest first."""
HOP_SHARE = 0.5
"""What a fact is worth beside one that is a hop nearer."""
CUED_SHARE = 2.0
"""How much nearer a fact is whose predicate the question names."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A statement that was walked over, `path` from a seed to it (itself last), worth `score`."""

    view: StatementView
    path: tuple[tuple[EntityId, StatementView], ...]
    score: float


def reach(
    steps: Sequence[Step], seeds: Mapping[EntityId, float], cued: frozenset[EntityId]
) -> dict[StatementId, Reached]:
    """Scores a walk: seeds' weights, halved with every hop, doubled where the predicate is asked for."""
    came: dict[EntityId, tuple[tuple[tuple[EntityId, StatementView], ...], float]] = {
        seed: ((), weight) for seed, weight in seeds.items()
    }
    reached: dict[StatementId, Reached] = {}
    for step in steps:
        # A walk yields nearest first, so whatever a step was reached over has come by now.
        before, weight = came.get(step.via, ((), 0.0))
        path = (*before, (step.via, step.view))
        worth = weight * HOP_SHARE ** (step.hop - 1)
        score = worth * CUED_SHARE if step.view.predicate.id in cued else worth
        reached[step.view.statement.id] = Reached(step.view, path, score)
        far = _other(step.view, step.via)
        if far is not None:
            came.setdefault(far.id, (path, weight))
    return reached


def walk_leg(reached: Mapping[StatementId, Reached]) -> Leg:
    """A walk as a leg: nearest first."""
    return Leg("walk", best_first((id, one.score) for id, one in reached.items()))


def path_out(reached: Reached) -> list[pb.PathStep]:
    """The steps from a seed to a fact."""
    return [_step(view, via) for via, view in reached.path]


def _step(view: StatementView, via: EntityId) -> pb.PathStep:
    start = view.subject if view.subject.id == via else view.object
    end = _other(view, via)
    step = pb.PathStep(statement_id=view.statement.id, to=entity_out(end) if end else None)
    if start is not None:
        # The field is named as a keyword of Python.
        getattr(step, "from").CopyFrom(entity_out(start))
    return step


def _other(view: StatementView, via: EntityId) -> Entity | None:
    return view.object if view.subject.id == via else view.subject
