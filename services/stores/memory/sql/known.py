"""What a session knows, asked in the transaction that adds to it: of two jobs at once one says it."""

from collections.abc import Sequence

from sqlalchemy import or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.memory import Episode, Passage
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.errors import WriteConflict
from services.stores.memory.sql import schema
from services.stores.memory.sql.values import digest

_EPISODES, _PASSAGES = schema.episodes.c, schema.passages.c

_TURN = text("SELECT pg_advisory_xact_lock(hashtextextended(:session, 0))")
"""Writers of a session follow one another until they commit; on SQLite all writers do."""


async def check_unknown(
    connection: AsyncConnection, scope: Scope, episodes: Sequence[Episode], passages: Sequence[Passage]
) -> None:
    """Raises WriteConflict when another job's episode has one of the passages, by hash or message id.

    Of episodes of one session; without one nothing is known. What could not be understood, or was deleted, is
    not known.
    """
    if not episodes or episodes[0].session is None:
        return
    session, job = digest(episodes[0].session), episodes[0].job
    if connection.dialect.name == "postgresql":
        await connection.execute(_TURN, {"session": f"{scope.key}:{session}"})
    known = (
        select(_PASSAGES.id)
        .join(schema.episodes, (_EPISODES.scope == _PASSAGES.scope) & (_EPISODES.id == _PASSAGES.episode))
        .where(
            _PASSAGES.scope == scope.key,
            _PASSAGES.session_key == session,
            _EPISODES.job != job,
            _EPISODES.unlearned_at.is_(None),
        )
        .limit(1)
    )
    for some in in_chunks(passages):
        hashes = [one.hash for one in some]
        named = [digest(one.message_id) for one in some if one.message_id]
        said = or_(_PASSAGES.hash.in_(hashes), _PASSAGES.message_key.in_(named))
        if (await connection.execute(known.where(said))).first() is not None:
            raise WriteConflict("another job has said this in the session meanwhile")
