"""What tells a change of texts, as rows: see services/stores/memory/following.py."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import RowMapping, Select, and_, bindparam, select

from services.domain.ids import EpisodeId
from services.domain.memory import Passage
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.memory.following import Said
from services.stores.memory.sql import schema, values
from services.stores.sql.database import Database
from services.stores.sql.one_of import listed, most_of, one_of
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
    ) -> Sequence[tuple[Passage, Said]]:
        found: dict[str, list[tuple[Passage, Said]]] = defaultdict(list)
        async with self._database.read(scope) as connection:
            dialect = connection.dialect.name
            for chunk in in_chunks(filter(is_storable, episodes), most_of(dialect)):
                asked = {"in_scope": scope.key, "ids": listed(dialect, chunk)}
                for row in (await connection.execute(_in_episodes(dialect), asked)).mappings().all():
                    found[row["episode"]].append((values.passage_of(row), _said(row)))
        return [each for id in dict.fromkeys(episodes) for each in found[id]]


def _said(row: RowMapping) -> Said:
    at = row["reference_time"] if row["said_at"] is None else row["said_at"]
    return Said(at, row["episode"], row["created_at"], row["session"], row["document"])


@cache
def _in_episodes(dialect: str) -> Select[Any]:
    """The passages of some episodes with what is told of those; made once."""
    told = (_EPISODES.reference_time, _EPISODES.created_at, _EPISODES.session, _EPISODES.document)
    theirs = and_(_EPISODES.scope == _PASSAGES.scope, _EPISODES.id == _PASSAGES.episode)
    return (
        select(schema.passages, *told)
        .select_from(schema.passages.join(schema.episodes, theirs))
        .where(_PASSAGES.scope == bindparam("in_scope"), one_of(dialect, _PASSAGES.episode, "ids"))
        .order_by(_PASSAGES.episode, _PASSAGES.position, _PASSAGES.id)
    )
