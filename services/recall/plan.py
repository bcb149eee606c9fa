"""Plan: what a question asks for, read by rules, without a model: names, times, intent, cues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfoNotFoundError

from services.domain import dates
from services.domain.dates import Relation, TimeExpression
from services.domain.graph import Entity
from services.domain.instants import Instant, Interval, Precision, period
from services.domain.scope import Scope
from services.recall.cues import Cues, Intent, PredicateWords, read_cues
from services.recall.hot.reads import GraphReads
from services.recall.mentions import AliasTable, Mention, Named, speaks_of_self
from services.recall.readings import ReadAs

_READ_CHARACTERS = 4_000
"""Dates are looked for in this much of a question."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with what its caller says about it. `user_name` is whom "I" means, "" if not known."""

    query: str
    now: Instant
    time_zone: str = "UTC"
    user_name: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What was read in a question.

    `as_of` is a moment that it names literally ("as of March 2025"); `period` a stretch ("in 2024", "before
    June"): facts that meet it come first.
    """

    mentions: tuple[Mention, ...]
    cues: Cues
    as_of: Instant | None = None
    period: Interval | None = None
    timeless: str = ""
    """The question without the times that it names: what is left to be answered."""

    @property
    def entities(self) -> list[Entity]:
        """Each entity once, in the order of the question."""
        named = {one.id: one.entity for mention in self.mentions for one in mention.entities}
        return list(named.values())

    @property
    def intent(self) -> Intent:
        return self.cues.intent

    @property
    def looks_back(self) -> bool:
        """Whether what has ended may be the answer."""
        return self.intent.looks_back or self.period is not None


def make_plan(asked: Asked, table: AliasTable, predicates: PredicateWords | None) -> Plan:
    """Reads a question. Never raises: what can't be read is not in the plan."""
    mentions = table.mentions(asked.query)
    if speaks_of_self(asked.query):
        mentions += _user(asked, table, mentions)
    times = _times(asked)
    return Plan(
        mentions=tuple(mentions),
        cues=read_cues(asked.query, predicates),
        as_of=_moment(times),
        period=_period(times),
        timeless=_without(asked.query, times),
    )


async def plan_as(graph: GraphReads, scope: Scope, plan: Plan, reads: ReadAs) -> Plan:
    """The plan with what its entities and predicates read as. Raises StoreUnavailable."""
    if not reads.merged:
        return plan
    cues = replace(plan.cues, predicates=frozenset(map(reads.root, plan.cues.predicates)))
    named = {one.id: one for mention in plan.mentions for one in mention.entities}
    roots = sorted({reads.root(id) for id in named} - named.keys())
    if roots:
        for root in await graph.entities(scope, roots):
            named[root.id] = Named(root.id, root.name, root.type, root.key)
    mentions = [
        replace(
            mention, entities=_each_once([named.get(reads.root(one.id), one) for one in mention.entities])
        )
        for mention in plan.mentions
    ]
    return replace(plan, mentions=tuple(mentions), cues=cues)


def _each_once(entities: Sequence[Named]) -> tuple[Named, ...]:
    return tuple({one.id: one for one in entities}.values())


def _user(asked: Asked, table: AliasTable, mentions: Sequence[Mention]) -> list[Mention]:
    """The user as the graph knows them: by name, or as `User` while the name is not known."""
    known = {one.id for mention in mentions for one in mention.entities}
    for name in (asked.user_name, "User"):
        found = tuple(
            one
            for mention in table.mentions(name)
            for one in mention.entities
            if mention.text == one.key and one.id not in known
        )
        if found:
            return [Mention("i", found)]
    return []


def _times(asked: Asked) -> list[TimeExpression]:
    try:
        return dates.find(asked.query[:_READ_CHARACTERS], asked.now, asked.time_zone or "UTC")
    except (ZoneInfoNotFoundError, OverflowError, ValueError):
        # An unknown zone is refused where requests are checked; a date beyond the calendar is no date.
        return []


def _without(query: str, times: Sequence[TimeExpression]) -> str:
    for time in reversed(times):
        query = f"{query[: time.begin]} {query[time.finish :]}"
    return query


def _moment(times: Sequence[TimeExpression]) -> Instant | None:
    """The last instant of the period that "as of ..." names."""
    for time in times:
        if _is_as_of(time) and time.at is not None:
            return Instant(_end_of(time.at, time.precision) - 1)
    return None


def _period(times: Sequence[TimeExpression]) -> Interval | None:
    """The stretch of the first time that is no mere duration and no "as of"."""
    for time in times:
        if time.relation is Relation.FOR or _is_as_of(time) or time.at is None:
            continue
        match time.relation:
            case Relation.AT:
                return Interval(time.start, time.end)
            case Relation.RANGE:
                end = time.end if time.end is None else _end_of(time.end, time.end_precision)
                return Interval(time.start, end)
            case Relation.SINCE:
                return Interval(time.at, None)
            case Relation.AFTER:
                return Interval(_end_of(time.at, time.precision), None)
            case Relation.BEFORE:
                return Interval(None, time.at)
            case Relation.UNTIL:
                return Interval(None, _end_of(time.at, time.precision))
    return None


def _is_as_of(time: TimeExpression) -> bool:
    return time.text.casefold().startswith(("as of", "截至", "截止"))


def _end_of(at: Instant, precision: Precision) -> Instant:
    end = period(at, precision).end
    assert end is not None, "calendar periods are closed"
    return end


def unmatched(hints: Sequence[str], found: Mapping[str, Sequence[Entity]]) -> list[str]:
    """Hints that no entity answers to, in the order given."""
    return [hint for hint in hints if not found.get(hint)]
