"""States of indexes: as bytes and back, whatever they hold; what is damaged is seen."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.graph import EntityType, GraphAspect
from services.domain.ids import EpisodeId
from services.domain.memory import Role
from services.recall.bm25 import Bm25
from services.recall.hot.graph import HotGraph
from services.recall.hot.kept import LAYOUT
from services.recall.hot.texts import HotTexts
from services.recall.states import PART_BYTES, Damaged, State, from_parts, nested, to_parts, within
from services.recall.terms import terms
from services.recall.turns import Turns
from services.stores.graph.plain import plain
from services.stores.graph.port import Records
from services.stores.memory.following import plain_passage, said_of
from tests.builders import Maker, a_scope, on, text
from tests.contracts.memory_base import full_episode, passage, whole_passage

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
plain_values = texts | st.integers(-(2**63), 2**63) | st.none() | st.booleans() | st.binary(max_size=8)
lists = st.lists(plain_values | st.tuples(texts, st.integers(), st.lists(texts, max_size=2)), max_size=9)
arrays = st.tuples(
    st.lists(st.integers(0, 2**31), max_size=9), st.sampled_from(["int64", "uint32", "float32"])
).map(lambda one: np.array(one[0], dtype=one[1]))
states = st.dictionaries(texts, lists | arrays, max_size=6)


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two states hold the same, kinds of arrays too."""
    if one.keys() != other.keys():
        return False
    for name, held in one.items():
        also = other[name]
        if isinstance(held, np.ndarray):
            if held.dtype != also.dtype or held.shape != also.shape or not (held == also).all():
                return False
        elif held != also or type(held) is not type(also):
            return False
    return True


@given(state=states)
def test_a_state_is_read_as_it_was_written(state: State) -> None:
    assert same(from_parts(to_parts(state)), state)


@given(one=states, other=states)
def test_states_within_a_state_are_theirs(one: State, other: State) -> None:
    both = {**nested("one", one), **nested("other", other)}
    assert same(within("one", both), one)
    assert same(within("other", both), other)


def test_a_large_state_is_of_many_parts_none_of_them_large() -> None:
    state: State = {"ids": [f"{n:036}" for n in range(200_000)], "numbers": np.arange(500_000)}
    parts = list(to_parts(state))
    assert len(parts) > 5
    assert max(map(len, parts)) < 5 * PART_BYTES
    assert same(from_parts(parts), state)


def test_what_is_read_may_be_written_to() -> None:
    held = from_parts(to_parts({"numbers": np.zeros(3)}))
    held["numbers"][0] = 1


@given(at=st.integers(0, 10_000), by=st.integers(1, 255))
def test_a_damaged_byte_is_seen(at: int, by: int) -> None:
    (part,) = to_parts({"ids": ["one", "two"], "numbers": np.arange(9)})
    broken = bytearray(part)
    broken[at % len(part)] ^= by
    try:
        found = from_parts([bytes(broken)])
    except Damaged:
        return
    assert same(found, from_parts([part])), "a bit that means nothing"


def test_what_lacks_its_end_is_damaged() -> None:
    parts = list(to_parts({"ids": [f"{n:036}" for n in range(200_000)]}))
    for kept in range(len(parts)):
        with pytest.raises(Damaged):
            from_parts(parts[:kept])


class TestIndexes:
    """The states of all kinds of indexes, of one small graph that has something of everything."""

    def test_an_index_of_a_state_has_that_state(self) -> None:
        made: dict[str, Any] = {"graph": HotGraph, "words": Bm25, "texts": HotTexts, "turns": Turns}
        for name, state in filled().items():
            assert same(made[name](from_parts(to_parts(state))).state, state), name

    def test_an_empty_index_of_a_state_is_empty(self) -> None:
        made: dict[str, Any] = {"graph": HotGraph, "words": Bm25, "texts": HotTexts, "turns": Turns}
        for name, of in made.items():
            assert same(of(from_parts(to_parts(of().state))).state, of().state), name

    def test_a_state_that_is_made_otherwise_is_of_another_layout(self) -> None:
        """When this fails, two releases would misread each other: raise LAYOUT, then mend this."""
        told = hashlib.sha256()
        for name, state in filled().items():
            for field, held in sorted(state.items()):
                array = isinstance(held, np.ndarray)
                values = [held.dtype.str, held.tolist()] if array else held
                told.update(f"{name} {field} {values!r}".encode())
        assert (LAYOUT, told.hexdigest()[:16]) == (1, "10820a2fbe67262d")


def filled() -> Mapping[str, State]:
    make = Maker(a_scope())
    ann, uses, rust = make.entity("Ann", EntityType.PERSON), make.predicate("uses"), make.entity("Rust")
    one = make.statement(ann, uses, rust, 1, GraphAspect.IDENTITY)
    other = make.statement(ann, uses, text("two things"), 2)
    records = Records(
        statements=[one, other],
        claims=[make.claim(one, start=on("2024-01-01")), make.claim(other)],
        ends=[make.end(one, on("2024-05-01"))],
        denials=[make.denial(other)],
        verdicts=[make.verdict(one, other, episode="e1")],
        spans=[make.span(one, on("2024-01-01"), on("2024-05-01")), make.span(other)],
    )
    graph, texts, words, turns = HotGraph(), HotTexts(), Bm25(), Turns()
    graph.put_entities([ann, uses, rust])
    graph.put(plain(records))
    said, held = whole_passage("p", "e"), passage("q", "e", held=True)
    told = [(plain_passage(each), said_of(each, full_episode("e")), each is said) for each in (said, held)]
    texts.put([EpisodeId("e")], told)
    words.add_all([("a", terms("Ann's running; she uses Rust, 在维也纳")), ("b", terms("Rust"))])
    turns.add_all([plain_passage(said), plain_passage(passage("r", "e", 5, role=Role.ASSISTANT))])
    return {"graph": graph.state, "words": words.state, "texts": texts.state, "turns": turns.state}
