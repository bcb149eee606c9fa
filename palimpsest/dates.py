"""Dates as people type them, coarse ones included."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from palimpsest.v1 import common_pb2

FORMS = "2025, 2025-Q3, 2025-03, 2025-W10, 2025-03-31, 2025-03-31T14:00, 2025-03-31T14:00+02:00 or now"

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


def read(text: str) -> Dated:
    """Reads a date; without an offset it is UTC. Raises ValueError."""
    try:
        return _read(text.strip())
    except OverflowError as error:
        raise ValueError("before the year 1 or after 9999 in UTC") from error


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
    return Dated(at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC), common_pb2.PRECISION_INSTANT)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
