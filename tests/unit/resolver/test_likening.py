"""Opinions on predicates: what holds together counts, in whatever order it was said."""

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from services.domain.records import Judge
from services.resolver.likening import Opinion, coherent

NEW = ("toils_at", "slaves_at", "drudges_at")
KNOWN = ("works_at", "lives_in")


def same(name: str, other: str) -> Opinion:
    return Opinion(name, other, same=True, judge=Judge.MODEL)


def apart(name: str, other: str) -> Opinion:
    return Opinion(name, other, same=False, judge=Judge.MODEL)


def joins(opinions: Sequence[Opinion]) -> dict[str, str]:
    return {one.name: one.other for one in coherent(opinions, NEW) if one.same}


def test_what_is_joined_reads_as_the_known_one_or_the_shortest() -> None:
    assert joins([same("toils_at", "works_at"), same("slaves_at", "toils_at")]) == {
        "toils_at": "works_at",
        "slaves_at": "works_at",
    }
    assert joins([same("slaves_at", "toils_at"), same("drudges_at", "slaves_at")]) == {
        "slaves_at": "toils_at",
        "drudges_at": "toils_at",
    }
    assert joins([]) == joins([apart("toils_at", "works_at")]) == {}


def test_a_class_with_two_known_ones_or_two_told_apart_joins_nothing() -> None:
    two = [same("toils_at", "works_at"), same("slaves_at", "toils_at"), same("slaves_at", "lives_in")]
    assert joins(two) == {}
    told = [same("toils_at", "works_at"), same("slaves_at", "toils_at"), apart("slaves_at", "works_at")]
    assert joins(told) == {}
    assert joins([*told, same("drudges_at", "lives_in")]) == {"drudges_at": "lives_in"}


PAIRS = [(new, other) for at, new in enumerate(NEW) for other in (*KNOWN, *NEW[:at])]


@given(st.lists(st.tuples(st.sampled_from(PAIRS), st.booleans()), unique_by=lambda one: one[0]), st.randoms())
def test_answers_hold_together_in_any_order(said: list[tuple[tuple[str, str], bool]], random: Random) -> None:
    opinions = [Opinion(*pair, same, Judge.MODEL) for pair, same in said]
    kept = coherent(opinions, NEW)
    shuffled = list(opinions)
    random.shuffle(shuffled)
    assert {(one.name, one.other, one.same) for one in coherent(shuffled, NEW)} == {
        (one.name, one.other, one.same) for one in kept
    }
    found = {one.name: one.other for one in kept if one.same}
    assert found.keys() <= set(NEW)
    assert found.keys().isdisjoint(found.values()), "nothing reads as what reads as another"
    for one in kept:
        if not one.same:
            assert found.get(one.name, one.name) != found.get(one.other, one.other)
    assert {(one.name, one.other) for one in kept if not one.same} == {
        pair for pair, same in said if not same
    }
