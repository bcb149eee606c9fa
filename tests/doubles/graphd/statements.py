"""The tree of a statement: the kinds that our store emits, and what is in them."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.doubles.graphd.expressions import Expression
from tests.doubles.graphd.schema import Schema
from tests.doubles.graphd.space import EdgeKey


@dataclass(frozen=True, slots=True)
class Use:
    space: str


@dataclass(frozen=True, slots=True)
class AddHosts:
    hosts: tuple[tuple[bytes, int], ...]


@dataclass(frozen=True, slots=True)
class Show:
    """HOSTS, SPACES, TAGS or EDGES."""

    what: str


@dataclass(frozen=True, slots=True)
class Describe:
    """A SPACE, TAG or EDGE."""

    what: str
    name: str


@dataclass(frozen=True, slots=True)
class CreateSpace:
    name: str
    partitions: int
    replicas: int
    vid_length: int


@dataclass(frozen=True, slots=True)
class DropSpace:
    name: str


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """A TAG or EDGE."""

    what: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class InsertVertices:
    tag: str
    names: tuple[str, ...]
    rows: tuple[tuple[bytes, tuple[Expression, ...]], ...]
    keep: bool
    """IF NOT EXISTS."""


@dataclass(frozen=True, slots=True)
class InsertEdges:
    edge: str
    names: tuple[str, ...]
    rows: tuple[tuple[EdgeKey, tuple[Expression, ...]], ...]
    keep: bool


@dataclass(frozen=True, slots=True)
class Column:
    """A column of YIELD."""

    expression: Expression
    name: str


@dataclass(frozen=True, slots=True)
class UpdateVertex:
    tag: str
    vid: bytes
    changes: Mapping[str, Expression]
    when: Expression | None
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class DeleteVertices:
    """Alone, or with all their edges."""

    vids: tuple[bytes, ...]
    with_edges: bool


@dataclass(frozen=True, slots=True)
class DeleteEdges:
    keys: tuple[EdgeKey, ...]


@dataclass(frozen=True, slots=True)
class Fetch:
    """Vertices."""

    tag: str
    vids: tuple[bytes, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Go:
    """One step."""

    vids: tuple[bytes, ...]
    edges: tuple[str, ...]
    reversely: bool
    where: Expression | None
    distinct: bool
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Count:
    """`YIELD count(*) AS name`."""

    name: str


@dataclass(frozen=True, slots=True)
class OrderBy:
    factors: tuple[tuple[str, bool], ...]
    """Columns, and whether each descends."""


@dataclass(frozen=True, slots=True)
class Limit:
    count: int


Pipe = Count | OrderBy | Limit
Read = Fetch | Go
Write = InsertVertices | InsertEdges | UpdateVertex | DeleteVertices | DeleteEdges
Catalogue = Use | AddHosts | Show | Describe | CreateSpace | DropSpace | CreateSchema
Statement = Read | Write | Catalogue


@dataclass(frozen=True, slots=True)
class Piped:
    """A read and what its rows go through."""

    first: Read
    pipes: tuple[Pipe, ...]
