"""Health: what the gateway stands on is looked at every few seconds, and told by grpc.health.v1 under names.

| name | SERVING while |
|---|---|
| `` (empty) | the gateway takes calls and reaches the ledger, without which no key is known |
| `palimpsest.live` | the process answers, whatever it stands on |
| `palimpsest.ledger`, `.jobs`, `.graph`, `.memory`, `.vectors` | that store answers |
| `palimpsest.preprocessor`, `.extractor`, `.classifier`, `.resolver`, `.recall` | that service answers |
| `palimpsest.v1.…Service` | all answers that its calls need |

The whole is well without services and their stores: all gateways share them, so that sending calls to another
would help nobody, and a call that needs what is down says so, typed. After SIGTERM every name is NOT_SERVING.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog
from grpc_health.v1 import health_pb2
from grpc_health.v1.health import aio as health

from gateway.rpcs import SERVICES
from services.domain.errors import InternalFailure
from services.runtime.status import error_of

log = structlog.get_logger(__name__)

Probe = Callable[[], Awaitable[None]]
"""Returns when something answers; raises when it doesn't."""

PREFIX = "palimpsest."
LIVE = f"{PREFIX}live"

_TEXTS = frozenset({"recall", "memory", "graph"})
_WORK = frozenset({"ledger", "jobs", "preprocessor", "extractor", "resolver"})
NEEDS: Mapping[str, frozenset[str]] = {
    "": frozenset({"ledger"}),
    "GraphService": frozenset({"ledger"}) | _TEXTS,
    "MemoryService": _WORK | _TEXTS,
    "RecallService": frozenset({"ledger"}) | _TEXTS,
    "JobService": frozenset({"ledger", "jobs"}),
    "CreditService": frozenset({"ledger"}),
    "PrivacyService": frozenset({"ledger", "recall", "memory"}),
    "AdminService": frozenset({"ledger"}),
}
"""What calls can't do without. Recall answers without vectors, and ingestion waits for them."""

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Health:
    """Keeps a health servicer up to date. `probes` are by dependency; one without a probe counts as well."""

    def __init__(
        self,
        servicer: health.HealthServicer,
        probes: Mapping[str, Probe],
        every_seconds: float,
        probe_seconds: float,
    ) -> None:
        """A probe that takes longer than `probe_seconds` has failed."""
        self._servicer = servicer
        self._probes = probes
        self._every_seconds = every_seconds
        self._probe_seconds = probe_seconds
        self._down: frozenset[str] = frozenset()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Looks once, then goes on in the background."""
        await self._servicer.set(LIVE, _SERVING)
        await self.look()
        if self._probes:
            self._task = asyncio.get_running_loop().create_task(self._go_on())

    async def stop(self) -> None:
        """Tells NOT_SERVING under every name, for good."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._servicer.enter_graceful_shutdown()

    async def look(self) -> None:
        """Asks everything at once, and tells what it found."""
        answers = await asyncio.gather(*(self._answers(name) for name in self._probes))
        down = frozenset(name for name, well in zip(self._probes, answers, strict=True) if not well)
        if down != self._down:
            log.warning("dependencies", down=sorted(down))
        self._down = down
        for name in self._probes:
            await self._tell(f"{PREFIX}{name}", {name})
        await self._tell("", NEEDS[""])
        for service in SERVICES:
            await self._tell(service.full_name, NEEDS[service.name])

    async def _tell(self, name: str, needs: frozenset[str] | set[str]) -> None:
        await self._servicer.set(name, _NOT_SERVING if needs & self._down else _SERVING)

    async def _answers(self, name: str) -> bool:
        try:
            async with asyncio.timeout(self._probe_seconds):
                await self._probes[name]()
        except Exception as error:  # noqa: BLE001 - whatever a probe raises, what it asked doesn't answer
            if isinstance(error_of(error), InternalFailure) and not isinstance(error, TimeoutError):
                log.warning("probe failed", dependency=name, raised=type(error).__qualname__)
            return False
        return True

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(self._every_seconds)
            await self.look()
