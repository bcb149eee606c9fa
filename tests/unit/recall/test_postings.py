"""Postings: what is sorted in and what is not yet answer alike."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from services.recall import postings
from services.recall.postings import Postings

DOCUMENTS = st.lists(st.lists(st.integers(0, 6), max_size=5), max_size=8)


@given(st.lists(st.tuples(DOCUMENTS, st.booleans()), max_size=4))
def test_a_term_is_where_its_documents_are_whether_they_are_sorted_in_or_not(
    parts: list[tuple[list[list[int]], bool]],
) -> None:
    found = Postings()
    every: list[list[int]] = []
    for documents, sorts in parts:
        found.add(len(every), [term for terms in documents for term in terms], [*map(len, documents)])
        every += documents
        if sorts:
            found.sort_in()
        for term in range(8):
            having = [
                (place, counts[term]) for place, counts in enumerate(map(Counter, every)) if counts[term]
            ]
            places, often = found.of(term)
            assert list(zip(places.tolist(), often.tolist(), strict=True)) == having


def test_what_came_is_sorted_in_once_it_is_much() -> None:
    found = Postings()
    words = postings.LEAST_FRESH // 2
    for place in range(3):
        found.add(place, [7] * words, [words])
        places, often = found.of(7)
        assert places.tolist() == list(range(place + 1))
        assert often.tolist() == [words] * (place + 1)
    # Sorted in, a document has a place and a count for the term, however often it has it.
    assert found.bytes < words * 8
