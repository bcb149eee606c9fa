"""Terms: the words of a text as lexical search counts them: folded, stemmed, sifted, CJK in pieces."""

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import snowballstemmer

from services.recall.stopwords import CHINESE, ENGLISH

CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_PIECES = re.compile(rf"(?P<cjk>[{CJK}]+)|(?P<word>(?:(?![{CJK}])[^\W_])+(?:'(?:(?![{CJK}])[^\W_])+)?[+#]*)")
_PLAIN = re.compile(r"[a-z0-9]+(?:'[a-z0-9]+)?[+#]*")
_WORD_CHARACTERS = 64
"""A longer run of letters is no word (base64, a hash): its beginning stands for it."""
_STEMS_KEPT = 65_536

_stemmer = snowballstemmer.stemmer("english")
_stemming = threading.Lock()
"""The stemmer keeps the word that it works on in itself."""


def terms(text: str) -> list[str]:
    """The terms of a text in order, repeated as often as they occur."""
    return _plain_terms(text) if text.isascii() else list(_terms(text))


def folded(text: str) -> str:
    """NFKC, case-folded, with one kind of apostrophe: the text that terms are cut from."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")


def words(text: str) -> list[str]:
    """Folded words (a run of CJK is one), neither stemmed nor sifted: what cues are looked for in."""
    return [match.group() for match in _PIECES.finditer(folded(text))]


@lru_cache(maxsize=_STEMS_KEPT)
def stem(word: str) -> str:
    """The stem of one folded word: a pure function, so the cache tells nothing of whose word it was."""
    with _stemming:
        return str(_stemmer.stemWord(word))


def _plain_terms(text: str) -> list[str]:
    """The same as `_terms`, quicker, of a text in which nothing needs to be folded but case."""
    found = map(_plain_term, _PLAIN.findall(text.lower()))
    return [term for term in found if term is not None]


@lru_cache(maxsize=_STEMS_KEPT)
def _plain_term(word: str) -> str | None:
    """The term of a folded word, None of one that is sifted out."""
    word = word.removesuffix("'s")[:_WORD_CHARACTERS]
    return None if word in ENGLISH else stem(word)


def _terms(text: str) -> Iterator[str]:
    for match in _PIECES.finditer(folded(text)):
        if match["cjk"]:
            yield from _pieces(match["cjk"])
            continue
        word = match["word"].removesuffix("'s")[:_WORD_CHARACTERS]
        if word not in ENGLISH:
            yield stem(word)


def _pieces(run: str) -> Iterator[str]:
    """Each character that means something by itself, and each pair that is not two particles."""
    for at, character in enumerate(run):
        if character not in CHINESE:
            yield character
        pair = run[at : at + 2]
        if len(pair) == 2 and not (pair[0] in CHINESE and pair[1] in CHINESE):
            yield pair
