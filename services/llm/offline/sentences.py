"""Sentences of a turn with their offsets, and what kind of talk each is."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any

from services.domain.recalled import recalled_spans
from services.llm.offline.script import is_chinese


class Talk(Enum):
    """What a sentence is, before any grammar is looked at."""

    STATEMENT = "statement"
    QUESTION = "question"
    SMALL = "small"
    RECALLED = "recalled"
    INJECTION = "injection"


@dataclass(frozen=True, slots=True)
class Sentence:
    """`turn[begin:end]`, literally; `talk` tells what kind it is."""

    text: str
    begin: int
    end: int
    talk: Talk


_BREAK = re.compile(
    r";(?=\s)|[.!?…]+[\"')\]]*(?=\s|$)|[。！？；]+[\"'”’」』)）】]*|\n+|(?<=[\w)])\s+[-–—]+\s+(?=\w)"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|vs|etc|e\.g|i\.e|approx|No|Inc|Ltd|Co|Corp|Jan|Feb|Mar|Apr|Jun|Jul|Aug|"
    r"Sept?|Oct|Nov|Dec|a\.m|p\.m|U\.S|U\.K)|\b[A-Z]|^\s*\d{1,2})\.$"
)
_MARKER = re.compile(r"\s*(?:[-*+•>]\s+|#{1,6}\s+|\d{1,2}[.)]\s+|\[[ xX]\]\s+)*")
_CODE = re.compile(r"```.*?(?:```|\Z)|`{3,}", re.DOTALL)
_TAG = re.compile(
    r",? (?:right|correct|yes|no|is that right|isn['’]t it|don['’]t you|aren['’]t you)\s*\?$", re.IGNORECASE
)
_INVERTED = re.compile(
    r"(?:so |and |but |well |ok |also |by the way,? )*"
    r"(?:what|who|whom|whose|where|when|why|how|which|do|does|did|can|could|would|will|shall|"
    r"should|is|are|was|were|am|has|have|had|may|might|isn't|aren't|don't|doesn't|didn't|won't|can't)\b.*\?",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Patterns:
    words: frozenset[str]
    openings: re.Pattern[str]
    injections: re.Pattern[str]
    affirmations: re.Pattern[str]
    chinese: "_Chinese"


@dataclass(frozen=True, slots=True)
class _Chinese:
    small: re.Pattern[str]
    questions: re.Pattern[str]
    injections: re.Pattern[str]
    affirmations: re.Pattern[str]
    tags: re.Pattern[str]
    inverted: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    table = tomllib.loads(files(__package__).joinpath("talk.toml").read_text("utf-8"))
    joined = {name: re.compile("|".join(table[name]), re.IGNORECASE) for name in ("openings", "injections")}
    affirmations = re.compile(rf"(?:{'|'.join(table['affirmations'])})", re.IGNORECASE)
    return _Patterns(
        frozenset(table["words"].split()),
        joined["openings"],
        joined["injections"],
        affirmations,
        _chinese(table["chinese"]),
    )


def _chinese(table: dict[str, Any]) -> _Chinese:
    words = "|".join(sorted(table["small"].split(), key=len, reverse=True))
    return _Chinese(
        re.compile(rf"(?:{words}|ok|okay|[\W_])++", re.IGNORECASE),
        re.compile("|".join(table["questions"])),
        re.compile("|".join(table["injections"])),
        re.compile("|".join(table["affirmations"])),
        re.compile(table["tags"]),
        re.compile(table["inverted"]),
    )


def split(text: str) -> list[Sentence]:
    """The sentences of a turn. List markers and code are left out; text and offsets are literal."""
    recalled = recalled_spans(text)
    found: list[Sentence] = []
    for begin, end in _bounds(text):
        echoed = any(begin < finish and start < end for start, finish in recalled)
        found.append(
            Sentence(text[begin:end], begin, end, Talk.RECALLED) if echoed else _sentence(text, begin, end)
        )
    return found


def _bounds(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    breaks = [match.end() for match in _BREAK.finditer(text)] + [len(text)]
    code = [match.span() for match in _CODE.finditer(text)]
    for end in breaks:
        if any(start < end < finish for start, finish in code):
            continue
        if end < len(text) and text[end - 1] == "." and _ABBREVIATION.search(text[begin:end]):
            continue
        marker = _MARKER.match(text, begin, end)
        first = marker.end() if marker else begin
        piece = text[first:end]
        left, right = len(piece) - len(piece.lstrip()), len(piece.rstrip(" \t\r\n-–—"))
        if right > left and not _CODE.match(piece.strip()):
            yield first + left, first + right
        begin = end


def _sentence(text: str, begin: int, end: int) -> Sentence:
    words = text[begin:end]
    talk = _talk(words)
    tags = _patterns().chinese.tags if is_chinese(words) else _TAG
    if talk is Talk.QUESTION and (
        tag := tags.search(words)
    ):  # "You live in Graz, right?" asks "You live in Graz"
        return Sentence(words[: tag.start()], begin, begin + tag.start(), talk)
    return Sentence(words, begin, end, talk)


def _talk(text: str) -> Talk:
    known = _patterns()
    if known.injections.search(text):
        return Talk.INJECTION
    if is_chinese(text):
        return _chinese_talk(text.strip(), known.chinese)
    words = re.findall(r"[\w'’-]+", text.lower().replace("’", "'"))
    if not words or all(word in known.words for word in words) or known.openings.match(text.lstrip("\"'( ")):
        return Talk.SMALL
    if text.rstrip("\"') ").endswith("?"):
        return Talk.QUESTION
    return Talk.STATEMENT


def _chinese_talk(text: str, known: _Chinese) -> Talk:
    if known.injections.search(text):
        return Talk.INJECTION
    if known.small.fullmatch(text):
        return Talk.SMALL
    return Talk.QUESTION if known.questions.search(text) else Talk.STATEMENT


def is_inverted(text: str) -> bool:
    """True for a question in a question's word order; "So you live in Graz?" is none."""
    if is_chinese(text):
        return _patterns().chinese.inverted.search(text) is not None
    return _INVERTED.match(text.strip()) is not None


def affirms(text: str) -> bool:
    """True when a turn begins by confirming what was said before it."""
    known, begins = _patterns(), text.strip().lstrip("\"'“")
    return (known.affirmations.match(begins) or known.chinese.affirmations.match(begins)) is not None


def is_small_word(word: str) -> bool:
    """True for a word of greetings and fillers, which names nothing."""
    return word.lower().strip(".,!?'\"") in _patterns().words
