"""The log of decisions in SQL."""

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import select

from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.memory.port import Decision
from services.stores.memory.sql import schema
from services.stores.memory.sql.values import Stored
from services.stores.paging import Listed, Page
from services.stores.sql.database import Database
from services.stores.sql.keyset import page_of
from services.stores.sql.rows import insert_new, is_storable

_DECISIONS = schema.decisions.c


class SqlDecisionLog:
    """DecisionLog over a table of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, scope: Scope, decisions: Sequence[Decision]) -> None:
        """Adds decisions; those there already are left as they are. Raises UnstorableText."""
        rows = [{"scope": scope.key, **asdict(decision)} for decision in decisions]
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
    )
