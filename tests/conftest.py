"""What all tests share: hypothesis profiles, the data beside the repository, what this machine lacks."""

import os
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.machine import SHARED, in_ci, postgres_programs

pytest_plugins = [
    "tests.fixtures_graphd",
    "tests.fixtures_milvus",
    "tests.fixtures_postgres",
    "tests.fixtures_ray",
]

# Examples a law gets. Seeds stay random: a failure prints its blob, and the seed is in the header.
EXAMPLES = {"dev": 50, "ci": 200, "long": 2_000}

for name, examples in EXAMPLES.items():
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,  # no test asserts a time
        derandomize=False,
        print_blob=True,
        # A contract's laws run in each of its subclasses.
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
    )


def pytest_configure(config: pytest.Config) -> None:
    """Loads the profile that PALIMPSEST_HYPOTHESIS names, unless --hypothesis-profile names one."""
    if not config.getoption("--hypothesis-profile", default=None):
        settings.load_profile(os.environ.get("PALIMPSEST_HYPOTHESIS", "dev"))


class OneRay(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Tests of one file run in one process, and those of all files that need Ray: it is started once."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "ray" if "ray" in Path(file).stem.split("_") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneRay | None:
    """With `--dist loadfile`."""
    return OneRay(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that needs PostgreSQL is skipped by name where it is absent, and fails there in CI."""
    if item.get_closest_marker("postgres") and postgres_programs() is None:
        lack("PostgreSQL's server programs are not installed (see `make doctor`)")


def lack(what: str) -> NoReturn:
    """Skips the running test for something this machine lacks; in CI fails it."""
    if in_ci():
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder `shared/` beside the repository: data too large, or not ours, to keep in it."""
    if not SHARED.is_dir():
        lack("no folder shared/ beside the repository")
    return SHARED


@pytest.fixture(scope="session")
def cases() -> Path:
    """The cases that the repository ships."""
    return Path(__file__).parent / "cases"
