"""Lexicons: what ships is spelling, what is declared is reading alone."""

import pytest

from services.domain.ids import RecordId, Revision
from services.domain.inflections import inflections
from services.domain.lexicon import Lexicon, predicate_id
from services.domain.predicates import Cardinality, Declaration, Declared, default_vocabulary
from tests.builders import a_scope

SCOPE = a_scope()
SHIPPED = default_vocabulary()


def declared(at: int, *declarations: Declaration, until: int | None = None) -> list[Declared]:
    gone = None if until is None else Revision(until)
    return [Declared(RecordId(f"{one.name}-{at}"), one, Revision(at), gone) for one in declarations]


def lexicon(*records: Declared, known_at: int | None = None) -> Lexicon:
    return Lexicon(SCOPE, SHIPPED, records, None if known_at is None else Revision(known_at))


@pytest.mark.parametrize(
    ("said", "recorded"),
    [
        ("worked for", "works_at"), ("working_for", "works_at"), ("is working for", "works_at"),
        ("work_at", "works_at"), ("is_working_as", "job_title"), ("managed", "manages"), ("led", "leads"),
        ("is leading", "leads"), ("managed_by", "reports_to"), ("used_to_work_at", "used_to_work_at"),
        ("formerly_works_at", "formerly_works_at"), ("worked_on", "works_on"), ("born_in", "born_in"),
        ("friends", "friends"), ("status", "status"), ("working_with", "working_with"), ("has", "has"),
    ],
)  # fmt: skip
def test_inflections_are_one_name_and_prepositions_stay(said: str, recorded: str) -> None:
    assert SHIPPED.canonical(said) == recorded


def test_no_name_is_a_form_of_another() -> None:
    names = {*SHIPPED.aliases, *SHIPPED.aliases.values(), *SHIPPED.cardinalities, *SHIPPED.inverses}
    assert SHIPPED.forms.keys() & names == set()
    assert inflections("carries") >= {"carry", "carried", "carrying"}
    assert inflections("plans_for") >= {"planned_for", "is_planning_for"}
    assert inflections("maintained_by") == inflections("likes_by") == frozenset()


def test_what_ships_is_recorded_in_one_direction() -> None:
    plain = lexicon()
    assert plain.turned("manages") == "reports_to"
    assert plain.turned("employed") is None or plain.turned("employs") == "works_at"
    assert (plain.turned("reports to"), plain.turned("married_to"), plain.turned("likes")) == (
        None,
        None,
        None,
    )
    assert (plain.merged, plain.key("Spouse")) == ({}, "married_to")
    manages, reports_to = predicate_id(SCOPE, "manages"), predicate_id(SCOPE, "reports_to")
    assert plain.inverses[manages] == reports_to


def test_a_declared_alias_is_recorded_by_its_own_name() -> None:
    records = declared(3, Declaration("works_at", Cardinality.SINGLE, ("toils at",)))
    known = lexicon(*records)
    assert (known.key("toils_at"), known.key("employer")) == ("toils_at", "works_at")
    assert known.merged[predicate_id(SCOPE, "toils_at")] == predicate_id(SCOPE, "works_at")
    assert known.known.canonical("toiled at") == "works_at"
    assert {"works_at", "toils_at", "toiled_at"} <= set(known.keys("works_at"))
    before = lexicon(*records, known_at=2)
    assert (before.merged, before.known is SHIPPED) == ({}, True)


def test_what_was_taken_back_reads_as_before_and_is_still_recorded_apart() -> None:
    records = declared(3, Declaration("employs_me", Cardinality.SINGLE, ("employer",)), until=5)
    then, now = lexicon(*records, known_at=4), lexicon(*records)
    assert then.known.canonical("employer") == "employs_me"
    assert now.known.canonical("employer") == "works_at"
    assert then.key("employer") == now.key("employer") == "employer"
    assert now.merged[predicate_id(SCOPE, "employer")] == predicate_id(SCOPE, "works_at")
    assert then.after([], [records[0].id]).merged == now.merged


def test_an_inverse_may_be_the_predicate_itself() -> None:
    symmetric = lexicon(*declared(1, Declaration("plays_with", inverse="plays_with")))
    plays = predicate_id(SCOPE, "plays_with")
    assert symmetric.inverses[plays] == plays
    assert symmetric.turned("plays with") is None


def test_an_inverse_that_is_given_up_leaves_nothing() -> None:
    first = declared(1, Declaration("mentors", inverse="mentored_by"), until=2)
    known = lexicon(*first, *declared(2, Declaration("mentors")))
    assert known.known.inverse("mentors") is None
    assert known.known.inverse("mentored_by") is None
