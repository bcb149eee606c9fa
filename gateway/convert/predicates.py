"""Predicates as the public API shows them, with what is declared of them."""

from gateway.convert.times import stamp
from palimpsest.internal.v1 import values_pb2 as internal
from palimpsest.v1 import entity_pb2
from services.domain.predicates import Cardinality

CARDINALITIES = {
    Cardinality.SINGLE: entity_pb2.CARDINALITY_SINGLE,
    Cardinality.MULTI: entity_pb2.CARDINALITY_MULTI,
}
CARDINALITIES_IN = {public: known for known, public in CARDINALITIES.items()}


def declared_out(predicate: internal.Predicate) -> entity_pb2.Predicate:
    """Without a revision where only what ships says so."""
    shown = entity_pb2.Predicate(
        predicate_id=predicate.id,
        name=predicate.name,
        cardinality=CARDINALITIES[Cardinality(predicate.cardinality)],
        aliases=predicate.aliases,
        inverse=predicate.inverse,
        declared=predicate.declared,
    )
    if predicate.since:
        shown.revision.CopyFrom(stamp(predicate.since, predicate.since_at))
    return shown
