"""How values of the API read on a terminal: enums, money, names, spans."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from google.rpc import status_pb2
from rich.markup import escape
from rich.table import Table

from palimpsest.cli.dates import shown
from palimpsest.errors import error_of_status
from palimpsest.v1 import entity_pb2, errors_pb2, statement_pb2

Number = TypeVar("Number", bound=int)

MICROS = 1_000_000
"""Micro-credits of one credit."""


def word(name: Callable[[Number], str], number: Number, prefix: str) -> str:
    """An enum's value without its prefix, lower-case: `running`; one that we don't know as its number."""
    try:
        return name(number).removeprefix(prefix).lower()
    except ValueError:
        return str(number)


def nothing(reason: errors_pb2.NothingReason.ValueType) -> str:
    return word(errors_pb2.NothingReason.Name, reason, "NOTHING_REASON_").replace("_", " ")


def amount(micros: int) -> str:
    """Micro-credits as credits, exactly: 1,200 micros are `0.0012`."""
    sign = "-" if micros < 0 else ""
    whole, part = divmod(abs(micros), MICROS)
    return f"{sign}{whole:,}" + (f".{part:06}".rstrip("0") if part else "")


def counted(number: int, noun: str) -> str:
    """A number with what it counts, given in the singular or as a field's name: `2 statements added`."""
    first, *rest = noun.replace("_", " ").split()
    one = {"entities": "entity"}.get(first, first.removesuffix("s"))
    many = first if first != one else f"{one}s"
    return " ".join([f"{number:,}", one if number == 1 else many, *rest])


def error(status: status_pb2.Status) -> str:
    """A failed job's or chunk's status as a line."""
    return str(error_of_status(status))


def named(value: entity_pb2.ObjectValue) -> str:
    """The object of a statement as text."""
    if value.WhichOneof("object") == "entity":
        return value.entity.name
    literal = value.literal
    match literal.WhichOneof("value"):
        case "number_value":
            return f"{literal.number_value:g}"
        case "bool_value":
            return "true" if literal.bool_value else "false"
        case "time_value":
            return shown(literal.time_value, literal.time_precision)
        case _:
            return literal.string_value


def since(span: statement_pb2.Span) -> str:
    """The start of a span: a date, or that it isn't known."""
    return shown(span.valid_at, span.valid_at_precision) if span.HasField("valid_at") else "unknown"


def until(span: statement_pb2.Span) -> str:
    """The end of a span; empty while it holds."""
    return shown(span.invalid_at, span.invalid_at_precision) if span.HasField("invalid_at") else ""


def cause(record: statement_pb2.Cause) -> str:
    """What a border rests on: its kind, and why the record was made where that is telling."""
    kind = word(statement_pb2.CauseKind.Name, record.kind, "CAUSE_KIND_").replace("_", " ")
    return kind + why(record.origin)


def why(origin: statement_pb2.RecordOrigin.ValueType) -> str:
    """Why a record was made, to be put after it; empty where an episode simply says so."""
    match origin:
        case statement_pb2.RECORD_ORIGIN_SOURCE_REMOVED:
            return ", source removed"
        case statement_pb2.RECORD_ORIGIN_USER:
            return ", by a user"
        case _:
            return ""


def pairs(rows: Iterable[tuple[str, str]]) -> Table:
    """Names and values in two columns; rows without a value are left out."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        if value:
            table.add_row(name, escape(value))
    return table


def listing(*columns: str, title: str = "") -> Table:
    """An empty table in the house's form; fill it by `add_row` with escaped text."""
    table = Table(title=title or None, title_justify="left", title_style="bold", header_style="dim", box=None)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
