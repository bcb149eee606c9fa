"""The store beside LangGraph's own in memory: the same operations, the same answers."""

import asyncio
import string
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from palimpsest import sync
from palimpsest.adapters.langgraph import PalimpsestStore
from palimpsest.adapters.langgraph_items import FIELDS, matches, passes, text_of, value_of
from palimpsest.errors import InvalidRequest
from services.llm.offline import OfflineEngine
from tests.doubles.product import a_product

ADA, BO = ("memories", "ada"), ("memories", "bo")
PUTS: list[tuple[tuple[str, ...], str, dict[str, Any] | None]] = [
    (ADA, "home", {"text": "Ada lives in Oslo."}),
    (ADA, "work", {"content": "Ada works at Siemens.", "kind": "work", "rank": 2}),
    (BO, "home", {"text": "Bo lives in Rome.", "kind": "home"}),
    (BO, "numbers", {"rank": 1, "list": [1, 2.5, None, True, "名"], "deep": {"a": {}}}),
    (("other",), "thanks", {"text": "ok thanks!"}),
    (ADA, "home", {"text": "Ada lives in Graz."}),
    (ADA, "gone", {"text": "Ada likes tea."}),
    (ADA, "gone", None),
    (ADA, "never", None),
]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[PalimpsestStore]:
    async with a_product(tmp_path, OfflineEngine()) as product:
        tenant = await product.tenant("acme")
        with sync.Client(product.running.gateway.target, tenant.key) as client:
            yield PalimpsestStore(client)
            await asyncio.to_thread(client.close)


def plain(found: Any) -> Any:
    """An answer without times and scores."""
    if isinstance(found, list):
        return sorted((plain(one) for one in found), key=str)
    return found if found is None or isinstance(found, tuple) else (found.namespace, found.key, found.value)


@pytest.mark.slow
async def test_it_answers_as_langgraphs_own(store: PalimpsestStore) -> None:
    own = InMemoryStore()
    for namespace, key, value in PUTS:
        await own.aput(namespace, key, value) if value else await own.adelete(namespace, key)
        await store.aput(namespace, key, value) if value else await store.adelete(namespace, key)
    # Its own keeps a namespace that was only asked for, so this comes first.
    assert await store.alist_namespaces() == await own.alist_namespaces()
    assert await store.alist_namespaces(suffix=("ada",), max_depth=1) == [("memories",)]
    for namespace, key, _ in [*PUTS, (("nobody",), "home", None)]:
        assert plain(await store.aget(namespace, key)) == plain(await own.aget(namespace, key))
    for one in (
        SearchOp(("memories",)),
        SearchOp(()),
        SearchOp(("nobody",)),
        SearchOp(BO, filter={"kind": "home"}),
        SearchOp((), filter={"kind": {"$ne": "work"}, "text": {"$eq": "Bo lives in Rome."}}),
        SearchOp((), filter={"deep": {"a": {}}}),
    ):
        mine, theirs = [(await each.abatch([one]))[0] for each in (store, own)]
        assert plain(mine) == plain(theirs), one


async def test_what_is_put_is_found_and_understood(store: PalimpsestStore) -> None:
    await store.aput(ADA, "home", {"text": "Ada lives in Oslo."})
    (found,) = await store.asearch(("memories",), query="Where does Ada live?")
    assert (found.namespace, found.key, found.value) == (ADA, "home", {"text": "Ada lives in Oslo."})
    assert found.score is not None
    known = await asyncio.to_thread(store.memory(ADA).recall, "Where does Ada live?")
    assert "(Ada) --[lives_in]--> (Oslo)" in known.text


@pytest.mark.slow
async def test_a_put_strikes_through_what_it_says_no_more(store: PalimpsestStore) -> None:
    for namespace, key, value in PUTS[:3]:
        await store.aput(namespace, key, value or {})
    best, *_ = await store.asearch(("memories",), query="Where does Ada live?", limit=2)
    assert (best.namespace, best.key) == (ADA, "home")
    assert [one.key for one in await store.asearch(ADA, query="Siemens", filter={"kind": "work"})] == ["work"]
    first = await store.aget(ADA, "home")
    await store.aput(ADA, "home", {"text": "Ada lives in Graz."})
    second = await store.aget(ADA, "home")
    assert first is not None
    assert second is not None
    assert (second.created_at, second.updated_at > first.updated_at) == (first.created_at, True)
    known = await asyncio.to_thread(store.memory(ADA).recall, "Where does Ada live?")
    assert "Graz" in known.text
    assert [fact.current for fact in known.response.facts if "Oslo" in fact.statement.fact] == [False]


@pytest.mark.slow
async def test_it_works_without_awaiting_and_says_what_it_can_not(store: PalimpsestStore) -> None:
    def work() -> list[Any]:
        store.put(ADA, "home", {"text": "Ada lives in Oslo."})
        with pytest.raises(NotImplementedError):
            store.put(ADA, "home", {"text": "x"}, ttl=5)
        with pytest.raises(NotImplementedError):
            store.put(ADA, "home", {"text": "x"}, index=False)
        with pytest.raises(InvalidRequest):
            store.put(ADA, "a\nkey", {"text": "x"})
        # Reads of a batch see what was there before; the last put to a key counts.
        ops: list[Op] = [PutOp(ADA, "home", {"n": 1}), GetOp(ADA, "home"), PutOp(ADA, "home", {"n": 2})]
        return [*store.batch(ops), store.get(ADA, "home")]

    answers = await asyncio.to_thread(work)
    assert [plain(one) and plain(one)[2] for one in answers] == [
        None, {"text": "Ada lives in Oslo."}, None, {"n": 2}
    ]  # fmt: skip


JSON = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=3,
)
ODD = ["item: ", "a\n\nitem: {}", 'item: {"words": null, "value": {}}', "\n\n"]
WORDS = st.text(max_size=9) | st.sampled_from(ODD)
OTHERS = st.dictionaries(st.text(max_size=2), JSON, max_size=2)


@given(st.dictionaries(st.sampled_from(FIELDS), WORDS), OTHERS)
def test_a_value_comes_back_from_its_document(words: Mapping[str, str], others: Mapping[str, Any]) -> None:
    value = {**others, **words}
    text = text_of(value)
    assert value_of(text) == value
    assert text.strip()


@given(st.text())
def test_any_text_has_a_value(text: str) -> None:
    assert value_of(text)["text"] == text or "item: " in text


LABELS = st.text(string.ascii_lowercase[:2], min_size=1, max_size=1)


@given(
    st.lists(LABELS, max_size=3),
    st.lists(LABELS | st.just("*"), max_size=3),
    st.sampled_from(["prefix", "suffix"]),
)
def test_namespaces_match_as_langgraph_matches_them(name: list[str], path: list[str], kind: Any) -> None:
    own = InMemoryStore()
    own.put(("x", *name), "k", {"n": 1})
    condition = MatchCondition(kind, tuple(path))
    (listed,) = own.batch([ListNamespacesOp((condition,))])
    assert matches(("x", *name), condition) is bool(listed)


def test_values_are_compared_and_an_operator_that_is_none_is_refused() -> None:
    assert passes({"a": 2}, {"a": {"$gt": 1, "$lte": 2}})
    assert not passes({}, {"a": {"$gte": 1}})
    with pytest.raises(ValueError, match=r"\$near"):
        passes({"a": 1}, {"a": {"$near": 2}})
