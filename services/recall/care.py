"""Care: what is done about a store or model that is down: named in the answer where that is allowed."""

import asyncio
from collections.abc import Awaitable, Coroutine
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


async def together(*parts: Coroutine[Any, Any, T]) -> list[T]:
    """Runs parts at once. The first error ends the others and is raised as it is."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
