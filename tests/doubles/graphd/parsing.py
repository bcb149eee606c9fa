"""From the text of a statement to its tree. What our store doesn't emit is a syntax error."""

from collections.abc import Callable
from typing import TypeVar

from tests.doubles.graphd import schema
from tests.doubles.graphd.expressions import Call, Expression, Name, Of, Reader
from tests.doubles.graphd.refusals import syntax_error
from tests.doubles.graphd.space import EdgeKey
from tests.doubles.graphd.statements import (
    AddHosts,
    Column,
    Count,
    CreateSchema,
    CreateSpace,
    DeleteEdges,
    DeleteVertices,
    Describe,
    DropSpace,
    Fetch,
    Go,
    InsertEdges,
    InsertVertices,
    Limit,
    OrderBy,
    Pipe,
    Piped,
    Show,
    Statement,
    UpdateVertex,
    Use,
)
from tests.doubles.graphd.tokens import Kind

T = TypeVar("T")
_TYPES = ("int64", "string", "double", "bool")


def parse(statement: str) -> Statement | Piped:
    """Raises Refusal."""
    return _Parser(statement).statement()


class _Parser(Reader):
    def statement(self) -> Statement | Piped:
        first: Statement | Piped = self._first()
        if self.sees("|"):
            first = self._piped(first)
        self.skip(";")
        if self.ahead.kind is not Kind.END:
            raise self.refuse()
        return first

    def _first(self) -> Statement:
        kinds: dict[tuple[str, ...], Callable[[], Statement]] = {
            ("USE",): lambda: Use(self.name()),
            ("ADD", "HOSTS"): lambda: AddHosts(self._list(self._host)),
            ("SHOW",): lambda: Show(self._one_of("HOSTS", "SPACES", "TAGS", "EDGES")),
            ("DESCRIBE",): lambda: Describe(self._one_of("SPACE", "TAG", "EDGE"), self.name()),
            ("CREATE", "SPACE", "IF", "NOT", "EXISTS"): self._create_space,
            ("DROP", "SPACE", "IF", "EXISTS"): lambda: DropSpace(self.name()),
            ("CREATE", "TAG", "IF", "NOT", "EXISTS"): lambda: CreateSchema("TAG", self._schema()),
            ("CREATE", "EDGE", "IF", "NOT", "EXISTS"): lambda: CreateSchema("EDGE", self._schema()),
            ("INSERT", "VERTEX"): self._insert_vertices,
            ("INSERT", "EDGE"): self._insert_edges,
            ("UPDATE", "VERTEX", "ON"): self._update_vertex,
            ("DELETE", "VERTEX"): self._delete_vertices,
            ("DELETE", "EDGE"): self._delete_edges,
            ("FETCH", "PROP", "ON"): self._fetch,
            ("GO", "FROM"): self._go,
        }
        for words, rest in kinds.items():
            if self.skip(*words):
                return rest()
        raise self.refuse()

    def _piped(self, first: Statement | Piped) -> Piped:
        if not isinstance(first, Fetch | Go):
            raise self.refuse()
        pipes: list[Pipe] = []
        while self.skip("|"):
            pipes.append(self._pipe())
        return Piped(first, tuple(pipes))

    def _pipe(self) -> Pipe:
        if self.skip("ORDER", "BY"):
            return OrderBy(self._list(self._factor))
        if self.skip("LIMIT"):
            return Limit(self.integer())
        self.expect("YIELD")
        column = self._column()
        if not (isinstance(column.expression, Call) and column.expression.function == "count"):
            raise self.refuse()
        return Count(column.name)

    def _one_of(self, *words: str) -> str:
        found = next((word for word in words if self.skip(word)), None)
        if found is None:
            raise self.refuse()
        return found

    def _list(self, one: Callable[[], T]) -> tuple[T, ...]:
        """One or more, between commas."""
        items = [one()]
        while self.skip(","):
            items.append(one())
        return tuple(items)

    def _in_parentheses(self, one: Callable[[], T]) -> tuple[T, ...]:
        """None or more, between commas."""
        self.expect("(")
        if self.skip(")"):
            return ()
        items = self._list(one)
        self.expect(")")
        return items

    # Declarations

    def _host(self) -> tuple[bytes, int]:
        name = self.string()
        self.expect(":")
        return name, self.integer()

    def _create_space(self) -> CreateSpace:
        name = self.name()
        self.expect("(", "PARTITION_NUM", "=")
        partitions = self.integer()
        self.expect(",", "REPLICA_FACTOR", "=")
        replicas = self.integer()
        self.expect(",", "VID_TYPE", "=", "FIXED_STRING", "(")
        vid_length = self.integer()
        self.expect(")", ")")
        return CreateSpace(name, partitions, replicas, vid_length)

    def _schema(self) -> schema.Schema:
        name = self.name()
        columns = self._in_parentheses(self._declared)
        return schema.Schema(name, {column.name: column for column in columns})

    def _declared(self) -> schema.Column:
        name = self.name()
        type = self._one_of(*map(str.upper, _TYPES)).lower()
        self.expect("NOT", "NULL")
        return schema.Column(name, type)

    # Writes

    def _values(self) -> tuple[Expression, ...]:
        self.expect(":")
        return self._in_parentheses(self.expression)

    def _insert_vertices(self) -> InsertVertices:
        keep = self.skip("IF", "NOT", "EXISTS")
        tag, names = self.name(), self._in_parentheses(self.name)
        self.expect("VALUES")
        return InsertVertices(tag, names, self._list(lambda: (self._vid(), self._values())), keep)

    def _insert_edges(self) -> InsertEdges:
        keep = self.skip("IF", "NOT", "EXISTS")
        edge, names = self.name(), self._in_parentheses(self.name)
        self.expect("VALUES")
        return InsertEdges(edge, names, self._list(lambda: (self._edge_key(edge), self._values())), keep)

    def _edge_key(self, edge: str) -> EdgeKey:
        src = self._vid()
        self.expect("->")
        dst = self._vid()
        self.expect("@")
        return EdgeKey(src, edge, self.rank(), dst)

    def _update_vertex(self) -> UpdateVertex:
        tag, vid = self.name(), self._vid()
        self.expect("SET")
        changes = dict(self._list(self._change))
        when = self.expression() if self.skip("WHEN") else None
        return UpdateVertex(tag, vid, changes, when, self._columns() if self.skip("YIELD") else ())

    def _change(self) -> tuple[str, Expression]:
        name = self.name()
        self.expect("=")
        return name, self.expression()

    def _delete_vertices(self) -> DeleteVertices:
        return DeleteVertices(self._list(self._vid), self.skip("WITH", "EDGE"))

    def _delete_edges(self) -> DeleteEdges:
        edge = self.name()
        return DeleteEdges(self._list(lambda: self._edge_key(edge)))

    # Reads

    def _fetch(self) -> Fetch:
        tag, vids = self.name(), self._list(self._vid)
        self.expect("YIELD")
        return Fetch(tag, vids, self._columns())

    def _go(self) -> Go:
        vids = self._list(self._vid)
        self.expect("OVER")
        edges = self._list(self.name)
        reversely = self.skip("REVERSELY")
        where = self.expression() if self.skip("WHERE") else None
        self.expect("YIELD")
        return Go(vids, edges, reversely, where, self.skip("DISTINCT"), self._columns())

    def _factor(self) -> tuple[str, bool]:
        match self.expression():
            case Of(Name("$-"), name):
                return name, self.skip("DESC")
        raise self.refuse()

    def _columns(self) -> tuple[Column, ...]:
        return self._list(self._column)

    def _column(self) -> Column:
        expression = self.expression()
        self.expect("AS")
        return Column(expression, self.name())

    def _vid(self) -> bytes:
        if self.ahead.kind is Kind.VARIABLE:
            raise syntax_error(f"Parameter is not supported in vid near `${self.ahead.text}'")
        return self.string()
