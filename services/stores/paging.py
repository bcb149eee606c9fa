"""Stable paging: a page of results and the position after it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


class NotAPosition(ValueError):
    """A page is asked for after what no page of this list ended with."""

    def __init__(self) -> None:
        super().__init__("not a position in this list")


@dataclass(frozen=True, slots=True)
class Page:
    """Asks for at most `size` items after the one whose position is `after` ("" for the first page)."""

    size: int = 100
    after: str = ""


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """Items in a stable order. `after` continues the list; "" when there is no more."""

    items: Sequence[T]
    after: str = ""
