"""Timestamps, precisions and revisions at the public border."""

from google.protobuf.timestamp_pb2 import Timestamp

from palimpsest.internal.v1 import values_pb2 as internal
from palimpsest.v1 import common_pb2 as public
from services.domain.errors import ValidationFailed, Violation
from services.domain.instants import Instant

_NANOS = 1_000


def timestamp(at: int | None) -> Timestamp | None:
    """Epoch microseconds as a Timestamp; None stays None."""
    if at is None:
        return None
    return Timestamp(seconds=at // 1_000_000, nanos=at % 1_000_000 * _NANOS)


def instant_of(time: Timestamp) -> Instant:
    """A Timestamp as epoch microseconds; what is finer is cut off. Raises ValidationFailed for bad nanos."""
    if not 0 <= time.nanos < 1_000_000_000:
        raise ValidationFailed(Violation("nanos", "must be from 0 to 999,999,999", "timestamp.nanos"))
    return Instant(time.seconds * 1_000_000 + time.nanos // _NANOS)


def precision_out(precision: internal.Precision.ValueType) -> public.Precision.ValueType:
    """Internal 0 is an instant; public 0 is 'not said'."""
    return public.Precision.ValueType(int(precision) + 1)


def precision_in(precision: public.Precision.ValueType) -> internal.Precision.ValueType:
    """'Not said' is an instant."""
    return internal.Precision.ValueType(max(0, int(precision) - 1))


def known_at_in(message: public.KnownAt) -> internal.KnownAt:
    """Which knowledge is asked for; an unset message asks for the latest."""
    match message.WhichOneof("at"):
        case "revision":
            return internal.KnownAt(revision=message.revision)
        case "time":
            return internal.KnownAt(clock=instant_of(message.time))
        case _:
            return internal.KnownAt()


def stamp(revision: int, at: int) -> public.RevisionStamp:
    return public.RevisionStamp(revision=revision, time=timestamp(at))
