"""The host's clock."""

import time

from services.domain.instants import Instant


def clock() -> Instant:
    """Now, in UTC."""
    return Instant(time.time_ns() // 1_000)
