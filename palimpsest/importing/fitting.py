"""Fitting: values of a file as the API takes them, or Unreadable with what is wrong, never quoting them."""

import math
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any

from palimpsest.chats import Unreadable
from palimpsest.dates import Dated, read
from palimpsest.v1 import common_pb2, entity_pb2

MOST_PROSE = 2_000
"""Characters of a fact, a quote, a text as object."""
_MOST_NAME = 512
_MOST_LINE = 200
_BLANK = frozenset({"Cc", "Zs", "Zl", "Zp"})
_MOST_PREDICATE = 128
_MILLIS = 1e11
"""Epoch numbers from here on are milliseconds: as seconds they would be of the year 5138."""
_ZONE = re.compile(r"\[[\w/+-]+\]$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_WORD = re.compile(r"[\W_]+")

_TYPES = {
    name.removeprefix("ENTITY_TYPE_").lower(): number
    for name, number in entity_pb2.EntityType.items()
    if number not in (entity_pb2.ENTITY_TYPE_UNSPECIFIED, entity_pb2.ENTITY_TYPE_PREDICATE)
} | {
    "people": entity_pb2.ENTITY_TYPE_PERSON,
    "user": entity_pb2.ENTITY_TYPE_PERSON,
    "organisation": entity_pb2.ENTITY_TYPE_ORGANIZATION,
    "company": entity_pb2.ENTITY_TYPE_ORGANIZATION,
    "location": entity_pb2.ENTITY_TYPE_PLACE,
    "topic": entity_pb2.ENTITY_TYPE_CONCEPT,
}


def text_of(value: Any, field: str) -> str:
    """A text, empty where there is none."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unreadable(f"`{field}` is no text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Unreadable(f"`{field}` holds half a character (a lone surrogate)") from error
    if "\0" in value:
        raise Unreadable(f"`{field}` holds a NUL character")
    return value


def line_of(value: Any, field: str) -> str:
    """A text as one line without control characters, cut where it is long; empty where there is none."""
    plain = (
        "" if _is_control(letter) and not letter.isspace() else letter for letter in text_of(value, field)
    )
    return " ".join("".join(plain).split())[:_MOST_LINE]


def has_words(text: str) -> bool:
    """Whether a text is more than spaces and control characters."""
    return any(unicodedata.category(letter) not in _BLANK for letter in text)


def _is_control(letter: str) -> bool:
    return unicodedata.category(letter) == "Cc"


def name_of(value: Any, field: str) -> str:
    """The name of an entity, on one line."""
    name = " ".join(text_of(value, field).split())
    if not name:
        raise Unreadable(f"`{field}` is missing")
    if any(map(_is_control, name)):
        raise Unreadable(f"`{field}` holds control characters")
    if len(name) > _MOST_NAME:
        raise Unreadable(f"`{field}` is longer than {_MOST_NAME} characters")
    return name


def predicate_of(value: Any, field: str) -> str:
    """The name of a predicate, as given."""
    name = name_of(value, field)
    if len(name) > _MOST_PREDICATE:
        raise Unreadable(f"`{field}` is longer than {_MOST_PREDICATE} characters")
    if not any(letter.isalnum() for letter in name) or not spelt(name):
        raise Unreadable(f"`{field}` has no word in it")
    return name


def spelt(predicate: str) -> str:
    """As the server spells it, short of aliases: WORKS_AT, "works at" and worksAt are works_at."""
    words = _CAMEL.sub("_", unicodedata.normalize("NFKC", predicate))
    return _NOT_WORD.sub("_", unicodedata.normalize("NFKC", words.casefold())).strip("_")


def prose(text: str, notes: list[str], what: str) -> str:
    """A text of at most MOST_PROSE characters; a note says where it had to be cut."""
    if len(text) <= MOST_PROSE:
        return text
    notes.append(f"{what} beyond {MOST_PROSE:,} characters")
    return text[: MOST_PROSE - 1].rstrip() + "…"


def type_of(name: str) -> entity_pb2.EntityType.ValueType | None:
    """The type that a word names; None for a word that names none."""
    return _TYPES.get(name.strip().lower())


def time_of(value: Any, field: str) -> Dated | None:
    """A time as databases write it: ISO 8601 or a number of seconds or milliseconds; None for none.

    One on midnight is read as a day: that is how dates without a time are kept there.
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, bool):
            raise ValueError("a truth value")
        if isinstance(value, int | float):
            if not math.isfinite(value):
                raise ValueError("not finite")
            at = datetime.fromtimestamp(value / 1000 if abs(value) >= _MILLIS else value, UTC)
        elif isinstance(value, str):
            found = read(_ZONE.sub("", value.strip()))
            if value.strip().lower() == "now":
                raise ValueError("no time of a record")
            if found.precision != common_pb2.PRECISION_INSTANT:
                return found
            at = found.at
        else:
            raise ValueError("neither text nor number")
    except (ValueError, OverflowError, OSError) as error:
        raise Unreadable(f"`{field}` is no time") from error
    midnight = at.time() == datetime.min.time()
    return Dated(at, common_pb2.PRECISION_DAY if midnight else common_pb2.PRECISION_INSTANT)


def literal_of(value: Any) -> entity_pb2.Literal | None:
    """A number, truth value or text as an object; None for what is none of these."""
    if isinstance(value, bool):
        return entity_pb2.Literal(bool_value=value)
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            return None
        return entity_pb2.Literal(number_value=number) if math.isfinite(number) else None
    if isinstance(value, str) and value.strip() and len(value) <= MOST_PROSE:
        return entity_pb2.Literal(string_value=value)
    return None


def check_period(start: Dated | None, end: Dated | None) -> None:
    """Raises Unreadable when the end, as late as its precision allows, is not after the start."""
    if start is not None and end is not None and _latest(end) <= start.at:
        raise Unreadable("it ends before it begins")


def _latest(end: Dated) -> datetime:
    """The instant after the period that a coarse time means; an exact time itself."""
    at = end.at
    try:
        match end.precision:
            case common_pb2.PRECISION_YEAR:
                return at.replace(year=at.year + 1)
            case common_pb2.PRECISION_QUARTER | common_pb2.PRECISION_MONTH:
                months = at.month - 1 + (3 if end.precision == common_pb2.PRECISION_QUARTER else 1)
                return at.replace(year=at.year + months // 12, month=months % 12 + 1)
            case common_pb2.PRECISION_WEEK:
                return at + timedelta(days=7)
            case common_pb2.PRECISION_DAY:
                return at + timedelta(days=1)
            case _:
                return at
    except (ValueError, OverflowError):  # the last year that a calendar has
        return datetime.max.replace(tzinfo=UTC)
