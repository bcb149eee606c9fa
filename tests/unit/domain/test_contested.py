"""Where the answer is in doubt: the kernel and the oracle of whole stores, in small worlds of verdicts."""

from collections.abc import Sequence
from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from services.domain.beliefs import SlotRecords, derive
from services.domain.ids import EntityId, RecordId
from services.domain.instants import Instant
from services.domain.predicates import Cardinality
from services.domain.records import Claim as ClaimRecord
from services.domain.records import Judge, Source, Verdict, VerdictKind
from services.domain.slots import Reading
from tests.laws.account import Account, Kept, in_order
from tests.laws.competing import SINGLE, Fact, Judged
from tests.laws.oracle import Claim
from tests.laws.stories import DAYS, FACTS, fact_of
from tests.unit.domain.ledger import statement

World = tuple[list[Claim], list[Judged]]

_STATEMENTS = {fact: statement(fact.predicate, fact.target) for fact in FACTS}
_READING = Reading({}, {EntityId(fact.target): fact.target.casefold() for fact in FACTS})
_JUDGES = [Judge.USER, Judge.USER, Judge.MODEL, Judge.RULE]


def _worlds(facts: Sequence[Fact]) -> st.SearchStrategy[World]:
    """Mentions, and as often beginnings, of a few facts that verdicts connect."""
    targets = [fact.target for fact in facts]
    mentions = [Claim(of, None, None, at, at) for of, at in product(targets, DAYS)]
    begun = [Claim(of, at, None, told, told) for of, at, told in product(targets, DAYS, DAYS)]
    pairs = list(combinations(facts, 2))
    verdicts = [
        Judged(*pair, kind, judge, told)
        for pair, kind, judge, told in product(pairs, VerdictKind, _JUDGES, DAYS)
    ]
    told = st.lists(st.sampled_from(mentions) | st.sampled_from(begun), min_size=3, max_size=7)
    return st.tuples(told, st.lists(st.sampled_from(verdicts), min_size=1, max_size=4))


@given(st.one_of([_worlds(facts) for facts in (FACTS[:3], FACTS[:3], FACTS[3:], FACTS[2:])]))
def test_the_kernel_doubts_where_the_oracle_does(world: World) -> None:
    account = Account()
    account.ids = {fact: each.id for fact, each in _STATEMENTS.items()}
    account.kept = [Kept(what, 0, 0) for kind in world for what in kind]
    facts = {each.id: fact for fact, each in _STATEMENTS.items()}
    derived = derive(_records(*world), _cardinality, reading=_READING)
    found = [(facts[span.statement], span.valid_at, span.invalid_at, span.contested) for span in derived]
    assert in_order(found) == account.believed(0)


def _records(claims: Sequence[Claim], verdicts: Sequence[Judged]) -> SlotRecords:
    return SlotRecords(
        statements=tuple(_STATEMENTS.values()),
        claims=tuple(_claim(f"claim {number}", each) for number, each in enumerate(claims)),
        verdicts=tuple(_verdict(f"verdict {number}", each) for number, each in enumerate(verdicts)),
    )


def _claim(id: str, said: Claim) -> ClaimRecord:
    of, start = _STATEMENTS[fact_of(said.of)].id, None if said.start is None else Instant(said.start)
    return ClaimRecord(
        RecordId(id), of, start, None, Instant(said.attested), Instant(said.seen), Source(None)
    )


def _verdict(id: str, said: Judged) -> Verdict:
    left, right = sorted((_STATEMENTS[said.left].id, _STATEMENTS[said.right].id))
    return Verdict(RecordId(id), left, right, said.kind, said.judge, Instant(said.attested))


def _cardinality(predicate: EntityId) -> Cardinality:
    return Cardinality.SINGLE if predicate == SINGLE else Cardinality.MULTI
