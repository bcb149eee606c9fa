"""The runtime contract on Ray Serve, behind its own proxy."""

import pytest

from tests.contracts.runtime_adapter import RuntimeContract

pytestmark = [pytest.mark.ray, pytest.mark.milvus, pytest.mark.timeout(400)]


class TestRayRuntime(RuntimeContract):
    @pytest.fixture
    def target(self, odd_on_ray: str) -> str:
        return odd_on_ray
