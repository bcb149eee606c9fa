"""Bodies: what is stored comes back the same, and its form is pinned: stored texts outlive the code."""

import json
from dataclasses import replace

import pytest

from services.domain.graph import EntityType, GraphAspect
from services.domain.ids import PassageId, RecordId, Revision
from services.domain.instants import Instant, Precision
from services.domain.records import Source
from services.stores.errors import UnstorableText
from services.stores.graph.nebula import bodies
from services.stores.graph.nebula.bodies import Closed, Judged, Node, Revoked, Told
from tests.builders import Maker, a_scope, on, text, without_precisions

make = Maker(a_scope())
FACT = make.fact("Mara", "lives in", "Paris", on("2020-01-01"), aspect=GraphAspect.IDENTITY)
STATEMENT, CLAIM, SPAN = FACT.statements[0], FACT.claims[0], FACT.opened[0]
SAID = replace(
    CLAIM,
    source=Source(make.episode(), PassageId("p"), "quote \\ \" ' 引号 👩‍👩‍👧"),
    start_precision=Precision.YEAR,
    end=Instant(-1),
    time_text="around\nthen",
    confidence=0.25,
)
TOLD: list[Told] = [
    replace(make.alias(FACT.entities[0]), recorded_at=Revision(7)),
    SAID,
    replace(CLAIM, source=Source(None)),
    make.end(STATEMENT, on("2024-01-01")),
    make.denial(STATEMENT, None, on("2024-01-01")),
    make.verdict(STATEMENT, STATEMENT, episode="e1"),
    Judged(RecordId("v"), STATEMENT.id, "e"),
    Revoked(CLAIM.id, STATEMENT.id, Revision(2)),
    SPAN,
    replace(SPAN, invalid_at=Instant(5), known_to=Revision(3), ended_by=CLAIM.id, contested=True),
    make.span(
        STATEMENT, on("2023-01-01"), revision=4, precisions=(Precision.YEAR, Precision.DAY), assumed=True
    ),
    Closed(SPAN.id, STATEMENT.id, Revision(4)),
]


@pytest.mark.parametrize("one", TOLD, ids=lambda one: type(one).__name__)
def test_what_an_edge_says_comes_back(one: Told) -> None:
    again = bodies.told(bodies.body_of(one))
    assert again == one
    assert [type(value) for value in _fields(again)] == [type(value) for value in _fields(one)]
    if hasattr(one, "recorded_at"):
        assert getattr(again, "recorded_at", None) == one.recorded_at


def test_nodes_come_back() -> None:
    for entity in FACT.entities:
        assert bodies.entity(bodies.body_of(entity)) == entity
    literal = replace(STATEMENT, object=text("a \x01 value"), aspect=None, event_at=Instant(3))
    for statement in (STATEMENT, literal):
        assert bodies.statement(bodies.body_of(statement)) == statement


SOURCED = "attested_at confidence id recorded_at revoked_at source statement"
FORM = {
    "alias": "entity key name recorded_at type",
    "claim": f"{SOURCED} end end_precision seen start start_precision time_text",
    "ending": f"{SOURCED} at precision reason",
    "denial": f"{SOURCED} start until",
    "verdict": "attested_at episode id judge kind left model prompt_version recorded_at revoked_at right why",
    "judged": "episode left verdict",
    "revocation": "record revoked_at statement",
    "span": "assumed contested end_precision ended_by id invalid_at known_from known_to start_precision "
    "started_by statement valid_at",
    "closing": "known_to span statement",
}


def test_the_form_is_pinned() -> None:
    """A change here is a change of what is stored: the old form must still be read then."""
    told = {kind: set(row) for kind, row in (json.loads(bodies.body_of(one)) for one in TOLD)}
    assert told == {kind: set(names.split()) for kind, names in FORM.items()}
    node = replace(FACT.entities[0], type=EntityType.PERSON, created_at=Revision(3))
    names = {"id": node.id, "name": "Mara", "key": "mara", "aliases": ["Mara"]}
    assert json.loads(bodies.body_of(node)) == ["entity", {**names, "type": "Person", "created_at": 3}]
    kind, row = json.loads(bodies.body_of(replace(STATEMENT, object=text("x"))))
    assert (kind, row) == (
        "statement",
        {
            "id": STATEMENT.id,
            "subject": STATEMENT.subject,
            "predicate": STATEMENT.predicate,
            "object": {"kind": "string", "text": "x"},
            "fact": "Mara lives in Paris",
            "aspect": "Identity",
            "event_at": None,
            "created_at": 1,
        },
    )


def test_a_span_of_before_is_read() -> None:
    kind, row = json.loads(bodies.body_of(SPAN))
    for name in ("start_precision", "end_precision", "assumed"):
        del row[name]
    assert bodies.told(json.dumps([kind, row])) == without_precisions(SPAN)


@pytest.mark.parametrize("bad", ["nul \x00", "lone \ud800", "\udfff"], ids=["nul", "high", "low"])
def test_what_can_not_be_stored_is_found_wherever_it_is(bad: str) -> None:
    node = FACT.entities[0]
    wrong: list[Told | Node] = [
        replace(node, aliases=("x", bad)),
        replace(STATEMENT, object=text(bad)),
        replace(SAID, source=replace(SAID.source, quote=bad)),
        replace(SAID, source=replace(SAID.source, passage=PassageId(bad))),
        replace(make.verdict(STATEMENT, STATEMENT), model=bad),
        replace(make.alias(node), name=bad),
    ]
    for one in wrong:
        with pytest.raises(UnstorableText) as refused:
            bodies.check(one)
        assert bad not in str(refused.value)
    for fine in TOLD:
        bodies.check(fine)


def test_edges_of_what_ends_a_thing_have_its_place() -> None:
    scope = a_scope()
    assert (
        bodies.key_of(scope, SPAN).rank
        == bodies.key_of(scope, Closed(SPAN.id, STATEMENT.id, Revision(2))).rank
    )
    keys = {bodies.key_of(scope, one) for one in TOLD if not isinstance(one, Revoked | Closed)}
    assert len(keys) == len(TOLD) - 2


def test_silence_keeps_everything_but_texts() -> None:
    assert bodies.silent(SAID) == replace(SAID, source=replace(SAID.source, quote=""), time_text="")
    emptied = bodies.emptied(replace(STATEMENT, object=text("x")))
    assert emptied == replace(STATEMENT, object=text(""), fact="")
    assert bodies.restored(emptied, replace(STATEMENT, object=text("x"), created_at=Revision(9))) == replace(
        STATEMENT, object=text("x")
    )


def _fields(one: Told) -> list[object]:
    return [getattr(one, name) for name in one.__dataclass_fields__]
