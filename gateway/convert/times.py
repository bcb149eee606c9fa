"""Timestamps, precisions and revisions at the public border."""

from google.protobuf.timestamp_pb2 import Timestamp

from palimpsest.internal.v1 import values_pb2 as internal
from palimpsest.v1 import common_pb2 as public
from services.domain.errors import ValidationFailed, Violation
from services.domain.instants import Instant

_NANOS = 1_000
_ANSWER_SECONDS = 0.25
"""What a read may take once its revision is there."""
_LEAST_WAIT_SECONDS = 0.01


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


def known_at_in(message: public.KnownAt, timeout_seconds: float) -> internal.KnownAt:
    """Which knowledge is asked for; an unset message asks for the latest.

    A revision that is to come is waited for while there is time to answer with it.
    """
    known = internal.KnownAt(wait_seconds=max(_LEAST_WAIT_SECONDS, timeout_seconds - _ANSWER_SECONDS))
    match message.WhichOneof("at"):
        case "revision":
            known.revision = message.revision
        case "time":
            known.clock = instant_of(message.time)
    return known


def stamp(revision: int, at: int) -> public.RevisionStamp:
    return public.RevisionStamp(revision=revision, time=timestamp(at))
