"""Values as nGQL knows them, and as Thrift carries them. Strings are bytes, as on the server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from nebula3.common import ttypes

from tests.doubles.graphd.refusals import semantic_error


class Bad(Enum):
    """Values that stand for a failure: nulls of a kind, and the empty value."""

    EMPTY = -1
    BAD_TYPE = ttypes.NullType.BAD_TYPE
    UNKNOWN_PROP = ttypes.NullType.UNKNOWN_PROP


@dataclass(frozen=True, slots=True)
class VertexValue:
    vid: bytes
    tags: Mapping[str, Mapping[str, "Value"]] = field(hash=False)


@dataclass(frozen=True, slots=True)
class EdgeValue:
    src: bytes
    dst: bytes
    name: str
    rank: int
    type: int
    """Negative where the edge was met against its direction; `src` and `dst` are swapped then."""
    props: Mapping[str, "Value"] = field(hash=False)


Value = None | bool | int | float | bytes | Bad | VertexValue | EdgeValue | list["Value"] | dict[str, "Value"]


@dataclass(slots=True)
class Table:
    """A result: columns with rows of values."""

    columns: list[str]
    rows: list[list[Value]]


def is_null(value: Value) -> bool:
    return value is None or (isinstance(value, Bad) and value is not Bad.EMPTY)


def to_thrift(value: Value) -> ttypes.Value:
    """The Thrift form of a value."""
    out = ttypes.Value()
    match value:
        case None:
            out.set_nVal(ttypes.NullType.__NULL__)
        case Bad.EMPTY:
            pass
        case Bad():
            out.set_nVal(value.value)
        case bool():
            out.set_bVal(value)
        case int():
            out.set_iVal(value)
        case float():
            out.set_fVal(value)
        case bytes():
            out.set_sVal(value)
        case list():
            out.set_lVal(ttypes.NList(values=[to_thrift(item) for item in value]))
        case dict():
            out.set_mVal(ttypes.NMap(kvs=_properties(value)))
        case VertexValue():
            tags = [
                ttypes.Tag(name=name.encode(), props=_properties(props)) for name, props in value.tags.items()
            ]
            out.set_vVal(ttypes.Vertex(vid=to_thrift(value.vid), tags=tags))
        case EdgeValue():
            out.set_eVal(
                ttypes.Edge(
                    src=to_thrift(value.src),
                    dst=to_thrift(value.dst),
                    type=value.type,
                    name=value.name.encode(),
                    ranking=value.rank,
                    props=_properties(value.props),
                )
            )
    return out


def _properties(props: Mapping[str, Value]) -> dict[bytes, ttypes.Value]:
    return {name.encode(): to_thrift(item) for name, item in props.items()}


def from_thrift(value: ttypes.Value) -> Value:
    """The value of a parameter. Refuses kinds that our store never sends."""
    kind = value.getType()
    if kind == ttypes.Value.NVAL:
        return None
    if kind in {ttypes.Value.BVAL, ttypes.Value.IVAL, ttypes.Value.FVAL, ttypes.Value.SVAL}:
        plain: bool | int | float | bytes | str = value.value
        return plain.encode() if isinstance(plain, str) else plain
    if kind == ttypes.Value.LVAL:
        return [from_thrift(item) for item in value.get_lVal().values]
    if kind == ttypes.Value.MVAL:
        kvs = value.get_mVal().kvs
        return {name.decode(): from_thrift(item) for name, item in kvs.items()}
    raise semantic_error(f"the double takes no parameter of kind {kind}")


def data_set(table: Table) -> ttypes.DataSet:
    return ttypes.DataSet(
        column_names=[name.encode() for name in table.columns],
        rows=[ttypes.Row(values=[to_thrift(value) for value in row]) for row in table.rows],
    )
