"""Creates the gateway's tables, and the triggers that keep the journal as it was written."""

from sqlalchemy import DDL, Table, event
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.store.tables import LEDGER, PROGRESS, journal_entries, journal_groups
from services.stores.sql.database import create_schema

LEDGER_COMPONENT = "ledger"
PROGRESS_COMPONENT = "jobs"


async def create_ledger(engine: AsyncEngine) -> None:
    """Makes the tables of the ledger's database that are missing. Idempotent."""
    await create_schema(engine, LEDGER, LEDGER_COMPONENT)


async def create_progress(engine: AsyncEngine) -> None:
    """Makes the tables of the jobs' database that are missing. Idempotent."""
    await create_schema(engine, PROGRESS, PROGRESS_COMPONENT)


def _keep_as_written(table: Table) -> None:
    name = table.name
    for deed in ("UPDATE", "DELETE"):
        trigger = f"{name}_no_{deed.lower()}"
        sqlite = _ddl(
            f"CREATE TRIGGER IF NOT EXISTS {trigger} BEFORE {deed} ON {name} "
            f"BEGIN SELECT RAISE(ABORT, '{name} is never changed'); END"
        )
        postgres = _ddl(
            f"CREATE OR REPLACE FUNCTION {trigger}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{name} is never changed'; END $$; "
            f"CREATE OR REPLACE TRIGGER {trigger} BEFORE {deed} ON {name} "
            f"FOR EACH ROW EXECUTE FUNCTION {trigger}()"
        )
        event.listen(table, "after_create", sqlite.execute_if(dialect="sqlite"))
        event.listen(table, "after_create", postgres.execute_if(dialect="postgresql"))


def _ddl(statement: str) -> DDL:
    return DDL(statement)  # type: ignore[no-untyped-call]  # SQLAlchemy gives it no types


_keep_as_written(journal_groups)
_keep_as_written(journal_entries)
