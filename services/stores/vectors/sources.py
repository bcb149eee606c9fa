"""Sources: every row that an installation should have, made from what the other stores hold."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from services.domain.graph import Entity, Literal, Statement
from services.domain.ids import EntityId, EpisodeId, PassageId, StatementId, VoiceId
from services.domain.memory import Episode, Passage, VoiceAspect
from services.domain.scope import Scope
from services.stores.graph.port import GraphStore
from services.stores.memory.archive import ArchiveStore
from services.stores.memory.port import TextStore, VoiceStore
from services.stores.paging import Listed, Page
from services.stores.vectors import rows
from services.stores.vectors.port import Collection, VectorRow

PAGE = 200
"""Items read at a time."""

T = TypeVar("T")

_NONE = np.zeros(0, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A row as it should be, without its vector, and the text that the vector is of; "" for no row."""

    row: VectorRow
    text: str

    def same(self, other: "Wanted | None") -> bool:
        return other is not None and self.text == other.text and self.fits(other.row)

    def fits(self, row: VectorRow) -> bool:
        """Whether a row has these columns, whatever its vector."""
        return _columns(self.row) == _columns(row)

    def is_vector_of(self, row: VectorRow) -> bool:
        """Whether a row's vector is of this text."""
        return self.row.digest == row.digest


Found = Mapping[str, Wanted]
"""What was read, by id. What isn't there has no row; nor has what is there without a text."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The stores that rows are made from. Reads raise StoreUnavailable."""

    graph: GraphStore
    text: TextStore
    voice: VoiceStore
    archive: ArchiveStore

    async def pages(self, scope: Scope) -> AsyncIterator[tuple[Collection, Found]]:
        """All of a graph, a page at a time."""
        seen: set[EntityId] = set()
        async for ids in _pages(lambda page: self.graph.scan(scope, page)):
            statements, named = await self._statements(scope, ids)
            archived = await self.archive.among(scope, ids)
            yield Collection.STATEMENTS, {id: one for id, one in statements.items() if id not in archived}
            yield Collection.ARCHIVE, {id: one for id, one in statements.items() if id in archived}
            fresh = [id for id in named if id not in seen]
            seen.update(fresh)
            yield Collection.ENTITIES, _entities(await self.graph.entities(scope, fresh))
        async for passages in _pages(lambda page: self.text.scan_passages(scope, page)):
            yield Collection.PASSAGES, await self._passages(scope, passages)
        async for aspects in _pages(lambda page: self.voice.scan(scope, page)):
            yield Collection.VOICE, _voice(aspects)

    async def read(self, scope: Scope, collection: Collection, ids: Sequence[str]) -> Found:
        """The same by id."""
        match collection:
            case Collection.STATEMENTS | Collection.ARCHIVE:
                asked = [StatementId(id) for id in ids]
                archived = await self.archive.among(scope, asked)
                wanted = [id for id in asked if (id in archived) == (collection is Collection.ARCHIVE)]
                return (await self._statements(scope, wanted))[0] if wanted else {}
            case Collection.ENTITIES:
                return _entities(await self.graph.entities(scope, [EntityId(id) for id in ids]))
            case Collection.PASSAGES:
                passages = await self.text.passages(scope, [PassageId(id) for id in ids])
                return await self._passages(scope, passages)
            case Collection.VOICE:
                return _voice(await self.voice.aspects(scope, [VoiceId(id) for id in ids]))
            case Collection.LABELS:
                return {}

    async def _statements(self, scope: Scope, ids: Sequence[StatementId]) -> tuple[Found, Sequence[EntityId]]:
        """Rows of statements, and the entities that they name."""
        records = await self.graph.records(scope, ids)
        hulls = rows.hulls(records.spans)
        found: dict[str, Wanted] = {
            one.id: Wanted(
                rows.statement_row(one, hulls.get(one.id, rows.NEVER), _NONE), rows.statement_text(one)
            )
            for one in records.statements
        }
        return found, list(dict.fromkeys(id for one in records.statements for id in _named(one)))

    async def _passages(self, scope: Scope, passages: Sequence[Passage]) -> Found:
        ids: list[EpisodeId] = list(dict.fromkeys(one.episode for one in passages))
        by_id: Mapping[EpisodeId, Episode] = {
            one.id: one for one in (await self.text.episodes(scope, ids) if ids else ())
        }
        return {
            one.id: Wanted(rows.passage_row(scope, one, by_id[one.episode], _NONE), rows.passage_text(one))
            for one in passages
            if one.episode in by_id
        }


async def _pages(read: Callable[[Page], Awaitable[Listed[T]]]) -> AsyncIterator[Sequence[T]]:
    after = ""
    while True:
        listed = await read(Page(PAGE, after))
        if listed.items:
            yield listed.items
        if not listed.after:
            return
        after = listed.after


def _entities(entities: Sequence[Entity]) -> Found:
    return {one.id: Wanted(rows.entity_row(one, _NONE), rows.entity_text(one)) for one in entities}


def _voice(aspects: Sequence[VoiceAspect]) -> Found:
    return {one.id: Wanted(rows.voice_row(one, _NONE), rows.voice_text(one)) for one in aspects}


def _named(statement: Statement) -> Sequence[EntityId]:
    if isinstance(statement.object, Literal):
        return (statement.subject,)
    return statement.subject, statement.object


def _columns(row: VectorRow) -> tuple[object, ...]:
    return row.valid_at, row.invalid_at, row.created_at, row.aspect, row.subject, row.object, row.session
