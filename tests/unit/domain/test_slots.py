"""Slots: which verdict counts, what derives as one, who is exempt, where the answer is contested."""

from dataclasses import replace

import pytest

from services.domain.graph import Literal, LiteralKind, Statement, statement_id
from services.domain.ids import EntityId, RecordId, StatementId
from services.domain.instants import Instant, moment
from services.domain.predicates import Cardinality
from services.domain.records import Judge, Verdict, VerdictKind
from services.domain.slots import Competition, Reading, closures, competition, counting_verdicts
from services.domain.timeline import DerivedSpan
from tests.unit.domain.given import claim, day, end
from tests.unit.domain.ledger import SCOPE, Ledger, statement

PARIS, ROME, OSLO = (statement("lives_in", city) for city in ("Paris", "Rome", "Oslo"))
LOVES, HATES, TEA = statement("loves", "sushi"), statement("hates", "sushi"), statement("loves", "tea")
AT_GOOGLE, FOR_GOOGLE = statement("works_at", "Google"), statement("employed_by", "Google")
DUPLICATE, CONTRADICTS, COMPATIBLE = VerdictKind.DUPLICATE, VerdictKind.CONTRADICTS, VerdictKind.COMPATIBLE
RULE, MODEL, USER = Judge.RULE, Judge.MODEL, Judge.USER


def verdict(
    one: Statement, other: Statement, kind: VerdictKind, judge: Judge = MODEL, attested: str = "2024-01-01"
) -> Verdict:
    left, right = sorted((one.id, other.id))
    id = RecordId(f"{kind.name} by {judge.name} {left} {right} {attested}")
    return Verdict(id, left, right, kind, judge, day(attested))


def cardinality(predicate: EntityId) -> Cardinality:
    single = predicate in {"lives_in", "works_at", "employed_by"}
    return Cardinality.SINGLE if single else Cardinality.MULTI


def among(*verdicts: Verdict, reading: Reading | None = None) -> Competition:
    statements = [PARIS, ROME, OSLO, LOVES, HATES, TEA, AT_GOOGLE, FOR_GOOGLE]
    return competition(statements, [], verdicts, cardinality, reading or Reading({}, {}))


def ledger(*statements: Statement) -> Ledger:
    made = Ledger(single=["lives_in", "works_at"])
    made.knows(*statements)
    return made


def rows(spans: tuple[DerivedSpan, ...], made: Ledger) -> list[tuple[str, str, str, bool]]:
    def on(at: Instant | None) -> str:
        return "" if at is None else f"{moment(at):%Y-%m-%d}"

    return [
        (str(made.statements[s.statement].object), on(s.valid_at), on(s.invalid_at), s.contested)
        for s in spans
    ]


def test_different_objects_of_a_single_predicate_contradict() -> None:
    rivals = among().rivals
    assert rivals(PARIS.id, ROME.id)
    assert not rivals(PARIS.id, PARIS.id)
    assert not rivals(LOVES.id, TEA.id)
    assert not rivals(LOVES.id, HATES.id)
    assert not rivals(PARIS.id, LOVES.id)


def test_of_multi_predicates_exactly_the_judged_pairs_contradict() -> None:
    rivals = among(verdict(LOVES, HATES, CONTRADICTS)).rivals
    assert rivals(LOVES.id, HATES.id)
    assert rivals(HATES.id, LOVES.id)
    assert not rivals(LOVES.id, TEA.id)


@pytest.mark.parametrize(
    ("verdicts", "counts"),
    [
        ([(CONTRADICTS, MODEL, "2024-01-02"), (COMPATIBLE, USER, "2024-01-01")], COMPATIBLE),
        ([(CONTRADICTS, USER, "2024-01-01"), (COMPATIBLE, MODEL, "2024-01-02")], CONTRADICTS),
        ([(CONTRADICTS, MODEL, "2024-01-01"), (DUPLICATE, RULE, "2024-01-02")], CONTRADICTS),
        ([(CONTRADICTS, MODEL, "2024-01-01"), (COMPATIBLE, MODEL, "2024-01-02")], COMPATIBLE),
        ([(COMPATIBLE, MODEL, "2024-01-01"), (CONTRADICTS, MODEL, "2024-01-01")], COMPATIBLE),
        ([(CONTRADICTS, MODEL, "2024-01-01"), (DUPLICATE, MODEL, "2024-01-01")], CONTRADICTS),
    ],
)
def test_which_verdict_counts(verdicts: list[tuple[VerdictKind, Judge, str]], counts: VerdictKind) -> None:
    given = [verdict(LOVES, HATES, *each) for each in verdicts]
    for order in (given, given[::-1]):
        (found,) = counting_verdicts(order).values()
        assert found.kind is counts


def test_a_users_compatible_exempts_a_pair_in_a_slot_and_a_models_does_not() -> None:
    assert among(verdict(PARIS, ROME, COMPATIBLE, MODEL)).rivals(PARIS.id, ROME.id)
    found = among(verdict(PARIS, ROME, COMPATIBLE, USER))
    assert not found.rivals(PARIS.id, ROME.id)
    assert found.rivals(PARIS.id, OSLO.id)
    assert found.exempted == {tuple(sorted((PARIS.id, ROME.id)))}


def test_a_users_compatible_exempts_a_judged_pair() -> None:
    found = among(verdict(LOVES, HATES, CONTRADICTS), verdict(LOVES, HATES, COMPATIBLE, USER))
    assert not found.rivals(LOVES.id, HATES.id)
    assert found.exempted
    assert not among(verdict(LOVES, TEA, COMPATIBLE, USER)).exempted, "nothing was at odds"


def test_duplicates_derive_as_one_shown_by_the_earliest_attested_claim() -> None:
    made = ledger(AT_GOOGLE, FOR_GOOGLE)
    made.commit(claim("late", AT_GOOGLE.id, "2022-01-01", None, "2023-01-01"))
    made.commit(claim("early", FOR_GOOGLE.id, "2022-01-01", None, "2022-01-02"))
    made.commit(
        verdict(AT_GOOGLE, FOR_GOOGLE, DUPLICATE), end("left", AT_GOOGLE.id, "2024-01-01", "2024-01-02")
    )
    (span,) = made.believed()
    assert (span.statement, span.started_by, span.ended_by) == (FOR_GOOGLE.id, "early", "left")
    made.commit(revoke=[verdict(AT_GOOGLE, FOR_GOOGLE, DUPLICATE).id])
    assert {(span.statement, span.ended_by) for span in made.believed()} == {
        (FOR_GOOGLE.id, None),
        (AT_GOOGLE.id, "left"),
    }


def test_what_nothing_is_said_of_any_more_stands_for_none_that_has_words() -> None:
    """Of two that nobody claims: its own words, which would decide by content, go a moment later."""
    for left, gone in (AT_GOOGLE, FOR_GOOGLE), (FOR_GOOGLE, AT_GOOGLE):
        made = ledger(AT_GOOGLE, FOR_GOOGLE)
        made.commit(claim(RecordId("gone"), gone.id, "2020-01-01", None, "2020-01-01"))
        made.commit(verdict(AT_GOOGLE, FOR_GOOGLE, DUPLICATE, USER))
        made.commit(end("left", left.id, "2024-01-01", "2024-01-02"), revoke=[RecordId("gone")])
        assert [span.statement for span in made.believed()] == [left.id]


def test_duplicates_compete_in_every_slot_of_theirs() -> None:
    at_meta, for_acme = statement("works_at", "Meta"), statement("employed_by", "Acme")
    statements = [AT_GOOGLE, FOR_GOOGLE, at_meta, for_acme]
    found = competition(statements, [], [verdict(AT_GOOGLE, FOR_GOOGLE, DUPLICATE)], cardinality)
    google = found.shown[AT_GOOGLE.id]
    assert google == found.shown[FOR_GOOGLE.id]
    assert found.rivals(google, at_meta.id)
    assert found.rivals(google, for_acme.id)
    assert not found.rivals(at_meta.id, for_acme.id)


def test_a_user_exempts_duplicates_from_a_further_slot_too() -> None:
    at_meta, for_acme = statement("works_at", "Meta"), statement("employed_by", "Acme")
    statements = [AT_GOOGLE, FOR_GOOGLE, at_meta, for_acme]
    duplicates = verdict(AT_GOOGLE, FOR_GOOGLE, DUPLICATE)
    for other in (at_meta, for_acme):
        for member in (AT_GOOGLE, FOR_GOOGLE):
            user = verdict(member, other, COMPATIBLE, USER)
            found = competition(statements, [], [duplicates, user], cardinality)
            assert not found.rivals(found.shown[member.id], other.id)
            assert len(found.exempted) == 1


def test_what_a_user_told_apart_no_chain_of_duplicates_joins() -> None:
    chain = verdict(PARIS, ROME, DUPLICATE), verdict(ROME, OSLO, DUPLICATE, MODEL, "2024-01-02")
    joined = among(*chain).shown
    assert joined[PARIS.id] == joined[ROME.id] == joined[OSLO.id]
    for told in (CONTRADICTS, COMPATIBLE):
        apart = among(*chain, verdict(PARIS, OSLO, told, USER)).shown
        assert apart[PARIS.id] != apart[OSLO.id]
        assert apart[ROME.id] == apart[OSLO.id], "the later verdict joins first"


def test_duplicates_that_contradict_each_other_still_have_a_span() -> None:
    made = ledger(LOVES, HATES, TEA)
    for number, one in enumerate((LOVES, HATES, TEA)):
        made.commit(claim(f"claim {number}", one.id, "2024-01-01", None, "2024-01-02"))
    made.commit(
        verdict(LOVES, HATES, DUPLICATE), verdict(HATES, TEA, DUPLICATE), verdict(LOVES, TEA, CONTRADICTS)
    )
    assert len(made.believed()) == 1


def test_merged_entities_make_one_fact_of_two() -> None:
    made = ledger(statement("lives_in", "NYC"), statement("lives_in", "New York"))
    for number, one in enumerate(list(made.statements)):
        made.commit(claim(f"claim {number}", one, f"202{number}-01-01", None, f"202{number}-01-02"))
    assert len(made.believed()) == 2
    made.merged = {EntityId("NYC"): EntityId("New York")}
    made.rederive()
    assert [(span.valid_at, span.invalid_at) for span in made.believed()] == [(day("2020-01-01"), None)]


def test_love_then_hate_by_a_models_verdict() -> None:
    made = ledger(LOVES, HATES)
    made.commit(claim("loves", LOVES.id, "2025-01-01", None, "2025-01-01"))
    made.commit(claim("hates", HATES.id, "2025-06-01", None, "2025-06-01"))
    made.commit(verdict(LOVES, HATES, CONTRADICTS))
    assert {(s.statement, s.valid_at, s.invalid_at) for s in made.believed()} == {
        (LOVES.id, day("2025-01-01"), day("2025-06-01")),
        (HATES.id, day("2025-06-01"), None),
    }


def test_there_and_back_with_an_assumed_start_is_contested() -> None:
    made = ledger(PARIS, ROME)
    made.commit(claim("a", PARIS.id, "2020-01-01", None, "2020-01-05"))
    made.commit(claim("b", ROME.id, "2022-01-01", None, "2022-01-05"))
    made.commit(claim("c", PARIS.id, None, None, "2024-01-05"))
    assert rows(made.derived(), made) == [
        ("Paris", "2020-01-01", "2022-01-01", True),
        ("Rome", "2022-01-01", "2024-01-05", True),
        ("Paris", "2024-01-05", "", True),
    ]
    made.commit(claim("d", PARIS.id, "2024-01-05", None, "2024-01-06"))
    assert not any(span.contested for span in made.believed()), "the return was stated since"


def test_there_and_back_of_judged_statements_is_contested() -> None:
    made = ledger(LOVES, HATES)
    made.commit(verdict(LOVES, HATES, CONTRADICTS))
    for number, one in enumerate((LOVES, HATES, LOVES)):
        made.commit(claim(f"claim {number}", one.id, None, None, f"202{number}-01-01"))
    assert [span.contested for span in made.derived()] == [True, True, True]


@pytest.mark.parametrize("judge", Judge)
def test_a_verdict_on_two_of_a_slot_makes_no_contest_of_a_longer_way(judge: Judge) -> None:
    made = ledger(OSLO, PARIS, ROME)
    for number, one in enumerate((OSLO, ROME, PARIS, OSLO)):
        made.commit(claim(f"claim {number}", one.id, None, None, f"202{number}-01-01"))
    before = made.derived()
    assert not any(span.contested for span in before)
    made.commit(verdict(OSLO, PARIS, CONTRADICTS, judge))
    assert made.derived() == before


@pytest.mark.parametrize("larger", ["works_at", "employed_by"])
def test_what_is_in_two_slots_comes_between_the_others_of_both(larger: str) -> None:
    """Google, whose two statements derive as one, is in both; which of the slots is larger has no say."""
    acme, bosch = statement("employed_by", "Acme"), statement("employed_by", "Bosch")
    more = [statement(larger, name) for name in ("Globex", "Initech", "Umbrella")]
    made = Ledger(single=["works_at", "employed_by"])
    made.knows(AT_GOOGLE, FOR_GOOGLE, acme, bosch, *more)
    made.commit(verdict(AT_GOOGLE, FOR_GOOGLE, DUPLICATE))
    for number, one in enumerate((acme, bosch, AT_GOOGLE, acme)):
        made.commit(claim(f"claim {number}", one.id, None, None, f"202{number}-01-01"))
    assert [span.contested for span in made.derived()] == [False] * 4


def test_stated_moves_are_not_contested() -> None:
    made = ledger(PARIS, ROME)
    for number, one in enumerate((PARIS, ROME, PARIS)):
        made.commit(claim(f"claim {number}", one.id, f"202{number}-01-01", None, f"202{number}-01-05"))
    assert [span.contested for span in made.derived()] == [False, False, False]


def test_exempted_spans_are_contested_only_where_both_hold() -> None:
    made = ledger(PARIS, ROME)
    made.commit(claim("old", PARIS.id, "1990-01-01", "2000-01-01", "2020-01-05"))
    made.commit(claim("a", PARIS.id, "2020-01-01", None, "2020-01-05"))
    made.commit(claim("b", ROME.id, "2022-01-01", None, "2022-01-05"))
    made.commit(verdict(PARIS, ROME, COMPATIBLE, USER))
    assert rows(made.derived(), made) == [
        ("Paris", "1990-01-01", "2000-01-01", False),
        ("Paris", "2020-01-01", "", True),
        ("Rome", "2022-01-01", "", True),
    ]


def test_what_a_user_found_compatible_comes_between_nobody() -> None:
    made = ledger(OSLO, PARIS, ROME)
    made.commit(verdict(OSLO, ROME, COMPATIBLE, USER))
    made.commit(claim("a", OSLO.id, "2020-01-01", None, "2020-01-01"))
    made.commit(claim("b", PARIS.id, "2021-01-01", None, "2021-01-01"))
    made.commit(claim("c", ROME.id, "2022-01-01", "2022-06-01", "2022-01-01"))
    made.commit(claim("d", OSLO.id, None, None, "2023-01-01"))
    assert rows(made.derived(), made) == [
        ("Oslo", "2020-01-01", "2021-01-01", True),
        ("Paris", "2021-01-01", "2022-01-01", True),
        ("Rome", "2022-01-01", "2022-06-01", False),
        ("Oslo", "2023-01-01", "", True),
    ]


def test_a_user_who_agrees_with_the_model_exempts_nothing() -> None:
    made = ledger(LOVES, HATES)
    made.commit(claim("a", LOVES.id, "2020-01-01", None, "2020-01-01"))
    made.commit(claim("b", HATES.id, "2021-01-01", None, "2021-01-01"))
    made.commit(verdict(LOVES, HATES, CONTRADICTS, RULE), verdict(LOVES, HATES, COMPATIBLE, USER))
    assert [span.contested for span in made.derived()] == [True, True]
    made.commit(verdict(LOVES, HATES, COMPATIBLE, MODEL))
    assert [span.contested for span in made.derived()] == [False, False]


def test_closures_follow_slots_and_verdicts() -> None:
    statements = [PARIS, ROME, LOVES, HATES, TEA]

    def grouped(*verdicts: Verdict) -> set[frozenset[StatementId]]:
        return {frozenset(one.id for one in each) for each in closures(statements, verdicts, cardinality)}

    home, tea = frozenset({PARIS.id, ROME.id}), frozenset({TEA.id})
    assert grouped() == {home, tea, frozenset({LOVES.id}), frozenset({HATES.id})}
    assert grouped(verdict(LOVES, HATES, CONTRADICTS)) == {home, tea, frozenset({LOVES.id, HATES.id})}
    assert frozenset({*home, LOVES.id}) in grouped(verdict(PARIS, LOVES, COMPATIBLE))


def test_ties_fall_to_the_greater_text_not_to_an_id() -> None:
    def literal(text: str, subject: str) -> Statement:
        value = Literal(LiteralKind.STRING, text)
        ids = EntityId(subject), EntityId("lives_in")
        return Statement(statement_id(SCOPE, *ids, value), *ids, value, f"{subject} lives in {text}")

    for subject in map(str, range(8)):  # other subjects, other ids
        made = ledger(literal("Aachen", subject), literal("Zagreb", subject))
        for number, one in enumerate(made.statements):
            made.commit(claim(f"claim {number}", one, "2020-01-01", None, "2020-01-01"))
        (span,) = made.believed()
        shown = made.statements[span.statement].object
        assert isinstance(shown, Literal)
        assert shown.text == "Zagreb"


def test_keys_break_ties_where_objects_are_entities() -> None:
    given = [claim("a", PARIS.id, "2020-01-01", None, "2020-01-01")]
    given.append(replace(given[0], id=RecordId("b"), statement=ROME.id))
    keys = {EntityId("Paris"): "z", EntityId("Rome"): "a"}
    found = competition([PARIS, ROME], given, [], cardinality, Reading({}, keys))
    assert [found.content(one.id) for one in (PARIS, ROME)] == ["z", "a"]


def test_a_circle_of_merges_ends() -> None:
    a, b = EntityId("a"), EntityId("b")
    assert Reading({a: b, b: a}, {}).entity(a) in (a, b)
