"""Staged payloads in SQL: what a chunk gave, between storing and resolving."""

from sqlalchemy import and_, delete, select

from services.domain.ids import EpisodeId
from services.domain.scope import Scope
from services.stores.memory.sql import schema
from services.stores.memory.sql.fences import pass_fence
from services.stores.sql.database import Database
from services.stores.sql.rows import insert_or_update, is_storable


class SqlStagingStore:
    """StagingStore over a table of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def stage(self, scope: Scope, episode: EpisodeId, payload: bytes) -> None:
        """See the port. Of an episode that was deleted nothing is kept."""
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
            await insert_or_update(connection, schema.staged, [row], ["payload"])

    async def staged(self, scope: Scope, episode: EpisodeId) -> bytes | None:
        if not is_storable(episode):
            return None
        staged = schema.staged.c
        query = select(staged.payload).where(staged.scope == scope.key, staged.episode == episode)
        async with self._database.read(scope) as connection:
            return (await connection.execute(query)).scalar_one_or_none()

    async def unstage(self, scope: Scope, episode: EpisodeId) -> None:
        if not is_storable(episode):
            return
        this = and_(schema.staged.c.scope == scope.key, schema.staged.c.episode == episode)
        async with self._database.write(scope) as connection:
            await connection.execute(delete(schema.staged).where(this))
