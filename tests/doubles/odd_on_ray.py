"""Deploys the odd service beside those of a running product: `python -m tests.doubles.odd_on_ray ADDRESS`.

Prints a line when it can be called, and takes it away when its standard input closes.
"""

import sys

import ray
from ray import serve

from services.runtime.loopback import HOOK
from services.runtime.ray_adapter import replica_class
from tests.doubles.odd_service import APPLICATION, DESCRIPTOR, OpenOdd

OddReplica = replica_class("OddReplica", "tests.doubles.odd_on_ray", DESCRIPTOR)


def main(address: str) -> None:
    ray.init(
        address=address,
        namespace="palimpsest",
        log_to_driver=False,
        runtime_env={"worker_process_setup_hook": HOOK},
    )
    deployment = serve.deployment(ray_actor_options={"num_cpus": 0.1}, max_ongoing_requests=16)(OddReplica)
    serve.run(deployment.bind(OpenOdd()), name=APPLICATION, route_prefix=f"/{APPLICATION}")
    sys.stdout.write("up\n")
    sys.stdout.flush()
    sys.stdin.read()
    serve.delete(APPLICATION)
    ray.shutdown()


if __name__ == "__main__":
    # As the module that replicas import, so that its class is found there and not in `__main__`.
    from tests.doubles import odd_on_ray

    odd_on_ray.main(sys.argv[1])
