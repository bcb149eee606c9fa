"""The words of a statement, by the rules of the server's scanner as far as our store needs them."""

import re
from dataclasses import dataclass
from enum import Enum, auto

from tests.doubles.graphd.refusals import syntax_error

MAX_STATEMENT_BYTES = 4_194_304
INT64_MAX = 2**63 - 1

# Words that are no names unless they stand in accents.
RESERVED = frozenset(
    """
    ACROSS ADD ALTER AND ANTI AS ASC ASCENDING BALANCE BOOL BY CASE CHANGE COMPACT CREATE DATE DATETIME
    DELETE DESC DESCENDING DESCRIBE DISTINCT DOUBLE DOWNLOAD DROP DURATION EDGE EDGES EXISTS EXPLAIN FETCH
    FIND FIXED_STRING FLOAT FLUSH FROM GEOGRAPHY GET GO GRANT IF IGNORE_EXISTED_INDEX IN INDEX INDEXES
    INGEST INNER INSERT INT INT8 INT16 INT32 INT64 INTERSECT IS JOIN LEFT LIST LOOKUP MAP MATCH MINUS NO
    NOT NULL OF ON OR ORDER OUTER OVER OVERWRITE PATH PROP REBUILD RECOVER REMOVE RETURN REVERSELY REVOKE
    RIGHT SEMI SET SHOW STEP STEPS STOP STRING SUBMIT TAG TAGS TIME TIMESTAMP TO UNION UNWIND UPDATE
    UPSERT UPTO USE VERTEX VERTICES WHEN WHERE WITH XOR YIELD
    TRUE FALSE
    """.split()  # noqa: SIM905  # a page of one word a line says less
)


class Kind(Enum):
    WORD = auto()
    """A bare word: a keyword or a name."""
    QUOTED = auto()
    """A name in accents."""
    STRING = auto()
    """In double quotes, without escapes: no text of a user ever comes there."""
    INTEGER = auto()
    VARIABLE = auto()
    """`$name`"""
    SIGN = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    """What a string, a quoted name or a variable says; of others: as written."""
    near: str
    """What a message shows of it: a longer token itself; of others, and where a string ends, some text."""
    keyword: str = ""
    """A bare word or a sign in capitals, to be compared."""


_KEYWORDS = (Kind.WORD, Kind.SIGN)
_TOKEN = re.compile(
    r"""
      (?P<BLANK>[ \t\r\n]+)
    | (?P<INTEGER>\d+)(?![\w.])
    | \$(?P<VARIABLE>[a-z]\w*)
    | (?P<WORD>[a-z]\w*|(?<=[.])_(?:src|dst|rank)\b)
    | `(?P<QUOTED>[a-z]\w*)`
    | "(?P<STRING>[^"\\\n]*)"
    | (?P<SIGN><=|>=|==|->|\$\$|\$-|[-,:;@*<>=|().])
    """,
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)


def tokens_of(statement: str) -> list[Token]:
    """All tokens, with an END at the end. Raises Refusal (a syntax error)."""
    size = len(statement.encode("utf-8", "surrogateescape"))
    if size > MAX_STATEMENT_BYTES:
        raise syntax_error(f"Query is too large ({size} > {MAX_STATEMENT_BYTES}).")
    tokens: list[Token] = []
    at = 0
    while at < len(statement):
        found = _TOKEN.match(statement, at)
        if found is None:
            raise syntax_error(f"syntax error near `{statement[at : at + 8]}'")
        assert found.lastgroup is not None
        if found.lastgroup != "BLANK":
            kind, text = Kind[found.lastgroup], found[found.lastgroup]
            keyword = text.upper() if kind in _KEYWORDS else ""
            tokens.append(Token(kind, text, _near(statement, found, kind), keyword))
        at = found.end()
    return [*tokens, Token(Kind.END, "", "")]


def _near(statement: str, found: re.Match[str], kind: Kind) -> str:
    at = found.end() - 1 if kind is Kind.STRING else found.start()
    whole = found.end() - at
    return statement[at : at + (min(whole, 80) if whole > 1 else 8)]
