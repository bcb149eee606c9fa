"""Index: the vectors of statements, entities and voice aspects, kept in step with a change."""

from collections.abc import Mapping, Sequence

from services.domain.graph import EntityType, Span, Statement
from services.domain.ids import StatementId
from services.domain.instants import BEGINNING, FOREVER, Instant
from services.domain.scope import Scope
from services.llm.port import Embedder, Vectors
from services.resolver.change import Change
from services.stores.graph.port import GraphStore
from services.stores.vectors.port import Collection, VectorRow, VectorStore


class Index:
    """Writes the vectors of what a change added or widened. Idempotent."""

    def __init__(self, graph: GraphStore, vectors: VectorStore, embedder: Embedder) -> None:
        self._graph = graph
        self._vectors = vectors
        self._embedder = embedder

    async def write(self, scope: Scope, change: Change) -> None:
        """Upserts rows; a row that exists keeps its vector and gets the wider hull. Raises EngineError."""
        await self._statements(scope, change)
        entities = [e for e in change.commit.entities if e.type is not EntityType.PREDICATE]
        await self._rows(scope, Collection.ENTITIES, [(e.id, e.name, "") for e in entities])
        await self._rows(scope, Collection.VOICE, [(v.id, v.text, v.kind) for v in change.voice])

    async def remove(self, scope: Scope, change: Change, orphans: Sequence[str]) -> None:
        """Deletes the rows of what lost all support."""
        for collection, ids in (
            (Collection.STATEMENTS, change.unsupported),
            (Collection.VOICE, change.unsupported_voice),
            (Collection.ENTITIES, orphans),
        ):
            if ids:
                await self._vectors.delete(scope, collection, ids)

    async def _statements(self, scope: Scope, change: Change) -> None:
        changed = {span.statement for span in change.commit.opened} - set(change.unsupported)
        if not changed:
            return
        records = await self._graph.records(scope, sorted(changed))
        hulls = _hulls(records.spans)
        existing = await self._vectors.fetch(scope, Collection.STATEMENTS, sorted(changed))
        stale = [
            statement
            for statement in records.statements
            if statement.id not in existing or not _covers(existing[statement.id], hulls[statement.id])
        ]
        fresh = [statement for statement in stale if statement.id not in existing]
        embedded = await self._embed([statement.fact for statement in fresh])
        vectors = {statement.id: vector for statement, vector in zip(fresh, embedded, strict=True)}
        rows = [
            _statement_row(statement, vectors.get(statement.id), existing, hulls[statement.id])
            for statement in stale
        ]
        if rows:
            await self._vectors.upsert(scope, Collection.STATEMENTS, rows)

    async def _rows(
        self, scope: Scope, collection: Collection, items: Sequence[tuple[str, str, str]]
    ) -> None:
        if not items:
            return
        vectors = await self._embed([text for _, text, _ in items])
        rows = [
            VectorRow(made, vector, aspect=aspect)
            for (made, _, aspect), vector in zip(items, vectors, strict=True)
        ]
        await self._vectors.upsert(scope, collection, rows)

    async def _embed(self, texts: Sequence[str]) -> Vectors | Sequence[Vectors]:
        return await self._embedder.passages(texts) if texts else ()


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
