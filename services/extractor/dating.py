"""Dating: what an engine says of times, checked against the words it quotes, by rules.

Pure. Three things are done, and only where the words are plain (one clause, one time, one reading):
a time that an engine left in words gets its instant; a date that can't be what the quoted words mean gives
way to them; a fact whose sentence and quote name one time but whose start or end was left out gets it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from services.domain.dates import Prefer, Relation, TimeExpression, find, read
from services.domain.facts import FactKind, StatedTime, Turn, WorldFact
from services.domain.instants import Interval, Precision, period
from services.llm.tasks import Setting

OVERRULED = "a date was not what the quoted words mean: the words were believed"
SURE = 0.7
"""Confidence in a reading that may correct an engine."""
_MAX_QUOTE = 400
_JOINED = re.compile(
    r"[,;:，；：、。]|\b(?:and|but|or|which|who|that|when|while|before|after|because|then|since|until|so)\b"
    r"|而|但|并|然后|后来|因为|所以|当时|的时候",
    re.IGNORECASE,
)
"""What joins clauses: a time of one need not be that of the other."""


@dataclass(frozen=True, slots=True)
class Dated:
    """Facts in the order given, and what had to be corrected."""

    facts: tuple[WorldFact, ...]
    warnings: tuple[str, ...] = ()


class Dating:
    """Checks the times of facts that were drawn from one chunk."""

    def __init__(self, turns: Iterable[Turn], setting: Setting) -> None:
        self._said_at = {
            turn.position: setting.reference_time if turn.said_at is None else turn.said_at for turn in turns
        }
        self._zone = _zone(setting.time_zone)

    def check(self, facts: Sequence[WorldFact]) -> Dated:
        checked: list[WorldFact] = []
        overruled = False
        for fact in facts:
            spelled = self._spelled_out(fact)
            dated = self._by_its_words(spelled)
            overruled = overruled or _differs(spelled, dated)
            checked.append(dated)
        return Dated(tuple(checked), (OVERRULED,) if overruled else ())

    def _spelled_out(self, fact: WorldFact) -> WorldFact:
        """With instants for times that stand in words."""
        return replace(
            fact,
            start=self._read(fact.start, fact.turn),
            end=self._read(fact.end, fact.turn),
            seen=self._read(fact.seen, fact.turn),
        )

    def _read(self, time: StatedTime | None, turn: int) -> StatedTime | None:
        if time is None or time.at is not None or not time.text.strip():
            return time
        found = read(time.text[:_MAX_QUOTE], self._said_at[turn], self._zone)
        if found is None or found.at is None or found.confidence < SURE or found.relation is Relation.FOR:
            return time
        return StatedTime(time.text, found.at, found.precision)

    def _by_its_words(self, fact: WorldFact) -> WorldFact:
        if fact.kind is FactKind.DENIAL:
            return fact
        said = self._only_time(fact.quote, fact.turn)
        if said is None or said.at is None or said.relation in {Relation.RANGE, Relation.AFTER}:
            return fact
        ends = fact.kind is FactKind.END or said.relation in {Relation.UNTIL, Relation.BEFORE}
        stated = fact.end if ends else fact.start
        ours = StatedTime(said.text, said.at, said.precision)
        if stated is None:
            told = ours if self._tells(fact, said) else None
        else:
            told = ours if stated.at is not None and _is_wrong(stated, ours) else stated
        if told is stated or told is None:
            return fact
        if ends:
            return replace(fact, end=told)
        narrated = fact.seen is None and stated is None and said.relation is Relation.AT
        moved = fact.seen is not None and stated is not None and fact.seen.at == stated.at
        return replace(fact, start=told, seen=told if narrated or moved else fact.seen)

    def _only_time(self, quote: str, turn: int) -> TimeExpression | None:
        """The one time of a quote that is one clause, if it is the same looking back and looking ahead."""
        at = self._said_at[turn]
        found = find(quote[:_MAX_QUOTE], at, self._zone)
        if len(found) != 1 or found != find(quote[:_MAX_QUOTE], at, self._zone, Prefer.FUTURE):
            return None
        (time,) = found
        before, after = quote[: time.begin].strip(), quote[time.finish :].strip(" .。!！")
        rest = f"{before} {after}" if before else after.lstrip(",， ")  # "Last week, I moved" is one clause
        plain = time.confidence >= SURE and time.relation is not Relation.FOR and not _JOINED.search(rest)
        return time if plain else None

    def _tells(self, fact: WorldFact, said: TimeExpression) -> bool:
        """True when the fact's own sentence names the time too, and it is not now."""
        at = self._said_at[fact.turn]
        told = find(fact.fact[:_MAX_QUOTE], at, self._zone)
        if len(told) != 1 or told[0].at is None or said.at is None:
            return False
        if (
            said.relation is Relation.AT
            and Interval(said.start, said.end).contains(at)
            and said.precision > Precision.DAY
        ):
            return False  # "this year I work on Beta": since when is not told
        return _whole(told[0]).meets(_whole(said))


def _differs(one: WorldFact, other: WorldFact) -> bool:
    """True when a time that the first states is another in the second."""
    pairs = ((one.start, other.start), (one.end, other.end))
    return any(stated is not None and stated != checked for stated, checked in pairs)


def _whole(time: TimeExpression) -> Interval:
    if time.relation is Relation.AT:
        return Interval(time.start, time.end)
    assert time.at is not None, "an expression has a start or an end"
    return period(time.at, time.precision)


def _is_wrong(stated: StatedTime, ours: StatedTime) -> bool:
    """True when the two can't both be, or the engine made a day of what is a longer period's first."""
    assert stated.at is not None
    assert ours.at is not None
    apart = not period(stated.at, stated.precision).meets(period(ours.at, ours.precision))
    invented = stated.at == ours.at and stated.precision < ours.precision
    return apart or invented


def _zone(name: str) -> str:
    """A zone that is not known is refused where requests are checked; here it is UTC."""
    try:
        ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return "UTC"
    return name or "UTC"
