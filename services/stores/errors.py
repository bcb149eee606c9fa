"""Errors that every store raises.

StoreError
├── StoreUnavailable    the store can't be reached or timed out; safe to repeat later
├── WriteConflict       somebody changed it first; read again, then repeat
├── UnstorableText      text that the store refuses (NUL or lone surrogates); repeating can't help
└── SchemaDiffers       another version made the tables; the store can't be opened
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


class UnstorableText(StoreError):
    """Text with NUL or lone surrogates."""


class SchemaDiffers(StoreError):
    """Another version made the database of `component`: `columns` (`table.column`) are on one side only."""

    def __init__(self, component: str, columns: Sequence[str]) -> None:
        told = ", ".join([*columns[:3], *(["…"] if len(columns) > 3 else [])])
        super().__init__(
            f"another version of Palimpsest made the {component} store (it differs in {told}); "
            "start on an empty data folder or database"
        )
        self.component = component
