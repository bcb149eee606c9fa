"""Stores that fail when they are told to: each call of a real store is counted, and one of them is lost."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from services.domain.scope import Scope
from services.stores.errors import StoreUnavailable


class Lost(StrEnum):
    """What of a call is lost."""

    REQUEST = "request"
    """The store never sees it."""
    ANSWER = "answer"
    """The store does it, and nobody hears of that."""


@dataclass
class Faults:
    """Which call of one component fails. Only calls for a watched scope count."""

    component: str
    scope: Scope | None = None
    at: int = 0
    """The call that fails, counted from 1; 0 lets all pass."""
    down: bool = False
    """Whether every call fails."""
    lost: Lost = Lost.REQUEST
    calls: list[str] = field(default_factory=list)
    """What was asked since `watch`."""

    def watch(self, scope: Scope, at: int = 0, lost: Lost = Lost.REQUEST) -> None:
        """Counts anew, for this scope alone."""
        self.scope, self.at, self.lost = scope, at, lost
        self.calls.clear()

    @property
    def struck(self) -> bool:
        """Whether the call that was to fail has been made."""
        return 0 < self.at <= len(self.calls)

    async def around(self, name: str, scope: object, call: Callable[[], Any]) -> Any:
        if self.down:
            raise StoreUnavailable(self.component)
        if scope != self.scope:
            return await call()
        self.calls.append(name)
        fails = len(self.calls) == self.at
        if fails and self.lost is Lost.REQUEST:
            raise StoreUnavailable(self.component)
        answer = await call()
        if fails:
            raise StoreUnavailable(self.component)
        return answer


class FailingStore:
    """A store, or one part of it, behind faults. What is no coroutine passes as it is."""

    def __init__(self, store: Any, faults: Faults, parts: tuple[str, ...] = ()) -> None:
        self._store = store
        self._faults = faults
        self._parts = {name: FailingStore(getattr(store, name), faults) for name in parts}

    def __getattr__(self, name: str) -> Any:
        if name in self._parts:
            return self._parts[name]
        found = getattr(self._store, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*given: Any, **named: Any) -> Any:
            scope = next((one for one in (*given, *named.values()) if isinstance(one, Scope)), None)
            return await self._faults.around(name, scope, lambda: found(*given, **named))

        return call
