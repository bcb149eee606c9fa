"""Fusion: scores of legs summed, each on its own scale; deterministic, and swayed by nothing hidden."""

import random

from hypothesis import given
from hypothesis import strategies as st

from services.recall.fuse import Found, Leg, fuse, normalised, ranked

HITS = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 10, allow_nan=False), max_size=8)


def leg(name: str, hits: dict[str, float]) -> Leg:
    return Leg(name, sorted(hits.items(), key=lambda hit: (-hit[1], hit[0])))


def test_both_legs_beat_one() -> None:
    fused = fuse(
        [leg("statements_dense", {"a": 0.9, "b": 0.8}), leg("statements_lexical", {"b": 3.0})], {"a", "b"}
    )
    assert fused.scores["b"] > fused.scores["a"]
    [item] = fused.items("b", fused.scores)
    assert item.score == fused.scores["b"]
    assert item.found == (Found("statements_dense", 2, 0.8), Found("statements_lexical", 1, 3.0))


def test_a_leg_that_found_nothing_still_counts() -> None:
    alone = fuse([leg("statements_dense", {"a": 0.9})], {"a"})
    beside = fuse([leg("statements_dense", {"a": 0.9}), leg("statements_lexical", {})], {"a"})
    assert alone.scores["a"] == 1.0
    assert beside.scores["a"] == 0.5


@given(HITS, HITS, st.sets(st.sampled_from("abcdefgh")))
def test_what_is_hidden_sways_nothing(
    dense: dict[str, float], words: dict[str, float], visible: set[str]
) -> None:
    legs = [leg("passages_dense", dense), leg("passages_lexical", words)]
    shown = [
        leg("passages_dense", {id: s for id, s in dense.items() if id in visible}),
        leg("passages_lexical", {id: s for id, s in words.items() if id in visible}),
    ]
    assert fuse(legs, visible) == fuse(shown, visible)


@given(HITS, HITS, st.integers(0, 100))
def test_the_order_of_legs_does_not_matter(
    dense: dict[str, float], words: dict[str, float], seed: int
) -> None:
    legs = [leg("statements_dense", dense), leg("statements_lexical", words), leg("walk", words)]
    mixed = random.Random(seed).sample(legs, len(legs))
    assert fuse(legs, set("abcdefgh")) == fuse(mixed, set("abcdefgh"))


@given(st.lists(st.floats(-1, 100, allow_nan=False), max_size=20))
def test_normalised_scores_keep_their_order_within_0_and_1(scores: list[float]) -> None:
    scaled = normalised(scores)
    assert all(0 <= score <= 1 for score in scaled)
    for one, other in zip(scores, scaled, strict=True):
        assert all(other >= scaled[at] for at, less in enumerate(scores) if less <= one)
    assert not scores or max(scores) <= 0 or max(scaled) == 1


def test_equal_scores_go_by_recency_then_sources_then_id() -> None:
    scores = {**dict.fromkeys("dcba", 0.5), "z": 0.5 + 1e-12, "y": 0.4}
    newest = {"a": 1, "b": 2, "c": 2, "d": 2, "z": 0}
    sources = {"a": 9, "b": 1, "c": 2, "d": 1, "z": 9}
    order = ranked(scores, 6, newest.__getitem__, sources.__getitem__)
    assert order == ["c", "b", "d", "a", "z", "y"]
    assert ranked(scores, 3, newest.__getitem__, sources.__getitem__) == order[:3]
