"""What end-to-end tests share: one running product for the whole run."""

import signal
from collections.abc import Iterator

import pytest

from tests.e2e.up_process import UpProcess, telling


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    """`palimpsest up` in a child process, with the offline engine.

    Tests keep apart by tenants of their own (`running.tenant()`) and never stop it. A test that kills or
    needs settings of its own makes a `UpProcess(tmp_path / "data", settings)`. README's reader comes first.
    """
    folder = tmp_path_factory.mktemp("running")
    with UpProcess(folder / "data", telling(folder)) as up:
        yield up
        up.end(signal.SIGTERM)
