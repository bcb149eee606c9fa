"""Sessions: made by authentication, not bound to a connection, few a user."""

import threading
from dataclasses import dataclass

from nebula3.common.ttypes import ErrorCode

from tests.doubles.graphd.refusals import Refusal, session_gone


@dataclass(slots=True)
class Session:
    id: int
    space: str = ""


class Sessions:
    """All sessions of the server; for many threads."""

    def __init__(self, user: str, password: str, cap: int) -> None:
        self._user = user.encode()
        self._password = password.encode()
        self._cap = cap
        self._lock = threading.Lock()
        self._open: dict[int, Session] = {}
        self._next = 1_700_000_000_000_001

    def open(self, user: bytes, password: bytes) -> Session:
        if (user, password) != (self._user, self._password):
            raise Refusal(ErrorCode.E_BAD_USERNAME_PASSWORD, "Invalid password")
        with self._lock:
            if len(self._open) >= self._cap:
                reason = (
                    "Create Session failed: Too many sessions created from 127.0.0.1 "
                    f"by user {user.decode()}. the threshold is {self._cap}. You can change it by modifying "
                    "'max_sessions_per_ip_per_user' in nebula-graphd.conf"
                )
                raise Refusal(ErrorCode.E_SESSION_INVALID, reason)
            session = Session(self._next)
            self._next += 1
            self._open[session.id] = session
        return session

    def get(self, id: int) -> Session:
        if id == 0:  # a ping of the client
            raise Refusal(ErrorCode.E_SESSION_INVALID, "Invalid session id")
        with self._lock:
            session = self._open.get(id)
        if session is None:
            raise session_gone(id)
        return session

    def close(self, id: int) -> None:
        with self._lock:
            self._open.pop(id, None)

    def count(self) -> int:
        with self._lock:
            return len(self._open)

    def lose_all(self) -> None:
        """As after a restart of the server."""
        with self._lock:
            self._open.clear()
