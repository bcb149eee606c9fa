"""Archive: a folder of JSON lines with a manifest, written once, checked before anything of it is used.

    manifest.json                  written last: a folder without it is no backup
    gateway/<table>.jsonl          tenants, keys (hashes), ledger, jobs
    graphs/<scope key>/<part>.jsonl

ArchiveError
├── ArchiveExists       the folder is there and not empty
├── ArchiveUnwritable   the folder can't be written: no room, no right
├── ArchiveDamaged      a file is missing, cut, or not the one that was written
└── ArchiveUnknown      no manifest, or one of a format that this version can't read
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from pydantic import TypeAdapter, ValidationError

FORMAT = 1
MANIFEST = "manifest.json"
_CHUNK = 1 << 20


class ArchiveError(Exception):
    """A backup that can't be written or used."""


class ArchiveExists(ArchiveError):
    """The folder is there and not empty."""


class ArchiveUnwritable(ArchiveError):
    """The folder can't be written: no room, no right."""


class ArchiveDamaged(ArchiveError):
    """A file is missing, cut, or not the one that was written."""


class ArchiveUnknown(ArchiveError):
    """No manifest, or one of a format that this version can't read."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file by its path in the folder."""

    lines: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class GraphEntry:
    """A graph: its published revision at the point, the clock until which text is in it, and its settings."""

    tenant: str
    graph: str
    folder: str
    revision: int
    until: int
    settings: str = ""
    """GraphSettings as base64; the gateway's."""
    origin: str = ""
    """Of an imported graph: whence its ids follow (services/domain/scope.py)."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup holds. `at` is the instant (microseconds, UTC) of which it is."""

    at: int
    product: str
    embedder: str
    dimension: int
    with_vectors: bool
    graphs: tuple[GraphEntry, ...]
    files: Mapping[str, FileEntry]
    revisions: Mapping[str, str] = field(default_factory=dict)
    """Of the gateway's tables, by component; none where they are not in it."""
    format: int = FORMAT


_MANIFEST = TypeAdapter(Manifest)


class LinesOut:
    """One file of lines, hashed as it is written. Raises OSError."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = _created(path)
        self._hash = hashlib.sha256()
        self._lines = 0
        self._size = 0

    def write(self, line: bytes) -> None:
        whole = line + b"\n"
        self._file.write(whole)
        self._hash.update(whole)
        self._lines += 1
        self._size += len(whole)

    def close(self) -> FileEntry:
        """Idempotent. Returns once the lines are on the disk."""
        if not self._file.closed:
            with self._file:
                _settle(self._file)
        return FileEntry(self._lines, self._size, self._hash.hexdigest())


class ArchiveOut:
    """A backup that is being written. `finish` makes it one; without it the folder is of no use.

    Every method raises ArchiveUnwritable.
    """

    def __init__(self, folder: Path) -> None:
        """Raises ArchiveExists."""
        with _writing(folder):
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise ArchiveExists(f"{folder} is there and not empty")
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._open: dict[str, LinesOut] = {}
        self._files: dict[str, FileEntry] = {}

    def write(self, name: str, line: bytes) -> None:
        """Adds a line to a file, named by its path."""
        with _writing(self._folder):
            if name not in self._open:
                self._open[name] = LinesOut(self._folder / name)
            self._open[name].write(line)

    def close_files(self) -> None:
        """Ends the files that are open; nothing more is written to them."""
        opened, self._open = self._open, {}
        with _writing(self._folder), ExitStack() as closing:
            for lines in opened.values():
                closing.callback(lines.close)  # also when another one fails
            self._files |= {name: lines.close() for name, lines in opened.items()}

    def drop(self, prefix: str) -> None:
        """Removes what was written below a path: it is written anew."""
        self.close_files()
        with _writing(self._folder):
            for name in [name for name in self._files if name.startswith(prefix)]:
                del self._files[name]
                (self._folder / name).unlink()

    @property
    def files(self) -> Mapping[str, FileEntry]:
        self.close_files()
        return dict(sorted(self._files.items()))

    def finish(self, manifest: Manifest) -> None:
        """Writes the manifest, last."""
        body = json.dumps(asdict(manifest), indent=1, ensure_ascii=False).encode()
        path = self._folder / MANIFEST
        part = path.with_suffix(".part")
        with _writing(self._folder):
            with _created(part) as file:
                file.write(body + b"\n")
                _settle(file)
            part.replace(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_files()


class ArchiveIn:
    """A backup that is read. Making one checks every file against the manifest."""

    def __init__(self, folder: Path) -> None:
        """Raises ArchiveUnknown, ArchiveDamaged."""
        self._folder = folder
        self.manifest = _manifest(folder)
        for name, entry in self.manifest.files.items():
            _check(folder, name, entry)

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a file; none where it had none and was not written."""
        if name not in self.manifest.files:
            return
        with (self._folder / name).open("rb") as file:
            for line in file:
                yield line.rstrip(b"\n")


def _created(path: Path) -> IO[bytes]:
    """A new file that its owner alone can read, from its first byte on."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _settle(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    # As an error of our own: around a snapshot of a store an OSError would be taken for the store's.
    try:
        yield
    except OSError as error:
        raise ArchiveUnwritable(f"{folder} can't be written: {error.strerror}") from error


def _manifest(folder: Path) -> Manifest:
    try:
        body = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise ArchiveUnknown(f"{folder} has no {MANIFEST}: it is no finished backup") from error
    try:
        kind = json.loads(body).get("format")
    except (ValueError, AttributeError) as error:
        raise ArchiveDamaged(f"{MANIFEST} can't be read") from error
    if kind != FORMAT:
        raise ArchiveUnknown(f"the backup is of format {kind}; this version reads {FORMAT}")
    try:
        return _MANIFEST.validate_json(body)
    except ValidationError as error:
        raise ArchiveDamaged(f"{MANIFEST} can't be read") from error


def _check(folder: Path, name: str, entry: FileEntry) -> None:
    path = folder / name
    if ".." in Path(name).parts or Path(name).is_absolute():
        raise ArchiveDamaged(f"{name} is outside the backup")
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise ArchiveDamaged(f"{name} is missing") from error
    if (size, digest.hexdigest()) != (entry.size, entry.sha256):
        raise ArchiveDamaged(f"{name} is not as it was written")
