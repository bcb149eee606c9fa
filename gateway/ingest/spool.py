"""Spool: the data of an import on disk, without a name, checked as it comes and before any of it is used."""

import asyncio
import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from gateway.errors import ValidationFailed, Violation
from palimpsest.v1.privacy_pb2 import ExportTrailer
from services.domain.errors import DocumentTooLarge
from services.upkeep.lines import GRAPH, GraphLine, graph_in, item_in, part_in

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes. A version of a document is one line: 2 MiB of text, every letter of it escaped."""
BATCH_BYTES = 2 * 1024 * 1024


class Spool:
    """Takes the data of one import. Held in memory: a piece and the line that it cuts."""

    def __init__(self, folder: Path, limit: int) -> None:
        """`limit` is the most that is taken, in bytes. The file is gone with the process."""
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed by `close`
        self._limit = limit
        self._size = 0
        self._digest = hashlib.sha256()
        self._counts: Counter[str] = Counter()
        self._cut = b""
        self._graph: GraphLine | None = None

    async def take(self, data: bytes) -> None:
        """Raises DocumentTooLarge, ValidationFailed for a line that is none of this version."""
        self._size += len(data)
        if self._size > self._limit:
            raise DocumentTooLarge("data", self._limit, self._size)
        await asyncio.to_thread(self._take, data)

    def _take(self, data: bytes) -> None:
        self._digest.update(data)
        self._file.write(data)
        *lines, self._cut = (self._cut + data).split(b"\n")
        if len(self._cut) > LONGEST_LINE:
            raise _broken("has a line that is too long", "export.line")
        for line in lines:
            try:
                self._check(line)
            except ValueError:
                number = self._counts.total() + 1
                # Not as its cause: that quotes the line, which is text of users.
                raise _broken(f"line {number} is none of this version", "export.line") from None

    def _check(self, line: bytes) -> None:
        if self._graph is None:
            self._graph = graph_in(line)
            self._counts[GRAPH] += 1
        else:
            item_in(line)
            self._counts[part_in(line)] += 1

    def end(self, trailer: ExportTrailer) -> GraphLine:
        """The graph, once everything is there as it was exported. Raises ValidationFailed."""
        if self._cut or self._graph is None or dict(self._counts) != dict(trailer.counts):
            raise _broken("is not all that was exported", "export.counts")
        if trailer.sha256 != self.sha256:
            raise _broken("is not what was exported", "export.sha256")
        return self._graph

    @property
    def size(self) -> int:
        """Bytes taken."""
        return self._size

    @property
    def sha256(self) -> str:
        """Of all that was taken, in hex."""
        return self._digest.hexdigest()

    def lines(self) -> Iterator[bytes]:
        """Batches of whole lines after the first line, of about BATCH_BYTES. Blocking."""
        self._file.seek(0)
        self._file.readline()
        while lines := self._file.readlines(BATCH_BYTES):
            yield b"".join(lines)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _broken(what: str, rule: str) -> ValidationFailed:
    return ValidationFailed(Violation("data", what, rule))
