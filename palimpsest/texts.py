"""Texts: what a folder or a file holds, as requests of BatchAddEpisodes; what can't be taken, and why.

Plain text and Markdown are documents, named by their path, so that a file that changed is a new version.
`.jsonl` and `.json` are chats (palimpsest/chats.py). Nothing is passed over in silence.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from palimpsest import chats
from palimpsest.chats import Unreadable, chosen_id
from palimpsest.v1 import episode_pb2, memory_ingest_pb2

Request = memory_ingest_pb2.AddEpisodeRequest


class Format(StrEnum):
    """How a file is read."""

    TEXT = "text"
    JSONL = "jsonl"
    CHATGPT = "chatgpt"


_BY_SUFFIX = {
    **dict.fromkeys((".txt", ".text", ".md", ".markdown", ".rst"), Format.TEXT),
    **dict.fromkeys((".jsonl", ".ndjson"), Format.JSONL),
    ".json": Format.CHATGPT,
}
MOST_BYTES = 256 * 1024 * 1024
"""Of one file: more is no text but a dump, which is to be cut first."""
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
_TITLE = re.compile(r"\s*#\s+(\S.{0,199})")


@dataclass(frozen=True, slots=True)
class File:
    """A file that was found, by its name in memory; without a format it is left out for `why`."""

    path: Path
    name: str
    size: int
    format: Format | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """One request with where it comes from. `weight` is its share of the bytes of all files."""

    name: str
    request: Request
    weight: int


@dataclass(frozen=True, slots=True)
class NotTaken:
    """What can't be taken, and why. `broken`: it should have been; otherwise it is of a kind that isn't."""

    name: str
    why: str
    weight: int = 0
    broken: bool = True


def find(path: Path, format: Format | None = None) -> list[File]:
    """The files of a folder, whatever it holds below, by name; or the one file. Raises OSError.

    A file that is named itself is read as text unless its name, or `format`, says otherwise. Links in a
    folder are not followed.
    """
    if not path.is_dir():
        return [
            File(
                path,
                _named(path),
                path.stat().st_size,
                format or _BY_SUFFIX.get(path.suffix.lower(), Format.TEXT),
            )
        ]
    return [_found(one, format) for one in _walk(path)]


def read(file: File, said: Timestamp | None = None, session: str = "") -> Iterator[Text | NotTaken]:
    """The requests of a file, without graph and request id.

    `said` is when, without it, what the file tells; `session` that of messages which name none, without it
    the file's own.
    """
    if file.format is None:
        yield NotTaken(file.name, file.why, file.size, broken=False)
        return
    try:
        if file.size > MOST_BYTES:
            raise Unreadable(f"larger than {MOST_BYTES >> 20} MiB")
        stamp = said or _changed(file.path)
        raw = file.path.read_bytes()
        yield from _weighed(file, list(read_bytes(raw, file.name, file.format, stamp, session)))
    except OSError as error:
        yield NotTaken(file.name, error.strerror or type(error).__name__, file.size)
    except Unreadable as error:
        yield NotTaken(file.name, str(error), file.size)


def read_bytes(
    raw: bytes, name: str, format: Format, said: Timestamp | None, session: str = ""
) -> Iterator[Text | NotTaken]:
    """The requests of what a file holds. Raises Unreadable when there is nothing that can be read."""
    text = decoded(raw)
    if format is Format.TEXT:
        one = Text(name, _document(text, name), 0)
        yield one if said is None else _at(one, said)
        return
    parts = chats.lines_of(text, session or name) if format is Format.JSONL else chats.export_of(text)
    for part in parts:
        called = f"{name}, {part.name}"
        if part.request is None:
            yield NotTaken(called, part.why)
        else:
            one = Text(called, part.request, 0)
            yield one if said is None or part.request.HasField("reference_time") else _at(one, said)


def named_by_content(request: Request) -> str:
    """A request id that the same text of the same graph always has: sent again, it takes effect once."""
    told = Request()
    told.CopyFrom(request)
    for field in ("request_id", "validate_only", "wait_for", "max_credits_micros"):
        told.ClearField(field)
    return "text-" + hashlib.sha256(told.SerializeToString(deterministic=True)).hexdigest()[:56]


def _document(text: str, name: str) -> Request:
    title = _TITLE.match(text)
    return Request(
        text=text,
        kind=episode_pb2.EPISODE_KIND_DOCUMENT,
        document_id=chosen_id(name),
        title=" ".join((title[1] if title else Path(name).stem).split())[:200],
    )


def decoded(raw: bytes) -> str:
    """A text of a file. Raises Unreadable, which tells the line where that helps."""
    if raw.startswith(_WIDE):
        raise Unreadable("UTF-16 or UTF-32, not UTF-8: save it as UTF-8")
    if b"\0" in raw:
        raise Unreadable("binary, not text")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"not UTF-8 (line {line})") from error
    if not text.strip():
        raise Unreadable("empty")
    return text


def _at(text: Text, said: Timestamp) -> Text:
    text.request.reference_time.CopyFrom(said)
    return text


def _weighed(file: File, found: list[Text | NotTaken]) -> Iterator[Text | NotTaken]:
    """The file's bytes shared out among what came of it."""
    for at, one in enumerate(found):
        weight = file.size * (at + 1) // len(found) - file.size * at // len(found)
        if isinstance(one, Text):
            yield Text(one.name, one.request, weight)
        else:
            yield NotTaken(one.name, one.why, weight, one.broken)


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
            yield from _walk(path)
        else:
            yield path


def _found(path: Path, format: Format | None) -> File:
    chosen = _BY_SUFFIX.get(path.suffix.lower())
    if path.name.startswith("."):
        why = "hidden"
    elif path.is_symlink():
        why = "a link"
    elif not path.is_file():
        why = "no file"
    elif chosen is None:
        why = "no text, Markdown, JSONL or chat export by its name; give it by itself to take it as text"
    else:
        return File(path, _named(path), path.stat().st_size, format or chosen)
    return File(path, _named(path), 0, None, why)


def _named(path: Path) -> str:
    """The path below the working folder, and the whole path of what lies elsewhere."""
    whole = path.absolute()
    here = Path.cwd()
    return (whole.relative_to(here) if whole.is_relative_to(here) else whole).as_posix()


def _changed(path: Path) -> Timestamp:
    """When the file was last written, to the second: copies keep no more."""
    stamp = Timestamp()
    stamp.FromSeconds(int(path.stat().st_mtime))
    return stamp
