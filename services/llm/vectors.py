"""What embedders share: unit vectors, and texts as models can take them."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from services.llm.port import ModelMisconfigured, ModelOutputInvalid, Vectors

_UNPRINTABLE = re.compile("[\x00\ud800-\udfff]")


def sendable(text: str) -> str:
    """The text without NUL and lone surrogates, which end a C string or can't be encoded; never empty."""
    return _UNPRINTABLE.sub(" ", text).strip() or "."


def unit(rows: Sequence[Sequence[float]] | npt.NDArray[np.float32], dimension: int) -> Vectors:
    """The rows, each of length 1. Raises ModelMisconfigured for another dimension, ModelOutputInvalid for
    rows that have no direction.
    """
    if any(len(row) != dimension for row in rows):
        found = sorted({len(row) for row in rows})
        raise ModelMisconfigured(
            f"the model gives vectors of {found} dimensions, the settings say {dimension}"
        )
    matrix = np.asarray(rows, dtype=np.float32).reshape(len(rows), dimension)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or (lengths == 0).any():
        raise ModelOutputInvalid("the model gives vectors without a direction")
    directions: Vectors = matrix / lengths
    return directions
