"""Short ways to archive, to bring back, and to tell apart two memories of which one has an archive."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from palimpsest.internal.v1 import recall_pb2
from palimpsest.internal.v1 import resolver_archiving_pb2 as pb
from services.domain.graph import Span
from services.domain.ids import Revision, StatementId
from services.stores.graph.port import AsOf
from services.stores.paging import Page
from services.stores.vectors.port import Collection
from tests.builders import on
from tests.integration.recalling import Memory

ALL = Page(1_000)
BOTH = (Collection.STATEMENTS, Collection.ARCHIVE)


async def archive(memory: Memory, commit_id: str, ended_by: str, **aspects: str) -> int:
    """Archives what ended by a day, or by other days for other aspects; answers how many."""
    rules = [pb.ArchiveRule(aspect=aspect.title(), ended_by=on(day)) for aspect, day in aspects.items()]
    rules += [pb.ArchiveRule(ended_by=on(ended_by))] if ended_by else []
    archived, token = 0, ""
    while True:
        request = pb.ArchiveRequest(commit_id=commit_id, rules=rules, page_token=token, actor="retention")
        answer = await memory.world.resolver.archive(memory.world.scope, request)
        archived, token = archived + answer.archived, answer.next_page_token
        if not token:
            return archived


async def restore(memory: Memory, commit_id: str, *statements: str) -> int:
    request = pb.RestoreArchivedRequest(commit_id=commit_id, statement_ids=statements, actor="key")
    return (await memory.world.resolver.restore_archived(memory.world.scope, request)).restored


async def lying(memory: Memory) -> dict[Collection, set[str]]:
    """Which statements have a row in which collection."""
    world = memory.world
    return {one: set((await world.vectors.scan(world.scope, one, ALL)).items) for one in BOTH}


async def rows(memory: Memory) -> dict[str, tuple[Any, ...]]:
    """Every statement's row, wherever it lies."""
    found: dict[str, tuple[Any, ...]] = {}
    for collection, ids in (await lying(memory)).items():
        fetched = await memory.world.vectors.fetch(memory.world.scope, collection, sorted(ids))
        for id, row in fetched.items():
            assert id not in found, "a statement has one row"
            columns = (row.valid_at, row.invalid_at, row.created_at, row.aspect, row.subject, row.object)
            found[id] = (*columns, np.asarray(row.vector).tobytes())
    return found


async def believed(memory: Memory, known: Revision) -> Mapping[StatementId, list[Span]]:
    """Every statement's spans, as known at a revision."""
    graph, scope = memory.world.graph, memory.world.scope
    views = await graph.views(scope, (await graph.scan(scope, ALL)).items, AsOf(known))
    return {view.statement.id: list(view.spans) for view in views}


def told(answer: recall_pb2.RecallResponse) -> list[tuple[str, float]]:
    """The facts of an answer with their scores, best first."""
    return [(fact.statement.id, round(fact.score, 6)) for fact in answer.facts]
