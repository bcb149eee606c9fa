"""Milvus Lite for tests: one server for the whole run."""

from collections.abc import Iterator

import pytest

from services.stores.vectors.lite import LiteServer


@pytest.fixture(scope="session")
def milvus_lite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiteServer]:
    """A running server. Tests keep apart by scopes or embedders of their own, and never stop it."""
    folder = tmp_path_factory.mktemp("milvus")
    with LiteServer.start(folder / "data", folder / "milvus.log") as server:
        yield server
