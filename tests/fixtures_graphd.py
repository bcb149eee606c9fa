"""graphd for tests: a double of it, or a real server that PALIMPSEST_TEST_NEBULA names."""

import os
from collections.abc import Iterator

import pytest

from tests.doubles.graphd import Graphd

REAL_SERVER = "PALIMPSEST_TEST_NEBULA"
"""`host:port` of a real graphd with user root and password nebula. Tests make spaces of their own."""


@pytest.fixture(scope="session")
def graphd_inside() -> Iterator[Graphd | None]:
    """The double of the whole run, in this process; None where a real server takes its place."""
    if os.environ.get(REAL_SERVER):
        yield None
        return
    with Graphd() as double:
        yield double


@pytest.fixture(scope="session")
def graphd(graphd_inside: Graphd | None) -> str:
    """`host:port` of a graphd for the whole run: the real one if there is one."""
    return graphd_inside.address if graphd_inside else os.environ[REAL_SERVER]


@pytest.fixture
def graphd_double() -> Iterator[Graphd]:
    """A double of this test's own, whose faults can be armed; never a real server."""
    with Graphd() as double:
        yield double
