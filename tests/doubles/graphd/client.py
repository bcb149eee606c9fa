"""A client for tests: NebulaGraph's own pool and sessions, and answers as plain data that JSON can keep."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from nebula3.common import ttypes
from nebula3.Config import Config
from nebula3.gclient.net import ConnectionPool

Plain = Any
"""int, float, bool, str, None for NULL; a dict of one key for the rest: `empty`, `null`, `list`, `map`."""


@dataclass(frozen=True, slots=True)
class Step:
    """A statement with its parameters."""

    statement: str
    parameters: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """`code` is 0 and `message` empty for a success; `columns` is None where there is no result."""

    code: int
    message: str
    columns: list[str] | None
    rows: list[list[Plain]]


class Client:
    """One session. Raises what the library raises when there is no answer."""

    def __init__(self, address: str, timeout_ms: int = 20_000) -> None:
        host, _, port = address.rpartition(":")
        config = Config()
        config.timeout = timeout_ms
        config.max_connection_pool_size = 1
        self._pool = ConnectionPool()
        self._pool.init([(host, int(port))], config)
        self._session = self._pool.get_session("root", "nebula", retry_connect=False)

    def ask(self, statement: str, **parameters: str | int | float | bool | None) -> Answer:
        return self.take(Step(statement, parameters))

    def take(self, step: Step) -> Answer:
        values = {name.encode(): to_thrift(value) for name, value in step.parameters.items()}
        result = self._session.execute_parameter(step.statement.encode(), values)
        columns = list(result.keys()) if result._resp.data is not None else None
        rows = [[to_plain(value) for value in row.values] for row in result.rows()]
        return Answer(result.error_code(), result.error_msg(), columns, rows)

    def json(self, statement: str) -> bytes:
        told: bytes = self._session.execute_json(statement)
        return told

    def close(self) -> None:
        self._session.release()
        self._pool.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def to_thrift(value: str | int | float | bool | None) -> ttypes.Value:
    match value:
        case None:
            return ttypes.Value(nVal=ttypes.NullType.__NULL__)
        case bool():
            return ttypes.Value(bVal=value)
        case int():
            return ttypes.Value(iVal=value)
        case float():
            return ttypes.Value(fVal=value)
        case str():
            return ttypes.Value(sVal=value.encode())


def to_plain(value: ttypes.Value) -> Plain:
    kind = value.getType()
    if kind == ttypes.Value.__EMPTY__:
        return {"empty": True}
    if kind == ttypes.Value.NVAL:
        return None if value.value == ttypes.NullType.__NULL__ else {"null": value.value}
    if kind == ttypes.Value.SVAL:
        return value.value.decode()
    if kind == ttypes.Value.LVAL:
        return {"list": _all(value.value.values)}
    if kind == ttypes.Value.MVAL:
        return {"map": {name.decode(): to_plain(item) for name, item in sorted(value.value.kvs.items())}}
    assert kind in {ttypes.Value.BVAL, ttypes.Value.IVAL, ttypes.Value.FVAL}, f"a value of kind {kind}"
    return value.value


def _all(values: Iterable[ttypes.Value]) -> list[Plain]:
    return [to_plain(value) for value in values]
