"""Carrying: a graph from a server into a file, checked as it comes, and from a file into a server.

The file is lines of JSON: a header, the data as the server sent it, a trailer (docs/export-format.md).
"""

import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import IO, TypeVar

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from palimpsest.connection import Connection
from palimpsest.v1 import privacy_pb2

PIECE = 1024 * 1024
"""Bytes of data in one message."""
_HEADER, _TRAILER = "header", "trailer"

Told = Callable[[int], None]
Ends = TypeVar("Ends", privacy_pb2.ExportHeader, privacy_pb2.ExportTrailer)


class NotAnExport(Exception):
    """A file, or a stream, that is no whole export."""


def _nobody(_: int) -> None:
    """Where nobody asks how far it has come."""


async def export_graph(
    connection: Connection, graph_id: str, file: Path, told: Told = _nobody
) -> privacy_pb2.ExportTrailer:
    """Writes a graph into a new file, which its owner alone can read; it is there once it is whole.

    `told` is called with the bytes written so far.
    Raises CallError, NotAnExport (the stream was cut or is not what its trailer says), FileExistsError.
    """
    part = _part_of(file)
    request = privacy_pb2.ExportGraphRequest(graph_id=graph_id)
    answers = connection.stream(connection.privacy.ExportGraph, request)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            trailer = await _written(answers, out, told)
            out.flush()
            os.fsync(out.fileno())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return trailer


def _part_of(file: Path) -> Path:
    """Where a file is written before it is whole. Raises FileExistsError."""
    if file.exists():
        raise FileExistsError(f"{file} is there already")
    return file.with_name(f"{file.name}.part")


async def _written(
    answers: AsyncIterator[privacy_pb2.ExportGraphResponse], out: IO[bytes], told: Told
) -> privacy_pb2.ExportTrailer:
    digest = hashlib.sha256()
    async for answer in answers:
        match answer.WhichOneof("part"):
            case "header":
                out.write(_line(_HEADER, answer.header))
            case "data":
                digest.update(answer.data)
                out.write(answer.data)
                told(out.tell())
            case _:
                if answer.trailer.sha256 != digest.hexdigest():
                    raise NotAnExport("what came is not what was sent")
                out.write(_line(_TRAILER, answer.trailer))
                return answer.trailer
    raise NotAnExport("the export was cut")


async def import_graph(
    connection: Connection, graph_id: str, file: Path, request_id: str, told: Told = _nobody
) -> privacy_pb2.ImportGraphResponse:
    """Sends a file as a new graph. `told` is called with the bytes taken so far.

    Raises CallError, NotAnExport, OSError.
    """
    messages = _messages(graph_id, file, request_id, told)
    return await connection.send(connection.privacy.ImportGraph, messages)


def _messages(
    graph_id: str, file: Path, request_id: str, told: Told
) -> Iterator[privacy_pb2.ImportGraphRequest]:
    with file.open("rb") as lines:
        header = privacy_pb2.ExportHeader()
        _read(next(lines, b""), _HEADER, header)
        start = privacy_pb2.ImportStart(graph_id=graph_id, request_id=request_id, header=header)
        yield privacy_pb2.ImportGraphRequest(start=start)
        piece, trailer = bytearray(), None
        for line in lines:
            if line.startswith(b'{"part":"trailer"'):
                trailer = _read(line, _TRAILER, privacy_pb2.ExportTrailer())
                break
            piece += line
            while len(piece) >= PIECE:
                yield privacy_pb2.ImportGraphRequest(data=bytes(piece[:PIECE]))
                del piece[:PIECE]
                told(lines.tell())
        if piece:
            yield privacy_pb2.ImportGraphRequest(data=bytes(piece))
        if trailer is None:
            raise NotAnExport(f"{file} was cut: it has no trailer")
        yield privacy_pb2.ImportGraphRequest(trailer=trailer)


def _line(part: str, message: privacy_pb2.ExportHeader | privacy_pb2.ExportTrailer) -> bytes:
    item = MessageToDict(message, preserving_proto_field_name=True)
    return json.dumps({"part": part, "item": item}, separators=(",", ":")).encode() + b"\n"


def _read(line: bytes, part: str, message: Ends) -> Ends:
    try:
        found = json.loads(line)
        if found["part"] != part:
            raise NotAnExport(f"a {part} was expected")
        return ParseDict(found["item"], message)
    except (ValueError, KeyError, TypeError, ParseError) as error:
        raise NotAnExport(f"the {part} can't be read") from error
