"""Lists of ids in parts that a store takes at once."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

IN_CHUNK = 500
"""Items of an IN list: far below the drivers' limits (32,766 on SQLite), few enough to plan quickly."""


def in_chunks(items: Iterable[T], size: int = IN_CHUNK) -> Iterator[list[T]]:
    """The distinct items in their order, at most `size` at a time."""
    rest = iter(dict.fromkeys(items))
    while chunk := list(islice(rest, size)):
        yield chunk
