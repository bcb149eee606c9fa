"""What all tests share: hypothesis profiles, the data beside the repository, what this machine lacks."""

import gc
import os
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests import compiled
from tests.machine import SHARED, chromium_program, in_ci, postgres_programs

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
    compiled.share()
    if not config.getoption("--hypothesis-profile", default=None):
        settings.load_profile(os.environ.get("PALIMPSEST_HYPOTHESIS", "dev"))


UP = {
    "test_cli",
    "test_client",
    "test_console",
    "test_console_pages",
    "test_examples",
    "test_foreign_client",
    "test_hostile_words",
    "test_node_client",
    "test_readme",
    "test_telemetry",
    "test_up",
}
"""Files whose tests share one `palimpsest up`."""
FIRST = "test_readme"
"""Of these: its reader begins with a product that nobody has used yet."""


def group_of(nodeid: str) -> str:
    """What runs in one process: a file, or all files that share a server which is dear to keep."""
    file = nodeid.partition("::")[0]
    stem = Path(file).stem
    if "ray" in stem.split("_"):
        return "ray"
    return "up" if stem in UP else file


class Grouped(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Tests of one group run in one process."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Grouped | None:
    """With `--dist loadfile`."""
    return Grouped(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Late come groups whose servers would else idle beside the others; last small tests, to fill the end.

    With thousands of examples a law is no small test: these come first.
    """
    long = settings().max_examples >= EXAMPLES["long"]

    def rank(item: pytest.Item) -> int:
        if long and ("/laws/" in item.nodeid or "/unit/domain/" in item.nodeid):
            return -1
        if "/unit/" in item.nodeid:
            return 2
        return int(group_of(item.nodeid) in ("ray", "up") or "milvus_server" in item.nodeid)

    items.sort(key=lambda item: (rank(item), Path(item.path).stem != FIRST))


def pytest_collection() -> None:
    """Nothing that is loaded now goes again, so nobody looks for what could."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What is loaded by now stays: looking through it again and again would be a tenth of the run.

    For the rest a look at every 20,000 new objects does, where Python's own 700 cost another twentieth.
    """
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What needs PostgreSQL or Chromium is skipped by name where it is absent, and fails there in CI."""
    if item.get_closest_marker("postgres") and postgres_programs() is None:
        lack("PostgreSQL's server programs are not installed (see `make doctor`)")
    if item.get_closest_marker("chromium") and chromium_program() is None:
        lack("Chromium is not installed (see `make doctor`)")


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
