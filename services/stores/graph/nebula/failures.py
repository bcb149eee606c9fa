"""Failures: what an error of NebulaGraph means, and what may be done about it.

The server tells most errors by one code, E_EXECUTION_ERROR, and a message; what it says in the messages of
3.6 to 3.8 (src/graph/executor/StorageAccessExecutor.h) is read here and nowhere else.
"""

from enum import Enum, auto

from nebula3.common.ttypes import ErrorCode


class Trouble(Enum):
    """Kinds of failures."""

    SESSION = auto()
    """The session is gone; nothing was done. Again, in another one."""
    BUSY = auto()
    """A leader changed, a write met another, a part did not answer; some of it may be done. Again."""
    LOST = auto()
    """The connection can't be made, broke, or was silent too long; all may be done. Again, elsewhere."""
    MISSING = auto()
    """The vertex to update is not there."""
    MISTAKE = auto()
    """What was sent is wrong: a fault of ours. Never again."""

    @property
    def passes(self) -> bool:
        """Whether the same sentence may succeed later."""
        return self in {Trouble.SESSION, Trouble.BUSY, Trouble.LOST}

    @property
    def spoils(self) -> bool:
        """Whether the connection is of no more use."""
        return self in {Trouble.SESSION, Trouble.LOST}


class NebulaFailure(Exception):
    """A sentence failed. `str()` holds no user text and no host; `told` is what the server or client said."""

    def __init__(self, trouble: Trouble, code: int = 0, told: str = "") -> None:
        name = ErrorCode._VALUES_TO_NAMES.get(code, "") if code else ""
        super().__init__(f"NebulaGraph: {trouble.name}{f' ({name})' if name else ''}")
        self.trouble = trouble
        self.code = code
        self.told = told


_SESSION = frozenset(
    {ErrorCode.E_SESSION_INVALID, ErrorCode.E_SESSION_TIMEOUT, ErrorCode.E_SESSION_NOT_FOUND}
)
_MISTAKES = frozenset({ErrorCode.E_SYNTAX_ERROR, ErrorCode.E_STATEMENT_EMPTY, ErrorCode.E_BAD_PERMISSION})
_MISSING = "Vertex or edge not found"
_WRONG_DATA = (
    "The data type does not meet",
    "The VID must be",
    "Invalid field value",
    "Invalid filter",
    "Invalid Update col",
    "Invalid space vid len",
    "Invalid data",
    "The not null field",
    "Out of range",
    "Wrong vid type",
    "Existed",
)
_NO_SPACE = "Space was not chosen"
"""What a semantic error says in a session that was resumed without the space it had."""
_SCHEMA_NOT_KNOWN_YET = ("No schema found", "not found")
"""What a semantic error says while a new tag or edge type has not reached a daemon."""


def trouble_of(code: int, told: str) -> Trouble:
    """The kind of an error that the server answered."""
    if code in _SESSION or (code == ErrorCode.E_SEMANTIC_ERROR and _NO_SPACE in told):
        return Trouble.SESSION
    if code == ErrorCode.E_SEMANTIC_ERROR:
        waits = any(text in told for text in _SCHEMA_NOT_KNOWN_YET)
        return Trouble.BUSY if waits else Trouble.MISTAKE
    if code in _MISTAKES or any(text in told for text in _WRONG_DATA):
        return Trouble.MISTAKE
    if _MISSING in told:
        return Trouble.MISSING
    # All else that is executed and fails does so for want of a part of the cluster.
    return Trouble.BUSY
