"""The words of a statement, by the rules of the server's scanner."""

import re
from dataclasses import dataclass
from enum import Enum, auto

from tests.doubles.graphd.refusals import syntax_error

MAX_STATEMENT_BYTES = 4_194_304
MAX_NAME_BYTES = 4096
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
    UPSERT UPTO USE VERTEX VERTICES WHEN WHERE WITH XOR YIELD TRUE FALSE _ID _TYPE _SRC _DST _RANK
    """.split()  # noqa: SIM905  # a page of one word a line says less
)


class Kind(Enum):
    WORD = auto()
    """A bare word: a keyword or a name."""
    QUOTED = auto()
    """A name in accents."""
    STRING = auto()
    INTEGER = auto()
    FLOAT = auto()
    VARIABLE = auto()
    """`$name`"""
    SIGN = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    """As written; of a string, a quoted name or a variable: what it says."""
    at: int


_WORD = r"[^\W\d_][^\W]*|_(?:id|type|src|dst|rank)\b"
_TOKEN = re.compile(
    rf"""
      (?P<blank>(?:[ \t\r\n\xa0]|\#[^\n]*|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)+)
    | (?P<float>\d*\.\d+(?:[eE][-+]?\d+)?|\d+\.(?!\.)\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
    | (?P<integer>\d+)
    | (?P<variable>\$(?:{_WORD}))
    | (?P<word>{_WORD})
    | (?P<quoted>`[^`\\\n.]*`)
    | (?P<string>"(?:[^"\\\n]|\\.|\\\n)*"|'(?:[^'\\\n]|\\.|\\\n)*')
    | (?P<sign><=|>=|==|!=|<>|=~|->|\$\$|\$\^|\$-|[-,:;@+*/%!<>=|()\[\]{{}}.?])
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(r"\\([0-7]{1,3}|[uUxX][0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def tokens_of(statement: str) -> list[Token]:
    """All tokens, with an END at the end. Raises Refusal (a syntax error)."""
    size = len(statement.encode("utf-8", "surrogateescape"))
    if size > MAX_STATEMENT_BYTES:
        raise syntax_error(f"Query is too large ({size} > {MAX_STATEMENT_BYTES}).")
    tokens, at = [], 0
    while at < len(statement):
        found = _TOKEN.match(statement, at)
        if found is None:
            raise syntax_error(f"syntax error near `{statement[at : at + 20]}'")
        if found.lastgroup != "blank":
            tokens.append(_token(found))
        at = found.end()
    return [*tokens, Token(Kind.END, "", at)]


def _token(found: re.Match[str]) -> Token:
    text, at = found.group(), found.start()
    match found.lastgroup:
        case "word":
            return Token(Kind.WORD, _name(text), at)
        case "quoted":
            return Token(Kind.QUOTED, _name(text[1:-1]), at)
        case "variable":
            return Token(Kind.VARIABLE, text[1:], at)
        case "string":
            return Token(Kind.STRING, _ESCAPE.sub(_unescaped, text[1:-1]), at)
        case "integer":
            if int(text) > INT64_MAX + 1:
                raise syntax_error(f"Out of range: near `{text}'")
            return Token(Kind.INTEGER, text, at)
        case "float":
            return Token(Kind.FLOAT, text, at)
        case _:
            return Token(Kind.SIGN, text, at)


def _name(text: str) -> str:
    if len(text.encode()) > MAX_NAME_BYTES:
        raise syntax_error(f"Out of range of the LABEL length, the  max length of LABEL is {MAX_NAME_BYTES}:")
    return text


def _unescaped(escape: re.Match[str]) -> str:
    what = escape.group(1)
    if what[0] in "01234567":
        return bytes([int(what, 8)]).decode("utf-8", "surrogateescape")
    if len(what) == 5:
        return chr(int(what[1:], 16))
    return _CONTROLS.get(what, what)
