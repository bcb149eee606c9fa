"""Small worlds of records for the laws: few objects, few instants, every kind of record."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

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


def precisions() -> st.SearchStrategy[Precision]:
    # Mostly exact, so that the other rules meet often enough.
    return st.sampled_from([Precision.INSTANT] * 5 + list(Precision))


@st.composite
def claims(draw: st.DrawFn, id: str, objects: Sequence[StatementId]) -> Claim:
    attested = draw(instants())
    start = draw(st.none() | instants())
    seen = draw(
        st.sampled_from([attested, attested, attested, attested if start is None else start]) | instants()
    )
    return Claim(
        RecordId(id),
        draw(st.sampled_from(objects)),
        start,
        draw(st.none() | instants()),
        attested,
        seen,
        UNKNOWN_SOURCE,
        draw(precisions()),
        draw(precisions()),
    )


@st.composite
def ends(draw: st.DrawFn, id: str, objects: Sequence[StatementId]) -> End:
    return End(
        RecordId(id),
        draw(st.sampled_from(objects)),
        draw(instants()),
        draw(instants()),
        UNKNOWN_SOURCE,
        draw(precisions()),
    )


@st.composite
def denials(draw: st.DrawFn, id: str, objects: Sequence[StatementId]) -> Denial:
    return Denial(
        RecordId(id),
        draw(st.sampled_from(objects)),
        draw(st.none() | instants()),
        draw(st.none() | instants()),
        draw(instants()),
        UNKNOWN_SOURCE,
    )


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
    kinds = draw(st.lists(st.sampled_from("cccccccceeed"), min_size=1, max_size=most))
    records: list[Claim | End | Denial] = []
    for number, kind in enumerate(kinds):
        records.append(draw(records_of(kind, f"{kind}{number}", objects)))
    rivals = draw(st.none() | st.sets(st.sampled_from(PAIRS)).map(frozenset))
    return World(tuple(records), rivals)


@st.composite
def relations(draw: st.DrawFn) -> Rivals:
    """One or two slots with exempt pairs, and pairs judged over slots."""
    slots = {
        object: draw(st.sampled_from(["lives_in", "works_at"]))
        for object in OBJECTS[: draw(st.integers(2, 4))]
    }
    pairs = {pair for pair in PAIRS if draw(st.sampled_from([True, False, False]))}
    same = {pair for pair in pairs if pair[0] in slots and slots[pair[0]] == slots.get(pair[1])}
    return Rivals(slots, both_ways(same), both_ways(pairs - same))
