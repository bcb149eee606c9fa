"""Token counts: tiktoken's own, without a network; cuts never fall inside a grapheme."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import regex
from hypothesis import example, given
from hypothesis import strategies as st

from services.llm import tokens
from tests.machine import ROOT

TEXTS = st.text(st.characters(), max_size=300) | st.text("ab é的👩‍👩‍👧🇩🇪\r\n e\u0301\u0600", max_size=120)

BLOCKED = """
import socket
def refuse(*args, **kwargs): raise OSError("no network here")
socket.socket.connect = socket.socket.connect_ex = socket.create_connection = socket.getaddrinfo = refuse
from services.llm import tokens
print(tokens.count("Hello, world! 你好，世界。<|endoftext|>"))
"""

SAMPLES = [
    "",
    "He'll come at 10:30.\n\n\tOK?",
    "主数据库是 PostgreSQL 16。",
    "naïve café \U0001f469\u200d\U0001f467",
    "a" * 3_000,
]
THEIRS = """
import json, sys, tiktoken
theirs = tiktoken.get_encoding("o200k_base")
print(json.dumps([len(theirs.encode_ordinary(text)) for text in json.loads(sys.argv[1])]))
"""


def graphemes(text: str) -> set[int]:
    return {0, *(match.end() for match in regex.finditer(r"\X", text))}


def test_counts_without_a_network_and_without_a_cache(tmp_path: Path) -> None:
    stale = tmp_path / hashlib.sha1(b"anything").hexdigest()  # what is there must stay untouched
    stale.write_bytes(b"not ranks")
    env = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], capture_output=True, text=True, env=env, cwd=tmp_path, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("16", 0), done.stderr
    assert list(tmp_path.iterdir()) == [stale]


def test_counts_as_tiktoken_itself_does(tmp_path: Path) -> None:
    packed = metadata.distribution("bpe-openai").locate_file("bpe_openai/data/o200k_base.tiktoken.gz")
    # tiktoken names a cached file by the SHA-1 of its address.
    cached = tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790"
    cached.write_bytes(gzip.decompress(Path(str(packed)).read_bytes()))
    env = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", THEIRS, json.dumps(SAMPLES)],
        capture_output=True,
        text=True,
        env=env,
        check=True,
    )
    assert [tokens.count(text) for text in SAMPLES] == json.loads(done.stdout)


def test_a_long_run_of_one_character_is_counted() -> None:
    # tiktoken alone overflows its stack on a million spaces.
    assert tokens.count(" " * 1_000_000) > 1_000


def test_a_long_text_counts_as_its_lines() -> None:
    text = "One line of plain words, then the next.\n" * 6_000
    assert tokens.count(text) == len(tokens.encoding().encode_ordinary(text))


@given(TEXTS)
def test_offsets_ascend_and_are_as_many_as_tokens(text: str) -> None:
    offsets = tokens.encode_offsets(text)
    assert len(offsets) == tokens.count(text)
    assert offsets == sorted(offsets)
    assert all(0 <= at < len(text) for at in offsets)


def test_offsets_are_where_tokens_begin() -> None:
    text = "I moved to Zürich 👩‍👩‍👧 in May."
    offsets = tokens.encode_offsets(text)
    pieces = [text[a:b] for a, b in zip(offsets, [*offsets[1:], len(text)], strict=True)]
    assert "".join(pieces) == text
    assert pieces[:3] == ["I", " moved", " to"]


@given(TEXTS, st.integers(0, 60))
@example("👩‍👩‍👧" * 5, 4)
@example("e" + "\u0301" * 50, 10)
def test_a_cut_is_a_prefix_within_the_limit_between_graphemes(text: str, limit: int) -> None:
    prefix = tokens.truncate(text, limit)
    assert text.startswith(prefix)
    assert tokens.count(prefix) <= limit
    assert len(prefix) in graphemes(text)


@given(TEXTS)
def test_what_fits_is_not_cut(text: str) -> None:
    assert tokens.truncate(text, tokens.count(text)) == text


@given(TEXTS, st.integers(0, 300))
def test_grapheme_borders_are_those_of_the_whole_text(text: str, at: int) -> None:
    borders = graphemes(text)
    expected = max((border for border in borders if border <= at), default=0)
    assert tokens.grapheme_border(text, at) == expected
