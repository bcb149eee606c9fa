"""Care: what is done about a store or model that is down: named in the answer where that is allowed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from services.llm.port import EngineError
from services.stores.errors import StoreUnavailable

T = TypeVar("T")

EMBEDDER = "embedder"


class Care:
    """Runs the parts of one call. `degraded` collects what was down; empty means the answer is whole."""

    def __init__(self, allow_degraded: bool) -> None:
        self._allow = allow_degraded
        self.degraded: set[str] = set()

    async def of(self, part: Awaitable[T], otherwise: T) -> T:
        """What a part gives, or `otherwise` when its store or the embedder is down and that is allowed.

        Raises StoreUnavailable and EngineError where it is not.
        """
        try:
            return await part
        except StoreUnavailable as error:
            if not self._allow:
                raise
            self.degraded.add(error.component)
        except EngineError:
            if not self._allow:
                raise
            self.degraded.add(EMBEDDER)
        return otherwise


@asynccontextmanager
async def at_once() -> AsyncIterator[asyncio.TaskGroup]:
    """Tasks that run at the same time. The first error ends the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def together(*parts: Coroutine[Any, Any, T]) -> list[T]:
    """What parts of one kind give, in their order, run at once."""
    async with at_once() as group:
        tasks = [group.create_task(part) for part in parts]
    return [task.result() for task in tasks]
