"""The tree of an expression, and its parser: only what stands in the expressions of our store."""

from dataclasses import dataclass

from tests.doubles.graphd.refusals import syntax_error
from tests.doubles.graphd.tokens import INT64_MAX, RESERVED, Kind, Token, tokens_of
from tests.doubles.graphd.values import Value

COMPARISONS = frozenset({"==", "<", "<=", ">", ">="})
FUNCTIONS = frozenset({"count", "dst", "id", "properties", "rank", "src", "type"})


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name`: a parameter of the call."""

    name: str


@dataclass(frozen=True, slots=True)
class Name:
    """A bare name, `$-` or `$$`."""

    name: str


@dataclass(frozen=True, slots=True)
class Of:
    """`base.name`: a property of an edge, a column of what was piped in, or a tag of the far end."""

    base: "Expression"
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function, or `vertex` or `edge` alone."""

    function: str
    arguments: tuple["Expression", ...] = ()


@dataclass(frozen=True, slots=True)
class Binary:
    """AND, OR, or a comparison."""

    operator: str
    left: "Expression"
    right: "Expression"


Expression = Literal | Parameter | Name | Of | Call | Binary


class Reader:
    """Reads tokens in order; what a statement's parser and an expression's share."""

    def __init__(self, statement: str) -> None:
        self._tokens = tokens_of(statement)
        self._next = 0

    @property
    def ahead(self) -> Token:
        return self._tokens[self._next]

    def refuse(self) -> Exception:
        """The error that what comes next is not expected here."""
        return syntax_error(f"syntax error near `{self.ahead.near}'")

    def take(self) -> Token:
        token = self.ahead
        if token.kind is not Kind.END:
            self._next += 1
        return token

    def sees(self, *words: str) -> bool:
        """Whether these keywords or signs come next."""
        at = self._next
        for word in words:
            if self._tokens[at].keyword != word:  # the END has none: no step goes beyond it
                return False
            at += 1
        return True

    def skip(self, *words: str) -> bool:
        """Takes these words if they come next."""
        if not self.sees(*words):
            return False
        self._next += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.skip(*words):
            raise self.refuse()

    def name(self) -> str:
        token = self.ahead
        if token.kind is Kind.QUOTED or (token.kind is Kind.WORD and token.keyword not in RESERVED):
            return self.take().text
        raise self.refuse()

    def integer(self, least: int = -(2**63)) -> int:
        """A literal of 64 bits; a parameter is none."""
        negative = self.skip("-")
        if self.ahead.kind is not Kind.INTEGER:
            raise self.refuse()
        value = int(self.take().text)
        if value > (-least if negative else INT64_MAX):
            raise syntax_error(f"Out of range: near `{value}'")
        return -value if negative else value

    def rank(self) -> int:
        """As an integer, but not the least."""
        return self.integer(least=-INT64_MAX)

    def string(self) -> bytes:
        if self.ahead.kind is not Kind.STRING:
            raise self.refuse()
        return self.take().text.encode("utf-8", "surrogateescape")

    def expression(self) -> Expression:
        left = self._conjunction()
        while self.skip("OR"):
            left = Binary("OR", left, self._conjunction())
        return left

    def _conjunction(self) -> Expression:
        left = self._comparison()
        while self.skip("AND"):
            left = Binary("AND", left, self._comparison())
        return left

    def _comparison(self) -> Expression:
        left = self._operand()
        while self.ahead.kind is Kind.SIGN and self.ahead.text in COMPARISONS:
            operator = self.take().text
            left = Binary(operator, left, self._operand())
        return left

    def _operand(self) -> Expression:
        token = self.ahead
        if token.kind is Kind.STRING:
            return Literal(self.string())
        if token.kind is Kind.INTEGER or self.sees("-"):
            return Literal(self.integer())
        if token.kind is Kind.VARIABLE:
            return Parameter(self.take().text)
        if self.skip("("):
            inner = self.expression()
            self.expect(")")
            return inner
        for whole in ("VERTEX", "EDGE"):
            if self.skip(whole):
                return Call(whole.lower())
        if token.kind is Kind.WORD and self._tokens[self._next + 1].text == "(":
            return self._attributes(self._call())
        references = [reference for reference in ("$-", "$$") if self.skip(reference)]
        return self._attributes(Name(references[0] if references else self.name()))

    def _attributes(self, expression: Expression) -> Expression:
        while self.skip("."):
            expression = Of(expression, self.name())
        return expression

    def _call(self) -> Expression:
        function = self.take().text.lower()
        if function not in FUNCTIONS:
            raise syntax_error(f"Unknown function  near `{function}'")
        self.expect("(")
        argument: Expression = Literal(b"*") if function == "count" and self.skip("*") else self.expression()
        self.expect(")")
        return Call(function, (argument,))
