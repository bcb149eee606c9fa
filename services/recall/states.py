"""States: what a hot index holds as lists and arrays by name, and these as parts of a snapshot and back.

A part is what `marshal` makes of pieces of lists and arrays, compressed: that leaves a third, and tells what
is damaged. Unpacking is most of what a restored graph costs, and nothing unpacks texts and numbers faster; it
runs nothing of what it reads.
"""

import marshal
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

State = Mapping[str, Any]
"""By name: a list of texts, bytes, numbers or tuples of them; or an array of numbers."""

_VERSION = 2
"""As of services/recall/hot/packing.py."""
_LEVEL = 1
"""Ids are most of what is left: higher ones take long and leave as much."""
_PIECE = 4_096
"""Entries of a list that are made to bytes, or read, in one go: a millisecond or two."""
_END = b""
"""The last piece: no other is empty."""
PART_BYTES = 1_000_000
"""A part is that large before it is compressed, and what its last piece adds."""


class Damaged(Exception):
    """A part is not as it was written."""


def nested(name: str, state: State) -> State:
    """The same under longer names, as a part of another state."""
    return {f"{name}.{field}": values for field, values in state.items()}


def within(name: str, state: State) -> State:
    """What `nested` was given."""
    return {field.removeprefix(f"{name}."): state[field] for field in state if field.startswith(f"{name}.")}


def to_parts(state: State) -> Iterator[bytes]:
    """A state as bytes."""
    pieces: list[bytes] = []
    size = 0
    for piece in _pieces(state):
        pieces.append(piece)
        size += len(piece)
        if size >= PART_BYTES:
            yield _part(pieces)
            pieces, size = [], 0
    yield _part([*pieces, _END])


def from_parts(parts: Iterable[bytes]) -> State:
    """The state again; its arrays may be written to. Raises Damaged."""
    try:
        return _joined(parts)
    except (zlib.error, EOFError, TypeError, ValueError) as error:
        raise Damaged from error


def _joined(parts: Iterable[bytes]) -> State:
    state: dict[str, Any] = {}
    piece = None
    for part in parts:
        for piece in _read(part):
            if piece == _END:
                break
            name, dtype, shape, values = marshal.loads(piece)  # noqa: S302 - as in `_read`
            if dtype:
                state[name] = np.frombuffer(values, dtype=dtype).reshape(shape).copy()
            else:
                state.setdefault(name, [])
                state[name] += values
    if piece != _END:
        raise Damaged
    return state


def _pieces(state: State) -> Iterator[bytes]:
    for name, field in state.items():
        if isinstance(field, np.ndarray):
            yield marshal.dumps((name, field.dtype.str, field.shape, field.tobytes()), _VERSION)
            continue
        for start in range(0, max(1, len(field)), _PIECE):
            yield marshal.dumps((name, "", (), field[start : start + _PIECE]), _VERSION)


def _part(pieces: list[bytes]) -> bytes:
    return zlib.compress(marshal.dumps(pieces, _VERSION), _LEVEL)


def _read(part: bytes) -> Sequence[bytes]:
    pieces: list[bytes] = marshal.loads(zlib.decompress(part))  # noqa: S302 - of whoever owns the stores
    return pieces
