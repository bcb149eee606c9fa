"""Replicas over time: several Ray nodes in one host, load on the extractor alone, and a node that is killed.

Starts a cluster of three nodes with Ray's own cluster utility, joins it as `palimpsest up --ray-address`
does, and calls the extractor, behind it a model that takes 300 ms, far more often at once than one replica
should have. Prints the replicas of every service whenever they change: the extractor's rise, the others
stay; a node is killed, and its replicas come back elsewhere; without load they fall. Ends by itself.

Run: python -m benchmarks.scaling [--seconds N] [--callers N]
"""

import argparse
import asyncio
import contextlib
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from benchmarks.product import DIMENSION, model_server
from gateway.services import Services
from palimpsest.internal.v1 import extractor_pb2, values_pb2
from services.domain.scope import GraphId, Scope, TenantId
from services.llm.settings import EmbeddingSettings, ModelSettings
from services.runtime.assertion import Signer
from services.runtime.clock import clock
from services.runtime.names import ServiceName
from services.runtime.ray_cluster import RayServices
from services.runtime.ray_settings import RaySettings, ServiceScale
from services.runtime.resources import prepare
from services.runtime.settings import ServiceSettings

SECRET = "a secret of the scaling benchmark"  # noqa: S105  # made for this run, on loopback
NODES, SLOTS_A_NODE = 3, 8
MODEL_MILLISECONDS = 300
QUICK: dict[str, Any] = {
    "upscale_delay_seconds": 2,
    "downscale_delay_seconds": 5,
    "look_back_seconds": 11,
    "target_ongoing_requests": 4,
    "max_ongoing_requests": 8,
    "max_replicas": 3,
    "min_replicas": 1,
    "cpus": 1,
}
"""Small targets and short delays, so that a run of minutes shows what takes a production an hour."""
SCOPE = Scope(TenantId("bench"), GraphId("scaling"))


@contextlib.contextmanager
def cluster() -> Iterator[Any]:
    """A Ray cluster of several nodes on loopback."""
    os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    from ray.cluster_utils import Cluster  # reads the environment when it is imported

    node: dict[str, Any] = {"num_cpus": SLOTS_A_NODE, "object_store_memory": 80 * 2**20}
    started = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False})
    try:
        for _ in range(NODES - 1):
            started.add_node(**node)
        yield started
    finally:
        import ray

        ray.shutdown()  # a node that a driver is connected to is not taken away
        started.shutdown()  # type: ignore[no-untyped-call]  # it has no types


class Replicas:
    """Who serves what, as Ray knows it: counted without asking the services."""

    def __init__(self, address: str) -> None:
        import ray

        ray.init(address=address, namespace="palimpsest", log_to_driver=False, configure_logging=False)
        self._began = time.perf_counter()
        self._shown: Mapping[ServiceName, int] = {}
        self._phase = ""

    def count(self) -> Mapping[ServiceName, int]:
        from ray import serve
        from ray.serve._private.common import ReplicaState

        applications = serve.status().applications
        return {
            name: applications[name].deployments[name].replica_states.get(ReplicaState.RUNNING, 0)
            if name in applications and name in applications[name].deployments
            else 0
            for name in ServiceName
        }

    def show(self, what: str) -> Mapping[ServiceName, int]:
        found = self.count()
        if found == self._shown and what == self._phase:
            return found
        self._shown, self._phase = found, what
        seconds = time.perf_counter() - self._began
        print(
            f"{seconds:6.0f} s  {what:10} " + "  ".join(f"{name} {found[name]}" for name in ServiceName),
            flush=True,
        )
        return found

    async def until(
        self, what: str, holds: Callable[[Mapping[ServiceName, int]], bool], seconds: float
    ) -> list[Mapping[ServiceName, int]]:
        """Shows the replicas once a second until that holds; what was seen. Fails after `seconds`."""
        ends, seen = time.perf_counter() + seconds, []
        while True:
            seen.append(await asyncio.to_thread(self.show, what))
            if holds(seen[-1]):
                return seen
            assert time.perf_counter() < ends, f"{what}: it did not happen within {seconds:g} s"
            await asyncio.sleep(1)


async def load(services: Services, callers: int, stop: asyncio.Event) -> Counter[str]:
    """Calls the extractor with so many at once until told to stop; how the calls ended."""
    setting = values_pb2.Setting(kind="conversation", user_name="Mara", time_zone="UTC")
    turn = values_pb2.Turn(passage_id="p", speaker="user", role="user", text="Ana lives in Graz.")
    asked = extractor_pb2.ExtractRequest(turns=[turn], setting=setting)
    ended: Counter[str] = Counter()

    async def caller() -> None:
        while not stop.is_set():
            try:
                await services.call(SCOPE, services.extractor.Extract, asked, 120)
                ended["answered"] += 1
            except Exception as error:  # noqa: BLE001  # counted by kind: that is the result
                ended[type(error).__name__] += 1
                await asyncio.sleep(MODEL_MILLISECONDS / 1000)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return ended


async def show_scaling(ray_cluster: Any, model: str, arguments: argparse.Namespace) -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        given = ServiceSettings(
            data_dir=folder,
            engine="openai",
            model=ModelSettings(
                base_url=model,
                medium_model="test-medium",
                max_concurrency=256,
                max_concurrency_per_tenant=256,
            ),
            embedder="openai",
            embedding=EmbeddingSettings(base_url=model, model="test-embedding", dimension=DIMENSION),
            assertion_secret=SecretStr(SECRET),
        )
        scale = {name: ServiceScale.of(name).model_copy(update=QUICK) for name in ServiceName}
        ray = RaySettings(address=ray_cluster.address, scale=scale)
        running = await RayServices.start(await prepare(given, stack), ray, lambda stage: print(f"  {stage}"))
        stack.push_async_callback(running.stop)
        services = Services(dict.fromkeys(ServiceName, running.target), Signer(SECRET.encode(), clock))
        stack.push_async_callback(services.close)
        replicas = await asyncio.to_thread(Replicas, ray_cluster.address)
        before = (await replicas.until("quiet", lambda found: min(found.values()) == 1, 60))[-1]

        stop = asyncio.Event()
        calls = asyncio.ensure_future(load(services, arguments.callers, stop))
        most = scale[ServiceName.EXTRACTOR].max_replicas
        seen = await replicas.until(
            "load", lambda found: found[ServiceName.EXTRACTOR] == most, arguments.seconds
        )
        await asyncio.to_thread(kill_a_node, ray_cluster)
        seen += await replicas.until("killed", lambda found: sum(found.values()) < most + 4, 60)
        seen += await replicas.until("load", lambda found: sum(found.values()) == most + 4, arguments.seconds)
        stop.set()
        ended = await calls
        seen += await replicas.until(
            "quiet", lambda found: found[ServiceName.EXTRACTOR] == 1, arguments.seconds
        )
        print(f"calls: {dict(ended)}")
        others = {name: {found[name] for found in seen} for name in before if name != ServiceName.EXTRACTOR}
        risen = {name for name, counts in others.items() if max(counts) > 1}
        print(f"the others never had more than one: {'yes' if not risen else f'no: {risen}'}")


def kill_a_node(ray_cluster: Any) -> None:
    """Kills, as a power cut would, the worker node that has an extractor, or else any."""
    node = next(iter(ray_cluster.worker_nodes))
    ray_cluster.remove_node(node, allow_graceful=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=90, help="at most so long for each phase")
    parser.add_argument("--callers", type=int, default=24)
    arguments = parser.parse_args()
    with model_server(MODEL_MILLISECONDS) as model, cluster() as ray_cluster:
        asyncio.run(show_scaling(ray_cluster, model, arguments))


if __name__ == "__main__":
    main()
