"""Dates as people type them at a command, and as they are shown."""

from datetime import UTC, datetime, time, timedelta

import typer
from google.protobuf.timestamp_pb2 import Timestamp

from palimpsest.dates import FORMS, Dated, read, timestamp
from palimpsest.v1 import common_pb2

__all__ = ["FORMS", "MIDNIGHT", "Dated", "read_date", "read_known_at", "shown", "timestamp"]

MIDNIGHT = time()


def read_date(text: str) -> Dated:
    """Reads a date; without an offset it is UTC. Raises typer.BadParameter."""
    try:
        return read(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no date; write it like {FORMS}") from error


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
