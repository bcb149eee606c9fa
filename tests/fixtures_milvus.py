"""Milvus for tests: Lite's server and the real one, each started once for the whole run."""

from collections.abc import Iterator

import pytest

from services.stores.vectors.lite import LiteServer
from tests.doubles.milvus_server import MilvusServer, MilvusServerFailed, programs, why_not
from tests.machine import in_ci


@pytest.fixture(scope="session")
def milvus_lite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiteServer]:
    """A running server. Tests keep apart by scopes or prefixes of their own, and never stop it."""
    folder = tmp_path_factory.mktemp("milvus")
    with LiteServer.start(folder / "data", folder / "milvus.log") as server:
        yield server


@pytest.fixture(scope="session")
def milvus_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusServer]:
    """The real server, installed at first use. Where it can't run: a named skip, a failure in CI."""
    reason = why_not()
    try:
        if reason is None:
            programs()
    except MilvusServerFailed as error:
        reason = str(error)
    if reason is not None:
        if in_ci():
            pytest.fail(reason)
        pytest.skip(reason)
    server = MilvusServer.start(tmp_path_factory.mktemp("milvus-server"))
    try:
        yield server
    finally:
        server.kill()  # nobody wants its data
