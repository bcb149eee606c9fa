"""Token counts of `o200k_base`, from ranks that a package carries: nothing is ever downloaded.

`tiktoken` fetches its ranks at first use and deletes a cached file whose hash differs, so the encoding is
built here, straight from the copy in `bpe-openai`.
"""

import binascii
import gzip
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import regex
import tiktoken

ENCODING = "o200k_base"

_RANKS_FILE = "bpe_openai/data/o200k_base.tiktoken.gz"
_RANKS_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_SPECIAL = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PATTERNS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + _SUFFIX,
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + _SUFFIX,
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
)

_WINDOW = 50_000
"""Code points encoded at a time: a million spaces in one go overflow the stack of tiktoken's matcher."""

_LINE_START = regex.compile(r"(?<=\n)[\p{L}\p{N}]")
_SURE_BORDER = regex.compile(r"[\x20-\x7e\u3001-\u3011\u4e00-\u9fff]{2}")
"""Between two of plain ASCII and Chinese characters there is always a border."""
_GRAPHEME = regex.compile(r"\X")


class RanksDamaged(RuntimeError):
    """The installed ranks are not those of `o200k_base`; reinstall `bpe-openai`."""


@lru_cache(maxsize=1)
def encoding() -> tiktoken.Encoding:
    """The encoding, built once a process (a third of a second). Raises RanksDamaged."""
    path = Path(str(metadata.distribution("bpe-openai").locate_file(_RANKS_FILE)))
    raw = gzip.decompress(path.read_bytes())
    if hashlib.sha256(raw).hexdigest() != _RANKS_SHA256:
        raise RanksDamaged(f"{_RANKS_FILE} has another hash than {ENCODING}")
    pairs = (line.split() for line in raw.splitlines() if line)
    ranks = {binascii.a2b_base64(token): int(rank) for token, rank in pairs}
    return tiktoken.Encoding(
        ENCODING, pat_str="|".join(_PATTERNS), mergeable_ranks=ranks, special_tokens=_SPECIAL
    )


def count(text: str) -> int:
    """How many tokens `text` has. Names of special tokens count as the plain text that they are."""
    encode = encoding().encode_ordinary
    return sum(len(encode(window)) for window in _windows(text))


def encode_offsets(text: str) -> list[int]:
    """The code-point offset at which each token begins, ascending.

    A token that begins inside a character has the offset of that character. Length is `count(text)`.
    """
    offsets: list[int] = []
    base = 0
    for window in _windows(text):
        at = 0
        for token in encoding().decode_tokens_bytes(encoding().encode_ordinary(window)):
            # Continuation bytes (10xxxxxx) belong to the character that an earlier byte began.
            inside = bool(token) and 0x80 <= token[0] < 0xC0
            offsets.append(base + at - inside)
            at += len(token) if token.isascii() else sum(not 0x80 <= byte < 0xC0 for byte in token)
        base += len(window)
    return offsets


def truncate(text: str, tokens: int) -> str:
    """The longest prefix cut at a token and a grapheme that has at most `tokens` tokens."""
    if tokens <= 0:
        return ""
    # A token has at least one byte, so a short text needs no encoding.
    if len(text.encode("utf-8", "replace")) <= tokens:
        return text
    offsets = encode_offsets(text)
    if len(offsets) <= tokens:
        return text
    # Cut anew, the last word may read as more tokens than it did; then one token less is tried.
    for index in range(tokens, 0, -1):
        prefix = text[: grapheme_border(text, offsets[index])]
        if count(prefix) <= tokens:
            return prefix
    return ""


def grapheme_border(text: str, at: int) -> int:
    """The greatest offset <= `at` between two graphemes (extended clusters, UAX 29)."""
    if at <= 0 or at >= len(text):
        return max(0, min(at, len(text)))
    start = at
    while start > 0 and not _SURE_BORDER.match(text, start - 1):
        start -= 1
    border = start
    for grapheme in _GRAPHEME.finditer(text, start):
        if grapheme.end() > at:
            break
        border = grapheme.end()
    return border


def _windows(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _WINDOW:
        end = start + _WINDOW
        # At a line's start the pattern always breaks, so the count is that of the whole text.
        starts = [match.start() for match in _LINE_START.finditer(text, end - 2_000, end)]
        end = starts[-1] if starts else end
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]
