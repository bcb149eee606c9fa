"""The one place where text of queries is made: whatever is asked for, it holds our own words alone."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.instants import BEGINNING, FOREVER, Instant
from services.stores.vectors import filters
from services.stores.vectors.port import VectorFilter
from tests.builders import a_scope

SCOPE = a_scope()
LISTED = r"[a-z]+ in \[(?:\"[A-Za-z0-9_:-]+\"(?:, )?)*\]"
TERM = rf"(?:scope == \"[0-9a-f]{{16}}\"|(?:in)?valid_at [<>]=? -?[0-9]+|{LISTED})"
WHOLE = re.compile(rf"{TERM}(?: and {TERM})*")

IDS = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)
SOME = st.lists(IDS, max_size=3)
INSTANTS = st.none() | st.integers(BEGINNING, FOREVER).map(Instant)
HOSTILE = st.one_of(
    st.text().filter(lambda text: re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text) is None),
    st.sampled_from(
        ['" or 1 == 1 or id == "', "a\n", "ключ", "a'b", "\\", "a\x00", "a%", "{}", "x" * 65, "a–b"]
    ),
    st.tuples(IDS, st.sampled_from(['"', "\\", "\n", " ", "é", "\ud800"]), IDS).map("".join),
)


@given(
    where=st.builds(
        VectorFilter,
        holds_at=INSTANTS,
        since=INSTANTS,
        until=INSTANTS,
        aspects=SOME,
        subjects=SOME,
        sessions=SOME,
        ids=SOME,
    )
)
def test_an_expression_is_of_terms_of_ours_and_begins_with_the_scope(where: VectorFilter) -> None:
    expression = filters.expression(SCOPE, where)
    assert WHOLE.fullmatch(expression)
    assert expression.startswith(f'scope == "{SCOPE.key}"')


@given(text=HOSTILE, field=st.sampled_from(["aspects", "subjects", "sessions", "ids"]), more=SOME)
def test_hostile_text_is_refused_wherever_it_stands(text: str, field: str, more: list[str]) -> None:
    fields: dict[str, list[str]] = {field: [*more, text]}
    with pytest.raises(ValueError, match="alphabet"):
        filters.expression(SCOPE, VectorFilter(**fields))  # type: ignore[arg-type]  # fields by name
    with pytest.raises(ValueError, match="alphabet"):
        filters.of_keys(SCOPE, [*more, text])
    if text:
        with pytest.raises(ValueError, match="alphabet"):
            filters.between(SCOPE, text, "")


@given(scope=st.builds(a_scope, st.text(), st.text()))
def test_names_of_tenants_and_graphs_do_not_reach_an_expression(scope: object) -> None:
    assert WHOLE.fullmatch(filters.of_scope(scope))  # type: ignore[arg-type]  # built by a_scope


def test_an_expression_that_servers_would_choke_on_is_refused() -> None:
    ids = [f"id{number}" for number in range(filters.MAX_VALUES)]
    assert filters.expression(SCOPE, VectorFilter(ids=ids)).count("id") >= filters.MAX_VALUES
    with pytest.raises(ValueError, match="more than"):
        filters.expression(SCOPE, VectorFilter(ids=[*ids, "one-more"]))


@pytest.mark.parametrize("at", [BEGINNING, FOREVER])
def test_the_ends_of_time_are_open(at: Instant) -> None:
    held = filters.expression(SCOPE, VectorFilter(holds_at=at))
    assert f"valid_at <= {at}" in held
    assert f"invalid_at > {min(at, FOREVER - 1)}" in held
