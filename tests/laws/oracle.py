"""The oracle of time: the five rules as design and ADR 5 word them, by brute force over a few instants.

Written apart from the kernel, of which it imports nothing. Times are integers; dates are exact.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

EVER, NEVER = float("-inf"), float("inf")
Rivals = Callable[[str, str], bool]


class Claim(NamedTuple):
    of: str
    start: int | None
    end: int | None
    attested: int
    seen: int


class End(NamedTuple):
    of: str
    at: int
    attested: int


class Denial(NamedTuple):
    of: str
    start: int | None
    until: int | None
    attested: int


class Stay(NamedTuple):
    of: str
    start: float
    last: float
    end: float
    attested: int
    seen: int
    bounded: bool
    assumed: bool | None
    """None where the start follows from what is known of others."""


Denied = Callable[[Stay, float], bool]


def holding(
    claims: Sequence[Claim],
    ends: Sequence[End],
    denials: Sequence[Denial],
    rivals: Rivals,
    days: Sequence[float],
) -> Iterator[tuple[float, dict[str, bool]]]:
    """What holds at each of these instants, which must hold EVER and all that the records name.

    And of each whether that is all that is known of its start: it was said to hold, just then.
    """

    def denied(stay: Stay, at: float) -> bool:
        return any(
            (d.of == stay.of and d.attested >= stay.attested)
            and (EVER if d.start is None else d.start) <= at < (NEVER if d.until is None else d.until)
            for d in denials
        )

    stays = list(_stays(claims, ends, denied, rivals, days))
    lapsed: set[Stay] = set()
    for at in days:
        there = [s for s in stays if s.start <= at < s.end and not denied(s, at)]
        there = [s for s in there if at < s.last or s not in lapsed]
        holds: list[Stay] = []
        for stay in sorted(there, key=lambda s: _rank(s, at), reverse=True):
            if not any(rivals(stay.of, other.of) for other in holds):
                holds.append(stay)
        lapsed |= {
            s
            for s in stays
            if s.last <= at and any(rivals(s.of, by.of) and by.start >= s.start for by in holds)
        }
        fresh = [s for s in holds if s.start == at and s.assumed is not None]
        stated = {s.of for s in fresh if not s.assumed}
        yield at, {s.of: s.of not in stated and any(f.of == s.of for f in fresh) for s in holds}


def _rank(stay: Stay, at: float) -> tuple[object, ...]:
    kind = (True, stay.bounded) if at < stay.last else (False, stay.last)
    return *kind, stay.attested, stay.start, stay.of, stay.end, stay.seen


def _stays(
    claims: Iterable[Claim],
    ends: Iterable[End],
    denied: Denied,
    rivals: Rivals,
    days: Sequence[float],
) -> Iterator[Stay]:
    said = [(c, c.attested if c.start is None else c.start) for c in claims]
    past = [c for c, _ in said if c.start is None and c.end is not None and c.end <= c.attested]
    starts = [(c.of, at) for c, at in said if c not in past]
    stops = [*ends, *(End(c.of, c.end, c.attested) for c, _ in said if c.end is not None)]

    def begun(of: str, at: float) -> float:
        return max((start for other, start in starts if other == of and start <= at), default=EVER)

    counting: dict[tuple[str, float], End] = {}
    for stop in sorted(stops, key=lambda s: (s.attested, s.at)):
        counting[stop.of, begun(stop.of, stop.at)] = stop
    known: list[Stay] = []
    over: list[tuple[float, str, int, int, float, bool]] = [
        (s.at, s.of, s.attested, s.attested, s.at, True) for s in ends if begun(s.of, s.at) == EVER
    ]
    end: float
    for claim, start in said:
        if claim in past and claim.end is not None:
            stop = counting[claim.of, begun(claim.of, claim.end)]
            over.append((min(stop.at, claim.end), claim.of, claim.attested, claim.seen, stop.at, True))
            continue
        own: float = NEVER if claim.end is None else claim.end
        vouched = min(claim.attested, claim.seen if claim.start is not None else claim.attested)
        found = [
            s.at
            for s in counting.values()
            if s.of == claim.of
            and (claim.start is None or s.at >= start)
            and (s.attested >= claim.attested or (vouched < claim.attested and s.at >= max(start, vouched)))
        ]
        end = min([*found], default=own)
        if end <= start and claim.start is None:
            over.append((end, claim.of, claim.attested, claim.seen, end, claim.end is not None))
            continue
        last = min(end, max(start, claim.seen), own)
        bounded, assumed = claim.end is not None, claim.start is None
        known.append(Stay(claim.of, start, last, end, claim.attested, claim.seen, bounded, assumed))
    for at in sorted({each[0] for each in over}):
        known += [
            Stay(of, since, min(at, max(since, seen)), end, attested, seen, bounded, None)
            for over_at, of, attested, seen, end, bounded in over
            if over_at == at
            and (since := max(begun(of, at - 1), _last_seen(known, of, at, rivals, denied, days))) < at
        ]
    yield from known


def _last_seen(
    known: Iterable[Stay], of: str, at: float, rivals: Rivals, denied: Denied, days: Sequence[float]
) -> float:
    """The last instant before another at which a rival is asserted."""
    return max(
        (
            following if stay.start <= day < stay.last else day
            for stay in known
            if rivals(of, stay.of)
            for day, following in zip(days, [*days[1:], NEVER], strict=True)
            if day < at
            and (stay.start <= day < stay.last or stay.start == stay.last == day)
            and not denied(stay, day)
        ),
        default=EVER,
    )


def plain(claims: Sequence[Claim], ends: Sequence[End]) -> bool:
    """Whether no two ends of one object lack a start, and no end lies before a later mention it may be of.

    What these mean is told by ADR 5 (holes 2 to 4) and ADR 13 alone, and held to another oracle.
    """
    stops = [*ends, *(End(c.of, c.end, c.attested) for c in claims if c.end is not None)]
    for claim in claims:
        if claim.start is not None:
            continue
        before = [s for s in stops if s.of == claim.of and s.at < claim.attested]
        if claim.end is not None and claim.end <= claim.attested:
            if len(before) > 1:
                return False
            continue
        if before and (len(before) > 1 or before[0] not in ends):
            return False
    past = [c for c in claims if c.start is None and c.end is not None and c.end <= c.attested]
    starts = [(c.of, c.attested if c.start is None else c.start) for c in claims if c not in past]
    loose = [s.of for s in stops if not any(of == s.of and at <= s.at for of, at in starts)]
    return len(loose) == len(set(loose))
