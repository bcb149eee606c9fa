"""Together: short messages of one session that wait while another is understood, taken on in one go.

As a log groups its commits: who comes first goes alone, whoever comes meanwhile goes together next. What is
gathered so lives in this process alone; a job that is cut off is understood anew by whoever resumes it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

import structlog

from services.domain.errors import ServiceError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

MOST = 8
"""Messages in one go: more make a model's answers worse, not better."""

_log = structlog.get_logger(__name__)


class _Turn(Enum):
    """What somebody who waits is told in place of a result."""

    LEAD = "go next, with those behind you"
    ALONE = "go alone: the group failed"


@dataclass(slots=True)
class _Waiting(Generic[ItemT, ResultT]):
    item: ItemT
    told: "asyncio.Future[ResultT | _Turn]" = field(repr=False)


class Together(Generic[ItemT, ResultT]):
    """Groups by key. At most one group of a key is at work."""

    def __init__(
        self, work: Callable[[Sequence[ItemT]], Awaitable[Sequence[ResultT]]], most: int = MOST
    ) -> None:
        """`work` does several, in the order of their coming, and answers in that order."""
        self._work = work
        self._most = most
        self._queues: dict[str, deque[_Waiting[ItemT, ResultT]]] = {}

    async def __call__(self, key: str, item: ItemT) -> ResultT:
        """The item's result. What a group could not do each does alone, so that none fails for another."""
        queue = self._queues.get(key)
        if queue is None:
            self._queues[key] = deque()
            return await self._lead(key, item)
        mine: _Waiting[ItemT, ResultT] = _Waiting(item, asyncio.get_running_loop().create_future())
        queue.append(mine)
        try:
            told = await mine.told
        except asyncio.CancelledError:
            if mine.told.done() and not mine.told.cancelled() and mine.told.result() is _Turn.LEAD:
                self._pass_on(key)  # it was its turn just then
            raise
        if told is _Turn.LEAD:
            return await self._lead(key, item)
        return (await self._work([item]))[0] if isinstance(told, _Turn) else told

    async def _lead(self, key: str, item: ItemT) -> ResultT:
        """Does the item with those who wait behind it, then lets the next go."""
        queue = self._queues[key]
        group: list[_Waiting[ItemT, ResultT]] = []
        while queue and len(group) < self._most - 1:
            one = queue.popleft()
            if not one.told.done():
                group.append(one)
        results: Sequence[ResultT] = ()
        try:
            try:
                results = await self._work([item, *(one.item for one in group)])
            except ServiceError as error:
                if not group:
                    raise
                _log.warning("understood_apart", together=1 + len(group), why=error.reason)
        finally:
            told: Sequence[ResultT | _Turn] = results[1:] or [_Turn.ALONE] * len(group)
            for one, result in zip(group, told, strict=True):
                if not one.told.done():
                    one.told.set_result(result)
            self._pass_on(key)
        return results[0] if results else (await self._work([item]))[0]

    def _pass_on(self, key: str) -> None:
        """Whoever waits longest goes next; where nobody does, the key is free."""
        queue = self._queues[key]
        while queue:
            following = queue.popleft()
            if not following.told.done():
                following.told.set_result(_Turn.LEAD)
                return
        del self._queues[key]
