"""The account of a story: all that was recorded, and what by the oracle follows from it, at any revision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.domain.records import Judge
from tests.laws.competing import Competing, Fact, Judged
from tests.laws.contested import Span, contested
from tests.laws.oracle import EVER, Claim, Denial, End, holding, plain
from tests.laws.stories import Said

Row = tuple[Fact, int | None, int | None, bool]
"""A fact, the borders of one of its spans, and whether that is contested."""


@dataclass
class Kept:
    """A record of a story, with the revisions between which it counts."""

    what: Said | Judged
    episode: int | None
    since: int
    until: int | None = None
    id: str = ""
    """The record's own, of what no episode said."""

    def counts(self, revision: int) -> bool:
        return self.since <= revision and (self.until is None or revision < self.until)

    def told_of(self, fact: Fact) -> bool:
        """Whether it is an episode's word on the fact."""
        return self.episode is not None and not isinstance(self.what, Judged) and self.what.of == fact.target


class Account:
    """`ids` are the statements' own, which break ties between equal texts; `reads` the merges by revision."""

    def __init__(self) -> None:
        self.kept: list[Kept] = []
        self.ids: dict[Fact, str] = {}
        self.reads: dict[int, Mapping[str, str]] = {0: {}}

    def competing(self, known: int) -> Competing:
        there = [kept.what for kept in self.kept if kept.counts(known)]
        return Competing(
            list(self.ids),
            [what for what in there if not isinstance(what, Judged)],
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

        spans: list[Span] = []
        held: dict[str, Span] = {}
        for at, now in holding(claims, ends, denials, rivals, _instants(said)):
            spans += [held.pop(name)._replace(end=int(at)) for name in held.keys() - now]
            start = None if at == EVER else int(at)
            held |= {name: Span(facts[name], start, None, now[name]) for name in now.keys() - held}
        spans = sorted([*spans, *held.values()], key=lambda span: (span.start is not None, span.start or 0))
        doubt = contested(spans, among)
        return in_order([(span.fact, span.start, span.end, span in doubt) for span in spans])

    def supported(self, fact: Fact) -> bool:
        """Whether an episode that is left says anything of it."""
        return any(kept.until is None and kept.told_of(fact) for kept in self.kept)

    def claimed(self, fact: Fact) -> bool:
        """Whether a claim that counts is of it, or of what derives as one with it."""
        shown = self.competing(max(self.reads)).shown
        claims = [kept.what for kept in self.kept if kept.until is None and isinstance(kept.what, Claim)]
        return any(shown[each] == shown[fact] for each in self.ids for one in claims if one.of == each.target)

    def known(self) -> list[Fact]:
        return [fact for fact in sorted(self.ids) if self.supported(fact)]

    def left(self) -> list[int]:
        """Episodes that were not deleted."""
        return sorted({kept.episode for kept in self.kept if kept.until is None and kept.episode is not None})

    def deleted(self, number: int, revision: int) -> None:
        """An episode's words count no more, nor, of what lost all words, what is no user's verdict."""
        gone = [kept for kept in self.kept if kept.episode == number and kept.until is None]
        for kept in gone:
            kept.until = revision
        lost = {fact for fact in self.ids if not self.supported(fact) and any(k.told_of(fact) for k in gone)}
        for kept in self.kept:
            if kept.until is None and kept.episode is None and _speaks_of(kept.what, lost):
                kept.until = revision


def _speaks_of(what: Said | Judged, facts: set[Fact]) -> bool:
    if isinstance(what, Judged):
        return what.judge is not Judge.USER and bool(facts & {what.left, what.right})
    return any(fact.target == what.of for fact in facts)


def _instants(said: Sequence[Said]) -> list[float]:
    """EVER and all that the records name, in order."""
    named = {at for one in said for at in one[1:] if at is not None}
    return [EVER, *sorted(named)]


def in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row[0], -1 if row[1] is None else row[1]))
