"""Errors that every store raises.

StoreError
├── StoreUnavailable    the store can't be reached or timed out; safe to repeat later
├── WriteConflict       somebody changed it first; read again, then repeat
└── UnstorableText      text that the store refuses (NUL or lone surrogates); repeating can't help
"""


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
