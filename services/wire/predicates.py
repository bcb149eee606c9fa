"""Predicates to the messages between services."""

from palimpsest.internal.v1 import values_pb2 as pb
from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.lexicon import Lexicon


def predicate_out(
    lexicon: Lexicon, name: str, since: Revision | None = None, since_at: Instant | None = None
) -> pb.Predicate:
    """What is known of a canonical name, since a revision if not by what ships."""
    known = lexicon.known
    return pb.Predicate(
        id=lexicon.id_of(name),
        name=name,
        cardinality=known.cardinality(name),
        aliases=lexicon.aliases(name),
        inverse=known.inverse(name) or "",
        declared=name in lexicon.declared,
        since=since or 0,
        since_at=since_at or 0,
    )
