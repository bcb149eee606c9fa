"""The runtime contract on Ray Serve: behind its own proxy, and behind HAProxy."""

from collections.abc import Iterator

import pytest

from tests.contracts.runtime_adapter import RuntimeContract
from tests.e2e.sockets import beyond_loopback
from tests.e2e.up_process import UpProcess
from tests.fixtures_ray import SETTINGS, odd_beside

pytestmark = [pytest.mark.ray, pytest.mark.milvus, pytest.mark.timeout(400)]


class TestRayRuntime(RuntimeContract):
    @pytest.fixture
    def target(self, odd_on_ray: str) -> str:
        return odd_on_ray


@pytest.fixture(scope="module")
def behind_haproxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    """`palimpsest up` on Ray with HAProxy before its replicas."""
    settings = SETTINGS | {"PALIMPSEST_RAY_INGRESS": "haproxy"}
    with UpProcess(tmp_path_factory.mktemp("haproxy") / "data", settings, runtime="ray") as up:
        yield up


@pytest.fixture(scope="module")
def odd_behind_haproxy(behind_haproxy: UpProcess) -> Iterator[str]:
    with odd_beside(behind_haproxy) as target:
        yield target


@pytest.mark.slow
class TestRayRuntimeBehindHaproxy(RuntimeContract):
    @pytest.fixture
    def target(self, odd_behind_haproxy: str) -> str:
        return odd_behind_haproxy

    def test_nothing_listens_beyond_loopback(self, target: str, behind_haproxy: UpProcess) -> None:
        del target  # the replicas of a sixth application listen too
        names = {process.name() for process in behind_haproxy.family()}
        assert "haproxy" in names
        assert beyond_loopback(behind_haproxy.family()) == []
