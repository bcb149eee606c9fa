"""Stories for the laws: what is told, judged, taken back, deleted and merged; all of it drawn beforehand."""

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any, NamedTuple

from hypothesis import strategies as st

from services.domain.records import Judge, VerdictKind
from tests.laws.competing import SINGLE, Fact
from tests.laws.oracle import Claim, Denial, End

FACTS = [Fact(SINGLE, target) for target in ("Oslo", "Paris", "Rome")]
FACTS += [Fact("likes", target) for target in ("jam", "tea")]

TARGETS = [fact.target for fact in FACTS]
DAYS = range(8)
MOST = 4
"""How many tellings a story has at most."""
Said = Claim | End | Denial
Pair = tuple[int, int]
"""Two of the facts that are known when it comes to them, by their places (modulo their number)."""


class Tell(NamedTuple):
    """One episode says one thing; `of` in it is the object, by which a fact is known."""

    said: Said


class Delete(NamedTuple):
    """Of the episodes that are left, the one at this place."""

    at: int


class Judgement(NamedTuple):
    """A verdict on two facts: a user's by JudgePair, of the moment; others as the resolver records them."""

    pair: Pair
    kind: VerdictKind
    judge: Judge
    attested: int


class Take(NamedTuple):
    """A user ends a fact (EndStatement, `start` is None) or denies a period of it (DenyStatement)."""

    of: int
    start: int | None
    until: int


class Restore(NamedTuple):
    """A user restores a fact (RestoreStatement)."""

    of: int


class Unite(NamedTuple):
    """A user says that two objects are one thing (MergeEntities)."""

    pair: Pair


class Part(NamedTuple):
    """Of the objects that read as others, the one at this place reads as itself again (SplitEntity)."""

    at: int


Step = Delete | Judgement | Take | Restore | Unite | Part


class Plan(NamedTuple):
    """What one example is about: a story, and the same words told to another graph in another way."""

    told: list[Tell]
    together: int
    """How many of them come in one commit."""
    judged: Judgement
    """A user's, judged back at once."""
    changes: list[Step]
    taken: Take
    """Restored at once."""
    union: Unite
    """Split at once."""
    order: tuple[int, ...]
    """The places of what is told, as the other graph hears them."""
    first: int
    """How many of them it hears before the others, which come together."""
    slip: Tell | None
    """Told there as well, and deleted."""
    asked: tuple[int, int]
    """A revision (modulo their number) and a day that are asked for again at the end."""


def fact_of(target: str) -> Fact:
    (found,) = [fact for fact in FACTS if fact.target == target]
    return found


def _claims(start: int | None, attested: int, ends: Sequence[int | None]) -> Iterator[Tell]:
    """Of the present, or a beginning told later."""
    seen = {attested} if start is None else {attested, min(attested, start)}
    for target, end, vouched in product(TARGETS, ends, sorted(seen)):
        yield Tell(Claim(target, start, end, attested, vouched))


# Every telling and every step there is: to choose one of a list is one draw, however much it says.
_STARTS = list(product(DAYS, DAYS))
_OPEN_MENTIONS = [tell for said in DAYS for tell in _claims(None, said, [None])]
_OVER_MENTIONS = [tell for said in DAYS for tell in _claims(None, said, range(1, 10))]
_OPEN_STAYS = [tell for start, said in _STARTS for tell in _claims(start, said, [None])]
_OVER_STAYS = [tell for start, said in _STARTS for tell in _claims(start, said, range(start + 1, 10))]
_ENDS = [Tell(End(*each)) for each in product(TARGETS, DAYS, DAYS)]
_DENIALS = [
    Tell(Denial(*each))
    for each in product(TARGETS, [None, None, *range(5)], [None, None, *range(5, 9)], DAYS)
]
_PLACES = range(5)
_PAIRS = list(product(_PLACES, range(4)))
_JUDGEMENTS = [Judgement(*each) for each in product(_PAIRS, VerdictKind, Judge, DAYS)]
_OF_USERS = [Judgement(*each, Judge.USER, 0) for each in product(_PAIRS, VerdictKind)]
_ENDED = [Take(of, None, until) for of, until in product(_PLACES, range(10))]
_DENIED = [Take(*each) for each in product(_PLACES, range(-1, 5), range(5, 10))]
_UNIONS = [Unite(pair) for pair in _PAIRS]
_REST: list[list[Step]] = [
    [Delete(at) for at in _PLACES],
    [Restore(of) for of in _PLACES],
    [Part(at) for at in _PLACES],
]
_ASKED = list(product(_PLACES, DAYS))
_ORDERS = list(permutations(range(MOST)))


def _one_of(*lists: Sequence[Any]) -> st.SearchStrategy[Any]:
    return st.one_of([st.sampled_from(each) for each in lists])


TELLINGS = _one_of(_OPEN_STAYS, _OPEN_MENTIONS, _OVER_STAYS, _OVER_MENTIONS, _ENDS, _DENIALS)
TAKEN = _one_of(_ENDED, _DENIED)
CHANGES = _one_of(_JUDGEMENTS, _UNIONS, _ENDED, _DENIED, *_REST)


def plans() -> st.SearchStrategy[Plan]:
    return st.builds(
        Plan,
        told=st.lists(TELLINGS, min_size=1, max_size=MOST),
        together=st.sampled_from((MOST, 2, 1)),
        judged=st.sampled_from(_OF_USERS),
        changes=st.lists(CHANGES, max_size=3),
        taken=TAKEN,
        union=st.sampled_from(_UNIONS),
        order=st.sampled_from(_ORDERS),
        first=st.sampled_from((0, 0, 1, 2)),
        slip=st.none() | TELLINGS,
        asked=st.sampled_from(_ASKED),
    )
