"""Index: the vectors of statements, entities and voice aspects, kept in step with a change."""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Collection as Some
from functools import partial
from typing import TypeVar

from services.domain.ids import StatementId
from services.domain.memory import VoiceAspect
from services.domain.scope import Scope
from services.llm.port import Embedder, Vectors
from services.resolver.change import Change
from services.stores.graph.port import GraphStore
from services.stores.memory.archive import ArchiveStore
from services.stores.memory.port import VoiceStore
from services.stores.vectors.moving import move
from services.stores.vectors.port import Collection, Vector, VectorRow, VectorStore
from services.stores.vectors.rows import (
    NEVER,
    Hull,
    entity_row,
    entity_text,
    hulls,
    statement_row,
    statement_text,
    voice_row,
    voice_text,
)

Item = tuple[str, str, Callable[[Vector], VectorRow]]
"""An id, its text, and how its row is made."""

T = TypeVar("T")

BATCH = 64
"""Rows embedded and written at a time: who completes what a writer left half way goes on from there."""


class Index:
    """Writes the vectors of what a change added, widened or told anew. Idempotent."""

    def __init__(
        self,
        graph: GraphStore,
        voice: VoiceStore,
        archive: ArchiveStore,
        vectors: VectorStore,
        embedder: Embedder,
    ) -> None:
        self._graph = graph
        self._voice = voice
        self._archive = archive
        self._vectors = vectors
        self._embedder = embedder

    async def write(self, scope: Scope, change: Change) -> None:
        """Upserts rows of a change that the other stores have. Raises EngineError, StoreUnavailable.

        A row that exists keeps its vector and gets the wider hull, unless its sentence is new.
        """
        await self._place(scope, {*change.archived, *change.restored})
        await self._statements(scope, change)
        entities = [(e.id, entity_text(e), partial(entity_row, e)) for e in change.commit.entities]
        await self._rows(scope, Collection.ENTITIES, entities)
        await self._rows(scope, Collection.VOICE, _spoken(change.voice))
        if change.voice_retold:
            ids = [id for id, _ in change.voice_retold]
            await self._vectors.delete(scope, Collection.VOICE, ids)
            retold = await self._voice.aspects(scope, ids)
            await self._rows(scope, Collection.VOICE, _spoken(retold))

    async def remove(self, scope: Scope, change: Change, orphans: Sequence[str]) -> None:
        """Deletes the rows of what lost all support."""
        for collection, ids in (
            (Collection.STATEMENTS, change.unsupported),
            (Collection.VOICE, change.unsupported_voice),
            (Collection.ENTITIES, orphans),
        ):
            if ids:
                await self._vectors.delete(scope, collection, ids)

    async def sweep(self, scope: Scope, change: Change) -> None:
        """Deletes rows of the change whose text is gone, and moves others to where they belong by now.

        For a writer that another one has overtaken.
        """
        await self._place(scope, {*_changed(change), *change.archived, *change.restored})
        statements = await self._graph.records(scope, sorted(_changed(change)))
        entities = await self._graph.entities(scope, [entity.id for entity in change.commit.entities])
        voice = await self._voice.aspects(
            scope, [*(aspect.id for aspect in change.voice), *(id for id, _ in change.voice_retold)]
        )
        for collection, gone in (
            (Collection.STATEMENTS, [one.id for one in statements.statements if not one.fact]),
            (Collection.ENTITIES, [one.id for one in entities if not one.name]),
            (Collection.VOICE, [one.id for one in voice if not one.text]),
        ):
            if gone:
                await self._vectors.delete(scope, collection, gone)

    async def _place(self, scope: Scope, statements: Some[StatementId]) -> None:
        """Moves rows to where the catalogue says: the archive, or what is searched every day."""
        if not statements:
            return
        archived = await self._archive.among(scope, sorted(statements))
        hot, cold = Collection.STATEMENTS, Collection.ARCHIVE
        await move(self._vectors, scope, sorted(archived), hot, cold)
        await move(self._vectors, scope, sorted(set(statements) - archived), cold, hot)

    async def _statements(self, scope: Scope, change: Change) -> None:
        changed = _changed(change)
        if not changed:
            return
        existing = dict(await self._vectors.fetch(scope, Collection.STATEMENTS, sorted(changed)))
        for retold, _ in change.retold:
            existing.pop(retold, None)
        # A row covers what was believed before: what the change opens is all that can widen it.
        opened = hulls(change.commit.opened)
        narrow = [
            id for id in changed if id not in existing or not _covers(existing[id], opened.get(id, NEVER))
        ]
        if not narrow:
            return
        records = await self._graph.records(scope, sorted(narrow))
        held = {one.id: NEVER for one in records.statements} | dict(hulls(records.spans))
        stale = [statement for statement in records.statements if statement_text(statement)]
        for batch in _batches(stale):
            fresh = [statement for statement in batch if statement.id not in existing]
            embedded = await self._embed([statement_text(statement) for statement in fresh])
            vectors = {id: row.vector for id, row in existing.items()}
            vectors |= {statement.id: vector for statement, vector in zip(fresh, embedded, strict=True)}
            rows = [statement_row(one, held[one.id], vectors[one.id]) for one in batch]
            await self._vectors.upsert(scope, Collection.STATEMENTS, rows)

    async def _rows(self, scope: Scope, collection: Collection, items: Sequence[Item]) -> None:
        """Writes rows of what has a text; of many, those that are not there yet."""
        items = [item for item in items if item[1]]
        if len(items) > BATCH:
            there = await self._vectors.fetch(scope, collection, [id for id, _, _ in items])
            items = [item for item in items if item[0] not in there]
        for batch in _batches(items):
            vectors = await self._embed([text for _, text, _ in batch])
            rows = [make(vector) for (_, _, make), vector in zip(batch, vectors, strict=True)]
            await self._vectors.upsert(scope, collection, rows)

    async def _embed(self, texts: Sequence[str]) -> Vectors | Sequence[Vectors]:
        return await self._embedder.passages(texts) if texts else ()


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def _changed(change: Change) -> set[StatementId]:
    """Statements whose row may have to be written; among them those whose text came back."""
    named = {span.statement for span in change.commit.opened}
    named |= {statement.id for statement in change.commit.statements}
    return (named | {id for id, _ in change.retold}) - set(change.unsupported)


def _spoken(aspects: Sequence[VoiceAspect]) -> Sequence[Item]:
    return [(aspect.id, voice_text(aspect), partial(voice_row, aspect)) for aspect in aspects]


def _covers(row: VectorRow, hull: Hull) -> bool:
    return row.valid_at <= hull[0] and hull[1] <= row.invalid_at
