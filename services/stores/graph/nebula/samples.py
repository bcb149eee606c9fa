"""Samples: every sentence that the store can send, with hostile values, to be checked against a grammar."""

from collections.abc import Iterator, Sequence
from itertools import cycle

from services.domain.scope import GraphId, Scope, TenantId
from services.stores.graph.nebula import layout, statements
from services.stores.graph.nebula.layout import Column
from services.stores.graph.nebula.statements import EdgeKey, Position, Row, Sentence, Window
from services.stores.graph.nebula.vids import Kind, Vid, key, pair, place_of, root, shelf, vid

HOSTILE = (
    "quotes \" ' ` and back\\slashes \\",
    "line\nfeed\r\ntab\t",
    '"); DROP SPACE palimpsest; --',
    "/* a comment */ -- and # another // one",
    "$p0 $-.member ${x} %s {y} ?",
    "天气很好，“引号”，我住在东京。",
    "👩‍👩‍👧 naïve e\u0301 \u202eright to left\u202c",
    "x" * 10_000,
    "",
)
_SCOPE = Scope(TenantId('"; DROP SPACE palimpsest'), GraphId("`\\"))
_ID = "6f0e3c1e-6d9c-5f0a-8a51-0d4c7c1b9f4{}"


def samples() -> Iterator[Sentence]:
    """Each shape at least once, with each tag, edge type and option that it is used with."""
    yield from _reads()
    yield from _writes()
    yield from _schema()


def _reads() -> Iterator[Sentence]:
    facts, nodes = _vids(Kind.STATEMENT), _vids(Kind.ENTITY)
    for tag, vids in ((layout.STATEMENT, facts), (layout.ENTITY, nodes)):
        yield statements.fetch(tag, vids)
    yield statements.edge_keys([root(_SCOPE)], [layout.HAS_SHELF])
    yield statements.edges([key(_SCOPE, text) for text in HOSTILE], [layout.ALIAS])
    yield statements.edges(nodes, [layout.ALIAS], reversely=True)
    yield statements.edges(facts, layout.OF_STATEMENT)
    yield statements.edge_keys(facts, layout.FROM_STATEMENT)
    yield statements.edge_keys(facts, [layout.VERDICT], reversely=True)
    yield statements.edge_keys(nodes, [layout.ALIAS], reversely=True)
    yield statements.edges(facts, [*layout.RECORDS, layout.REVOCATION, layout.SPAN, layout.CLOSING])
    yield statements.edges(facts, [layout.SPAN])
    yield statements.edges(facts, [layout.CLOSING])
    yield statements.edges(facts, [layout.REVOCATION])
    yield statements.edges(facts, [*layout.RECORDS, layout.VERDICT])
    yield statements.edges(facts, [layout.VERDICT, layout.REVOCATION])
    yield statements.edges(facts, [layout.CLAIM, layout.REVOCATION, layout.SPAN, layout.CLOSING])
    yield statements.edges(facts, [layout.VERDICT], reversely=True)
    yield statements.edges(_vids(Kind.EPISODE), [*layout.RECORDS, layout.JUDGED], reversely=True)
    yield statements.edges(_vids(Kind.RECORD), [layout.SPAN], reversely=True)
    shelves = [shelf(_SCOPE, Kind.STATEMENTS, number) for number in (0, 1)]
    pairs = [pair(_SCOPE, kind, *nodes) for kind in (Kind.SLOT, Kind.BETWEEN)]
    ways = (
        (nodes, layout.HAS_SUBJECT),
        (nodes, layout.HAS_PREDICATE),
        (nodes, layout.HAS_OBJECT),
        (pairs, layout.HAS_PAIR),
        (shelves, layout.ON_SHELF),
    )
    windows = (
        Window(100),
        Window(100, until=7, after=Position(3, facts[0])),
        Window(100, newest_first=True, until=7, hull=(layout.OPEN, layout.UNKNOWN_START)),
        Window(100, True, 7, Position(3, facts[0]), (1_700_000_000_000_001, -1)),
    )
    for anchors, edge in ways:
        yield from (statements.members(anchors, edge, window) for window in windows)
    yield statements.count_members(shelves, layout.ON_SHELF, 7)


def _writes() -> Iterator[Sentence]:
    texts = cycle(HOSTILE)
    facts, nodes = _vids(Kind.STATEMENT), _vids(Kind.ENTITY)
    for tag, vids in ((layout.ENTITY, nodes), (layout.STATEMENT, facts)):
        yield statements.insert_vertices(tag, [(one, _row(tag.columns, texts)) for one in vids])
    for edge in layout.EDGES:
        keys = [EdgeKey(one, facts[0], place_of(one)) for one in facts]
        yield statements.insert_edges(edge, [(one, _row(edge.columns, texts)) for one in keys])
    for edge in (*layout.RECORDS, layout.VERDICT):
        rows = [(EdgeKey(facts[0], facts[1], 7), _row(edge.columns, texts))]
        yield statements.insert_edges(edge, rows, anew=True)
    yield statements.widen_from(facts[0], layout.UNKNOWN_START)
    yield statements.widen_to(facts[0], layout.OPEN)
    for tag, vertex in ((layout.ENTITY, nodes[0]), (layout.STATEMENT, facts[0])):
        yield statements.restore(tag, vertex, next(texts), 7)
        yield statements.forget(tag, vertex, next(texts), 7)
    for text in HOSTILE:
        yield statements.retell(facts[0], text)
    yield statements.delete_vertices([*facts, root(_SCOPE)])
    for edge in layout.EDGES:
        yield statements.delete_edges(edge, [EdgeKey(facts[0], one, place_of(one)) for one in facts])


def _schema() -> Iterator[Sentence]:
    yield statements.show("HOSTS")
    yield statements.add_hosts([("127.0.0.1", 9779), ("storaged-0.storaged.svc", 9779)])
    yield statements.show("SPACES")
    yield statements.create_space("palimpsest", 10, 1)
    yield statements.describe_space("palimpsest")
    yield statements.use("palimpsest")
    yield statements.show("TAGS")
    yield statements.show("EDGES")
    for tag in layout.TAGS:
        yield statements.create("TAG", tag)
        yield statements.describe("TAG", tag.name)
    for edge in layout.EDGES:
        yield statements.create("EDGE", edge)
        yield statements.describe("EDGE", edge.name)
    yield statements.drop_space("palimpsest")


def _vids(kind: Kind) -> list[Vid]:
    return [vid(_SCOPE, kind, _ID.format(number)) for number in (2, 3)]


def _row(columns: Sequence[Column], texts: Iterator[str]) -> Row:
    return {
        column.name: next(texts) if column.type == "string" else layout.UNKNOWN_START for column in columns
    }
