"""Time zones of requests: an IANA name that this host knows, or nothing."""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway.errors import ValidationFailed, Violation


def check_time_zone(name: str, field: str) -> None:
    """Raises ValidationFailed unless `name` is empty or a known time zone."""
    if name and not is_time_zone(name):
        raise ValidationFailed(Violation(field, "is not a known time zone", "time_zone.known"))


def is_time_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
