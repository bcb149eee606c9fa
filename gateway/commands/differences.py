"""Differences of a graph, public to internal and back."""

from gateway.commands.reads import Place
from gateway.convert.recall import voice_out
from gateway.convert.statements import span_out, statement_out
from gateway.convert.times import instant_of, known_at_in, timestamp
from palimpsest.internal.v1 import recall_diff_pb2 as internal
from palimpsest.internal.v1 import values_pb2
from palimpsest.v1 import memory_graph_pb2, statement_pb2


def diff_in(
    request: memory_graph_pb2.DiffGraphRequest, place: Place, timeout_seconds: float
) -> internal.DiffRequest:
    """The points to compare; further pages read the later one as the first page did."""
    if request.HasField("world"):
        points = internal.WorldPoints(
            before=instant_of(request.world.before), after=instant_of(request.world.after)
        )
        return internal.DiffRequest(world=points, known_at=place.known_at(request.known_at, timeout_seconds))
    return internal.DiffRequest(
        system=internal.SystemPoints(
            before=known_at_in(request.system.before, timeout_seconds),
            after=place.known_at(request.system.after, timeout_seconds),
        )
    )


def change_out(change: internal.Change, graph_id: str) -> memory_graph_pb2.GraphChange:
    shown = memory_graph_pb2.GraphChange(
        kind=memory_graph_pb2.ChangeKind.Value(f"CHANGE_KIND_{change.kind.upper()}")
    )
    if change.HasField("statement"):
        shown.statement.CopyFrom(statement_out(change.statement, graph_id))
    else:
        shown.voice_aspect.CopyFrom(voice_out(change.voice, graph_id))
    for name in ("before", "after"):
        if change.HasField(name):
            getattr(shown, name).CopyFrom(_span_out(getattr(change, name), change))
    return shown


def _span_out(span: values_pb2.Span, change: internal.Change) -> statement_pb2.Span:
    """A span of a statement with its causes; of a sentence of the voice its dates alone."""
    if change.HasField("statement"):
        return span_out(span, change.statement.id)
    return statement_pb2.Span(
        valid_at=timestamp(span.valid_at),
        invalid_at=timestamp(span.invalid_at if span.HasField("invalid_at") else None),
    )
