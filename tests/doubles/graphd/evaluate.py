"""What an expression is worth, with the server's rules for nulls, the empty value and types."""

from collections.abc import Callable, Mapping
from typing import Protocol

from tests.doubles.graphd.expressions import Binary, Call, Expression, Literal, Name, Of, Parameter
from tests.doubles.graphd.refusals import execution_error, semantic_error
from tests.doubles.graphd.values import Bad, EdgeValue, Value, VertexValue, is_null


class Row(Protocol):
    """What the names of an expression mean in one row. Each raises Refusal if it means nothing here."""

    def named(self, name: str) -> Value: ...

    def attribute(self, base: str, name: str) -> Value:
        """`base.name`."""
        ...

    def whole(self, what: str) -> Value:
        """`vertex` or `edge`."""
        ...


class NoRow:
    """The row of a constant expression: no name means anything. Also a base for rows that know a few."""

    def named(self, name: str) -> Value:
        raise semantic_error(f"Invalid label identifiers: {name}")

    def attribute(self, base: str, name: str) -> Value:
        raise semantic_error(f"Invalid label identifiers: {base}")

    def whole(self, what: str) -> Value:
        raise semantic_error(f"`{what.upper()}' is not support here")


class Evaluator:
    """Evaluates expressions with the parameters of one call."""

    def __init__(self, parameters: Mapping[str, Value]) -> None:
        self._parameters = parameters

    def holds(self, condition: Expression | None, row: Row) -> bool:
        """Whether a filter keeps a row: NULL and the empty value don't; other values are an error."""
        if condition is None:
            return True
        value = self.value(condition, row)
        if value is None or value is Bad.EMPTY:
            return False
        if isinstance(value, bool):
            return value
        raise execution_error(
            "Failed to evaluate condition. For boolean conditions, please write in their full forms like "
            "<condition> == <true/false> or <condition> IS [NOT] NULL."
        )

    def value(self, expression: Expression, row: Row) -> Value:
        match expression:
            case Literal(value):
                return value
            case Parameter(name):
                if name not in self._parameters:
                    raise semantic_error(f"Undefined parameters: {name}")
                return self._parameters[name]
            case Name(name):
                return row.named(name)
            case Of(Name(base), name):
                return row.attribute(base, name)
            case Of(base, name):
                return _attribute(self.value(base, row), name)
            case Call("vertex" | "edge" as what, ()):
                return row.whole(what)
            case Call(function, (argument,)) if function in _FUNCTIONS:
                return _FUNCTIONS[function](self.value(argument, row))
            case Call(function):
                raise semantic_error(f"`{function}' is not allowed here")
            case Binary("AND" | "OR" as operator, left, right):
                return self._logical(operator, left, right, row)
            case Binary(operator, left, right):
                return _COMPARED[operator](self.value(left, row), self.value(right, row))

    def _logical(self, operator: str, left: Expression, right: Expression, row: Row) -> Value:
        """AND: bad null and false before null before empty before true; OR likewise with true."""
        ends = operator == "OR"
        result: Value = not ends
        for side in (left, right):
            value = self.value(side, row)
            if value is ends or (isinstance(value, Bad) and value is not Bad.EMPTY):
                return value
            if value is None:
                result = None
            elif value is Bad.EMPTY:
                result = result if result is None else value
            elif not isinstance(value, bool):
                return Bad.BAD_TYPE
        return result


def _attribute(base: Value, name: str) -> Value:
    if isinstance(base, dict):
        return base.get(name, Bad.UNKNOWN_PROP)
    return base if is_null(base) or base is Bad.EMPTY else Bad.BAD_TYPE


def _equal(left: Value, right: Value) -> bool | None:
    if left is Bad.EMPTY or right is Bad.EMPTY:
        return None if left is right else False
    if is_null(left) or is_null(right):
        return None
    return _kind(left) == _kind(right) and left == right


def _less(left: Value, right: Value) -> bool | None:
    unordered = any(value is Bad.EMPTY or is_null(value) for value in (left, right))
    if unordered or _kind(left) != _kind(right):
        return None
    return sort_key(left) < sort_key(right)


def _or_equal(first: bool | None, equal: bool | None) -> bool | None:
    return None if first is None or equal is None else first or equal


def _kind(value: Value) -> type:
    """Numbers compare with each other; values of other kinds only with their like."""
    return float if type(value) is int else type(value)


_KINDS: list[type] = [bool, float, bytes, VertexValue, EdgeValue, list, dict]


def sort_key(value: Value) -> tuple[int, object]:
    """For ORDER BY: kind by kind, values of a kind by size, what is null or empty last."""
    if value is None or isinstance(value, Bad):
        return (len(_KINDS), 0)
    return (_KINDS.index(_kind(value)), value)


_COMPARED: dict[str, Callable[[Value, Value], Value]] = {
    "==": _equal,
    "<": _less,
    ">": lambda a, b: _less(b, a),
    "<=": lambda a, b: _or_equal(_less(a, b), _equal(a, b)),
    ">=": lambda a, b: _or_equal(_less(b, a), _equal(a, b)),
}


def _of_edge(get: Callable[[EdgeValue], Value]) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        if isinstance(value, EdgeValue):
            return get(value)
        return None if is_null(value) else Bad.BAD_TYPE

    return apply


def _properties(value: Value) -> Value:
    if isinstance(value, EdgeValue):
        return dict(value.props)
    if isinstance(value, VertexValue):
        return {name: item for props in value.tags.values() for name, item in props.items()}
    return None if is_null(value) else Bad.BAD_TYPE


_FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    "id": lambda value: value.vid if isinstance(value, VertexValue) else Bad.BAD_TYPE,
    # Of the edge as it was written, whichever way it was met.
    "src": _of_edge(lambda edge: edge.src if edge.type > 0 else edge.dst),
    "dst": _of_edge(lambda edge: edge.dst if edge.type > 0 else edge.src),
    "rank": _of_edge(lambda edge: edge.rank),
    "type": _of_edge(lambda edge: edge.name.encode()),
    "properties": _properties,
}
