"""When a draft holds: the times of its sentence, given to its clause, as start, end and seen.

`seen` (02-time): a text speaks of the present unless it narrates. A beginning ("moved to Oslo") speaks of the
present result when it is told in the perfect, undated, or dated within a year before it is said; an older one
narrates, and vouches for its start alone. Events and past states always narrate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from services.domain.dates import Prefer, Relation, TimeExpression, find
from services.domain.facts import FactKind, StatedTime
from services.domain.instants import Instant, Precision
from services.llm.offline.clauses import Clause, Tense, Turn
from services.llm.offline.drafts import Draft, Nature
from services.llm.offline.lexicon import lexicon

if TYPE_CHECKING:
    from spacy.tokens import Doc

_YEAR = 366 * 86_400 * 1_000_000
"""Microseconds: how old the news of a beginning may be and still speak of the present."""
_PAST = frozenset({Tense.PAST, Tense.PERFECT})


@dataclass(frozen=True, slots=True)
class Times:
    """The times of one sentence by the position of the verb they belong to, and the tokens that tell them."""

    of_verb: dict[int, list[TimeExpression]]
    of_token: dict[int, TimeExpression]
    said_at: Instant

    @property
    def tokens(self) -> frozenset[int]:
        return frozenset(self.of_token)

    def dated(self, clauses: Sequence[Clause]) -> frozenset[int]:
        """The verbs that have a time; a mere duration in the past ("worked there for years") is none."""
        return frozenset(
            clause.verb.i
            for clause in clauses
            if any(
                time.relation is not Relation.FOR or clause.tense is not Tense.PAST
                for time in self.of_verb.get(clause.verb.i, [])
            )
        )


@dataclass(frozen=True, slots=True)
class When:
    """The times of a fact, as in WorldFact."""

    start: StatedTime | None = None
    end: StatedTime | None = None
    seen: StatedTime | None = None


def times_of(doc: "Doc", clauses: Sequence[Clause], said_at: Instant, time_zone: str) -> Times:
    """Finds the sentence's times; a sentence of plans looks ahead."""
    ahead = bool(clauses) and all(clause.tense in {Tense.FUTURE, Tense.PROGRESSIVE} for clause in clauses)
    found = find(doc.text, said_at, time_zone, Prefer.FUTURE if ahead else Prefer.PAST)
    of_token: dict[int, TimeExpression] = {}
    of_verb: dict[int, list[TimeExpression]] = {}
    verbs = {clause.verb.i: clause for clause in clauses}
    for time in found:
        span = doc.char_span(time.begin, time.finish, alignment_mode="expand")
        if span is None:
            continue
        of_token |= dict.fromkeys((token.i for token in span), time)
        at = span.root
        while at.i not in verbs and at.head.i != at.i:
            at = at.head
        if at.i in verbs:
            of_verb.setdefault(at.i, []).append(time)
        elif len(verbs) == 1:
            of_verb.setdefault(next(iter(verbs)), []).append(time)
    if len(found) == 1:
        _share(of_verb, verbs)
    return Times(of_verb, of_token, said_at)


def _share(of_verb: dict[int, list[TimeExpression]], verbs: dict[int, Clause]) -> None:
    """Gives "left Google and joined Meta in March" one time: for verbs joined by "and" and told alike.

    In "lived in Paris and moved to Rome in March" they aren't: the state was over when the date began.
    """
    is_state = lexicon().tells_state
    for position, times in list(of_verb.items()):
        dated = verbs[position]
        if times[0].relation is not Relation.AT or dated.tense not in _PAST:
            continue
        for other, clause in verbs.items():
            joined = clause.verb.head.i == position or dated.verb.head.i == other
            alike = clause.tense in _PAST and (is_state(dated.lemma) or not is_state(clause.lemma))
            if joined and alike and other not in of_verb:
                of_verb[other] = times


def when(draft: Draft, times: Times) -> When:
    """The times of a draft, read from those of its clause."""
    own = [] if draft.timeless else times.of_verb.get(draft.clause.verb.i, [])
    clause = draft.clause
    manner = Manner(draft.kind, draft.nature, clause.tense, clause.turn is Turn.BEGAN, clause.never)
    return told(manner, own[0] if own else None, times.said_at)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a clause tells its fact, in whatever language."""

    kind: FactKind
    nature: Nature
    tense: Tense
    began: bool = False
    never: bool = False


def told(manner: Manner, time: TimeExpression | None, said_at: Instant) -> When:
    """The times of a fact that is told in this manner, with the time that belongs to it."""
    match manner.kind:
        case FactKind.END:
            return _of_end(time)
        case FactKind.DENIAL:
            return _of_denial(manner, time, said_at)
        case FactKind.CLAIM:
            return _of_claim(manner, time, said_at)


def _start(time: TimeExpression) -> StatedTime:
    return StatedTime(time.text, time.start, time.precision)


def _end(time: TimeExpression) -> StatedTime:
    return StatedTime(time.text, time.end, time.end_precision)


def _of_end(time: TimeExpression | None) -> When:
    if time is None or time.relation is Relation.FOR:
        return When()
    if time.relation in {Relation.UNTIL, Relation.BEFORE, Relation.RANGE}:
        return When(end=_end(time))
    return When(end=_start(time))


def _of_denial(manner: Manner, time: TimeExpression | None, said_at: Instant) -> When:
    if time is not None and time.relation in {Relation.AT, Relation.RANGE}:
        return When(_start(time), _end(time))
    if manner.never or manner.tense not in {Tense.PRESENT, Tense.PROGRESSIVE}:
        return When()
    return When(StatedTime("", said_at, Precision.INSTANT))


def _of_claim(manner: Manner, time: TimeExpression | None, said_at: Instant) -> When:
    if time is None:
        return When()
    if time.relation is Relation.FOR:
        lasting = manner.tense is not Tense.PAST and manner.nature is Nature.STATE
        return When(_start(time)) if lasting and not manner.began else When()
    if time.relation in {Relation.UNTIL, Relation.BEFORE}:
        return When() if manner.nature is Nature.EVENT else When(end=_end(time))
    start = _start(time)
    end = _end(time) if time.relation is Relation.RANGE else None
    if manner.nature is Nature.STATE and manner.tense not in {Tense.PAST, Tense.FUTURE}:
        if (
            time.relation is Relation.AT
            and time.start is not None
            and time.end is not None
            and time.start <= said_at < time.end
        ):
            return When()  # "this year I work on Beta": true now, begun who knows when
        return When(start, end, start if _before(start, said_at) and time.relation is Relation.AT else None)
    if manner.nature is Nature.BEGINNING:
        recent = start.at is not None and said_at - start.at <= _YEAR
        return When(start, end, None if recent or manner.tense is not Tense.PAST else start)
    return When(start, end, start if _before(start, said_at) else None)


def _before(time: StatedTime, said_at: Instant) -> bool:
    return time.at is not None and time.at <= said_at
