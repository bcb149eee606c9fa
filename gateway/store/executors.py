"""Executors: the processes that run workflows, each under an id of its own, seen by their heartbeats."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select, update

from gateway.store.clock import SECOND, DatabaseClock
from gateway.store.once import insert_once
from gateway.store.tables import executors
from services.domain.instants import Instant
from services.stores.sql.database import Database
from services.stores.sql.isolation import Across

_WHOSE = Across("executors")


@dataclass(frozen=True, slots=True)
class Executor:
    """A process as it was last seen; `silent_seconds` ago, by the database's clock."""

    id: str
    instance: str
    started_at: Instant
    silent_seconds: float
    stopped: bool


class Executors:
    """The heartbeats of all processes."""

    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def start(self, id: str, instance: str) -> None:
        """A process begins under an id. One that has it still is replaced: its next heartbeat tells it so."""
        now = self._clock.now()
        begun = {"instance": instance, "started_at": now, "seen_at": now, "stopped_at": None}
        async with self._database.write(_WHOSE) as connection:
            if await insert_once(connection, executors, {"id": id, **begun}) is None:
                await connection.execute(update(executors).where(executors.c.id == id).values(begun))

    async def beat(self, id: str, instance: str) -> bool:
        """The process lives. False: another process has its id since."""
        async with self._database.write(_WHOSE) as connection:
            seen = await connection.execute(
                update(executors)
                .where(executors.c.id == id, executors.c.instance == instance)
                .values(seen_at=self._clock.now())
            )
        return bool(seen.rowcount)

    async def stop(self, id: str, instance: str) -> None:
        """The process has ended as it should. Idempotent."""
        async with self._database.write(_WHOSE) as connection:
            await connection.execute(
                update(executors)
                .where(executors.c.id == id, executors.c.instance == instance)
                .values(stopped_at=self._clock.now())
            )

    async def list(self) -> Sequence[Executor]:
        """All that ever were, by id."""
        query = select(executors, self._clock.now().label("now")).order_by(executors.c.id)
        async with self._database.read(_WHOSE) as connection:
            rows = (await connection.execute(query)).all()
        return [
            Executor(
                row.id,
                row.instance,
                Instant(row.started_at),
                (row.now - row.seen_at) / SECOND,
                row.stopped_at is not None,
            )
            for row in rows
        ]
