"""Laws of the lowest of the highest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.recall.highest import nth_highest


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.uint64])
@given(
    distinct=st.sampled_from([1, 2, 7, 10_000]),
    size=st.integers(1, 3_000),
    share=st.floats(0, 1),
    few=st.booleans(),
    ordered=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_it_is_what_sorting_tells(
    kind: type[np.generic], distinct: int, size: int, share: float, few: bool, ordered: bool, seed: int
) -> None:
    values = np.random.default_rng(seed).integers(0, distinct, size).astype(kind)
    if ordered:
        values.sort()
    n = 1 + int(share * (min(size, 20) - 1 if few else size - 1))
    assert nth_highest(values, n) == sorted(values.tolist(), reverse=True)[n - 1]
