"""One suite a port, which every implementation passes."""

from pathlib import Path

import pytest

# Suites have no tests that pytest collects by itself: their asserts shall explain themselves all the same.
pytest.register_assert_rewrite(
    *(f"{__name__}.{file.stem}" for file in Path(__file__).parent.glob("[!_]*.py"))
)
