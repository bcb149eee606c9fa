"""The lowest of the highest: what score the last of a ranking has."""

from typing import Any

import numpy as np
import numpy.typing as npt

_COLUMNS_OF_ONE = 4
"""So many columns for each that is asked for: of values in no order a sixth more is left to look at."""


def nth_highest(values: npt.NDArray[Any], n: int) -> Any:
    """The n-th highest of some values, shape (values,), equal ones counted each; as sorting tells it.

    `n` is from 1 to their count. Laid out in columns, the n-th highest of the columns' highest is a bound
    from below: only what is above it is looked at. That costs a tenth of numpy's selection, and a hundredth
    where most are equal, as scores of BM25 often are.
    """
    columns = _COLUMNS_OF_ONE * n
    rows = len(values) // columns
    if rows < 2:
        return np.sort(values)[-n]
    bound = np.sort(values[: rows * columns].reshape(rows, columns).max(axis=0))[-n]
    above = values[values > bound]
    return bound if len(above) < n else np.sort(above)[-n]
