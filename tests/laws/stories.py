"""Stories for the laws: what is told, judged, deleted and undone, and what must be believed of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hypothesis import strategies as st

from services.domain.records import Judge, VerdictKind
from tests.laws.competing import SINGLE, Competing, Fact, Judged
from tests.laws.oracle import EVER, Claim, Denial, End, holding, plain

FACTS = [Fact(SINGLE, target) for target in ("Oslo", "Paris", "Rome")]
FACTS += [Fact("likes", target) for target in ("jam", "tea")]
DAYS = range(8)
Row = tuple[Fact, int | None, int | None]
Said = Claim | End | Denial


class Tell(NamedTuple):
    """One episode says one thing; `of` in it is the object, by which a fact is known."""

    said: Said


class Delete(NamedTuple):
    """Of the episodes that are left, the one at this position (modulo their number)."""

    at: int


class Judgement(NamedTuple):
    """A verdict on two facts that are known."""

    judged: Judged


class Undo(NamedTuple):
    """Revokes one of the ends, denials and verdicts that count."""

    at: int


class Unite(NamedTuple):
    """A user says that two objects are one thing: `entity` reads as what `into` reads as."""

    entity: str
    into: str


class Part(NamedTuple):
    """Of the objects that read as others, the one at this position reads as itself again."""

    at: int


Step = Tell | Delete | Judgement | Undo | Unite | Part


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


@st.composite
def judgements(draw: st.DrawFn) -> Judgement:
    left, right = draw(st.permutations(FACTS))[:2]
    kind, judge = draw(st.sampled_from(VerdictKind)), draw(st.sampled_from(Judge))
    return Judgement(Judged(left, right, kind, judge, draw(st.sampled_from(DAYS))))


@st.composite
def unions(draw: st.DrawFn) -> Unite:
    """Mostly of things of one kind."""
    entity, into = draw(st.permutations(draw(st.sampled_from([FACTS[:3], FACTS[3:], FACTS]))))[:2]
    return Unite(entity.target, into.target)


NUMBERS = st.integers(0, 11)


def stories(most: int = 7) -> st.SearchStrategy[list[Step]]:
    undone = st.builds(Delete, NUMBERS) | st.builds(Undo, NUMBERS) | st.builds(Part, NUMBERS)
    changes = judgements() | judgements() | unions() | undone
    return st.lists(tellings() | tellings() | changes, min_size=1, max_size=most)


@dataclass
class Kept:
    """A record of a story, with the revisions between which it counts."""

    what: Said | Judged
    episode: int | None
    since: int
    until: int | None = None
    verdict: str = ""
    """The record's id, of a verdict."""

    def counts(self, revision: int) -> bool:
        return self.since <= revision and (self.until is None or revision < self.until)

    def supports(self, fact: Fact) -> bool:
        return not isinstance(self.what, Judged) and self.what.of == fact.target


class Telling:
    """All that was recorded, and the oracle's answers from it alone, as known at any revision.

    `ids` are the statements' own, which break ties between equal texts; `reads` the merges of each revision.
    """

    def __init__(self) -> None:
        self.kept: list[Kept] = []
        self.ids: dict[Fact, str] = {}
        self.reads: dict[int, Mapping[str, str]] = {0: {}}

    def competing(self, known: int) -> Competing:
        there = [kept.what for kept in self.kept if kept.counts(known)]
        return Competing(
            list(self.ids),
            [what for what in there if isinstance(what, Claim)],
            [what for what in there if isinstance(what, Judged)],
            self.reads[known],
            self.ids,
        )

    def believed(self, known: int) -> list[Row] | None:
        """What the oracle says was believed; None where the words of the design leave it open."""
        among = self.competing(known)
        shown = {fact.target: among.shown[fact] for fact in self.ids}
        # Ties are broken by the text of what is shown, then by its id.
        names = {fact: f"{among.content(fact)} {id}" for fact, id in self.ids.items()}
        facts = {names[fact]: fact for fact in self.ids}
        there = [kept.what for kept in self.kept if kept.counts(known)]
        said = [w._replace(of=names[shown[w.of]]) for w in there if not isinstance(w, Judged)]
        claims = [one for one in said if isinstance(one, Claim)]
        ends = [one for one in said if isinstance(one, End)]
        denials = [one for one in said if isinstance(one, Denial)]
        named = {what.of for what in there if not isinstance(what, Judged)}
        # An object that reads as one whose name is forgotten has no text to break ties by.
        if not plain(claims, ends) or not set(self.reads[known].values()) <= named:
            return None

        def rivals(one: str, other: str) -> bool:
            return among.rivals(facts[one], facts[other])

        rows: list[Row] = []
        since: dict[str, int | None] = {}
        for at, now in holding(claims, ends, denials, rivals, [EVER, *range(-1, 11)]):
            rows += [(facts[name], since.pop(name), int(at)) for name in since.keys() - now]
            since |= dict.fromkeys(now - since.keys(), None if at == EVER else int(at))
        return in_order([*rows, *((facts[name], begun, None) for name, begun in since.items())])

    def supported(self, fact: Fact) -> bool:
        return any(kept.until is None and kept.supports(fact) for kept in self.kept)

    def left(self) -> list[int]:
        """Episodes that were not deleted."""
        return sorted({kept.episode for kept in self.kept if kept.until is None and kept.episode is not None})


def in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row[0], -1 if row[1] is None else row[1]))
