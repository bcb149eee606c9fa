"""The oracle: what holds at each instant, by brute force from the definition (docs/adr/0005 and 0013).

Written apart from the kernel and sharing nothing with it; slow and plain, so that it can be checked by eye.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.domain.instants import Precision, period
from services.domain.records import Claim, Denial, End

INF = float("inf")


@dataclass(frozen=True)
class Said:
    """A record's stay: [start, end), asserted before `last`."""

    of: str
    start: float
    last: float
    end: float
    attested: float
    seen: float
    bounded: bool
    record: str


@dataclass(frozen=True)
class Stop:
    """An object stopped at `at`."""

    of: str
    at: float
    attested: float
    precision: int
    record: str
    by_claim: bool
    whole_since: float | None = None
    """The start, where the claim that states this end states one too."""


def bounds(at: int, precision: Precision) -> tuple[float, float]:
    whole = period(at, precision)  # type: ignore[arg-type]  # instants are integers here
    assert whole.start is not None
    assert whole.end is not None
    return (at, at) if precision is Precision.INSTANT else (whole.start, whole.end)


class Oracle:
    def __init__(
        self,
        claims: Sequence[Claim],
        ends: Sequence[End],
        denials: Sequence[Denial],
        contradicts: Callable[[str, str], bool],
        alone: bool = False,
    ) -> None:
        self.all, self.denials, self.contradicts = list(claims), list(denials), contradicts
        self.first = None if alone else Oracle(claims, ends, denials, contradicts, alone=True)
        """With coarse starts at the first instant of their periods."""
        self.memo: dict[str, float] = {}
        self.claims = [c for c in claims if c.start is None or self.own_end(c) >= self.start(c)]
        self.stops = [
            Stop(c.statement, self.own_end(c), c.attested_at, c.end_precision, c.id, True, since)
            for c in self.claims
            for since in [None if c.start is None else self.start(c)]
            if c.end is not None
        ]
        self.stops += [
            Stop(e.statement, self.coarse(e.at, e.precision, at), e.attested_at, e.precision, e.id, False)
            for e in ends
            for at in [self.starts(e.statement)]
        ]
        self.objects = sorted({c.statement for c in claims} | {e.statement for e in ends})
        self.known = [said for c in self.claims if (said := self.of_known_start(c)) is not None]
        self.cells = self.elementary()
        self.said = self.known + self.of_unknown_start()

    # Rule 5: what times mean.

    def start(self, claim: Claim) -> float:
        if claim.start is None:
            return claim.attested_at
        if claim.id not in self.memo:
            self.memo[claim.id] = min(self.finer(claim), default=self.begun(claim))
        return self.memo[claim.id]

    def finer(self, claim: Claim) -> list[float]:
        """Starts of the same object inside the period that a claim names."""
        assert claim.start is not None
        first, after = bounds(claim.start, claim.start_precision)
        until = INF if claim.end is None else bounds(claim.end, claim.end_precision)[1]
        return [
            at
            for other in self.all
            if other.statement == claim.statement
            and other.start is not None
            and other.start_precision < claim.start_precision
            for at in [self.start(other)]
            if first <= at < after and at < until
        ]

    def begun(self, claim: Claim) -> float:
        """A start in a period that has no finer one: after what was seen there and can have come before."""
        assert claim.start is not None
        first, after = bounds(claim.start, claim.start_precision)
        if self.first is None or claim.start_precision is Precision.INSTANT:
            return first
        together = [
            c
            for c in self.first.claims
            if (c.statement, c.start_precision) == (claim.statement, claim.start_precision)
            and c.start is not None
            and bounds(c.start, c.start_precision)[0] == first
        ]
        own = [said for said in self.first.known if said.record in {c.id for c in together}]
        if not own or any(said.end <= after for said in own):
            return first
        mentions = [
            c.attested_at
            for c in self.all
            if c.statement == claim.statement and c.start is None and not self.past(c)
        ]
        known_by = [c.seen if c.seen > first else c.attested_at for c in together] + mentions
        by = min([after - 1] + [at for at in known_by if at >= first])
        vouched = any(c.seen > first for c in together)
        known = [
            until
            for said in self.first.said
            if self.contradicts(claim.statement, said.of)
            for until in self.first.sightings(said, first, vouched)
        ]
        return max([until for until in known if first < until <= by], default=first)

    def sightings(self, said: Said, first: float, vouched: bool) -> list[float]:
        """Until when a stay is known to have held, where that tells of a rival that began after `first`."""
        claim = next((c for c in self.claims if c.id == said.record), None)
        inside = said in self.known and claim is not None and claim.start is not None and said.start >= first
        if inside and (not vouched or said.bounded or said.start == first):
            return []
        found = []
        if said.end < INF and not self.denied_up_to(said.of, said.attested, said.end):
            found.append(said.end)
        gone = self.denied if said.start == said.last else self.denied_up_to
        seen = said in self.known or said.start < said.last
        if seen and said.last < said.end and not gone(said.of, said.attested, said.last):
            found.append(said.last + 1)
            if inside and said.start == said.last and claim is not None:
                found += self.end_of_beginning(claim)
        return found

    def end_of_beginning(self, claim: Claim) -> list[float]:
        """The end of the finest period by which a claim's start is known, unless that is exact."""
        at = self.start(claim)
        finest = min(
            c.start_precision
            for c in self.all
            if c.statement == claim.statement and c.start is not None and self.start(c) == at
            if c.start_precision <= claim.start_precision
        )
        return [] if finest is Precision.INSTANT else [bounds(int(at), finest)[1]]

    def past(self, claim: Claim) -> bool:
        """No start, and over before it was said."""
        return (
            claim.start is None
            and claim.end is not None
            and bounds(claim.end, claim.end_precision)[1] <= claim.attested_at
        )

    def starts(self, of: str, assumed_only: bool = False) -> set[float]:
        known = self.all if assumed_only else self.claims
        return {
            self.start(c)
            for c in known
            if c.statement == of and not self.past(c) and (c.start is None or not assumed_only)
        }

    def coarse(self, at: int, precision: Precision, starts: set[float]) -> float:
        first, after = bounds(at, precision)
        return after if any(first <= start < after for start in starts) else first

    def own_end(self, claim: Claim) -> float:
        if claim.end is None:
            return INF
        if claim.start is None:
            return self.coarse(claim.end, claim.end_precision, self.starts(claim.statement))
        inside = self.starts(claim.statement, assumed_only=True) | {self.start(claim)}
        return self.coarse(claim.end, claim.end_precision, inside)

    # Rule 1: which end ends which claim.

    def start_of(self, stop: Stop) -> float:
        """The last start at or before an end; -INF for a loose one."""
        return max([at for at in self.starts(stop.of) if at <= stop.at], default=-INF)

    def counting(self, stops: Sequence[Stop]) -> Stop:
        return max(stops, key=lambda stop: (stop.attested, -stop.precision, stop.at))

    def counting_placed(self, of: str) -> list[Stop]:
        """For each start of an object the end that counts."""
        mine = [stop for stop in self.stops if stop.of == of and self.start_of(stop) > -INF]
        return [
            self.counting([s for s in mine if self.start_of(s) == at])
            for at in {self.start_of(s) for s in mine}
        ]

    def first_told(self, stop: Stop) -> float:
        return min(s.attested for s in self.stops if (s.of, s.at) == (stop.of, stop.at))

    def ends_mention(self, stop: Stop, claim: Claim) -> bool:
        """Whether an end that counts for a start ends a claim that gives none."""
        made = claim.attested_at
        if stop.at >= made or stop.attested < made:
            return stop.attested >= made
        same = [s for s in self.stops if s.of == stop.of and self.start_of(s) == self.start_of(stop)]
        if any(s.whole_since is None for s in same):
            return any(s.whole_since is None and self.first_told(s) >= made for s in same)
        known_open = any(
            c.statement == stop.of and c.start is not None and c.end is None and c.attested_at <= made
            for c in self.claims
            if self.start(c) in {s.whole_since for s in same}
        )
        return known_open and all(s.attested >= made for s in same)

    def ends_unbegun(self, claim: Claim) -> bool:
        """Whether ends that belong to no start end a claim that gives none."""
        return any(self.first_told(stop) >= claim.attested_at for stop in self.loose(claim.statement))

    def endings(self, claim: Claim, loose: Sequence[Stop]) -> list[float]:
        """The ends that a claim without start may have, of those that count."""
        found = [s.at for s in self.counting_placed(claim.statement) if self.ends_mention(s, claim)]
        if self.ends_unbegun(claim):
            found += [s.at for s in loose if s.attested >= claim.attested_at]
        return found

    def overruled(self, claim: Claim) -> bool:
        """A claim without start that is said to have been out of date when it was made."""
        if claim.start is not None or self.past(claim):
            return False
        return min(self.endings(claim, self.loose(claim.statement)), default=INF) <= claim.attested_at

    def of_known_start(self, claim: Claim) -> Said | None:
        if self.past(claim) or self.overruled(claim):
            return None
        start, own = self.start(claim), self.own_end(claim)
        narrates = claim.start is not None and claim.seen < claim.attested_at
        ending = [
            stop.at
            for stop in self.counting_placed(claim.statement)
            if stop.at >= start
            and (stop.attested >= claim.attested_at or (narrates and stop.at >= max(start, claim.seen)))
        ]
        return self.stay(claim, start, min(ending, default=own))

    def stay(self, claim: Claim, start: float, end: float) -> Said:
        last = min(end, max(start, claim.seen), self.own_end(claim))
        return Said(
            claim.statement, start, last, end, claim.attested_at, claim.seen, claim.end is not None, claim.id
        )

    def loose(self, of: str) -> list[Stop]:
        """Ends of an object that belong to no start."""
        return [stop for stop in self.stops if stop.of == of and self.start_of(stop) == -INF]

    def known_until(self) -> list[tuple[str, float, float]]:
        """(object, until, attested): that it held until then, although since when is unknown."""
        points = [(s.of, s.at, s.attested) for of in self.objects for s in self.loose(of)]
        for claim in self.claims:
            of = claim.statement
            if self.past(claim):
                points.append((of, self.own_end(claim), claim.attested_at))
            elif self.overruled(claim):
                points.append((of, min(self.endings(claim, self.loose(of))), claim.attested_at))
        return points

    def between(self, of: str, at: float) -> float:
        """Tells loose ends apart: the last instant before `at` at which a rival is known to have held."""
        rivals = [
            until
            for other, until, attested in self.known_until()
            if until < at and self.contradicts(of, other) and not self.denied_up_to(other, attested, until)
        ]
        return max([self.last_asserted(of, at, self.known), *rivals])

    def counting_loose(self, of: str) -> list[Stop]:
        mine = self.loose(of)
        keys = {stop: self.between(of, stop.at) for stop in mine}
        return [self.counting([s for s in mine if keys[s] == key]) for key in set(keys.values())]

    def over(self) -> list[tuple[float, float, Claim | Stop, float]]:
        """(anchor, floor, what says it, end) of each stay of unknown start that was over at `anchor`."""
        found: list[tuple[float, float, Claim | Stop, float]] = []
        for of in self.objects:
            ends = {stop.at for stop in self.counting_loose(of)}
            found += [(s.at, -INF, s, s.at) for s in self.loose(of) if not s.by_claim and s.at in ends]
        for claim in self.claims:
            of = claim.statement
            if self.past(claim):
                own = next(stop for stop in self.stops if stop.record == claim.id)
                same = [s for s in self.stops if s.of == of and self.start_of(s) == self.start_of(own)]
                if self.start_of(own) == -INF:
                    same = [s for s in same if self.between(of, s.at) == self.between(of, own.at)]
                end = self.counting(same).at
                anchor = min(own.at, end)
            elif self.overruled(claim):
                end = anchor = min(self.endings(claim, self.counting_loose(of)))
            else:
                continue
            floor = max([at for at in self.starts(of) if at < anchor], default=-INF)
            found.append((anchor, floor, claim, end))
        return found

    def of_unknown_start(self) -> list[Said]:
        over = self.over()
        found: list[Said] = []
        for anchor in sorted({each[0] for each in over}):
            together = []
            for _, floor, what, end in [each for each in over if each[0] == anchor]:
                of = what.of if isinstance(what, Stop) else what.statement
                start = max(self.last_asserted(of, anchor, self.known + found), floor)
                if start < anchor and isinstance(what, Stop):
                    last = min(end, max(start, what.attested))
                    together.append(
                        Said(of, start, last, end, what.attested, what.attested, True, what.record)
                    )
                elif start < anchor and isinstance(what, Claim):
                    together.append(self.stay(what, start, end))
            found += together
        return found

    # Denials, and what is asserted when.

    def denied(self, of: str, attested: float, at: float) -> bool:
        return any(
            d.statement == of
            and d.attested_at >= attested
            and (-INF if d.start is None else d.start) <= at < (INF if d.until is None else d.until)
            for d in self.denials
        )

    def denied_up_to(self, of: str, attested: float, at: float) -> bool:
        return any(
            d.statement == of
            and d.attested_at >= attested
            and (-INF if d.start is None else d.start) < at <= (INF if d.until is None else d.until)
            for d in self.denials
        )

    def last_asserted(self, of: str, before: float, said: Sequence[Said]) -> float:
        latest = -INF
        for each in said:
            if not self.contradicts(of, each.of):
                continue
            if each.start == each.last < before and not self.denied(each.of, each.attested, each.last):
                latest = max(latest, each.last)
            for at, next_at in zip(self.cells, [*self.cells[1:], INF], strict=True):
                if each.start <= at < min(each.last, before) and not self.denied(each.of, each.attested, at):
                    latest = max(latest, min(next_at, before))
        return latest

    def elementary(self) -> list[float]:
        found: set[float] = {-INF}
        for claim in self.claims:
            found |= {self.start(claim), self.own_end(claim), claim.attested_at, claim.seen}
        found |= {stop.at for stop in self.stops} | {stop.attested for stop in self.stops}
        for denial in self.denials:
            found |= {at for at in (denial.start, denial.until) if at is not None}
        return sorted(found - {INF})

    # Rules 2 to 4: what holds.

    def holding(self) -> list[tuple[float, list[str], list[Said]]]:
        """For each elementary instant the objects that hold, best rank first, and their claims that do."""
        lapsed: set[Said] = set()
        answer = []
        for at in self.cells:
            there = [
                s for s in self.said
                if s.start <= at < s.end
                and not self.denied(s.of, s.attested, at)
                and not (at >= s.last and s in lapsed)
            ]  # fmt: skip

            def rank(s: Said, at: float = at) -> tuple[object, ...]:
                kind = (1, s.bounded) if at < s.last else (0, s.last)
                return (*kind, s.attested, s.start, s.of, s.end, s.seen)

            holds: list[Said] = []
            for each in sorted(there, key=rank, reverse=True):
                if not any(self.contradicts(each.of, other.of) for other in holds):
                    holds.append(each)
            for each in self.said:
                if each.last <= at and any(
                    self.contradicts(each.of, other.of) and other.start >= each.start for other in holds
                ):
                    lapsed.add(each)
            answer.append((at, list(dict.fromkeys(s.of for s in holds)), holds))
        return answer
