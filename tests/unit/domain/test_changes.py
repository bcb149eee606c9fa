"""What became of a fact between two points, held to the words of the API taken literally."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from services.domain.changes import ChangeKind, belief_change, world_change
from services.domain.graph import Span
from services.domain.ids import RecordId, Revision, SpanId, StatementId
from services.domain.instants import Instant

DAYS = range(-1, 13)
"""Every instant that the oracle looks at; -1 is long ago, 12 the far future."""
LAST_REVISION = 6


def span(start: int | None, end: int | None, known_from: int = 1, known_to: int | None = None) -> Span:
    return Span(
        SpanId(f"{start}-{end}-{known_from}"),
        StatementId("s"),
        None if start is None else Instant(start),
        None if end is None else Instant(end),
        Revision(known_from),
        None if known_to is None else Revision(known_to),
        RecordId("r"),
        None,
    )


@st.composite
def stretches(draw: st.DrawFn) -> list[Span]:
    """Spans that don't overlap, in order; the first may have no start, the last no end."""
    borders = sorted(draw(st.sets(st.integers(0, 11), max_size=6)))
    starts: list[int | None] = list(borders[::2])
    ends: list[int | None] = list(borders[1::2])
    if len(ends) < len(starts):
        ends.append(None)
    unknown: bool = draw(st.booleans())
    if starts and unknown:
        starts[0] = None
    return [span(start, end) for start, end in zip(starts, ends, strict=True)]


def held(spans: Sequence[Span]) -> set[int]:
    """Every instant at which one of them holds."""
    return {
        day
        for day in DAYS
        for one in spans
        if (one.valid_at is None or one.valid_at <= day) and (one.invalid_at is None or day < one.invalid_at)
    }


@given(stretches(), st.integers(0, 11), st.integers(0, 11))
def test_between_two_dates(spans: list[Span], one: int, other: int) -> None:
    before, after = min(one, other), max(one, other)
    days = held(spans)
    expected = None
    if before in days and after not in days:
        expected = ChangeKind.ENDED
    if after in days and before not in days:
        earlier = any(day in days for day in DAYS if day < before)
        expected = ChangeKind.RESTORED if earlier else ChangeKind.ADDED
    change = world_change(spans, Instant(before), Instant(after))
    assert (change.kind if change else None) == expected
    if change is None:
        return
    assert (change.before is None) == (before not in days)
    assert (change.after is None) == (after not in days)
    assert change.before is None or before in held([change.before])
    assert change.after is None or after in held([change.after])


@st.composite
def beliefs(draw: st.DrawFn) -> dict[int, list[Span]]:
    """What is believed at each revision, now and then changed."""
    believed: dict[int, list[Span]] = {}
    now: list[Span] = []
    for revision in range(LAST_REVISION + 1):
        if draw(st.booleans()):
            now = draw(st.just([]) | stretches())
        believed[revision] = now
    return believed


@given(beliefs(), st.integers(0, LAST_REVISION), st.integers(0, LAST_REVISION))
def test_between_two_beliefs(believed: dict[int, list[Span]], one: int, other: int) -> None:
    before, after = min(one, other), max(one, other)
    dates = [[(each.valid_at, each.invalid_at) for each in believed[at]] for at in (before, after)]
    earlier = any(believed[at] for at in range(before))
    expected = None
    match bool(believed[before]), bool(believed[after]):
        case False, True:
            expected = ChangeKind.RESTORED if earlier else ChangeKind.ADDED
        case True, False:
            expected = ChangeKind.EXPIRED
        case True, True if dates[0] != dates[1]:
            expected = ChangeKind.REDATED
    change = belief_change(believed[before], believed[after], earlier)
    assert (change.kind if change else None) == expected
    if change is not None:
        assert (change.before in believed[before]) == bool(believed[before])
        assert (change.after in believed[after]) == bool(believed[after])
