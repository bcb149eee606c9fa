"""Staged payloads in SQL: what a chunk gave, between storing and resolving."""

from sqlalchemy import and_, delete, select, update

from services.domain.ids import EpisodeId
from services.domain.scope import Scope
from services.stores.memory.sql import schema
from services.stores.memory.sql.fences import pass_fence
from services.stores.sql.database import Database
from services.stores.sql.rows import insert_new, insert_or_update
from services.stores.storable import is_storable

_STAGED = schema.staged.c
CLOSED = b""
"""The payload of an episode whose facts are in the graph."""


class SqlStagingStore:
    """StagingStore over a table of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def stage(self, scope: Scope, episode: EpisodeId, payload: bytes) -> None:
        """See the port. Of an episode that was deleted nothing is kept."""
        assert payload != CLOSED, "what is staged says something"
        episodes = schema.episodes.c
        async with self._database.write(scope) as connection:
            await pass_fence(connection, scope)
            if is_storable(episode):
                query = (
                    select(episodes.deleted_at)
                    .where(episodes.scope == scope.key, episodes.id == episode)
                    .with_for_update(read=True)
                )
                if (await connection.execute(query)).scalar_one_or_none() is not None:
                    return
            row = {"scope": scope.key, "episode": episode, "payload": payload}
            await insert_new(connection, schema.staged, [row])
            is_open = and_(_STAGED.scope == scope.key, _STAGED.episode == episode, _STAGED.payload != CLOSED)
            await connection.execute(update(schema.staged).where(is_open).values(payload=payload))

    async def staged(self, scope: Scope, episode: EpisodeId) -> bytes | None:
        if not is_storable(episode):
            return None
        query = select(_STAGED.payload).where(_STAGED.scope == scope.key, _STAGED.episode == episode)
        async with self._database.read(scope) as connection:
            payload = (await connection.execute(query)).scalar_one_or_none()
        return None if payload == CLOSED else payload

    async def close(self, scope: Scope, episode: EpisodeId) -> None:
        if not is_storable(episode):
            return
        row = {"scope": scope.key, "episode": episode, "payload": CLOSED}
        async with self._database.write(scope) as connection:
            await insert_or_update(connection, schema.staged, [row], ["payload"])

    async def unstage(self, scope: Scope, episode: EpisodeId) -> None:
        if not is_storable(episode):
            return
        this = and_(_STAGED.scope == scope.key, _STAGED.episode == episode)
        async with self._database.write(scope) as connection:
            await connection.execute(delete(schema.staged).where(this))
