"""The wire: one connection to a graphd with one session in one space, and values as they travel.

The generated Thrift client is used as it is; the library's pools and sessions are not (they retry behind our
back, overshoot their size, and sign sessions out when they are garbage, in forked children too). Blocking: a
connection belongs to one thread.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nebula3.common import ttypes
from nebula3.common.ttypes import ErrorCode
from nebula3.fbthrift.protocol.THeaderProtocol import THeaderProtocol
from nebula3.fbthrift.Thrift import TException
from nebula3.fbthrift.transport.THeaderTransport import THeaderTransport
from nebula3.fbthrift.transport.TSocket import TSocket
from nebula3.fbthrift.transport.TTransport import TBufferedTransport
from nebula3.graph import GraphService
from nebula3.graph.ttypes import VerifyClientVersionReq

from services.stores.graph.nebula.failures import NebulaFailure, Trouble, trouble_of
from services.stores.graph.nebula.statements import Sentence, Value

Plain = Any
"""None, bool, int, float, str, or a list or mapping of them. None is NULL or no value at all."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows in the order of their columns; none for what has no result."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Plain, ...], ...] = ()


class Wire:
    """An authenticated connection. Every method raises NebulaFailure."""

    def __init__(self, host: str, port: int, connect_timeout_ms: int) -> None:
        self.address = (host, port)
        self._socket = TSocket(host, port)
        self._socket.setTimeout(connect_timeout_ms)
        transport = THeaderTransport(TBufferedTransport(self._socket))
        self._client = GraphService.Client(THeaderProtocol(transport))
        self._session: int | None = None
        try:
            with _translated():
                transport.open()
                answer = self._client.verifyClientVersion(VerifyClientVersionReq())
            if answer.error_code != ErrorCode.SUCCEEDED:
                raise NebulaFailure(Trouble.MISTAKE, answer.error_code, _text(answer.error_msg))
        except NebulaFailure:
            self._socket.close()
            raise

    def sign_in(self, user: str, password: str, call_timeout_ms: int) -> None:
        """Opens the session, and waits for later answers as long as a call may take."""
        self._socket.setTimeout(call_timeout_ms)
        with _translated():
            answer = self._client.authenticate(user.encode(), password.encode())
        if answer.error_code != ErrorCode.SUCCEEDED or answer.session_id is None:
            # Too many sessions, a metad that does not answer, a wrong password: all may be put right.
            raise NebulaFailure(Trouble.LOST, answer.error_code, _text(answer.error_msg))
        self._session = answer.session_id

    def resume(self, session: int, call_timeout_ms: int) -> None:
        """Goes on with a session of another connection: a server binds it to none."""
        self._socket.setTimeout(call_timeout_ms)
        self._session = session

    def send(self, sentence: Sentence) -> Answer:
        """The answer to one sentence. A result that is not whole is a failure."""
        parameters = {name.encode(): to_thrift(value) for name, value in sentence.parameters.items()}
        with _translated():
            answer = self._client.executeWithParameter(self._session, sentence.text.encode(), parameters)
        if answer.error_code != ErrorCode.SUCCEEDED:
            told = _text(answer.error_msg)
            raise NebulaFailure(trouble_of(answer.error_code, told), answer.error_code, told)
        if answer.data is None:
            return Answer()
        columns = tuple(map(_text, answer.data.column_names))
        rows = tuple(tuple(map(from_thrift, row.values)) for row in answer.data.rows)
        return Answer(columns, rows)

    def close(self) -> None:
        """Signs out, if that can be said, and closes. Idempotent."""
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(TException, OSError):
                self._client.signout(session)
        self._socket.close()

    def drop(self) -> int | None:
        """Closes without a word: after a failure an answer to another question may be under way.

        Answers the session, which stays.
        """
        session, self._session = self._session, None
        self._socket.close()
        return session


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (TException, OSError, EOFError) as error:
        raise NebulaFailure(Trouble.LOST, told=type(error).__name__) from error


def to_thrift(value: Value) -> ttypes.Value:
    """A parameter's value. Texts must be storable."""
    match value:
        case bool():
            return ttypes.Value(bVal=value)
        case int():
            return ttypes.Value(iVal=value)
        case float():
            return ttypes.Value(fVal=value)
        case str():
            return ttypes.Value(sVal=value.encode())


def from_thrift(value: ttypes.Value) -> Plain:
    """A value of a result. Raises TypeError for kinds that our sentences never ask for."""
    kind = value.getType()
    if kind == ttypes.Value.SVAL:
        return value.value.decode()
    if kind in _PLAIN:
        return value.value
    if kind in (ttypes.Value.NVAL, ttypes.Value.__EMPTY__):
        return None
    if kind == ttypes.Value.MVAL:
        pairs: Mapping[bytes, ttypes.Value] = value.value.kvs
        return {_text(name): from_thrift(one) for name, one in pairs.items()}
    if kind == ttypes.Value.LVAL:
        return [from_thrift(one) for one in value.value.values]
    raise TypeError(f"a value of kind {kind}")


_PLAIN = frozenset({ttypes.Value.BVAL, ttypes.Value.IVAL, ttypes.Value.FVAL})


def _text(told: bytes | str | None) -> str:
    if told is None:
        return ""
    return told if isinstance(told, str) else told.decode("utf-8", "replace")
