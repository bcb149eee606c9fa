"""Small worlds of records for the laws: few objects, few instants, every kind of record."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from hypothesis import strategies as st

from services.domain.ids import RecordId, StatementId
from services.domain.instants import Instant, Precision
from services.domain.kernel.rivals import Rivals, both_ways
from services.domain.records import Claim, Denial, End, Source
from services.domain.timeline import DerivedSpan, timeline
from tests.unit.domain.given import day

OBJECTS = [StatementId(name) for name in ("Oslo", "Paris", "Rome", "Zagreb")]
PAIRS = list(combinations(OBJECTS, 2))
# Around borders of weeks, months and years, so that coarse periods contain some and not others.
DAYS = [day(text) for text in (
    "2022-12-30", "2023-01-01", "2023-01-02", "2023-01-09", "2023-02-01", "2023-02-02", "2023-03-01",
    "2023-04-01", "2023-07-01", "2024-01-01", "2024-01-05", "2025-01-01",
)]  # fmt: skip
UNKNOWN_SOURCE = Source(None)
# What is drawn comes from lists of all there is of it: one draw, however much it says.
MAYBE = [*[None] * len(DAYS), *DAYS]
"""A day, or as often none."""
PRECISIONS = [Precision.INSTANT] * 5 + list(Precision)
"""Mostly exact, so that the other rules meet often enough."""
_PERIODS = list(product(MAYBE, MAYBE))
_SEEN: list[Instant | str] = [*["told"] * 9, *["begun"] * 3, *DAYS]
"""When it was told, when it began if that is known, or any day."""
_SUBSETS = [frozenset(some) for size in range(len(PAIRS) + 1) for some in combinations(PAIRS, size)]
_SLOTS = [
    dict(zip(OBJECTS, slots, strict=False))
    for size in (2, 3, 4)
    for slots in product(["lives_in", "works_at"], repeat=size)
]


@dataclass(frozen=True)
class World:
    """Records of statements; `rivals` are the pairs that contradict, None is all of them."""

    records: tuple[Claim | End | Denial, ...]
    rivals: frozenset[tuple[StatementId, StatementId]] | None = None

    def contradicts(self, one: str, other: str) -> bool:
        if self.rivals is None:
            return one != other
        return (min(one, other), max(one, other)) in self.rivals

    def claims(self) -> list[Claim]:
        return [record for record in self.records if isinstance(record, Claim)]

    def ends(self) -> list[End]:
        return [record for record in self.records if isinstance(record, End)]

    def denials(self) -> list[Denial]:
        return [record for record in self.records if isinstance(record, Denial)]

    def spans(self) -> tuple[DerivedSpan, ...]:
        return timeline(self.claims(), self.ends(), self.denials(), self.contradicts)

    def but(self, records: Sequence[Claim | End | Denial]) -> "World":
        return World(tuple(records), self.rivals)

    def __repr__(self) -> str:
        return "\n  ".join(["World", *map(repr, self.records), f"rivals={self.rivals}"])


def instants() -> st.SearchStrategy[Instant]:
    return st.sampled_from(DAYS)


TOLD = st.sampled_from(list(product(DAYS, _SEEN)))
PERIODS = st.sampled_from(_PERIODS)
FINE = st.sampled_from(list(product(PRECISIONS, PRECISIONS)))
STOPS = st.sampled_from(list(product(DAYS, DAYS, PRECISIONS)))
DENIED = st.sampled_from([(*period, told) for period, told in product(_PERIODS, DAYS)])
KINDS = st.sampled_from("cccccccceeed")
RIVALS = st.sampled_from([*[None] * len(_SUBSETS), *_SUBSETS])


@st.composite
def claims(draw: st.DrawFn, id: str, objects: Sequence[StatementId]) -> Claim:
    of, (start, end), (attested, vouched) = draw(st.sampled_from(objects)), draw(PERIODS), draw(TOLD)
    if isinstance(vouched, str):
        seen = start if vouched == "begun" and start is not None else attested
    else:
        seen = vouched
    return Claim(RecordId(id), of, start, end, attested, seen, UNKNOWN_SOURCE, *draw(FINE))


@st.composite
def ends(draw: st.DrawFn, id: str, objects: Sequence[StatementId]) -> End:
    of, (at, attested, precision) = draw(st.sampled_from(objects)), draw(STOPS)
    return End(RecordId(id), of, at, attested, UNKNOWN_SOURCE, precision)


@st.composite
def denials(draw: st.DrawFn, id: str, objects: Sequence[StatementId]) -> Denial:
    of, (start, until, attested) = draw(st.sampled_from(objects)), draw(DENIED)
    return Denial(RecordId(id), of, start, until, attested, UNKNOWN_SOURCE)


def records_of(kind: str, id: str, objects: Sequence[StatementId]) -> st.SearchStrategy[Claim | End | Denial]:
    """Ends for "e", denials for "d", claims for all else."""
    match kind:
        case "e":
            return ends(id, objects)
        case "d":
            return denials(id, objects)
        case _:
            return claims(id, objects)


@st.composite
def worlds(draw: st.DrawFn, most: int = 9) -> World:
    """A world of 1 to `most` records over 1 to 4 objects."""
    objects = OBJECTS[: draw(st.integers(1, 4))]
    kinds = draw(st.lists(KINDS, min_size=1, max_size=most))
    records: list[Claim | End | Denial] = []
    for number, kind in enumerate(kinds):
        records.append(draw(records_of(kind, f"{kind}{number}", objects)))
    return World(tuple(records), draw(RIVALS))


@st.composite
def relations(draw: st.DrawFn) -> Rivals:
    """One or two slots with exempt pairs, and pairs judged over slots."""
    slots = draw(st.sampled_from(_SLOTS))
    pairs = draw(st.sampled_from(_SUBSETS[:42]))
    same = {pair for pair in pairs if pair[0] in slots and slots[pair[0]] == slots.get(pair[1])}
    return Rivals(slots, both_ways(same), both_ways(pairs - same))
