"""Tags and edge types: what is declared, and from when on statements see it."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tests.doubles.graphd.refusals import semantic_error, storage_error
from tests.doubles.graphd.values import Value


class Misfit(Exception):
    """A value that a column does not take. `str()` is what storaged says."""


@dataclass(frozen=True, slots=True)
class Column:
    """A property that is never NULL. `type`: int64, string, double or bool."""

    name: str
    type: str

    def stored(self, value: Value) -> Value:
        """As it reads after a write: numbers and truth values are made fit. Raises Misfit."""
        match self.type, value:
            case _, None:
                raise Misfit("The not null field cannot be null.")
            case ("string", bytes()) | ("bool", bool()) | ("double", float()):
                return value
            case "int64", bool() | int():
                return int(value)
            case "int64", float():
                if not -(2.0**63) <= value <= 2.0**63:
                    raise Misfit("Out of range value.")
                return math.floor(abs(value) + 0.5) * (1 if value > 0 else -1)
            case "bool", int():
                return value != 0
            case "double", int() if not isinstance(value, bool):
                return float(value)
        raise Misfit("The data type does not meet the requirements. Use the correct type of data.")


@dataclass(frozen=True, slots=True)
class Schema:
    """A tag or an edge type."""

    name: str
    columns: Mapping[str, Column]

    def known(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.columns:
                raise semantic_error(f"Unknown column `{name}' in schema")

    def whole(self, values: Mapping[str, Value]) -> None:
        """Refuses missing values and NULL, as graphd does for edges alone."""
        for name in self.columns:
            if name not in values:
                raise semantic_error(f"The property `{name}' is not nullable and has no default value.")
            if values[name] is None:
                raise semantic_error(f"The non-nullable property `{name}' could not be NULL.")

    def row(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """All properties in the order declared, from those that an insert gives."""
        try:
            stored = {name: self.columns[name].stored(value) for name, value in values.items()}
        except Misfit as misfit:
            raise storage_error(str(misfit)) from misfit
        if self.columns.keys() - stored.keys():
            raise storage_error("The not null field doesn't have a default value.")
        return {name: stored[name] for name in self.columns}


@dataclass(slots=True)
class Declared:
    """Schemas by name, seen by statements only after a heartbeat; the catalogue shows them at once."""

    heartbeat_seconds: float
    clock: Callable[[], float]
    all: dict[str, Schema] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, schema: Schema) -> None:
        """One that is there stays."""
        if name not in self.all:
            self.all[name] = schema
            self._since[name] = self.clock()

    def seen(self, name: str) -> Schema | None:
        """What statements see by now."""
        found = self.all.get(name)
        by = self.clock() - self.heartbeat_seconds
        return found if found is not None and self._since[name] <= by else None
