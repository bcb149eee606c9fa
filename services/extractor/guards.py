"""Guards: which of the facts that an engine proposed may be believed, judged by the raw turns alone.

Pure. A fact is refused for the first of: a turn that was not sent, values that can't be kept, a quote that is
not literally in its turn, a quote in text recalled from this memory, a quote in an order to this memory, and
words of an assistant that the user did not confirm. What is refused is named, never silently lost.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from services.domain.facts import DropReason, Mention, Turn, VoiceFact, WorldFact
from services.domain.graph import Literal, LiteralKind
from services.domain.instructions import instruction_spans
from services.domain.memory import Role
from services.domain.names import literal, name_key
from services.domain.predicates import spelling
from services.domain.recalled import recalled_spans
from services.extractor.confirmation import confirms
from services.extractor.quotes import Place, Raw

FactT = TypeVar("FactT", WorldFact, VoiceFact)

MAX_NAME_CHARACTERS = 500
"""Of a name, a predicate or a literal; longer ones are sentences that a model took for names."""

_EVIDENCE = frozenset({Role.USER, Role.NONE})
"""Whose turns count by themselves: the user's, and documents', which are nobody's."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A proposed fact that is not believed: why, and the turn it named."""

    reason: DropReason
    turn: int


@dataclass(frozen=True, slots=True)
class Guarded(Generic[FactT]):
    """The facts that may be believed, in order, and those that are refused."""

    facts: tuple[FactT, ...]
    refused: tuple[Refused, ...]


class Guards:
    """Judges facts against the turns of one chunk. None of its episodes is evidence for another."""

    def __init__(self, turns: Iterable[Turn], begins: Sequence[int] = ()) -> None:
        """`begins`: positions at which a further episode begins; none: all turns are of one."""
        self._turns = {turn.position: _Heard.of(turn) for turn in turns}
        self._begins = sorted(begins)

    def world(self, facts: Sequence[WorldFact]) -> Guarded[WorldFact]:
        return _sorted([(mend(fact), self._why_not_world(fact)) for fact in facts])

    def voice(self, facts: Sequence[VoiceFact]) -> Guarded[VoiceFact]:
        return _sorted([(fact, self._why_not_voice(fact)) for fact in facts])

    def _why_not_world(self, fact: WorldFact) -> DropReason | None:
        heard = self._turns.get(fact.turn)
        if heard is None:
            return DropReason.UNKNOWN_TURN
        if not is_valid(fact):
            return DropReason.INVALID
        reason = heard.why_not(fact.quote)
        if reason is None and heard.turn.role not in _EVIDENCE and not self._confirmed(fact):
            return DropReason.UNCONFIRMED_ASSISTANT
        return reason

    def _why_not_voice(self, fact: VoiceFact) -> DropReason | None:
        heard = self._turns.get(fact.turn)
        if heard is None:
            return DropReason.UNKNOWN_TURN
        if not fact.text.strip():
            return DropReason.INVALID
        reason = heard.why_not(fact.quote)
        if reason is None and heard.turn.role not in _EVIDENCE:
            return DropReason.UNCONFIRMED_ASSISTANT  # the user's voice is in the user's own words
        return reason

    def _confirmed(self, fact: WorldFact) -> bool:
        """True when the turn it names is a later one of the user's that says yes."""
        by = None if fact.confirmed_by is None else self._turns.get(fact.confirmed_by)
        return (
            by is not None
            and by.turn.role is Role.USER
            and by.turn.position > fact.turn
            and bisect_right(self._begins, fact.turn) == bisect_right(self._begins, by.turn.position)
            and confirms(by.turn.text)
        )


def is_valid(fact: WorldFact) -> bool:
    """True when the triple has names and a predicate, is about two things, and its confidence is 0 to 1."""
    try:
        spelling(fact.predicate)
    except ValueError:
        return False
    subject = name_key(fact.subject.name)
    target = fact.object.text.strip() if isinstance(fact.object, Literal) else name_key(fact.object.name)
    return (
        bool(subject)
        and bool(target)
        and not (isinstance(fact.object, Mention) and subject == target)
        and max(map(len, (fact.subject.name, target, fact.predicate))) <= MAX_NAME_CHARACTERS
        and not math.isnan(fact.confidence)
        and 0 <= fact.confidence <= 1
    )


def mend(fact: WorldFact) -> WorldFact:
    """The fact with an object that is not of its kind (the time "Q3 2025") kept as plain text."""
    if not isinstance(fact.object, Literal):
        return fact
    try:
        return replace(fact, object=literal(fact.object.kind, fact.object.text))
    except ValueError:
        return replace(fact, object=literal(LiteralKind.STRING, fact.object.text))


@dataclass(frozen=True, slots=True)
class _Heard:
    """A turn with its text in the form for quotes, and the parts of it that are no evidence."""

    turn: Turn
    raw: Raw
    recalled: Sequence[tuple[int, int]]
    instructions: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, turn: Turn) -> "_Heard":
        raw = Raw.of(turn.text)
        return cls(turn, raw, recalled_spans(raw.text), instruction_spans(raw.text))

    def why_not(self, quote: str) -> DropReason | None:
        """None when the quote stands somewhere in the turn where it is evidence."""
        places = self.raw.places(quote)
        if not places:
            return DropReason.QUOTE_NOT_FOUND
        reasons = [self._why_not_at(place) for place in places]
        return None if None in reasons else reasons[0]

    def _why_not_at(self, place: Place) -> DropReason | None:
        if any(place.meets(*span) for span in self.recalled):
            return DropReason.RECALLED_TEXT
        if any(place.meets(*span) for span in self.instructions):
            return DropReason.INSTRUCTION_SHAPED
        return None


def _sorted(judged: Iterable[tuple[FactT, DropReason | None]]) -> Guarded[FactT]:
    facts: list[FactT] = []
    refused: list[Refused] = []
    for fact, reason in judged:
        if reason is None:
            facts.append(fact)
        else:
            refused.append(Refused(reason, fact.turn))
    return Guarded(tuple(facts), tuple(refused))
