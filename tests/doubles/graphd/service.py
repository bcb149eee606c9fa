"""The calls of the Thrift service GraphService, for one connection."""

import json
from collections.abc import Callable, Mapping
from typing import Protocol

from nebula3.common import ttypes
from nebula3.common.ttypes import ErrorCode
from nebula3.graph import GraphService
from nebula3.graph.ttypes import (
    AuthResponse,
    ExecutionResponse,
    VerifyClientVersionReq,
    VerifyClientVersionResp,
)

from tests.doubles.graphd.faults import FaultKind, Faults, refusal_of
from tests.doubles.graphd.refusals import Refusal
from tests.doubles.graphd.sessions import Session, Sessions
from tests.doubles.graphd.values import Table, Value, data_set, from_thrift

_CLIENTS = {b"3.0.0", b"3.8.0"}


class Engine(Protocol):
    def execute(
        self, session: Session, statement: str, parameters: Mapping[str, Value], *, partially: bool
    ) -> Table | None:
        """The result of a statement, None where it has none. Raises Refusal.

        `partially`: a write applies every other row only; a read is not executed.
        """
        ...


class Line(Protocol):
    """What a service may do to its connection."""

    def hang_up(self) -> None:
        """Closes it at once; no answer goes out."""
        ...

    def wait_for_hang_up(self) -> None:
        """Returns when the client has closed it, or the server stops."""
        ...


class GraphdService(GraphService.Iface):  # type: ignore[misc]  # the generated code has no types
    """Answers as graphd does. Faults strike statements only."""

    def __init__(self, sessions: Sessions, engine: Engine, faults: Faults, line: Line) -> None:
        self._sessions = sessions
        self._engine = engine
        self._faults = faults
        self._line = line

    def verifyClientVersion(self, req: VerifyClientVersionReq) -> VerifyClientVersionResp:
        if req.version in _CLIENTS:
            return VerifyClientVersionResp(error_code=ErrorCode.SUCCEEDED)
        return VerifyClientVersionResp(
            error_code=ErrorCode.E_CLIENT_SERVER_INCOMPATIBLE,
            error_msg=b"Graph client handshakeKey(" + req.version + b") is not accepted.",
        )

    def authenticate(self, username: bytes, password: bytes) -> AuthResponse:
        try:
            session = self._sessions.open(username, password)
        except Refusal as refusal:
            return AuthResponse(error_code=refusal.code, error_msg=refusal.message.encode())
        return AuthResponse(
            error_code=ErrorCode.SUCCEEDED,
            session_id=session.id,
            time_zone_offset_seconds=0,
            time_zone_name=b"UTC",
        )

    def signout(self, sessionId: int) -> None:  # noqa: N803  # a name of the protocol
        self._sessions.close(sessionId)

    def execute(self, sessionId: int, stmt: bytes) -> ExecutionResponse:  # noqa: N803
        return self.executeWithParameter(sessionId, stmt, {})

    def executeWithParameter(
        self,
        sessionId: int,  # noqa: N803
        stmt: bytes,
        parameterMap: Mapping[bytes, ttypes.Value] | None,  # noqa: N803
    ) -> ExecutionResponse:
        space = b""
        try:
            session = self._sessions.get(sessionId)
            space = session.space.encode()
            parameters = {name.decode(): from_thrift(value) for name, value in (parameterMap or {}).items()}
            table = self._answer(session, stmt.decode("utf-8", "surrogateescape"), parameters)
            space = session.space.encode()
        except Refusal as refusal:
            message = refusal.message.encode("utf-8", "surrogateescape")
            return ExecutionResponse(
                error_code=refusal.code, latency_in_us=1, space_name=space, error_msg=message
            )
        return ExecutionResponse(
            error_code=ErrorCode.SUCCEEDED,
            latency_in_us=1,
            space_name=space,
            data=None if table is None else data_set(table),
        )

    def executeJson(self, sessionId: int, stmt: bytes) -> bytes:  # noqa: N803
        return self.executeJsonWithParameter(sessionId, stmt, {})

    def executeJsonWithParameter(
        self,
        sessionId: int,  # noqa: N803
        stmt: bytes,
        parameterMap: Mapping[bytes, ttypes.Value] | None,  # noqa: N803
    ) -> bytes:
        return as_json(self.executeWithParameter(sessionId, stmt, parameterMap))

    def _answer(self, session: Session, statement: str, parameters: Mapping[str, Value]) -> Table | None:
        fault = self._faults.strike(statement)
        if fault is None:
            return self._engine.execute(session, statement, parameters, partially=False)
        if fault is FaultKind.SESSION_LOST:
            self._sessions.close(session.id)
        elif fault is FaultKind.DROPPED_BEFORE:
            self._line.hang_up()
        if fault.executes or fault is FaultKind.PARTIAL:
            self._engine.execute(session, statement, parameters, partially=fault is FaultKind.PARTIAL)
        if fault is FaultKind.SILENT:
            self._line.wait_for_hang_up()
        elif fault is FaultKind.DROPPED_AFTER:
            self._line.hang_up()
        refusal = refusal_of(fault, session.id)
        if refusal is not None:
            raise refusal
        return None


def as_json(response: ExecutionResponse) -> bytes:
    """The answer of executeJson: results with plain rows, and errors."""
    result: dict[str, object] = {
        "spaceName": response.space_name.decode(),
        "latencyInUs": response.latency_in_us,
    }
    if response.data is not None:
        result["columns"] = [name.decode() for name in response.data.column_names]
        result["data"] = [{"row": [_plain(value) for value in row.values]} for row in response.data.rows]
    error: dict[str, object] = {"code": response.error_code}
    if response.error_msg is not None:
        error["message"] = response.error_msg.decode()
    return json.dumps({"results": [result], "errors": [error]}).encode()


def _plain(value: ttypes.Value) -> object:
    kinds: dict[int, Callable[[], object]] = {
        ttypes.Value.BVAL: value.get_bVal,
        ttypes.Value.IVAL: value.get_iVal,
        ttypes.Value.FVAL: value.get_fVal,
        ttypes.Value.SVAL: lambda: value.get_sVal().decode(),
        ttypes.Value.LVAL: lambda: [_plain(item) for item in value.get_lVal().values],
    }
    get = kinds.get(value.getType())
    return None if get is None else get()
