"""Errors that every store raises.

StoreError
├── StoreUnavailable    the store can't be reached or timed out; safe to repeat later
├── WriteConflict       somebody changed it first; read again, then repeat
├── ScopeErased         the graph is being erased, or was since it was read
├── UnstorableText      text that the store refuses (NUL or lone surrogates); repeating can't help
└── SchemaUnusable      the store can't be opened by this version
    ├── SchemaDiffers   another version made the tables, and left no revision to start from
    ├── SchemaBehind    it must be migrated first
    ├── SchemaAhead     a later version migrated it
    ├── OwnerNeeded     a migration was tried by a role that may not
    └── TablesInUse     a migration waited too long for a table; nothing was changed
"""

from collections.abc import Sequence


class StoreError(Exception):
    """A store could not do what was asked. `str()` holds no user text and no host name."""


class StoreUnavailable(StoreError):
    """`component` is `graph`, `vectors`, `memory`, `ledger` or `jobs`."""

    def __init__(self, component: str) -> None:
        super().__init__(f"the {component} store can't be reached")
        self.component = component


class WriteConflict(StoreError):
    """A compare-and-set found another value."""


class ScopeErased(StoreError):
    """The graph is being erased, or was since the writer read it. What he was about to write is void."""


class UnstorableText(StoreError):
    """Text with NUL or lone surrogates."""


class SchemaUnusable(StoreError):
    """The database of `component` is of another version. Repeating helps once an operator has acted."""

    def __init__(self, component: str, told: str) -> None:
        super().__init__(told)
        self.component = component


class SchemaDiffers(SchemaUnusable):
    """Another version made the database: `columns` (`table.column`, or `table`) are on one side only."""

    def __init__(self, component: str, columns: Sequence[str]) -> None:
        told = ", ".join([*columns[:3], *(["…"] if len(columns) > 3 else [])])
        super().__init__(
            component,
            f"another version of Palimpsest made the {component} store (it differs in {told}); "
            "start on an empty data folder or database",
        )


class SchemaBehind(SchemaUnusable):
    """The database is at revision `found` ("" for none), and this server may not migrate it to `needed`."""

    def __init__(self, component: str, found: str, needed: str) -> None:
        at = f"at revision {found}" if found else "without tables of a known revision"
        super().__init__(
            component,
            f"the {component} store is {at}, and this version needs {needed}: run `palimpsest-admin migrate`",
        )


class SchemaAhead(SchemaUnusable):
    """A later version migrated the database to revision `found`, which this one does not know."""

    def __init__(self, component: str, found: str, newest: str) -> None:
        super().__init__(
            component,
            f"a later version of Palimpsest migrated the {component} store to revision {found}, and this one "
            f"knows none after {newest}: run the later version",
        )


class OwnerNeeded(SchemaUnusable):
    """The role of the connection may not change the tables, or let another one use them."""

    def __init__(self, component: str) -> None:
        super().__init__(
            component,
            f"this role may not migrate the {component} store: run it with the URL of the tables' owner",
        )


class TablesInUse(SchemaUnusable):
    """Somebody else's transaction held a table for too long. Safe to repeat."""

    def __init__(self, component: str) -> None:
        super().__init__(
            component,
            f"a table of the {component} store was in use for too long; nothing was changed: run it again",
        )
