"""What tells a change of texts, as rows: see services/stores/memory/following.py."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, false, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import EpisodeId
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.memory.following import PlainPassage, Said
from services.stores.memory.sql import schema
from services.stores.sql.database import Database
from services.stores.sql.one_of import listed, most_of, one_of
from services.stores.sql.rows import insert_or_add
from services.stores.storable import is_storable

_EPISODES, _PASSAGES = schema.episodes.c, schema.passages.c


class SqlFollowedTexts:
    """FollowedTexts over the tables of a database."""

    _database: Database

    async def kept(self, scope: Scope) -> Sequence[EpisodeId]:
        query = select(_EPISODES.id).where(_EPISODES.scope == scope.key, _EPISODES.deleted_at.is_(None))
        async with self._database.read(scope) as connection:
            return [EpisodeId(id) for id in await connection.scalars(query.order_by(_EPISODES.id))]

    async def passages_in(
        self, scope: Scope, episodes: Sequence[EpisodeId]
    ) -> Sequence[tuple[PlainPassage, Said]]:
        found: dict[str, list[tuple[PlainPassage, Said]]] = defaultdict(list)
        async with self._database.read(scope) as connection:
            dialect = connection.dialect.name
            for chunk in in_chunks(filter(is_storable, episodes), most_of(dialect)):
                asked = {"in_scope": scope.key, "ids": listed(dialect, chunk)}
                for row in (await connection.execute(_in_episodes(dialect), asked)).all():
                    passage = PlainPassage._make(row[:_FIELDS])
                    found[passage.episode].append((passage, Said._make(row[_FIELDS:])))
        return [each for id in dict.fromkeys(episodes) for each in found[id]]


async def count_change(connection: AsyncConnection, scope: Scope) -> None:
    """Of episodes or passages, in the transaction that changed them.

    Last in it: those who write to the same graph wait for each other from here to the end.
    """
    await insert_or_add(connection, schema.text_changes, {"scope": scope.key, "changes": 1}, "changes")


_FIELDS = len(PlainPassage._fields)


@cache
def _in_episodes(dialect: str) -> Select[Any]:
    """The passages of some episodes with what is told of those, as of `Said`; made once."""
    at = func.coalesce(_PASSAGES.said_at, _EPISODES.reference_time)
    told = (at, _EPISODES.id, _EPISODES.created_at, _EPISODES.session, _EPISODES.document)
    # Where it is not told, nothing was held.
    passage: dict[str, ColumnElement[Any]] = {name: _PASSAGES[name] for name in PlainPassage._fields}
    passage["held"] = func.coalesce(_PASSAGES.held, false())
    theirs = and_(_EPISODES.scope == _PASSAGES.scope, _EPISODES.id == _PASSAGES.episode)
    return (
        select(*passage.values(), *told)
        .select_from(schema.passages.join(schema.episodes, theirs))
        .where(_PASSAGES.scope == bindparam("in_scope"), one_of(dialect, _PASSAGES.episode, "ids"))
        .order_by(_PASSAGES.episode, _PASSAGES.position, _PASSAGES.id)
    )
