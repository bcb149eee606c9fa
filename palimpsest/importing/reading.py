"""Reading: files of JSON or lines of JSON as parts with their places."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from palimpsest.chats import Unreadable
from palimpsest.texts import MOST_BYTES, decoded

_BY_LINES = (".jsonl", ".ndjson")
_OF_RECORDS = frozenset({"id", "uuid", "name", "fact", "content", "memory", "text"})
"""Keys of a record: an object without them is what lists of records stand in."""


@dataclass(frozen=True, slots=True)
class File:
    """A file with what it holds; `changed` is when it was last written, to the second."""

    name: str
    text: str
    changed: datetime


@dataclass(frozen=True, slots=True)
class Part:
    """One value of a file; `under` is the key of the list in which it stands, empty without one."""

    place: str
    value: dict[str, Any]
    under: str = ""
    why: str = ""
    """Why it can't be read; then there is no value."""


def opened(path: Path) -> File:
    """Raises Unreadable and OSError."""
    if path.stat().st_size > MOST_BYTES:
        raise Unreadable(
            f"larger than {MOST_BYTES >> 20} MiB: cut it, and leave embeddings out of the export"
        )
    changed = datetime.fromtimestamp(int(path.stat().st_mtime), UTC)
    return File(path.name, decoded(path.read_bytes()), changed)


def parts_of(file: File) -> Iterator[Part]:
    """Every value of a file of JSON: of a list, of the lists of an object, of lines, or the one object.

    What is no object, or no JSON in one of many lines, is a part with a reason. Raises Unreadable for a file
    that is no JSON at all.
    """
    if file.name.lower().endswith(_BY_LINES):
        yield from _lines(file)
        return
    try:
        read = _parsed(file.text)
    except Unreadable:
        if file.text.lstrip()[:1] != "{" or "\n" not in file.text.strip():
            raise
        yield from _lines(file)  # as APOC names files of lines
        return
    if isinstance(read, list):
        yield from _listed(file, read, "")
        return
    if not isinstance(read, dict):
        raise Unreadable("JSON, but neither a list nor an object")
    if read.keys() & _OF_RECORDS or not any(isinstance(value, list | dict) for value in read.values()):
        yield Part(file.name, read)
        return
    for key, value in read.items():
        if _is_records(value):
            yield from _listed(file, value, key)
        elif (
            isinstance(value, list | dict) and value
        ):  # numbers and texts beside the lists tell of the export
            yield Part(f"{file.name} {key}", {}, key, "a part that is no list of records")


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)


def _listed(file: File, values: Sequence[Any], key: str) -> Iterator[Part]:
    for at, value in enumerate(values):
        place = f"{file.name} {key}[{at}]"
        if isinstance(value, dict):
            yield Part(place, value, key)
        else:
            yield Part(place, {}, key, "no object")


def _lines(file: File) -> Iterator[Part]:
    for number, line in enumerate(file.text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{file.name} line {number}"
        try:
            value = _parsed(line)
        except Unreadable as error:
            yield Part(place, {}, why=str(error))
            continue
        if isinstance(value, dict):
            yield Part(place, value)
        else:
            yield Part(place, {}, why="JSON, but no object")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable("not JSON") from error
