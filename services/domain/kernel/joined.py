"""Joined: things in classes that only grow (union-find)."""

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Joined(Generic[T]):
    """Each thing is alone until it is joined with another."""

    def __init__(self) -> None:
        self._parents: dict[T, T] = {}

    def __bool__(self) -> bool:
        """Whether anything was joined."""
        return bool(self._parents)

    def root(self, item: T) -> T:
        """The same for all of a class, until that class is joined with another."""
        root = item
        while (parent := self._parents.get(root, root)) != root:
            root = parent
        while (parent := self._parents.get(item, root)) != root:
            self._parents[item] = root
            item = parent
        return root

    def join(self, one: T, other: T) -> None:
        self._parents[self.root(one)] = self.root(other)
