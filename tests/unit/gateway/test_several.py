"""Recall over several graphs: what each gives keeps the limits of one answer, and hides no small graph."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.commands.several import shared
from palimpsest.internal.v1 import recall_pb2 as internal

SCORES = st.lists(st.floats(0, 1, allow_nan=False), max_size=8)
ANSWERS = st.lists(st.tuples(SCORES, SCORES, st.integers(0, 3_000)), min_size=2, max_size=5)


def answer(facts: list[float], passages: list[float], tokens: int) -> internal.RecallResponse:
    return internal.RecallResponse(
        facts=[internal.RecalledFact(score=score) for score in sorted(facts, reverse=True)],
        passages=[internal.RecalledPassage(score=score) for score in sorted(passages, reverse=True)],
        context_tokens=tokens,
    )


@given(ANSWERS, st.integers(0, 10), st.integers(0, 10), st.integers(64, 4_000))
def test_shares_keep_the_limits_of_one_answer(
    given_: list[tuple[list[float], list[float], int]], facts: int, passages: int, tokens: int
) -> None:
    answers = [answer(*one) for one in given_]
    shares = shared(answers, facts, passages, tokens)
    assert sum(share.facts for share in shares) == min(facts, sum(len(one.facts) for one in answers))
    assert sum(share.passages for share in shares) == min(passages, sum(len(one.passages) for one in answers))
    assert sum(share.tokens for share in shares) + len(shares) - 1 <= tokens
    assert all(share.tokens >= 1 for share in shares)


def test_the_best_of_a_small_graph_stand_beside_those_of_a_large_one() -> None:
    large, small = answer([0.9] * 8, [0.8] * 8, 2_000), answer([0.95], [0.9], 40)
    shares = shared([large, small], 3, 2, 1_000)
    assert [(share.facts, share.passages) for share in shares] == [(2, 1), (1, 1)]
    assert shares[1].tokens >= 40
    assert shares[0].tokens > 800
