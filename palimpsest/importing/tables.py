"""Tables: CSV of dated triples. The header names the columns; a row is a claim, an end or a denial."""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import StringIO

from palimpsest.chats import Unreadable
from palimpsest.dates import FORMS, Dated
from palimpsest.dates import read as read_date
from palimpsest.importing import fitting
from palimpsest.importing.reading import File
from palimpsest.importing.values import Fact, Form, Named, Reading, Record, Said
from palimpsest.v1 import entity_pb2

SOURCE = "csv"
COLUMNS = {
    "subject": ("subject", "source_name", "from_name"),
    "predicate": ("predicate", "relation", "relationship", "property"),
    "object": ("object", "target_name", "value"),
    "object_kind": ("object_kind", "kind_of_object", "kind of object"),
    "subject_type": ("subject_type",),
    "object_type": ("object_type",),
    "start": ("start", "since", "from", "valid_at", "valid_from"),
    "end": ("end", "until", "to", "invalid_at", "valid_until"),
    "said_at": ("said_at", "said", "reference_time"),
    "source": ("source",),
    "quote": ("quote", "fact"),
    "confidence": ("confidence",),
    "record": ("record",),
    "denied": ("denied",),
    "id": ("id",),
}
"""Columns, each with the names under which it is found."""
_NEEDED = ("subject", "predicate", "object")
_DELIMITERS = (",", ";", "\t", "|")
_TRUE, _FALSE = frozenset({"true", "yes", "y", "1", "x"}), frozenset({"", "false", "no", "n", "0"})


@dataclass(frozen=True, slots=True)
class _Row:
    """A row by column, cells without spaces around them; or why there is none."""

    place: str
    cells: Mapping[str, str]
    why: str = ""
    over: tuple[str, ...] = ()
    """Names of columns that are filled and not ours."""


def read(files: Sequence[File], said: datetime | None = None) -> Reading:
    """All rows. Raises Unreadable for a file whose header does not name subject, predicate and object."""
    reading = Reading()
    for file in files:
        for row in _rows(file):
            record = Record(row.place, "row")
            try:
                if row.why:
                    raise Unreadable(row.why)
                fact = _fact(row.cells, said or file.changed, record.notes)
            except Unreadable as error:
                reading.refuse(row.place, "row", str(error))
                continue
            record.notes += [f"the column {name}" for name in row.over]
            reading.take(record, [fact])
    return reading


def _rows(file: File) -> Iterator[_Row]:
    reader = csv.reader(StringIO(file.text, newline=""), delimiter=_delimiter(file), strict=True)
    try:
        names = _header(next(reader), file)
    except csv.Error as error:
        raise Unreadable(f"{file.name}: the first line can't be read as a row: {error}") from error
    while True:
        line = reader.line_num + 1
        place = f"{file.name} line {line}"
        try:
            cells = [cell.strip() for cell in next(reader)]
        except StopIteration:
            return
        except csv.Error as error:
            until = f" (to line {reader.line_num})" if reader.line_num > line else ""
            yield _Row(place + until, {}, f"it can't be read as a row: {error}")
            continue
        if not any(cells):
            continue
        if len(cells) > len(names) and any(cells[len(names) :]):
            yield _Row(place, {}, f"it has {len(cells):,} cells, the header names {len(names):,} columns")
            continue
        filled = dict(zip(names, cells, strict=False))
        id = f" (id {filled['id'][:40]})" if filled.get("id") else ""
        over = tuple(name for name, cell in filled.items() if cell and name not in COLUMNS)
        yield _Row(place + id, filled, over=over)


def _delimiter(file: File) -> str:
    """The one by which the header names what is needed, where several do the one that cuts it finest."""
    first = file.text.lstrip("\r\n").split("\n", 1)[0]
    found: list[tuple[int, str]] = []
    for delimiter in _DELIMITERS:
        try:
            cells = next(csv.reader([first.strip("\r")], delimiter=delimiter))
        except (csv.Error, StopIteration):
            continue
        if set(_NEEDED) <= {_column(cell) for cell in cells}:
            found.append((len(cells), delimiter))
    if not found:
        raise Unreadable(f"{file.name}: the first line names no columns {', '.join(_NEEDED)}")
    if not file.text.startswith(first):
        raise Unreadable(f"{file.name}: it begins with empty lines")
    return max(found)[1]


def _header(cells: Sequence[str], file: File) -> list[str]:
    names = [_column(cell) for cell in cells]
    twice = {name for name in names if names.count(name) > 1 and name}
    if twice:
        raise Unreadable(f"{file.name}: several columns are read as {', '.join(sorted(twice))}")
    return [name or f"no. {at}" for at, name in enumerate(names, 1)]


def _column(cell: str) -> str:
    plain = " ".join(cell.strip().lower().split())
    found = (name for name, also in COLUMNS.items() if plain in also or plain.replace(" ", "_") in also)
    return next(found, plain)


def _fact(cells: Mapping[str, str], changed: datetime, notes: list[str]) -> Fact:
    form = _form(cells)
    start, end = (_date(cells, name) for name in ("start", "end"))
    if form is Form.END:
        if end is None:
            raise Unreadable("an end needs a date in `end`")
        if start is not None:
            notes.append("`start` of a row that records an end")
            start = None
    elif form is Form.DENIAL:
        if start is not None and end is not None and end.at <= start.at:
            raise Unreadable("it is denied until before it is denied from")
    else:
        fitting.check_period(start, end)
    said = _date(cells, "said_at")
    subject = Named(fitting.name_of(cells.get("subject"), "subject"), _type(cells, "subject_type"))
    predicate = fitting.predicate_of(cells.get("predicate"), "predicate")
    object = _object(cells)
    words = fitting.text_of(cells.get("quote"), "quote")
    return Fact(
        subject,
        predicate,
        object,
        Said(said.at) if said else Said(changed, told=False),
        fitting.prose(words or _sentence(cells, form), notes, "a quote"),
        _source(cells),
        form,
        start,
        end,
        confidence=_confidence(cells),
    )


def _form(cells: Mapping[str, str]) -> Form:
    denied = cells.get("denied", "").lower()
    if denied not in _TRUE | _FALSE:
        raise Unreadable("`denied` is neither yes nor no")
    record = cells.get("record", "").lower()
    if record and record not in set(Form):
        raise Unreadable("`record` is none of claim, end, denial")
    if denied in _TRUE and record not in ("", Form.DENIAL):
        raise Unreadable("`denied` and `record` say different things")
    return Form.DENIAL if denied in _TRUE else Form(record or Form.CLAIM)


def _date(cells: Mapping[str, str], name: str) -> Dated | None:
    text = cells.get(name, "")
    if not text:
        return None
    try:
        if text.lower() == "now":
            raise ValueError("it would be another time with each import")
        return read_date(text)
    except ValueError as error:
        raise Unreadable(f"`{name}` is no date; write it like {FORMS.removesuffix(' or now')}") from error


def _object(cells: Mapping[str, str]) -> Named | entity_pb2.Literal:
    text, kind = cells.get("object", ""), cells.get("object_kind", "").lower() or "entity"
    if kind != "entity" and cells.get("object_type"):
        raise Unreadable("`object_type` is of entities alone")
    match kind:
        case "entity":
            return Named(fitting.name_of(text, "object"), _type(cells, "object_type"))
        case "number":
            try:
                number = float(text)
            except ValueError:
                number = math.nan
            if not math.isfinite(number):
                raise Unreadable("`object` is no number")
            return entity_pb2.Literal(number_value=number)
        case "boolean":
            if text.lower() not in ("true", "false"):
                raise Unreadable("`object` is neither true nor false")
            return entity_pb2.Literal(bool_value=text.lower() == "true")
        case "date":
            at = _date(cells, "object")
            if at is None:
                raise Unreadable("`object` is missing")
            return entity_pb2.Literal(time_value=at.timestamp, time_precision=at.precision)
        case "text":
            literal = fitting.literal_of(fitting.text_of(text, "object"))
            if literal is None:
                raise Unreadable(f"`object` is missing, or longer than {fitting.MOST_PROSE:,} characters")
            return literal
    raise Unreadable("`object_kind` is none of entity, text, number, boolean, date")


def _type(cells: Mapping[str, str], name: str) -> entity_pb2.EntityType.ValueType:
    text = cells.get(name, "")
    found = fitting.type_of(text) if text else entity_pb2.ENTITY_TYPE_UNSPECIFIED
    if found is None:
        raise Unreadable(f"`{name}` is no type of an entity, such as person or organization")
    return found


def _source(cells: Mapping[str, str]) -> str:
    source = fitting.text_of(cells.get("source"), "source") or SOURCE
    if len(source.encode()) > 256 or not source.isprintable():
        raise Unreadable("`source` is longer than 256 bytes, or holds control characters")
    return source


def _confidence(cells: Mapping[str, str]) -> float | None:
    text = cells.get("confidence", "")
    if not text:
        return None
    try:
        confidence = float(text)
    except ValueError:
        confidence = math.nan
    if not 0 <= confidence <= 1:
        raise Unreadable("`confidence` is no number from 0 to 1")
    return confidence


def _sentence(cells: Mapping[str, str], form: Form) -> str:
    """The row as a line, which tells it from every other of the same source and time."""
    words = f"{cells['subject']} {cells['predicate'].replace('_', ' ')} {cells['object']}"
    since = f" since {cells['start']}" if cells.get("start") else ""
    until = f" until {cells['end']}" if cells.get("end") else ""
    match form:
        case Form.END:
            return f"{words}: ended {cells['end']}"
        case Form.DENIAL:
            return f"{words}: not so{since}{until}"
        case _:
            return f"{words}{since}{until}"
