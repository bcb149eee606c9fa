"""What tells a change of texts, as rows: see services/stores/memory/following.py."""

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import select

from services.domain.ids import EpisodeId
from services.domain.memory import Passage
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
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

    async def passages_in(self, scope: Scope, episodes: Sequence[EpisodeId]) -> Sequence[Passage]:
        found: dict[str, list[Passage]] = defaultdict(list)
        async with self._database.read(scope) as connection:
            dialect = connection.dialect.name
            query = (
                select(schema.passages)
                .where(_PASSAGES.scope == scope.key, one_of(dialect, _PASSAGES.episode, "ids"))
                .order_by(_PASSAGES.episode, _PASSAGES.position, _PASSAGES.id)
            )
            for chunk in in_chunks(filter(is_storable, episodes), most_of(dialect)):
                asked = {"ids": listed(dialect, chunk)}
                for row in (await connection.execute(query, asked)).mappings().all():
                    found[row["episode"]].append(values.passage_of(dict(row)))
        return [passage for id in dict.fromkeys(episodes) for passage in found[id]]
