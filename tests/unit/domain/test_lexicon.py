"""Lexicons: what ships is spelling, what is declared is reading alone."""

import pytest

from services.domain.identity import Merge, MergeKind
from services.domain.ids import RecordId, Revision
from services.domain.inflections import inflections
from services.domain.instants import Instant
from services.domain.lexicon import Lexicon, Synonym, predicate_id
from services.domain.predicates import Cardinality, Declaration, Declared, default_vocabulary
from services.domain.records import Judge
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


def synonym(
    name: str, other: str, at: int = 1, judge: Judge = Judge.MODEL, until: int | None = None, said: int = 1
) -> Synonym:
    sides = predicate_id(SCOPE, name), predicate_id(SCOPE, other)
    gone = None if until is None else Revision(until)
    made = RecordId(f"{name}-{other}-{at}")
    record = Merge(
        made, *sides, MergeKind.SYNONYM, judge, Instant(said), recorded_at=Revision(at), revoked_at=gone
    )
    return Synonym(record, name, other)


def finding(
    *synonyms: Synonym, known_at: int | None = None, records: list[Declared] | None = None
) -> Lexicon:
    at = None if known_at is None else Revision(known_at)
    return Lexicon(SCOPE, SHIPPED, records or (), at, synonyms)


def test_a_synonym_reads_as_what_it_is_another_word_for() -> None:
    found = finding(synonym("toils_at", "works_for"))
    toils, works = predicate_id(SCOPE, "toils_at"), predicate_id(SCOPE, "works_at")
    assert found.merged == {toils: works}
    assert (found.key("toils at"), found.known.canonical("toils at")) == ("toils_at", "works_at")
    assert found.cardinality("toils_at") is Cardinality.SINGLE
    assert found.inverse_of(toils) == predicate_id(SCOPE, "employs")
    assert found.keys("works_at") == ["works_at", "toils_at"]
    assert found.alike(works) == {works, toils}
    assert "toils_at" in found.aliases("works_at")
    assert not found.knows("toils_at")
    assert "toils_at" not in found.words


def test_a_synonym_counts_from_its_revision_until_it_is_revoked() -> None:
    one = synonym("toils_at", "works_at", at=3, until=5)
    read = [finding(one, known_at=at).known.canonical("toils_at") for at in (2, 3, 4, 5)]
    assert read == ["toils_at", "works_at", "works_at", "toils_at"]


def test_what_ships_or_is_declared_comes_before_a_synonym() -> None:
    assert finding(synonym("employer", "lives_in")).known.canonical("employer") == "works_at"
    assert finding(synonym("likes", "loves")).merged == {}
    for declaration, canonical in (
        (Declaration("labours_at", aliases=("toils_at",)), "labours_at"),
        (Declaration("toils_at"), "toils_at"),
        (Declaration("toiled_by", inverse="toils_at"), "toils_at"),
    ):
        later = finding(synonym("toils_at", "works_at"), records=declared(2, declaration))
        assert later.known.canonical("toils_at") == canonical
        before = finding(synonym("toils_at", "works_at"), records=declared(2, declaration), known_at=1)
        assert before.known.canonical("toils_at") == "works_at"


def test_synonyms_of_synonyms_and_circles() -> None:
    chain = [synonym("a_b", "c_d"), synonym("c_d", "works_at")]
    for some in (chain, chain[::-1]):
        assert finding(*some).known.canonical("a_b") == "works_at"
    circle = [synonym("a_b", "c_d"), synonym("c_d", "e_f"), synonym("e_f", "c_d")]
    assert finding(*circle).merged == {}
    assert finding(synonym("a_b", "")).merged == finding(synonym("", "works_at")).merged == {}


def test_of_several_synonyms_the_heaviest_counts_whatever_their_order() -> None:
    light, heavy = synonym("toils_at", "lives_in", said=9), synonym("toils_at", "works_at", judge=Judge.USER)
    for some in ([light, heavy], [heavy, light]):
        assert finding(*some).known.canonical("toils_at") == "works_at"
    late = synonym("toils_at", "studies_at", said=10)
    for some in ([light, late], [late, light]):
        assert finding(*some).known.canonical("toils_at") == "studies_at"


def test_after_a_revision_takes_synonyms_along_and_takes_them_back() -> None:
    one = synonym("toils_at", "works_at")
    found = finding().after((), (), [one])
    assert found.known.canonical("toils_at") == "works_at"
    assert found.after((), [one.id]).known.canonical("toils_at") == "toils_at"
    named = found.after(declared(2, Declaration("toils_at")), ())
    assert named.known.canonical("toils_at") == "toils_at"
    assert found.after((), ()) is found
