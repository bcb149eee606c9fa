"""INSERT, UPDATE and DELETE, in whole or in part."""

from collections.abc import Mapping, Sequence

from tests.doubles.graphd.evaluate import Evaluator, NoRow
from tests.doubles.graphd.expressions import Expression
from tests.doubles.graphd.refusals import execution_error, no_schema, semantic_error, storage_error
from tests.doubles.graphd.schema import Misfit, Schema
from tests.doubles.graphd.space import EdgeKey, Properties, Space
from tests.doubles.graphd.statements import (
    DeleteEdges,
    DeleteVertices,
    InsertEdges,
    InsertVertices,
    UpdateVertex,
    Write,
)
from tests.doubles.graphd.values import Table, Value

_ALL = 2**62


def write(space: Space, statement: Write, evaluator: Evaluator, *, partially: bool) -> Table | None:
    """Executes a write. `partially`: only what lies in every other partition. Raises Refusal."""
    part = _Part(space, partially)
    match statement:
        case InsertVertices():
            _insert_vertices(part, statement, evaluator)
        case InsertEdges():
            _insert_edges(part, statement, evaluator)
        case UpdateVertex():
            return None if partially else _update(space, statement, evaluator)
        case DeleteVertices(vids, with_edges):
            _delete_vertices(part, vids, with_edges)
        case DeleteEdges(keys):
            for key in keys:
                if space.edges.seen(key.name) is None:
                    raise execution_error(f"EdgeNotFound: EdgeName `{key.name}`")
            _delete_edges(part, keys)
    return None


class _Part:
    """What of a write reaches storage."""

    def __init__(self, space: Space, partially: bool) -> None:
        self.space = space
        self.partial = partially

    def reaches(self, vid: bytes) -> bool:
        return not self.partial or self.space.partition(vid) % 2 == 0


def _given(
    schema: Schema, names: Sequence[str], values: Sequence[Expression], evaluator: Evaluator
) -> Properties:
    schema.known(names)
    if len(names) != len(values):
        raise semantic_error("Column count doesn't match value count.")
    return dict(zip(names, [evaluator.value(value, NoRow()) for value in values], strict=True))


def _insert_vertices(part: _Part, statement: InsertVertices, evaluator: Evaluator) -> None:
    space = part.space
    schema = space.tags.seen(statement.tag)
    if schema is None:
        raise no_schema(statement.tag)
    given = [(vid, _given(schema, statement.names, values, evaluator)) for vid, values in statement.rows]
    rows = [(space.checked(vid), schema.row(values)) for vid, values in given]
    for vid, props in rows:
        if part.reaches(vid) and not (statement.keep and statement.tag in space.tags_of(vid)):
            space.put_tag(vid, statement.tag, props)


def _insert_edges(part: _Part, statement: InsertEdges, evaluator: Evaluator) -> None:
    space = part.space
    schema = space.edges.seen(statement.edge)
    if schema is None:
        raise execution_error(f"EdgeNotFound: EdgeName `{statement.edge}`")
    given = [(key, _given(schema, statement.names, values, evaluator)) for key, values in statement.rows]
    for key, values in given:
        schema.whole(values)
        space.checked(key.src)
        space.checked(key.dst)
    rows = [(key, schema.row(values)) for key, values in given]
    for key, props in rows:
        if part.reaches(key.src):
            space.put_forth(key, props, keep=statement.keep)
        if part.reaches(key.dst):
            space.put_back(key, props, keep=statement.keep)


def _delete_vertices(part: _Part, vids: Sequence[bytes], with_edges: bool) -> None:
    space = part.space
    for vid in vids:
        space.checked(vid)
    if with_edges:
        _delete_edges(part, {key for vid in vids for key in space.keys_at(vid)})
        if part.partial:  # the edges' failure comes first
            return
    for vid in vids:
        if part.reaches(vid):
            space.drop_vertex(vid)


def _delete_edges(part: _Part, keys: set[EdgeKey] | Sequence[EdgeKey]) -> None:
    for key in keys:
        if part.reaches(key.src):
            part.space.drop_forth(key)
        if part.reaches(key.dst):
            part.space.drop_back(key)


class _UpdatedRow(NoRow):
    """Properties by their bare names, as they are at the moment."""

    def __init__(self, tag: str, props: Mapping[str, Value]) -> None:
        self._tag = tag
        self._props = props

    def named(self, name: str) -> Value:
        if name not in self._props:
            raise semantic_error(f"`$^.{self._tag}.{name}', not found the property `{name}'.")
        return self._props[name]


def _update(space: Space, statement: UpdateVertex, evaluator: Evaluator) -> Table | None:
    """Sets one property after the other; where the condition is false, nothing, and that is no error."""
    schema = space.tags.seen(statement.tag)
    if schema is None:
        raise no_schema(statement.tag)
    stored = space.tags_of(space.checked(statement.vid)).get(statement.tag)
    if stored is None:
        raise storage_error("Vertex or edge not found.")
    props = dict(stored)
    row = _UpdatedRow(statement.tag, props)
    if evaluator.holds(statement.when, row):
        for name, expression in statement.changes.items():
            if name not in schema.columns:
                raise storage_error("Tag prop not found.")
            try:
                props[name] = schema.columns[name].stored(evaluator.value(expression, row))
            except Misfit as misfit:
                raise storage_error("Invalid data, may be wrong value type.") from misfit
        space.put_tag(statement.vid, statement.tag, props)
    if not statement.columns:
        return None
    told = [evaluator.value(column.expression, row) for column in statement.columns]
    return Table([column.name for column in statement.columns], [told])
