"""A database whose process dies at one of its commits: just before it, or just after."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.stores.sql.database import Database
from services.stores.sql.isolation import Whose


class Died(Exception):
    """The process was gone: whoever called learnt nothing."""


class DyingDatabase(Database):
    """Dies at commit number `at` (from 1; 0: never): before it with nothing written, after it with all."""

    def __init__(self, engine: AsyncEngine, component: str, at: int = 0, *, before: bool = False) -> None:
        super().__init__(engine, component)
        self._at = at
        self._before = before
        self.commits = 0

    @asynccontextmanager
    async def write(self, whose: Whose) -> AsyncIterator[AsyncConnection]:
        async with super().write(whose) as connection:
            yield connection
            self.commits += 1
            if self.commits == self._at and self._before:
                raise Died
        if self.commits == self._at:
            raise Died
