"""Whose rows a transaction may touch, told to the database before anything else.

Queries name their scope themselves; that is the first line. On PostgreSQL the policies of the tables ask the
settings of the transaction too (docs/adr/0010-migrations.md): a query that forgot its scope finds and writes
nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import structlog
from psycopg.sql import Literal
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import JobId
from services.domain.scope import Scope, TenantId
from services.stores.storable import is_storable

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OfTenant:
    """All rows of one tenant."""

    tenant: TenantId


@dataclass(frozen=True, slots=True)
class OfJob:
    """One job with its hold and payload, for those who know it by its id alone."""

    job: JobId


@dataclass(frozen=True, slots=True)
class Across:
    """Rows of every tenant in the gateway's tables. `reason` names the operator's work that needs them."""

    reason: str

    def __post_init__(self) -> None:
        assert self.reason, "a reason is given"


@dataclass(frozen=True, slots=True)
class Nobody:
    """Rows that are no tenant's: prices, revisions."""


Whose = Scope | OfTenant | OfJob | Across | Nobody
"""A scope is its rows in the graph and in memory, and those of its tenant in the gateway's tables."""

SETTINGS = ("palimpsest.scope", "palimpsest.tenant", "palimpsest.job", "palimpsest.across")
"""What policies read. Local to a transaction: nothing is left on a connection that goes back to its pool."""

_PASSES = text("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
_KEPT = 1_000


@lru_cache(_KEPT)
def binding(whose: Whose) -> str:
    """SQL that tells a transaction of PostgreSQL whose rows it may touch; what is not meant is emptied."""
    told = (
        f"set_config('{name}', {Literal(value).as_string()}, true)"
        for name, value in settings_of(whose).items()
    )
    return f"SELECT {', '.join(told)}"


async def warn_unless_bound(connection: AsyncConnection, component: str) -> None:
    """Logs that policies don't bind the role of this connection: a superuser, or one with BYPASSRLS."""
    if connection.dialect.name == "postgresql" and await connection.scalar(_PASSES):
        log.warning("row-level security does not bind this role", component=component)


def settings_of(whose: Whose) -> Mapping[str, str]:
    """The settings of a transaction over these rows, all of SETTINGS; empty where nothing is meant."""
    values = _values(whose)
    return {name: values[name.partition(".")[2]] for name in SETTINGS}


def _values(whose: Whose) -> dict[str, str]:
    values = {"scope": "", "tenant": "", "job": "", "across": ""}
    match whose:
        case Scope():
            return values | {"scope": whose.key, "tenant": _storable(whose.tenant)}
        case OfTenant():
            return values | {"tenant": _storable(whose.tenant)}
        case OfJob():
            return values | {"job": _storable(whose.job)}
        case Across():
            return values | {"across": whose.reason}
        case Nobody():
            return values


def _storable(name: str) -> str:
    """A name that can't be stored has no rows."""
    return name if is_storable(name) else ""
