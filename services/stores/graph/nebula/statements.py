"""Every sentence of nGQL that the store can send, each made by one function here and nowhere else.

NebulaGraph's own word for a statement is taken as *sentence*: statements are facts here. Values of properties
travel as `$parameters`. Vids, ranks and bounds of ranks can't (or aren't pushed down to storage then): they
are literals, made of our own alphabet and of whole numbers. Names are those of layout.py.

All are safe to repeat, except where `repeatable` says otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from services.stores.graph.nebula import layout
from services.stores.graph.nebula.layout import Column, Edge, Tag
from services.stores.graph.nebula.vids import VID_BYTES, Vid, literal, literals

Value = str | int | float | bool
Row = Mapping[str, Value]
"""A value for each column of a tag or an edge."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Text, the values of its parameters, and whether sending it twice is as good as once."""

    text: str
    parameters: Mapping[str, Value] = field(default_factory=dict)
    repeatable: bool = True


@dataclass(frozen=True, slots=True)
class EdgeKey:
    """An edge of a type: from `source` to `target`, and the rank that tells it from others between them."""

    source: Vid
    target: Vid
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """Where a member stands among others: the revision that created it, then its vid."""

    created_at: int
    member: Vid


@dataclass(frozen=True, slots=True)
class Window:
    """Which members a sentence wants: the first `size` after `after`, in order, or newest first.

    `until`: nothing created later. `hull`: only statements whose hull starts before the one instant and ends
    after the other.
    """

    size: int
    newest_first: bool = False
    until: int | None = None
    after: Position | None = None
    hull: tuple[int, int] | None = None


# Reads.


def fetch(tag: Tag, vids: Sequence[Vid]) -> Sentence:
    """Vertices by vid, in no order; those that are not there are left out. Columns: those of the tag."""
    columns = ", ".join(f"{tag.name}.{column.name} AS {column.name}" for column in tag.columns)
    return Sentence(f"FETCH PROP ON {tag.name} {literals(vids)} YIELD {columns}")


def edges(vids: Sequence[Vid], types: Sequence[Edge], *, reversely: bool = False) -> Sentence:
    """What all out-edges (in-edges if `reversely`) of these types say. Column: body."""
    assert all(edge.columns for edge in types), "an edge that only joins says nothing"
    return Sentence(f"{_go(vids, types, reversely)} YIELD properties(edge).body AS body")


def edge_keys(vids: Sequence[Vid], types: Sequence[Edge], *, reversely: bool = False) -> Sentence:
    """All out-edges (in-edges if `reversely`) of these types. Columns: type, source, target, place."""
    return Sentence(
        f"{_go(vids, types, reversely)} YIELD type(edge) AS type, src(edge) AS source, "
        "dst(edge) AS target, rank(edge) AS place"
    )


def _go(vids: Sequence[Vid], types: Sequence[Edge], reversely: bool) -> str:
    return f"GO FROM {literals(vids)} OVER {_names(types)}{' REVERSELY' if reversely else ''}"


def members(anchors: Sequence[Vid], edge: Edge, window: Window) -> Sentence:
    """What joins to these anchors by edges of this type, in the order of `Position`, then of anchors.

    Columns: created_at, member, anchor. A member is told once for each of its anchors. Storage itself sieves
    by `_rank` and `_dst` (the end reached), not by `rank(edge)` and `src(edge)`; those names are of one type.
    """
    order, name = " DESC" if window.newest_first else "", edge.name
    return Sentence(
        f"{_go(anchors, [edge], True)}{_where(name, window)} "
        f"YIELD {name}._rank AS created_at, {name}._dst AS member, {name}._src AS anchor "
        f"| ORDER BY $-.created_at{order}, $-.member{order}, $-.anchor{order} | LIMIT {int(window.size)}"
    )


def count_members(anchors: Sequence[Vid], edge: Edge, until: int) -> Sentence:
    """How many join to these anchors by edges of this type, made by revisions up to one. Column: members."""
    return Sentence(
        f"{_go(anchors, [edge], True)} WHERE {edge.name}._rank <= {int(until)} "
        f"YIELD {edge.name}._dst AS member | YIELD count(*) AS members"
    )


def _where(edge: str, window: Window) -> str:
    conditions: list[str] = []
    if window.until is not None:
        conditions.append(f"{edge}._rank <= {int(window.until)}")
    if window.after is not None:
        beyond, at = "<" if window.newest_first else ">", int(window.after.created_at)
        member = literal(window.after.member)
        same = f"{edge}._rank == {at} AND {edge}._dst {beyond} {member}"
        conditions.append(f"({edge}._rank {beyond} {at} OR ({same}))")
    if window.hull is not None:
        before, after = window.hull
        hull = f"$$.{layout.STATEMENT.name}.hull"
        conditions.append(f"{hull}_from < {int(before)} AND {hull}_to > {int(after)}")
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


# Writes.


def insert_vertices(tag: Tag, rows: Sequence[tuple[Vid, Row]]) -> Sentence:
    """Vertices that are not there yet; those that are stay as they are."""
    values, parameters = _values(tag.columns, [row for _, row in rows])
    told = ", ".join(f"{literal(vid)}:{row}" for (vid, _), row in zip(rows, values, strict=True))
    return Sentence(
        f"INSERT VERTEX IF NOT EXISTS {tag.name}({_names(tag.columns)}) VALUES {told}", parameters
    )


def insert_edges(edge: Edge, rows: Sequence[tuple[EdgeKey, Row]], *, anew: bool = False) -> Sentence:
    """Edges that are not there yet; those that are stay as they are, or are overwritten if `anew`."""
    values, parameters = _values(edge.columns, [row for _, row in rows])
    told = ", ".join(f"{_edge(key)}:{row}" for (key, _), row in zip(rows, values, strict=True))
    unless = "" if anew else "IF NOT EXISTS "
    return Sentence(f"INSERT EDGE {unless}{edge.name}({_names(edge.columns)}) VALUES {told}", parameters)


def widen_from(vid: Vid, start: int) -> Sentence:
    """Moves the start of a statement's hull to an earlier instant."""
    return _update(layout.STATEMENT, vid, {"hull_from": start}, "hull_from > $hull_from")


def widen_to(vid: Vid, end: int) -> Sentence:
    """Moves the end of a statement's hull to a later instant."""
    return _update(layout.STATEMENT, vid, {"hull_to": end}, "hull_to < $hull_to")


def restore(tag: Tag, vid: Vid, body: str, revision: int) -> Sentence:
    """Gives a vertex its texts again if an earlier revision forgot them."""
    condition = "forgotten_at >= 0 AND forgotten_at < $revision"
    return _update(tag, vid, {"body": body, "forgotten_at": layout.NEVER}, condition, revision=revision)


def forget(tag: Tag, vid: Vid, body: str, revision: int) -> Sentence:
    """Takes a vertex's texts away."""
    return _update(tag, vid, {"body": body, "forgotten_at": revision})


def retell(vid: Vid, body: str) -> Sentence:
    """Says a statement anew, unless it is forgotten."""
    return _update(layout.STATEMENT, vid, {"body": body}, "forgotten_at < 0")


def delete_vertices(vids: Sequence[Vid]) -> Sentence:
    """Vertices alone. `WITH EDGE` would read their edges first: what a failure half deleted it can't find."""
    return Sentence(f"DELETE VERTEX {literals(vids)}")


def delete_edges(edge: Edge, keys: Sequence[EdgeKey]) -> Sentence:
    """Edges, at both their ends; those that are not there are none."""
    return Sentence(f"DELETE EDGE {edge.name} {', '.join(map(_edge, keys))}")


def _update(tag: Tag, vid: Vid, values: Row, condition: str = "", **more: Value) -> Sentence:
    columns = {column.name for column in tag.columns}
    assert columns >= values.keys(), "a column that the tag has not"
    told = ", ".join(f"{name} = ${name}" for name in values)
    when = f" WHEN {condition}" if condition else ""
    return Sentence(f"UPDATE VERTEX ON {tag.name} {literal(vid)} SET {told}{when}", {**values, **more})


def _edge(key: EdgeKey) -> str:
    return f"{literal(key.source)}->{literal(key.target)}@{int(key.rank)}"


def _names(named: Sequence[Column | Edge]) -> str:
    return ", ".join(one.name for one in named)


def _values(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[list[str], dict[str, Value]]:
    """`($p0, $p1, …)` for each row, and the parameters: numbered through, row by row."""
    told: list[str] = []
    parameters: dict[str, Value] = {}
    for row in rows:
        names: list[str] = []
        for column in columns:
            name = f"p{len(parameters)}"
            parameters[name] = row[column.name]
            names.append(f"${name}")
        told.append(f"({', '.join(names)})")
    return told, parameters


# The schema, and where data lie: what bootstrap sends.


def create_space(space: str, partitions: int, replicas: int) -> Sentence:
    return Sentence(
        f"CREATE SPACE IF NOT EXISTS {_name(space)}(partition_num = {int(partitions)}, "
        f"replica_factor = {int(replicas)}, vid_type = FIXED_STRING({VID_BYTES}))"
    )


def use(space: str) -> Sentence:
    return Sentence(f"USE {_name(space)}")


def create(kind: Literal["TAG", "EDGE"], one: Tag | Edge) -> Sentence:
    columns = ", ".join(f"{column.name} {column.type} NOT NULL" for column in one.columns)
    return Sentence(f"CREATE {kind} IF NOT EXISTS {one.name}({columns})")


def describe(kind: Literal["TAG", "EDGE"], name: str) -> Sentence:
    """Columns: Field, Type, Null, Default, Comment."""
    return Sentence(f"DESCRIBE {kind} {_name(name)}")


def show(what: Literal["SPACES", "TAGS", "EDGES", "HOSTS"]) -> Sentence:
    """Column Name; for HOSTS: Host, Port, Status and more."""
    return Sentence(f"SHOW {what}")


def describe_space(space: str) -> Sentence:
    """Columns: Vid Type, Partition Number, Replica Factor and more."""
    return Sentence(f"DESCRIBE SPACE {_name(space)}")


def add_hosts(hosts: Sequence[tuple[str, int]]) -> Sentence:
    """Storage hosts that the cluster does not know yet; a known one is an error."""
    told = ", ".join(f'"{_host(host)}":{int(port)}' for host, port in hosts)
    return Sentence(f"ADD HOSTS {told}", repeatable=False)


def drop_space(space: str) -> Sentence:
    """Removes a space with all graphs in it: for tests, which make their own."""
    return Sentence(f"DROP SPACE IF EXISTS {_name(space)}")


def _name(name: str) -> str:
    if not (name.isidentifier() and name.isascii()):
        raise ValueError("not a name: letters, digits and underscores, a letter first")
    return f"`{name}`"


def _host(host: str) -> str:
    if not host or not all(letter.isascii() and (letter.isalnum() or letter in ".-_:") for letter in host):
        raise ValueError("not the name or the address of a host")
    return host
