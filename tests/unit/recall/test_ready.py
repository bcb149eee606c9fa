"""Ready: the first question of a process finds what is built once."""

from services.domain.dates.resolver import english
from services.llm.tokens import encoding
from services.recall.ready import make_ready


def test_ranks_and_rules_are_built_before_the_first_question() -> None:
    encoding.cache_clear()
    english.cache_clear()
    make_ready()
    assert (encoding.cache_info().currsize, english.cache_info().currsize) == (1, 1)
