"""Vids: short enough, told apart by scope and kind, and never made of user text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.ids import derive_id
from services.stores.graph.nebula import vids
from services.stores.graph.nebula.vids import VID_BYTES, Kind
from tests.builders import a_scope

IDS = st.from_regex(r"[0-9A-Za-z_-]{1,47}", fullmatch=True)
SCOPES = st.builds(a_scope, st.text(max_size=3), st.text(max_size=3))


@given(scope=SCOPES, kind=st.sampled_from(Kind), id=IDS)
def test_a_vid_holds_its_id(scope: object, kind: Kind, id: str) -> None:
    made = vids.vid(scope, kind, id)  # type: ignore[arg-type] # hypothesis tells no type
    assert len(made.encode()) <= VID_BYTES
    assert (vids.id_of(made), vids.kind_of(made)) == (id, kind)
    assert vids.literal(made) == f'"{made}"'


@given(text=st.text(max_size=60))
def test_what_is_no_id_makes_no_vid(text: str) -> None:
    if vids.is_id(text):
        assert vids.vids(a_scope(), Kind.ENTITY, [text, text]) == [vids.vid(a_scope(), Kind.ENTITY, text)]
    else:
        assert vids.vids(a_scope(), Kind.ENTITY, [text]) == []
        with pytest.raises(ValueError):
            vids.vid(a_scope(), Kind.ENTITY, text)


@pytest.mark.parametrize("text", ["", "a\n", "a" * 48, "é", "a b", "a.b", 'a"', "\x00", "\ud800"])
def test_ids_outside_the_alphabet(text: str) -> None:
    assert not vids.is_id(text)


def test_every_id_of_ours_fits() -> None:
    assert vids.is_id(derive_id(a_scope(), "entity", "any", "text"))


@given(one=st.text(), other=st.text())
def test_keys_are_digests_of_any_text(one: str, other: str) -> None:
    scope = a_scope()
    made = vids.key(scope, one)
    assert len(made) == VID_BYTES
    assert (made == vids.key(scope, other)) == (one == other)
    assert vids.literal(made)


def test_pairs_are_told_apart() -> None:
    scope = a_scope()
    made = {vids.pair(scope, kind, *ids) for kind in (Kind.SLOT, Kind.BETWEEN) for ids in ("ab", "ba", "aa")}
    assert len(made) == 6
    assert vids.pair(scope, Kind.SLOT, "ab", "c") != vids.pair(scope, Kind.SLOT, "a", "bc")
    assert vids.pair(scope, Kind.SLOT, "a", "b") != vids.pair(a_scope("other"), Kind.SLOT, "a", "b")


@given(st.integers(0, 2**62))
def test_shelves_are_ordered_as_their_numbers(number: int) -> None:
    made = vids.shelf(a_scope(), Kind.STATEMENTS, number)
    assert vids.shelf_number(made) == number
    assert made < vids.shelf(a_scope(), Kind.STATEMENTS, number + 1)


@given(IDS)
def test_places_are_ranks(id: str) -> None:
    assert 0 <= vids.place_of(id) < 2**63
