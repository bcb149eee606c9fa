"""Which sentences are Chinese."""

import re

_HAN = re.compile(r"[\u3400-\u9fff]")
_KANA = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_LATIN_WORD = re.compile(r"[A-Za-z]+")
_FUNCTION = re.compile("[我你您他她它的了在是和用与把从不没]")


def is_chinese(text: str) -> bool:
    """True where Chinese characters carry the sentence; Latin names in it don't count as many.

    Japanese and Korean are not ours: kana and hangul say so.
    """
    characters, words = len(_HAN.findall(text)), len(_LATIN_WORD.findall(text))
    if not characters or _KANA.search(text):
        return False
    grammar = _HAN.match(text.lstrip("\"'“「（( ")) is not None and len(_FUNCTION.findall(text)) > 1
    return characters > words or (grammar and 3 * characters > words)
