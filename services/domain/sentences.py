"""Where sentences begin: after . ! ? with a space behind, after 。！？, and after a blank line."""

import re
from collections.abc import Iterator

# Possessive, and anchored at the first mark of a run, so that 100,000 marks cost no more than words do.
_END = re.compile(
    r"(?<![.!?])(?P<western>[.!?]++)[\"'”’»)\]]*+\s++"
    r"|(?<![。！？])[。！？]++[\"'”’」』）】]*+\s*+"
    r"|(?<!\n)\n[ \t]*+\n\s*+"
)
_LAST_WORD = re.compile(r"([^\W\d_]+(?:\.[^\W\d_]+)*)\Z")
_WORD_CHARACTERS = 12
_ABBREVIATIONS = frozenset(
    {"dr", "mr", "mrs", "ms", "prof", "st", "sr", "jr", "gen", "gov", "sen", "rep"}
    | {"vs", "etc", "e.g", "i.e", "nr", "fig", "vol", "approx", "dept", "inc", "ltd", "corp"}
    | {"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"}
)


def sentence_starts(text: str, start: int = 0, end: int | None = None) -> Iterator[int]:
    """Offsets strictly between `start` and `end` at which a sentence begins, ascending. Linear in the text.

    What follows an abbreviation or begins with a small letter goes on with the sentence before it.
    """
    limit = len(text) if end is None else end
    for match in _END.finditer(text, start, limit):
        at = match.end()
        if at >= limit:
            return
        if not (match["western"] and _goes_on(text, match.start(), match["western"], at)):
            yield at


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each sentence, without the white space around it; none is empty."""
    start = 0
    for end in (*sentence_starts(text), len(text)):
        piece = text[start:end]
        if words := piece.strip():
            first = start + len(piece) - len(piece.lstrip())
            yield first, first + len(words)
        start = end


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def _goes_on(text: str, mark: int, marks: str, following: int) -> bool:
    if text[following].islower():
        return True
    if marks != ".":
        return False
    word = _LAST_WORD.search(text[max(0, mark - _WORD_CHARACTERS) : mark])
    return word is not None and (word[1].lower() in _ABBREVIATIONS or _is_initial(word[1]))


def _is_initial(word: str) -> bool:
    """`J.` in `J. Smith`; not the pronoun in `so did I.`"""
    return len(word) == 1 and word.isupper() and word != "I" and word.isascii()
