"""FETCH and GO, and what their rows are piped through."""

from collections.abc import Callable, Iterable, Iterator

from tests.doubles.graphd.evaluate import Evaluator, NoRow, sort_key
from tests.doubles.graphd.expressions import Binary, Call, Expression, Name, Of
from tests.doubles.graphd.refusals import execution_error, semantic_error, syntax_error
from tests.doubles.graphd.schema import Schema
from tests.doubles.graphd.space import Space
from tests.doubles.graphd.statements import Column, Count, Fetch, Go, Limit, OrderBy, Pipe, Piped, Read
from tests.doubles.graphd.values import Bad, EdgeValue, Table, Value, VertexValue


def read(space: Space, statement: Read | Piped, evaluator: Evaluator) -> Table:
    """The rows of a read. Raises Refusal."""
    match statement:
        case Piped(first, pipes):
            table = read(space, first, evaluator)
            for pipe in pipes:
                _flow(table, pipe)
            return table
        case Fetch():
            return _fetch(space, statement, evaluator)
        case Go():
            return _go(space, statement, evaluator)


class _VertexRow(NoRow):
    def __init__(self, vertex: VertexValue) -> None:
        self._vertex = vertex

    def attribute(self, base: str, name: str) -> Value:
        if base not in self._vertex.tags:
            return super().attribute(base, name)
        return self._vertex.tags[base].get(name, Bad.UNKNOWN_PROP)

    def whole(self, what: str) -> Value:
        return self._vertex if what == "vertex" else super().whole(what)


def _fetch(space: Space, statement: Fetch, evaluator: Evaluator) -> Table:
    if space.tags.seen(statement.tag) is None:
        raise execution_error(f"TagNotFound: TagName `{statement.tag}`")
    table = Table([column.name for column in statement.columns], [])
    for vid in sorted(statement.vids, key=space.place):  # one that is asked twice comes twice
        tags = space.tags_of(space.checked(vid))
        if statement.tag in tags:
            row = _VertexRow(VertexValue(vid, {statement.tag: tags[statement.tag]}))
            table.rows.append([evaluator.value(column.expression, row) for column in statement.columns])
    return table


_KEY: dict[str, Callable[[EdgeValue], Value]] = {
    "_rank": lambda edge: edge.rank,
    # Of the step: it begins where it was begun, whichever way the edge leads.
    "_src": lambda edge: edge.src,
    "_dst": lambda edge: edge.dst,
}


class _EdgeRow(NoRow):
    """A step: the edge, and the vertex at its far end, whichever way it was met."""

    def __init__(self, space: Space, edge: EdgeValue) -> None:
        self._space = space
        self._edge = edge

    def attribute(self, base: str, name: str) -> Value:
        if base == "$$":
            return self._space.tags_of(self._edge.dst).get(name, Bad.EMPTY)
        if base != self._edge.name:
            return Bad.EMPTY
        return _KEY[name](self._edge) if name in _KEY else self._edge.props[name]

    def whole(self, what: str) -> Value:
        return self._edge if what == "edge" else super().whole(what)


def _go(space: Space, statement: Go, evaluator: Evaluator) -> Table:
    declared: dict[str, Schema] = {}
    for edge in statement.edges:
        seen = space.edges.seen(edge)
        if seen is None:
            raise semantic_error(f"{edge} not found in space [{space.name}].")
        declared[edge] = seen
    conditions = [] if statement.where is None else [statement.where]
    for expression in [*conditions, *(column.expression for column in statement.columns)]:
        _check(space, declared, expression)
    table = Table([column.name for column in statement.columns], [])
    for step in _steps(space, statement):
        row = _EdgeRow(space, step)
        if evaluator.holds(statement.where, row):
            table.rows.append(_yielded(statement.columns, row, evaluator))
    if statement.distinct:
        table.rows = _distinct(table.rows)
    return table


def _yielded(columns: Iterable[Column], row: _EdgeRow, evaluator: Evaluator) -> list[Value]:
    return [evaluator.value(column.expression, row) for column in columns]


def _steps(space: Space, statement: Go) -> Iterator[EdgeValue]:
    met: Callable[[bytes, str], Iterator[EdgeValue]] = space.edges_from
    if statement.reversely:
        met = space.edges_to
    for vid in sorted(set(statement.vids), key=space.place):
        space.checked(vid)
        for edge in statement.edges:
            yield from met(vid, edge)


def _check(space: Space, edges: dict[str, Schema], expression: Expression) -> None:
    """Refuses names that mean nothing in a GO over these edges, whether or not it meets a row."""
    match expression:
        case Of(Of(Name("$$"), tag), name):
            _property(f"$$.{tag}", space.tags.seen(tag), name)
        case Of(Name(edge), name):
            _property(edge, space.edges.seen(edge), name)
            if edge not in edges:
                raise semantic_error("edge should be declared first in over clause.")
        case Name(name):
            raise semantic_error(f"Invalid label identifiers: {name}")
        case Call("vertex", ()):
            raise semantic_error("`VERTEX' is not support in go sentence.")
        case Call("count"):
            raise syntax_error("Invalid use of aggregating function in yield clause.")
        case Call(_, arguments):
            for argument in arguments:
                _check(space, edges, argument)
        case Binary(_, left, right):
            _check(space, edges, left)
            _check(space, edges, right)


def _property(owner: str, schema: Schema | None, name: str) -> None:
    if schema is None:
        is_tag = owner.startswith("$$")
        raise execution_error(
            f"TagNotFound: TagName `{owner[3:]}`" if is_tag else f"EdgeNotFound: EdgeName `{owner}`"
        )
    if name not in schema.columns and (name not in _KEY or owner.startswith("$$")):
        raise semantic_error(f"`{owner}.{name}', not found the property `{name}'.")


def _flow(table: Table, pipe: Pipe) -> None:
    match pipe:
        case Limit(count):
            del table.rows[count:]
        case Count(name):
            table.rows = [[len(table.rows)]]
            table.columns = [name]
        case OrderBy(factors):
            for column, descends in reversed(factors):
                if column not in table.columns:
                    raise semantic_error(f"`$-.{column}', not exist prop `{column}'")
                _sort(table.rows, table.columns.index(column), descends)


def _sort(rows: list[list[Value]], at: int, descends: bool) -> None:
    rows.sort(key=lambda row: sort_key(row[at]), reverse=descends)


def _distinct(rows: list[list[Value]]) -> list[list[Value]]:
    return [list(row) for row in dict.fromkeys(tuple(row) for row in rows)]
