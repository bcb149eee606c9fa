"""How a graph lies in NebulaGraph: tags, edge types and their columns. Every name in a sentence is from here.

All scopes share one space; a vid opens with its scope (vids.py). An edge leads from what was said to what it
names, so that a statement's own out-edges are all that is known of it, and the in-edges of a node, a pair, an
episode or a shelf are all that name it. Nothing is ever looked up by an index: there is none.

What an entity, a statement, a record or a span says is one text of JSON (`body`, see bodies.py): a value of a
row costs the client as much as a whole record that is one value. Columns are only what a server must compare.

Edges that only join (`JOINS`) have no columns: their rank is the revision that created their source, and so
`(rank, source)` is the stable order of lists and walks. Other edges are written once and told apart by rank
(`vids.place_of` their id). Two things change: the vertices, and texts of records, which `forget` writes anew.
"""

from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["string", "int64"]

UNKNOWN_START = -(2**62)
OPEN = 2**62
"""An open end, in world time and in system time. Beyond every instant and revision; NULL is never stored."""
NEVER = -1
"""`forgotten_at` of what was not forgotten."""

SHELF_REVISIONS = 256
"""Revisions a shelf. A page of a scan reads one shelf: few enough for that, enough to have few shelves."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: ColumnType


@dataclass(frozen=True, slots=True)
class Tag:
    """A kind of vertex."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """A type of edge."""

    name: str
    columns: tuple[Column, ...] = ()


def _columns(**types: ColumnType) -> tuple[Column, ...]:
    return tuple(Column(name, type) for name, type in types.items())


_BODY = _columns(body="string")

ENTITY = Tag("entity", (*_BODY, *_columns(forgotten_at="int64")))
STATEMENT = Tag(
    "statement",
    # The hull of all its spans, past beliefs included; empty (from > to) while it has none.
    (*_BODY, *_columns(forgotten_at="int64", hull_from="int64", hull_to="int64")),
)

HAS_SUBJECT = Edge("has_subject")
HAS_PREDICATE = Edge("has_predicate")
HAS_OBJECT = Edge("has_object")
"""From a statement to an entity."""
HAS_PAIR = Edge("has_pair")
"""From a statement to its subject with its predicate, and to its subject with its object: slots at a look."""
ON_SHELF = Edge("on_shelf")
"""From a statement or an entity to the shelf of the revision that created it."""
HAS_SHELF = Edge("has_shelf")
"""From a scope's root to its shelves; the rank is the shelf's number."""

ALIAS = Edge("alias", _BODY)
"""From a key to an entity; told apart by type."""
CLAIM = Edge("claim", _BODY)
ENDING = Edge("ending", _BODY)
DENIAL = Edge("denial", _BODY)
"""From a statement to the episode that says it; to the statement itself when a user did it by hand."""
VERDICT = Edge("verdict", _BODY)
"""From the left statement to the right one."""
JUDGED = Edge("judged", _BODY)
"""From a verdict's left statement to the verdict's episode."""
REVOCATION = Edge("revocation", _BODY)
"""From a record's statement (a verdict's left one) to itself."""
SPAN = Edge("span", _BODY)
"""From a statement to the record that ended it; to itself while nothing did."""
CLOSING = Edge("closing", _BODY)
"""From a statement to itself: one of its spans is believed no more."""

TAGS = (ENTITY, STATEMENT)
JOINS = (HAS_SUBJECT, HAS_PREDICATE, HAS_OBJECT, HAS_PAIR, ON_SHELF, HAS_SHELF)
RECORDS = (CLAIM, ENDING, DENIAL)
"""What an episode says of a statement."""
EDGES = (*JOINS, ALIAS, *RECORDS, VERDICT, JUDGED, REVOCATION, SPAN, CLOSING)
OF_STATEMENT = (*RECORDS, VERDICT, REVOCATION, SPAN, CLOSING)
"""Out-edges that tell all of a statement; verdicts of which it is the right side come in."""
FROM_STATEMENT = (*OF_STATEMENT, JUDGED)
"""All its out-edges but joins, which its body tells."""
