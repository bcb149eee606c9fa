"""Stays of unknown start: what is known to have ended, without a word of when it began (rule 1)."""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from services.domain.ids import StatementId
from services.domain.kernel.lives import Life, counting_end, earliest_ends
from services.domain.kernel.rivals import Rivals
from services.domain.kernel.stays import BEFORE, Denied, Ending, Stay, begun_at, stay_of
from services.domain.records import Claim


class _Latest(NamedTuple):
    """The latest instant, whose it is, and the latest of anybody else."""

    at: int = BEFORE
    of: StatementId | None = None
    other: int = BEFORE

    def with_(self, at: int, of: StatementId) -> "_Latest":
        if at <= self.other or (of == self.of and at <= self.at):
            return self
        if of == self.of:
            return _Latest(at, of, self.other)
        return _Latest(at, of, self.at) if at > self.at else _Latest(self.at, self.of, at)

    def but_of(self, object: StatementId) -> int:
        return self.other if object == self.of else self.at


_NEVER: Final = _Latest()
_START: Final = itemgetter(0)
_Part = tuple[int, int, StatementId]
"""An object is asserted in [start, end); if that is empty, at its instant."""


class Evidence:
    """When objects are asserted, asked for the last instant before another at which a rival was."""

    def __init__(self, rivals: Rivals, objects: Iterable[StatementId], parts: Iterable[_Part]) -> None:
        self._rivals = rivals
        self._by_object = bool(rivals.exempt or rivals.judged)
        """Whether anybody is asked about but for a whole slot."""
        self._parts: dict[StatementId, list[_Part]] = {object: [] for object in objects}
        for part in parts:
            self._parts[part[2]].append(part)
        self._members: dict[Hashable, list[StatementId]] = {}
        for object in self._parts:
            self._members.setdefault(rivals.slot(object), []).append(object)
        self._sorted: dict[Hashable, tuple[list[int], list[_Latest]]] = {}
        self._recent: dict[Hashable, _Latest] = {}

    def note_earlier(self, object: StatementId, end: int) -> None:
        """Between questions, which then come in order of time: the object was asserted up to `end`."""
        keys: list[Hashable] = [("slot", self._rivals.slot(object))]
        if self._by_object:
            keys.append(("object", object))
        for key in keys:
            self._recent[key] = self._recent.get(key, _NEVER).with_(end, object)

    def last_before(self, object: StatementId, at: int) -> int:
        """BEFORE when no rival was ever asserted before `at`; at most `at`."""
        slot = self._rivals.slot(object)
        exempt = self._rivals.exempt.get(object)
        latest = BEFORE
        if exempt:
            for other in self._members[slot]:
                if other != object and other not in exempt:
                    latest = max(latest, self._last(("object", other), [other], object, at))
        else:
            latest = self._last(("slot", slot), self._members[slot], object, at)
        for other in self._rivals.judged.get(object, ()):
            if other in self._parts:
                latest = max(latest, self._last(("object", other), [other], object, at))
        return latest

    def _last(self, key: Hashable, members: Sequence[StatementId], but: StatementId, at: int) -> int:
        if key not in self._sorted:
            parts = [part for member in members for part in self._parts[member]]
            parts.sort(key=_START)
            latest, running = [], _NEVER
            for _, end, member in parts:
                if end > running.other:
                    running = running.with_(end, member)
                latest.append(running)
            self._sorted[key] = [start for start, _, _ in parts], latest
        starts, latest = self._sorted[key]
        position = bisect_left(starts, at)
        known = latest[position - 1].but_of(but) if position else BEFORE
        return min(at, max(known, self._recent.get(key, _NEVER).but_of(but)))


class _Ended(NamedTuple):
    """A stay that is over at `anchor`, before its start is worked out; it begins no earlier than `floor`."""

    anchor: int
    floor: int
    stay: Stay


def unknown_starts(
    lives: Mapping[StatementId, Life],
    settled: Mapping[StatementId, Iterable[Stay]],
    rivals: Rivals,
    denied: Denied,
) -> list[Stay]:
    """The stays whose start is unknown: from the last asserted instant of a rival before their end, if any.

    `settled` are the stays of known start of all objects, `lives` those objects that can have others. Each
    object's own earlier start is as good a bound as a rival.
    """
    parts = [
        (*part, stay.object)
        for stays_of in settled.values()
        for stay in stays_of
        for part in denied.left_of(stay.object, stay.attested_at, stay.start, stay.last)
    ]
    evidence = Evidence(rivals, settled, parts)
    loose = _counting_loose_ends(lives, evidence, Evidence(rivals, settled, _points(lives, denied)))
    ended = [each for life in lives.values() for each in _ended(life, loose[life.object])]
    ended.sort(key=lambda each: each.anchor)
    stays: list[Stay] = []
    for anchor, together in groupby(ended, key=lambda each: each.anchor):
        begun = [
            begun_at(each.stay, start, min(each.stay.end, max(start, each.stay.seen), each.stay.last))
            for each in together
            if (start := max(evidence.last_before(each.stay.object, anchor), each.floor)) < anchor
        ]
        for stay in begun:
            for _, end in denied.left_of(stay.object, stay.attested_at, stay.start, stay.last):
                evidence.note_earlier(stay.object, end)
        stays += begun
    return stays


def _counting_loose_ends(
    lives: Mapping[StatementId, Life], asserted: Evidence, known: Evidence
) -> dict[StatementId, dict[int, Ending]]:
    """For each object, the instants of its ends without a start, each with the end that counts there.

    Two such ends are of one stay unless a rival was asserted, or known to have held, between them.
    """
    counting: dict[StatementId, dict[int, Ending]] = {}
    for life in lives.values():
        stays: dict[int, list[Ending]] = {}
        for ending in life.loose:
            of, at = life.object, ending.at
            stays.setdefault(max(asserted.last_before(of, at), known.last_before(of, at)), []).append(ending)
        counting[life.object] = {
            ending.at: last
            for endings in stays.values()
            for last in [counting_end(endings)]
            for ending in endings
        }
    return counting


def _points(lives: Mapping[StatementId, Life], denied: Denied) -> list[_Part]:
    """The ends of what held nobody knows since when, unless that is denied."""
    return [
        (at, at, life.object)
        for life in lives.values()
        for at, attested_at in _known_ends(life)
        if not denied.before(life.object, attested_at, at)
    ]


def _known_ends(life: Life) -> Iterable[tuple[int, int]]:
    """Until when an object held although no start of it is known, and when that was said."""
    for ending in life.loose:
        yield ending.at, ending.attested_at
    for claim in life.past:
        yield life.own_end(claim), claim.attested_at
    for claim, ending in _overruled(life, ()):
        if claim.attested_at > life.loose_news:
            yield ending.at, claim.attested_at


def _overruled(life: Life, loose: Iterable[Ending]) -> list[tuple[Claim, Ending]]:
    """The claims that were made after their stay had ended, with the earliest end that says so."""
    attested = [claim.attested_at for claim, _ in life.overruled]
    unbegun = earliest_ends(loose, attested, [BEFORE] * len(attested))
    found: list[tuple[Claim, Ending]] = []
    for (claim, begun), other in zip(life.overruled, unbegun, strict=True):
        # An end that belongs to no start lies before all that belong to one.
        ending = begun if other is None or claim.attested_at > life.loose_news else other
        if ending is not None:
            found.append((claim, ending))
    return found


def _ended(life: Life, loose: Mapping[int, Ending]) -> Iterable[_Ended]:
    counting = {ending.at: ending for ending in loose.values()}
    for ending in counting.values():
        for alike in life.alike(ending):
            if not alike.of_claim:
                yield _of_end(life, alike)
    for claim in life.past:
        own = life.own_end(claim)
        start = life.start_of(own)
        ending = loose[own] if start is None else life.counting[start]
        yield _of_claim(life, claim, ending, min(own, ending.at))
    for claim, ending in _overruled(life, counting.values()):
        yield _of_claim(life, claim, ending, ending.at)


def _of_end(life: Life, ending: Ending) -> _Ended:
    at, attested_at = ending.at, ending.attested_at
    cause = life.cause(ending, attested_at)
    return _Ended(
        at,
        BEFORE,
        stay_of(
            (
                ending.record,
                life.object,
                BEFORE,
                at,
                at,
                attested_at,
                attested_at,
                True,
                False,
                None,
                cause,
            )
        ),
    )


def _of_claim(life: Life, claim: Claim, ending: Ending, anchor: int) -> _Ended:
    earlier = bisect_left(life.starts, anchor)
    cause = life.cause(ending, claim.attested_at)
    return _Ended(
        anchor,
        life.starts[earlier - 1] if earlier else BEFORE,
        stay_of(
            (
                claim.id,
                life.object,
                BEFORE,
                anchor,
                ending.at,
                claim.attested_at,
                claim.seen,
                claim.end is not None,
                False,
                None,
                cause,
            )
        ),
    )
