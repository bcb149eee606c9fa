"""The contract of each service, on Ray Serve."""

from collections.abc import AsyncIterator

import pytest

from gateway.services import Services
from services.runtime.assertion import Signer
from services.runtime.clock import clock
from services.runtime.names import ServiceName
from tests.contracts.five_services import SECRET, FiveServicesContract
from tests.e2e.up_process import UpProcess

pytestmark = [pytest.mark.ray, pytest.mark.milvus, pytest.mark.timeout(400)]


class TestServicesOnRay(FiveServicesContract):
    @pytest.fixture
    async def services(self, on_ray: UpProcess) -> AsyncIterator[Services]:
        targets = dict.fromkeys(ServiceName, on_ray.services_target)
        services = Services(targets, Signer(SECRET.encode(), clock))
        yield services
        await services.close()
