"""The gateway's two databases as schemas with a history: the ledger's and the jobs'."""

from pathlib import Path

from gateway.store.tables import LEDGER, PROGRESS
from services.stores.sql.migrations import Schema

_REVISIONS = Path(__file__).parent / "migrations"

LEDGER_SCHEMA = Schema("ledger", LEDGER, _REVISIONS / "ledger")
PROGRESS_SCHEMA = Schema("jobs", PROGRESS, _REVISIONS / "jobs")
