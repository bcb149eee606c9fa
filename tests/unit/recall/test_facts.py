"""What facts mean: how spans stand to a time, how sure one is, what a walk reaches, what is answerable."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.graph import Entity, EntityType, Span
from services.domain.ids import EntityId
from services.domain.instants import Interval
from services.domain.records import Claim
from services.recall.answerable import answerable
from services.recall.block import shown_span
from services.recall.confidence import confidence
from services.recall.slots import replaced_by, successors
from services.recall.standing import Standing, Time, stand
from services.recall.walking import reach, walk_leg
from services.stores.graph.port import StatementView, Step
from tests.builders import Maker, a_scope, on

MAKER = Maker(a_scope())
NOW = on("2026-01-01")
OLD, OPEN = Interval(on("2020-01-01"), on("2022-01-01")), Interval(on("2024-01-01"), None)
JANUARY = Interval(on("2021-01-01"), on("2021-02-01"))
FUTURE = Interval(on("2027-01-01"), None)


@pytest.mark.parametrize(
    ("spans", "time", "expected"),
    [
        ([OPEN], Time(NOW), Standing(True, True)),
        ([OLD], Time(NOW), None),
        ([FUTURE], Time(NOW), None),
        ([], Time(NOW, show_ended=True), None),
        ([OLD], Time(NOW, show_ended=True), Standing(False, False)),
        ([OLD, OPEN], Time(NOW, show_ended=True), Standing(True, True)),
        ([OLD], Time(NOW, as_of=on("2021-01-01")), Standing(True, False)),
        ([OLD], Time(NOW, as_of=on("2022-01-01")), None),
        ([OPEN], Time(NOW, as_of=on("2021-01-01")), None),
        ([OPEN], Time(NOW, as_of=on("2021-01-01"), show_ended=True), None),
        ([OLD], Time(NOW, within=Interval(on("2021-06-01"), on("2023-01-01"))), Standing(True, False)),
        ([OLD], Time(NOW, within=Interval(on("2022-01-01"), None)), None),
        (
            [OLD],
            Time(NOW, period=Interval(on("2021-01-01"), on("2021-02-01")), show_ended=True),
            Standing(True, False),
        ),
        ([OPEN], Time(NOW, period=Interval(on("2021-01-01"), on("2021-02-01"))), Standing(False, True)),
    ],
)
def test_how_spans_stand_to_a_time(spans: list[Interval], time: Time, expected: Standing | None) -> None:
    assert stand(spans, time) == expected


CLAIM = MAKER.claim(MAKER.statement(MAKER.entity("a"), MAKER.predicate("p"), MAKER.entity("b")))


def claims_of(*sources: tuple[str, float]) -> list[Claim]:
    return [
        dataclasses.replace(
            CLAIM, source=dataclasses.replace(CLAIM.source, episode=MAKER.episode(name)), confidence=sure
        )
        for name, sure in sources
    ]


@pytest.mark.parametrize(
    ("sources", "contested", "expected"),
    [
        ([], False, 0.0),
        ([("one", 0.5)], False, 0.5),
        ([("one", 0.5), ("two", 0.5)], False, 0.75),
        ([("one", 0.5), ("one", 0.5)], False, 0.5),
        ([("one", 0.4), ("one", 0.5)], False, 0.5),
        ([("one", 0.5), ("two", 0.5)], True, 0.45),
        ([("one", 1.0)], False, 1.0),
    ],
)
def test_confidence(sources: list[tuple[str, float]], contested: bool, expected: float) -> None:
    assert confidence(claims_of(*sources), contested) == pytest.approx(expected)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1)), min_size=1, max_size=6))
def test_another_source_never_lowers_confidence(sources: list[tuple[str, float]]) -> None:
    one, all_of = claims_of(*sources[:-1]), claims_of(*sources)
    assert confidence(all_of, False) >= confidence(one, False) - 1e-12
    assert 0 <= confidence(all_of, True) <= confidence(all_of, False) <= 1


def node(name: str) -> Entity:
    return MAKER.entity(name, EntityType.UNKNOWN)


def view(
    subject: str, predicate: str, target: str, start: str = "", end: str = "", revision: int = 1
) -> StatementView:
    statement = MAKER.statement(node(subject), MAKER.predicate(predicate), node(target), revision)
    span = MAKER.span(statement, on(start) if start else None, on(end) if end else None, revision)
    return StatementView(statement, node(subject), MAKER.predicate(predicate), node(target), [span], [])


A, B, C = (
    view("X", "db", "A", "2020-01-01", "2021-01-01"),
    view("X", "db", "B", "2021-01-01", "2022-01-01"),
    view("X", "db", "C", "2022-01-01"),
)
ELSEWHEN = view("X", "db", "D", "2019-01-01", "2019-06-01")


def test_a_fact_replaced_what_ended_where_it_began() -> None:
    slot = [A, B, C, ELSEWHEN]
    assert replaced_by(C, slot) == [B]
    assert replaced_by(B, slot) == [A]
    assert replaced_by(A, slot) == []


def test_successors_are_followed_to_the_end_and_circles_end() -> None:
    assert successors(A, [A, B, C, ELSEWHEN]) == [B, C]
    assert successors(C, [A, B, C]) == []
    back = dataclasses.replace(A, spans=[*A.spans, *view("X", "db", "A", "2022-01-01", "2020-01-01").spans])
    assert {v.statement.id for v in successors(back, [back, B])} == {B.statement.id}


def test_a_walk_is_worth_less_with_every_hop_and_more_where_the_predicate_is_asked() -> None:
    first, second, third = view("Wen", "maintains", "S"), view("S", "host", "H"), view("S", "storage", "KV")
    steps = [Step(first, 1, node("Wen").id), Step(second, 2, node("S").id), Step(third, 2, node("S").id)]
    reached = reach(steps, {node("Wen").id: 1.0}, frozenset({MAKER.predicate("storage").id}))
    assert [reached[v.statement.id].score for v in (first, second, third)] == [1.0, 0.5, 1.0]
    assert [via for via, _ in reached[third.statement.id].path] == [node("Wen").id, node("S").id]
    assert walk_leg(reached).hits[-1] == (second.statement.id, 0.5)


def test_a_walk_goes_against_the_direction_too() -> None:
    step = Step(view("Ana", "knows", "Ben"), 1, node("Ben").id)
    further = Step(view("Ana", "likes", "Tea"), 2, node("Ana").id)
    reached = reach([step, further], {node("Ben").id: 1.0}, frozenset())
    assert [via for via, _ in reached[further.view.statement.id].path] == [node("Ben").id, node("Ana").id]


def span(start: str, end: str = "") -> Span:
    return MAKER.span(A.statement, on(start), on(end) if end else None)


@pytest.mark.parametrize(
    ("time", "starts"),
    [
        (Time(NOW), "2024-01-01"),
        (Time(NOW, as_of=on("2020-06-01")), "2020-01-01"),
        (Time(on("2022-06-01")), "2024-01-01"),
        (Time(on("2022-06-01"), within=Interval(on("2020-02-01"), on("2020-03-01"))), "2020-01-01"),
    ],
)
def test_a_line_shows_the_span_that_was_asked_for(time: Time, starts: str) -> None:
    shown = shown_span([span("2020-01-01", "2021-01-01"), span("2024-01-01")], time)
    assert shown is not None
    assert shown.valid_at == on(starts)


def test_no_spans_show_none() -> None:
    assert shown_span([], Time(NOW)) is None


def answered(asked: list[str], found: list[set[str]], named: str = "", about: str = "") -> float:
    ids, names = ([EntityId(named)], [{named}]) if named else ([], [])
    return answerable(asked, lambda _: 1.0, found, ids, {EntityId(about)}, names)


def test_answerable_is_the_share_of_words_and_halves_for_a_stranger() -> None:
    assert answered(["cat", "tea"], []) == 0.0
    assert answered(["cat", "tea"], [{"cat"}, {"tea"}]) == 1.0
    assert answered(["cat", "tea"], [{"cat"}]) == 0.75
    assert answered(["cat", "tea"], [{"milk"}]) == 0.5  # it may be told in other words
    assert answered(["cat"], [{"cat"}], named="ben", about="ana") == 0.75
    assert answered(["cat"], [{"cat"}], named="ben", about="ben") == 1.0
    assert answered(["cat"], [{"cat", "ben"}], named="ben", about="ana") == 1.0
    assert answered([], [{"cat"}]) == 0.75
