"""Index: the vectors of statements, entities and voice aspects, kept in step with a change."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from services.domain.graph import EntityType, Span, Statement
from services.domain.ids import StatementId
from services.domain.instants import BEGINNING, FOREVER, Instant
from services.domain.scope import Scope
from services.llm.port import Embedder, Vectors
from services.resolver.change import Change
from services.stores.graph.port import GraphStore
from services.stores.memory.port import VoiceStore
from services.stores.vectors.port import Collection, VectorRow, VectorStore

T = TypeVar("T")

BATCH = 64
"""Rows embedded and written at a time: who completes what a writer left half way goes on from there."""


class Index:
    """Writes the vectors of what a change added, widened or told anew. Idempotent."""

    def __init__(
        self, graph: GraphStore, voice: VoiceStore, vectors: VectorStore, embedder: Embedder
    ) -> None:
        self._graph = graph
        self._voice = voice
        self._vectors = vectors
        self._embedder = embedder

    async def write(self, scope: Scope, change: Change) -> None:
        """Upserts rows of a change that the other stores have. Raises EngineError, StoreUnavailable.

        A row that exists keeps its vector and gets the wider hull, unless its sentence is new.
        """
        await self._statements(scope, change)
        entities = [e for e in change.commit.entities if e.type is not EntityType.PREDICATE]
        await self._rows(scope, Collection.ENTITIES, [(e.id, e.name, "") for e in entities])
        await self._rows(scope, Collection.VOICE, [(v.id, v.text, v.kind) for v in change.voice])
        if change.voice_retold:
            ids = [id for id, _ in change.voice_retold]
            await self._vectors.delete(scope, Collection.VOICE, ids)
            retold = await self._voice.aspects(scope, ids)
            await self._rows(scope, Collection.VOICE, [(v.id, v.text, v.kind) for v in retold if v.text])

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
        """Deletes rows of the change whose text is gone: for a writer that another one has overtaken."""
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

    async def _statements(self, scope: Scope, change: Change) -> None:
        changed = _changed(change)
        if not changed:
            return
        records = await self._graph.records(scope, sorted(changed))
        hulls = _hulls(records.spans)
        existing = dict(await self._vectors.fetch(scope, Collection.STATEMENTS, sorted(changed)))
        for retold, _ in change.retold:
            existing.pop(retold, None)
        stale = [
            statement
            for statement in records.statements
            if statement.fact
            and statement.id in hulls
            and (statement.id not in existing or not _covers(existing[statement.id], hulls[statement.id]))
        ]
        for batch in _batches(stale):
            fresh = [statement for statement in batch if statement.id not in existing]
            embedded = await self._embed([statement.fact for statement in fresh])
            vectors = {statement.id: vector for statement, vector in zip(fresh, embedded, strict=True)}
            rows = [
                _statement_row(statement, vectors.get(statement.id), existing, hulls[statement.id])
                for statement in batch
            ]
            await self._vectors.upsert(scope, Collection.STATEMENTS, rows)

    async def _rows(
        self, scope: Scope, collection: Collection, items: Sequence[tuple[str, str, str]]
    ) -> None:
        """Writes rows of ids, texts and aspects; of many, those that are not there yet."""
        if len(items) > BATCH:
            there = await self._vectors.fetch(scope, collection, [id for id, _, _ in items])
            items = [item for item in items if item[0] not in there]
        for batch in _batches(items):
            vectors = await self._embed([text for _, text, _ in batch])
            rows = [
                VectorRow(made, vector, aspect=aspect)
                for (made, _, aspect), vector in zip(batch, vectors, strict=True)
            ]
            await self._vectors.upsert(scope, collection, rows)

    async def _embed(self, texts: Sequence[str]) -> Vectors | Sequence[Vectors]:
        return await self._embedder.passages(texts) if texts else ()


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def _changed(change: Change) -> set[StatementId]:
    """Statements whose row may have to be written."""
    opened = {span.statement for span in change.commit.opened}
    return (opened | {id for id, _ in change.retold}) - set(change.unsupported)


def _hulls(spans: Sequence[Span]) -> dict[StatementId, tuple[Instant, Instant]]:
    hulls: dict[StatementId, tuple[Instant, Instant]] = {}
    for span in spans:
        first = BEGINNING if span.valid_at is None else span.valid_at
        last = FOREVER if span.invalid_at is None else span.invalid_at
        known = hulls.get(span.statement, (first, last))
        hulls[span.statement] = (min(known[0], first), max(known[1], last))
    return hulls


def _covers(row: VectorRow, hull: tuple[Instant, Instant]) -> bool:
    return row.valid_at <= hull[0] and hull[1] <= row.invalid_at


def _statement_row(
    statement: Statement,
    vector: Vectors | None,
    existing: Mapping[str, VectorRow],
    hull: tuple[Instant, Instant],
) -> VectorRow:
    return VectorRow(
        id=statement.id,
        vector=existing[statement.id].vector if vector is None else vector,
        valid_at=hull[0],
        invalid_at=hull[1],
        created_at=statement.created_at,
        aspect=statement.aspect or "",
        subject=statement.subject,
        object=statement.object if isinstance(statement.object, str) else "",
    )
