"""What goes wrong, and at which calls: a plan that a test arms and the server follows."""

import threading
from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto

from tests.doubles.graphd.refusals import Refusal, data_conflict, leader_changed, rpc_failure, session_gone


class FaultKind(Enum):
    SESSION_LOST = auto()
    """The session is gone; nothing is executed."""
    LEADER_CHANGED = auto()
    """A partition has another leader; nothing is executed."""
    CONFLICT = auto()
    """Somebody else writes the same vertex or edge; nothing is executed."""
    RPC_FAILURE = auto()
    """graphd waited for storaged in vain; all is executed."""
    SILENT = auto()
    """All is executed, and no answer comes: the client's own timeout must end it."""
    DROPPED_BEFORE = auto()
    """The connection is closed; nothing is executed."""
    DROPPED_AFTER = auto()
    """All is executed; the connection is closed instead of an answer."""
    PARTIAL = auto()
    """Every other row of a write is applied, then the leader has changed; reads are not executed."""

    @property
    def executes(self) -> bool:
        return self in {FaultKind.RPC_FAILURE, FaultKind.SILENT, FaultKind.DROPPED_AFTER}


@dataclass(frozen=True, slots=True)
class Fault:
    """Strikes `times` calls from the `at`-th on, counted from 1 over the statements that begin so."""

    kind: FaultKind
    at: int = 1
    times: int = 1
    statement: str = ""


class Faults:
    """The armed faults and the count of calls since; for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: list[Fault] = []
        self._seen: Counter[str] = Counter()
        self._struck = 0

    def arm(self, *faults: Fault) -> None:
        """Replaces the plan, and counts calls anew."""
        with self._lock:
            self._armed = list(faults)
            self._seen.clear()
            self._struck = 0

    def clear(self) -> None:
        self.arm()

    @property
    def calls(self) -> int:
        """Statements executed or struck since the plan was armed; authentications are none."""
        with self._lock:
            return self._seen[""]

    @property
    def struck(self) -> int:
        """Calls that a fault has struck since the plan was armed."""
        with self._lock:
            return self._struck

    def strike(self, statement: str) -> FaultKind | None:
        """Counts a call; the first armed fault that it meets, if any."""
        words = " ".join(statement.split()[:6]).upper()
        with self._lock:
            for begin in {"", *(fault.statement for fault in self._armed)}:
                self._seen[begin] += words.startswith(begin.upper())
            for fault in self._armed:
                count = self._seen[fault.statement]
                if words.startswith(fault.statement.upper()) and fault.at <= count < fault.at + fault.times:
                    self._struck += 1
                    return fault.kind
        return None


def refusal_of(kind: FaultKind, session: int) -> Refusal | None:
    """What a struck statement is answered; None where there is no answer at all."""
    match kind:
        case FaultKind.SESSION_LOST:
            return session_gone(session)
        case FaultKind.LEADER_CHANGED | FaultKind.PARTIAL:
            return leader_changed(part=1)
        case FaultKind.CONFLICT:
            return data_conflict()
        case FaultKind.RPC_FAILURE:
            return rpc_failure()
        case FaultKind.SILENT | FaultKind.DROPPED_BEFORE | FaultKind.DROPPED_AFTER:
            return None
