"""How much of what is dear is tried every day: the rest is of the long run."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings


def one_in(share: int) -> int:
    """Examples of a law whose every example is a whole store, or many durable writes.

    One in `share` of those that other laws get in this run; never fewer than five.
    """
    return max(5, settings().max_examples // share)


def sampled(values: Iterable[Any], every: int = 2) -> list[Any]:
    """Parameters of a test, of which each `every`-th is tried every day and all of them in the long run.

    A tuple gives several parameters at once.
    """
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=() if number % every == 0 else pytest.mark.slow,
        )
        for number, value in enumerate(values)
    ]
