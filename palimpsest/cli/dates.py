"""Dates as people type them, coarse ones included, and as they are shown."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

import typer
from google.protobuf.timestamp_pb2 import Timestamp

from palimpsest.v1 import common_pb2

FORMS = "2025, 2025-Q3, 2025-03, 2025-W10, 2025-03-31, 2025-03-31T14:00, 2025-03-31T14:00+02:00 or now"

MIDNIGHT = time()

_YEAR = re.compile(r"(\d{4})")
_QUARTER = re.compile(r"(\d{4})-?[Qq]([1-4])")
_MONTH = re.compile(r"(\d{4})-(\d{2})")
_WEEK = re.compile(r"(\d{4})-?[Ww](\d{2})")


@dataclass(frozen=True, slots=True)
class Dated:
    """A time with its precision; a coarse one is its period's first instant, in UTC."""

    at: datetime
    precision: common_pb2.Precision.ValueType

    @property
    def timestamp(self) -> Timestamp:
        return timestamp(self.at)


def timestamp(at: datetime) -> Timestamp:
    message = Timestamp()
    message.FromDatetime(at.astimezone(UTC))
    return message


def read_date(text: str) -> Dated:
    """Reads a date; without an offset it is UTC. Raises typer.BadParameter."""
    try:
        return _read(text.strip())
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no date; write it like {FORMS}") from error


def _read(text: str) -> Dated:
    if text.lower() == "now":
        return Dated(datetime.now(UTC), common_pb2.PRECISION_INSTANT)
    if match := _YEAR.fullmatch(text):
        return Dated(datetime(int(match[1]), 1, 1, tzinfo=UTC), common_pb2.PRECISION_YEAR)
    if match := _QUARTER.fullmatch(text):
        month = int(match[2]) * 3 - 2
        return Dated(datetime(int(match[1]), month, 1, tzinfo=UTC), common_pb2.PRECISION_QUARTER)
    if match := _MONTH.fullmatch(text):
        return Dated(datetime(int(match[1]), int(match[2]), 1, tzinfo=UTC), common_pb2.PRECISION_MONTH)
    if match := _WEEK.fullmatch(text):
        monday = date.fromisocalendar(int(match[1]), int(match[2]), 1)
        return Dated(_midnight(monday), common_pb2.PRECISION_WEEK)
    if len(text) == len("2025-03-31"):
        return Dated(_midnight(date.fromisoformat(text)), common_pb2.PRECISION_DAY)
    at = datetime.fromisoformat(text)
    return Dated(at if at.tzinfo else at.replace(tzinfo=UTC), common_pb2.PRECISION_INSTANT)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def read_known_at(text: str) -> common_pb2.KnownAt:
    """A plain number is a revision; anything else a date. Raises typer.BadParameter."""
    if text.isdecimal():
        return common_pb2.KnownAt(revision=int(text))
    return common_pb2.KnownAt(time=read_date(text).timestamp)


def shown(at: Timestamp, precision: common_pb2.Precision.ValueType = common_pb2.PRECISION_UNSPECIFIED) -> str:
    """A time as far as it is known: `2025`, `2025-Q3`, `2025-03`, `2025-03-31`, `2025-03-31 14:00:05`."""
    # Not Timestamp.ToDatetime of a timezone: it refuses year 1 and 9999 in some zones; UTC is always ours.
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at.seconds, microseconds=at.nanos // 1_000)
    match precision:
        case common_pb2.PRECISION_YEAR:
            return f"{moment.year:04}"
        case common_pb2.PRECISION_QUARTER:
            return f"{moment.year:04}-Q{(moment.month + 2) // 3}"
        case common_pb2.PRECISION_MONTH:
            return f"{moment.year:04}-{moment.month:02}"
        case common_pb2.PRECISION_WEEK:
            year, week, _ = moment.isocalendar()
            return f"{year:04}-W{week:02}"
        case common_pb2.PRECISION_DAY:
            return moment.date().isoformat()
        case _:
            day = moment.date().isoformat()
            clock = moment.time().replace(microsecond=0).isoformat()
            return day if moment.time() == MIDNIGHT else f"{day} {clock}"
