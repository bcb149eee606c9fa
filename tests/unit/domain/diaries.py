"""Diaries: worlds told day by day, so that most of what was said is over and done with when more is said."""

from collections.abc import Sequence
from itertools import product

from hypothesis import strategies as st

from services.domain.ids import RecordId, StatementId
from services.domain.instants import Instant, Precision
from services.domain.records import Claim, Denial, End
from tests.unit.domain.given import day
from tests.unit.domain.worlds import OBJECTS, UNKNOWN_SOURCE

_FIRST = day("2023-01-01")
_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
KINDS = (
    *("mention", "open", "seen long", "told late", "of the day"),
    *("bounded", "over", "end", "early end", "denial", "old denial"),
)
Entry = tuple[int, str, StatementId]
"""Days since the entry before, what is said, and of whom."""
_ENTRIES = list(product((0, 1, 2, 4), KINDS, OBJECTS))


def diaries(most: int = 12) -> st.SearchStrategy[list[Claim | End | Denial]]:
    return st.lists(st.sampled_from(_ENTRIES), min_size=1, max_size=most).map(written)


def written(entries: Sequence[Entry]) -> list[Claim | End | Denial]:
    """The records of a diary."""
    found: list[Claim | End | Denial] = []
    at = _FIRST
    for number, (days, kind, of) in enumerate(entries):
        at = Instant(at + days * _DAY)
        found.append(_record(RecordId(f"{number:02}"), kind, of, at))
    return found


def _record(id: RecordId, kind: str, of: StatementId, at: Instant) -> Claim | End | Denial:
    later, long_ago = Instant(at + 3 * _DAY), Instant(at - 5 * _DAY)
    evening = Instant(at + 20 * _HOUR)
    match kind:
        case "mention":
            return Claim(id, of, None, None, at, at, UNKNOWN_SOURCE)
        case "open":
            return Claim(id, of, at, None, at, at, UNKNOWN_SOURCE)
        case "seen long":
            return Claim(id, of, at, None, later, later, UNKNOWN_SOURCE)
        case "told late":
            return Claim(id, of, at, None, later, at, UNKNOWN_SOURCE)
        case "of the day":
            return Claim(id, of, at, None, evening, evening, UNKNOWN_SOURCE, Precision.DAY)
        case "bounded":
            return Claim(id, of, at, later, at, at, UNKNOWN_SOURCE)
        case "over":
            return Claim(id, of, None, at, evening, evening, UNKNOWN_SOURCE)
        case "end":
            return End(id, of, at, at, UNKNOWN_SOURCE)
        case "early end":
            return End(id, of, long_ago, at, UNKNOWN_SOURCE)
        case "denial":
            return Denial(id, of, at, later, later, UNKNOWN_SOURCE)
        case _:
            return Denial(id, of, None, long_ago, at, UNKNOWN_SOURCE)
