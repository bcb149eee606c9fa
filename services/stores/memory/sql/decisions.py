"""The log of decisions in SQL."""

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import ColumnElement, or_, select, tuple_, update

from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.memory.port import Decision, DecisionFilter
from services.stores.memory.sql import schema
from services.stores.memory.sql.values import Stored
from services.stores.paging import Listed, Page
from services.stores.sql.database import Database
from services.stores.sql.keyset import page_of
from services.stores.sql.rows import Row, insert_new
from services.stores.storable import is_storable

_DECISIONS = schema.decisions.c


class SqlDecisionLog:
    """DecisionLog over a table of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, scope: Scope, decisions: Sequence[Decision]) -> None:
        """Adds decisions; those there already are left as they are. Raises UnstorableText."""
        rows = decision_rows(scope, decisions)
        async with self._database.write(scope) as connection:
            await insert_new(connection, schema.decisions, rows)

    async def list_decisions(self, scope: Scope, target: str | None, page: Page) -> Listed[Decision]:
        query = select(schema.decisions).where(_DECISIONS.scope == scope.key)
        if target is not None:
            if not is_storable(target):
                return Listed([])
            query = query.where(_DECISIONS.target == target)
        order = [_DECISIONS.revision, _DECISIONS.at, _DECISIONS.id]
        async with self._database.read(scope) as connection:
            rows = await page_of(connection, query, order, page, descending=True)
        return Listed([_decision(row) for row in rows.items], rows.after)

    async def find(self, scope: Scope, where: DecisionFilter, limit: int) -> Sequence[Decision]:
        """See the port. A filter that can't be stored finds nothing."""
        texts = [where.action, where.target, where.after[1] if where.after else ""]
        if not all(map(is_storable, texts)):
            return []
        query = select(schema.decisions).where(_DECISIONS.scope == scope.key, *_conditions(where))
        query = query.order_by(_DECISIONS.at.desc(), _DECISIONS.id.desc()).limit(limit)
        async with self._database.read(scope) as connection:
            return [_decision(dict(row)) for row in (await connection.execute(query)).mappings()]

    async def forget_text(self, scope: Scope, targets: Sequence[str]) -> None:
        emptied = update(schema.decisions).where(_DECISIONS.scope == scope.key, _DECISIONS.why != "")
        async with self._database.write(scope) as connection:
            for chunk in in_chunks(target for target in targets if is_storable(target)):
                for column in (_DECISIONS.target, _DECISIONS.other):
                    await connection.execute(emptied.where(column.in_(chunk)).values(why=""))


def decision_rows(scope: Scope, decisions: Sequence[Decision]) -> list[Row]:
    return [{"scope": scope.key, **asdict(decision)} for decision in decisions]


def _conditions(where: DecisionFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if where.action:
        found.append(_DECISIONS.action == where.action)
    if where.target:
        found.append(or_(_DECISIONS.target == where.target, _DECISIONS.other == where.target))
    if where.since is not None:
        found.append(_DECISIONS.at >= where.since)
    if where.until is not None:
        found.append(_DECISIONS.at < where.until)
    if where.after is not None:
        found.append(tuple_(_DECISIONS.at, _DECISIONS.id) < where.after)
    return found


def _decision(row: Stored) -> Decision:
    return Decision(
        id=row["id"],
        revision=Revision(row["revision"]),
        at=Instant(row["at"]),
        action=row["action"],
        target=row["target"],
        actor=row["actor"],
        why=row["why"],
        model=row["model"],
        prompt_version=row["prompt_version"],
        other=row["other"] or "",
        request=row["request"] or "",
    )
