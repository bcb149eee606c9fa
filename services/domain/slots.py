"""Slots: what competes. Which statements derive as one, which contradict, where the answer is contested."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from services.domain.graph import Literal, Statement
from services.domain.ids import EntityId, StatementId
from services.domain.kernel.joined import Joined
from services.domain.kernel.rivals import Rivals, both_ways
from services.domain.predicates import Cardinality
from services.domain.records import Claim, Evidence, Judge, Verdict, VerdictKind
from services.domain.timeline import DerivedSpan

Pair = tuple[StatementId, StatementId]
"""Two statements, the lesser id first."""
Slot = tuple[EntityId, EntityId]
"""A subject and a predicate, as they read."""
CardinalityOf = Callable[[EntityId], Cardinality]
"""Of a predicate's entity."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How ids read now: merged entities as the one they were merged into, and keys to break ties by.

    `inverses`: predicates that say the same from object to subject, both ways, as they read.
    """

    merged: Mapping[EntityId, EntityId]
    keys: Mapping[EntityId, str]
    inverses: Mapping[EntityId, EntityId] = field(default_factory=dict)

    def entity(self, id: EntityId) -> EntityId:
        """Follows merges of merges; a circle, which no merge should make, ends where it is met again."""
        if id not in self.merged:
            return id
        seen = {id}
        while (next_id := self.merged.get(id, id)) not in seen:
            seen.add(next_id)
            id = next_id
        return id

    def target(self, statement: Statement) -> EntityId | Literal:
        target = statement.object
        return target if isinstance(target, Literal) else self.entity(target)

    def slot(self, statement: Statement) -> Slot:
        return self.entity(statement.subject), self.entity(statement.predicate)

    def slots(self, statement: Statement) -> Sequence[Slot]:
        """The slot of its subject, and that of its object where the predicate has an inverse."""
        slot, target = self.slot(statement), self.target(statement)
        inverse = self.inverses.get(slot[1])
        return (slot,) if inverse is None or isinstance(target, Literal) else (slot, (target, inverse))

    def triple(self, statement: Statement) -> tuple[EntityId, EntityId, EntityId | Literal]:
        """One for all statements that say the same, from whichever end."""
        (subject, predicate), target = self.slot(statement), self.target(statement)
        inverse = self.inverses.get(predicate)
        if inverse is None or isinstance(target, Literal):
            return subject, predicate, target
        turned = (target, inverse, subject)
        if inverse == predicate:
            return min(turned, (subject, predicate, target))
        return turned if inverse < predicate else (subject, predicate, target)

    def content(self, statement: Statement) -> str:
        """The text of the object, or of the fact where the object's name is not known here.

        Of both ends where the predicate has an inverse: either may be what a slot's statements differ in.
        """
        target = self.target(statement)
        if isinstance(target, Literal):
            return target.text
        found = self.keys.get(target) or statement.fact.casefold()
        subject, predicate = self.slot(statement)
        inverse = self.inverses.get(predicate)
        if inverse is None:
            return found
        other = self.keys.get(subject, "")
        ends = sorted((found, other)) if inverse == predicate else [found, other]
        return "\n".join(reversed(ends) if inverse < predicate else ends)


AS_WRITTEN = Reading({}, {})


@dataclass(frozen=True, slots=True)
class Competition:
    """Who competes with whom. `shown`: the statement each one derives as; the rest speaks of those alone."""

    shown: Mapping[StatementId, StatementId]
    rivals: Rivals
    exempted: frozenset[Pair]
    """Pairs that would contradict, had a user not said that they are compatible."""
    content: Callable[[StatementId], str]
    """The text of a shown statement's object, to break ties by."""
    further: Mapping[StatementId, Collection[Hashable]]
    """All slots of a statement that is in several, of which `rivals` knows one."""

    def slots(self, statement: StatementId) -> Collection[Hashable]:
        return self.further.get(statement) or (self.rivals.slot(statement),)


def counting_verdicts(verdicts: Iterable[Verdict]) -> dict[Pair, Verdict]:
    """Of several verdicts on a pair the one that counts: user over model over rule, then attested last.

    A tie falls to the greater kind, which keeps both statements rather than fewer.
    """
    counting: dict[Pair, Verdict] = {}
    for verdict in verdicts:
        pair = _pair(verdict.left, verdict.right)
        known = counting.get(pair)
        if known is None or _weight(known) < _weight(verdict):
            counting[pair] = verdict
    return counting


def competition(
    statements: Sequence[Statement],
    said: Iterable[Evidence],
    verdicts: Iterable[Verdict],
    cardinality: CardinalityOf,
    reading: Reading = AS_WRITTEN,
) -> Competition:
    """What competes among these statements, given what was said and the verdicts that count."""
    known = {statement.id: statement for statement in statements}
    verdicts = [v for v in verdicts if v.left in known and v.right in known and v.left != v.right]
    counting = counting_verdicts(verdicts)
    joined = _joined(statements, counting, reading)
    shown = _shown(known, joined, said, reading)
    main, further, several = _main_slots(statements, shown, cardinality, reading)
    # A class of duplicates that is in several slots competes in each of them.
    judged, compatible = set(several), set()
    for pair, verdict in _between(counting.values(), shown).items():
        match verdict.kind:
            case VerdictKind.CONTRADICTS:
                judged.add(pair)
            case VerdictKind.COMPATIBLE if _exempts(verdict):
                compatible.add(pair)
            case _:
                pass
    same_slot = {pair for pair in compatible if pair[0] in main and main[pair[0]] == main.get(pair[1])}
    unheard = counting_verdicts(verdict for verdict in verdicts if not _exempts(verdict))
    at_odds = several | {
        pair
        for pair, verdict in _between(unheard.values(), shown).items()
        if verdict.kind is VerdictKind.CONTRADICTS
    }
    return Competition(
        shown=shown,
        rivals=Rivals(main, both_ways(same_slot), both_ways(judged - compatible)),
        exempted=frozenset(same_slot | (compatible & at_odds)),
        content=lambda id: reading.content(known[id]),
        further=further,
    )


def as_one(
    statements: Sequence[Statement],
    said: Iterable[Evidence],
    verdicts: Iterable[Verdict],
    reading: Reading = AS_WRITTEN,
) -> Mapping[StatementId, StatementId]:
    """For each statement the one as which it derives, given what was said and the verdicts that count."""
    known = {statement.id: statement for statement in statements}
    verdicts = [v for v in verdicts if v.left in known and v.right in known and v.left != v.right]
    return _shown(known, _joined(statements, counting_verdicts(verdicts), reading), said, reading)


def closures(
    statements: Sequence[Statement],
    verdicts: Iterable[Verdict],
    cardinality: CardinalityOf,
    reading: Reading = AS_WRITTEN,
) -> list[list[Statement]]:
    """The statements in groups whose spans don't depend on each other.

    A SINGLE predicate ties all statements of its subject, a verdict ties its two, a merge those it makes one.
    """
    joined: Joined[Hashable] = Joined()
    for statement in statements:
        joined.join(statement.id, ("triple", reading.triple(statement)))
        for slot in reading.slots(statement):
            if cardinality(slot[1]) is Cardinality.SINGLE:
                joined.join(statement.id, ("slot", slot))
    for verdict in verdicts:
        joined.join(verdict.left, verdict.right)
    groups: defaultdict[Hashable, list[Statement]] = defaultdict(list)
    for statement in statements:
        groups[joined.root(statement.id)].append(statement)
    return list(groups.values())


def flagged(spans: Sequence[DerivedSpan], among: Competition) -> tuple[DerivedSpan, ...]:
    """The spans with `contested` set where the evidence leaves doubt.

    That is: a winner that goes A, B, A where B or the second A only began to be said, whatever held beside A;
    and two that hold at once because a user exempted them. `spans` come in order of time.
    """
    by_slot: defaultdict[Hashable, list[int]] = defaultdict(list)
    for at, span in enumerate(spans):
        for slot in among.slots(span.statement):
            by_slot[slot].append(at)
    contested: set[int] = set()
    spared = {statement for pair in among.exempted for statement in pair}
    for order in by_slot.values():
        contested |= _there_and_back(spans, order, among.rivals, spared)
    if among.rivals.judged or among.exempted:
        contested |= _contested_by_verdicts(spans, among)
    if not contested:
        return tuple(spans)
    return tuple(
        DerivedSpan(*span[:5], True, *span[6:]) if at in contested else span for at, span in enumerate(spans)
    )


def _contested_by_verdicts(spans: Sequence[DerivedSpan], among: Competition) -> set[int]:
    contested: set[int] = set()
    by_statement: defaultdict[StatementId, list[int]] = defaultdict(list)
    for at, span in enumerate(spans):
        by_statement[span.statement].append(at)
    for one, others in among.rivals.judged.items():
        for other in others:
            if one < other and set(among.slots(one)).isdisjoint(among.slots(other)):
                both = sorted(by_statement[one] + by_statement[other])
                contested |= _there_and_back(spans, both, among.rivals)
    for one, other in among.exempted:
        for left in by_statement[one]:
            for right in by_statement[other]:
                if _overlap(spans[left], spans[right]):
                    contested |= {left, right}
    return contested


def _there_and_back(
    spans: Sequence[DerivedSpan],
    order: Sequence[int],
    rivals: Rivals,
    spared: Collection[StatementId] = (),
) -> set[int]:
    """`spared` are those with which others may hold: what does so comes between no two spans of theirs."""
    found: set[int] = set()
    last: dict[StatementId, int] = {}
    for place, at in enumerate(order):
        again = spans[at]
        before = last.get(again.statement)
        last[again.statement] = place
        if before is None:
            continue
        if again.statement in spared:
            between = order[before + 1 : place]
            away = [each for each in between if rivals(again.statement, spans[each].statement)]
        else:
            away = [order[place - 1]] if place - before == 2 else []
        if len(away) == 1 and (again.assumed or spans[away[0]].assumed):
            found.update((order[before], away[0], at))
    return found


def _overlap(one: DerivedSpan, other: DerivedSpan) -> bool:
    def starts_before_end(left: DerivedSpan, right: DerivedSpan) -> bool:
        return left.valid_at is None or right.invalid_at is None or left.valid_at < right.invalid_at

    return starts_before_end(one, other) and starts_before_end(other, one)


def _pair(one: StatementId, other: StatementId) -> Pair:
    return (one, other) if one <= other else (other, one)


def _exempts(verdict: Verdict) -> bool:
    """Only a user's word keeps together what would contradict."""
    return verdict.kind is VerdictKind.COMPATIBLE and verdict.judge is Judge.USER


def _weight(verdict: Verdict) -> tuple[int, int, int]:
    return verdict.judge, verdict.attested_at, verdict.kind


def _joined(
    statements: Sequence[Statement], counting: Mapping[Pair, Verdict], reading: Reading
) -> Joined[StatementId]:
    """Statements that derive as one: the same triple as ids read now, or judged to be duplicates.

    What a user told apart, no chain of other verdicts joins; heavier verdicts join first.
    """
    joined: Joined[StatementId] = Joined()
    first: dict[Hashable, StatementId] = {}
    # Without merges and inverses no two statements are of one triple: it is what their ids are made of.
    for statement in statements if reading.merged or reading.inverses else ():
        same = first.setdefault(reading.triple(statement), statement.id)
        if same != statement.id:
            joined.join(same, statement.id)
    apart = [
        pair for pair, v in counting.items() if v.judge is Judge.USER and v.kind is not VerdictKind.DUPLICATE
    ]
    links = [pair for pair, verdict in counting.items() if verdict.kind is VerdictKind.DUPLICATE]
    if not links:
        return joined
    contents = {statement.id: (reading.content(statement), statement.id) for statement in statements}
    links.sort(key=lambda pair: (_weight(counting[pair]), sorted(contents[id] for id in pair)), reverse=True)
    for one, other in links:
        roots = {joined.root(one), joined.root(other)}
        if not any({joined.root(left), joined.root(right)} == roots for left, right in apart):
            joined.join(one, other)
    return joined


def _shown(
    known: Mapping[StatementId, Statement],
    joined: Joined[StatementId],
    said: Iterable[Evidence],
    reading: Reading,
) -> dict[StatementId, StatementId]:
    """Of statements that derive as one, the one with the earliest attested claim; then by content.

    One of which nothing is said any more stands for none that has words: its own may be forgotten.
    """
    if not joined:
        return {id: id for id in known}
    earliest: dict[StatementId, int] = {}
    told: set[StatementId] = set()
    for one in said:
        told.add(one.statement)
        if isinstance(one, Claim):
            earliest[one.statement] = min(one.attested_at, earliest.get(one.statement, one.attested_at))
    groups: defaultdict[StatementId, list[StatementId]] = defaultdict(list)
    for id in known:
        groups[joined.root(id)].append(id)

    def precedence(id: StatementId) -> tuple[bool, int, bool, str, StatementId]:
        return id not in earliest, earliest.get(id, 0), id not in told, reading.content(known[id]), id

    shown = {
        root: min(group, key=precedence) if len(group) > 1 else group[0] for root, group in groups.items()
    }
    return {id: shown[joined.root(id)] for id in known}


def _main_slots(
    statements: Iterable[Statement],
    shown: Mapping[StatementId, StatementId],
    cardinality: CardinalityOf,
    reading: Reading,
) -> tuple[dict[StatementId, Hashable], dict[StatementId, set[Hashable]], set[Pair]]:
    """One slot for each statement that has any; all of those that have several, and the pairs these add."""
    main: dict[StatementId, Hashable] = {}
    slots: dict[Hashable, Hashable] = {}
    further: dict[StatementId, set[Hashable]] = {}
    singles: dict[EntityId, bool] = {}
    sizes: Counter[Hashable] = Counter()
    for statement in statements:
        for slot in reading.slots(statement):
            predicate = slot[1]
            if predicate not in singles:
                singles[predicate] = cardinality(predicate) is Cardinality.SINGLE
            if singles[predicate]:
                id = shown[statement.id]
                first = main.setdefault(id, slots.setdefault(slot, slot))
                sizes[slot] += 1
                if first != slot:
                    further.setdefault(id, {first}).add(slot)
    if not further:
        return main, further, set()
    # The largest: of one that many are in, no pairs are made.
    main.update((id, max(found, key=lambda slot: (sizes[slot], repr(slot)))) for id, found in further.items())
    members: defaultdict[Hashable, list[StatementId]] = defaultdict(list)
    for id, only in main.items():
        for each in further.get(id, {only}):
            members[each].append(id)
    pairs = {
        _pair(one, other)
        for one, found in further.items()
        for slot in found
        for other in members[slot]
        if one != other and main[one] != main[other]
    }
    return main, further, pairs


def _between(verdicts: Iterable[Verdict], shown: Mapping[StatementId, StatementId]) -> dict[Pair, Verdict]:
    """The verdicts that count between classes of duplicates, the heaviest of each pair of classes."""
    counting: dict[Pair, Verdict] = {}
    for verdict in verdicts:
        pair = _pair(shown[verdict.left], shown[verdict.right])
        known = counting.get(pair)
        if pair[0] != pair[1] and (known is None or _weight(known) < _weight(verdict)):
            counting[pair] = verdict
    return counting
