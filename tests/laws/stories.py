"""Stories for the laws: what is told, judged, taken back, deleted and merged; all of it drawn beforehand."""

from typing import NamedTuple

from hypothesis import strategies as st

from services.domain.records import Judge, VerdictKind
from tests.laws.competing import SINGLE, Fact
from tests.laws.oracle import Claim, Denial, End

FACTS = [Fact(SINGLE, target) for target in ("Oslo", "Paris", "Rome")]
FACTS += [Fact("likes", target) for target in ("jam", "tea")]
DAYS = range(8)
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
    order: list[int]
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


@st.composite
def tellings(draw: st.DrawFn) -> Tell:
    of, attested = draw(st.sampled_from(FACTS)).target, draw(st.sampled_from(DAYS))
    match draw(st.sampled_from("cccced")):
        case "e":
            return Tell(End(of, draw(st.sampled_from(DAYS)), attested))
        case "d":
            first, last = draw(st.none() | st.integers(0, 4)), draw(st.none() | st.integers(5, 8))
            return Tell(Denial(of, first, last, attested))
    start = draw(st.none() | st.sampled_from(DAYS))
    end = draw(st.none() | st.integers(1 if start is None else start + 1, 9))
    # Of the present, or a beginning told later.
    seen = attested if start is None else draw(st.sampled_from([attested, min(attested, start)]))
    return Tell(Claim(of, start, end, attested, seen))


PLACES = st.integers(0, 4)
PAIRS = st.tuples(PLACES, st.integers(0, 3))
KINDS = st.sampled_from(VerdictKind)
JUDGEMENTS = st.builds(Judgement, PAIRS, KINDS, st.sampled_from(Judge), st.sampled_from(DAYS))
TAKEN = st.builds(Take, PLACES, st.none() | st.integers(-1, 4), st.integers(5, 9)) | st.builds(
    Take, PLACES, st.none(), st.integers(0, 9)
)
UNIONS = st.builds(Unite, PAIRS)
CHANGES = st.one_of(
    JUDGEMENTS,
    UNIONS,
    st.builds(Delete, PLACES),
    TAKEN,
    st.builds(Restore, PLACES),
    st.builds(Part, PLACES),
)
MOST = 4


def plans() -> st.SearchStrategy[Plan]:
    return st.builds(
        Plan,
        told=st.lists(tellings(), min_size=1, max_size=MOST),
        together=st.sampled_from((MOST, 2, 1)),
        judged=st.builds(Judgement, PAIRS, KINDS, st.just(Judge.USER), st.just(0)),
        changes=st.lists(CHANGES, max_size=3),
        taken=TAKEN,
        union=UNIONS,
        order=st.permutations(range(MOST)),
        first=st.sampled_from((0, 0, 1, 2)),
        slip=st.none() | tellings(),
        asked=st.tuples(PLACES, st.sampled_from(DAYS)),
    )
