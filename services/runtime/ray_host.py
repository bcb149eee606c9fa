"""The Ray host: the process that starts Ray and the five applications, and takes all of it down again.

`python -m services.runtime.ray_host FILE` with a RayRun in FILE. Tells what it does on standard output, one
JSON object a line; lives until its standard input closes, so it never outlives whoever started it. Exit
codes: 0 stopped, 1 could not start, 2 Ray has died.
"""

import json
import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import grpc
import psutil
import ray
from ray import serve
from ray.exceptions import AuthenticationError
from ray.serve.generated import serve_pb2, serve_pb2_grpc
from ray.serve.schema import ApplicationStatus

from services.runtime.loopback import HOOK
from services.runtime.names import ServiceName
from services.runtime.ray_applications import application
from services.runtime.ray_settings import RayRun, RaySettings
from services.runtime.serve_config import SERVICERS

STOPPED, NOT_STARTED, RAY_DIED = 0, 1, 2
READY_SECONDS = 240.0
"""For a cluster that has to make room first; on one machine it takes a tenth of that."""
_POLL_SECONDS = 0.25
_CONNECT_SECONDS = 10.0
_CORE = frozenset({"gcs_server", "raylet"})
"""The processes without which there is no Ray."""


class NotStarted(Exception):
    """An application did not come up; its log and Ray's own say why."""


def main(file: str) -> NoReturn:
    """Runs until told to stop."""
    run = RayRun.model_validate_json(Path(file).read_text(encoding="utf-8"))
    core: list[psutil.Process] = []
    code, served_before = NOT_STARTED, False
    try:
        _start_ray(run)
        core = [process for process in psutil.Process().children() if process.name() in _CORE]
        stop = _Stop()
        served_before = _start_serve(run)
        _deploy(run, stop)
        _tell("ready", pid=os.getpid())
        os.dup2(2, 1)  # nobody reads on: what libraries print goes to the log
        code = STOPPED if stop.wait(core) else RAY_DIED
    except NotStarted as error:
        _tell("failed", text=str(error))
    except Exception as error:
        # Ray gave up waiting for one of its own processes: a busy machine. Another try may do.
        logging.exception("Ray did not start")
        _tell("gave up", text=f"Ray did not start: {error}".splitlines()[0])
    if code == RAY_DIED:
        # Nothing of Ray answers any more; what is left of it is ended by whoever started us.
        os._exit(RAY_DIED)
    _take_down(run, served_before)
    sys.exit(code)


class _Stop:
    """Whether to stop: standard input has closed, or SIGTERM came."""

    def __init__(self) -> None:
        self._asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, _number: int, _frame: object) -> None:
        self._asked = True

    def asked(self, seconds: float) -> bool:
        """Looks for so long."""
        readable, _, _ = select.select([0], [], [], seconds)
        if readable and not os.read(0, 1):
            self._asked = True
        return self._asked

    def wait(self, core: list[psutil.Process]) -> bool:
        """True when asked to stop, False when one of Ray's core processes has ended."""
        while not self.asked(_POLL_SECONDS):
            if not all(_alive(process) for process in core):
                return False
        return True


def _alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def _start_ray(run: RayRun) -> None:
    _tell("stage", text="starting Ray" if run.settings.local else "joining Ray")
    common: dict[str, Any] = {"namespace": "palimpsest", "log_to_driver": False, "configure_logging": False}
    if run.settings.local:
        ray.init(
            address="local",
            include_dashboard=False,
            num_cpus=run.settings.slots,
            num_gpus=0,
            object_store_memory=run.settings.object_store_megabytes * 1024 * 1024,
            runtime_env={"worker_process_setup_hook": HOOK},
            _temp_dir=str(run.folder),
            **common,
        )
    else:
        _join(run.settings, common)


def _join(settings: RaySettings, common: dict[str, Any]) -> None:
    """Connects to a cluster that is there. Raises NotStarted: Ray itself would try for minutes."""
    host, _, port = settings.address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise NotStarted(f"no Ray at {settings.address}: {error}") from error
    environment = {"worker_process_setup_hook": HOOK} if settings.on_loopback else {}
    try:
        ray.init(address=settings.address, runtime_env=environment, **common)
    except (ConnectionError, AuthenticationError) as error:
        # The cause that Ray hands on rarely says which; its own log does.
        hint = "it wants a token by RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH, or ray.log says why"
        raise NotStarted(f"{error}: {hint}") from error


def _start_serve(run: RayRun) -> bool:
    """Starts Serve where it doesn't run yet; answers whether it did."""
    _tell("stage", text="starting Serve")
    before = bool(ray.util.list_named_actors(all_namespaces=True))
    serve.start(
        # Nodes that share one machine would have to share one port.
        proxy_location="HeadOnly" if run.settings.on_loopback else "EveryNode",
        http_options={"host": "127.0.0.1", "port": run.http_port},
        grpc_options={
            "port": run.port,
            "grpc_servicer_functions": list(SERVICERS),
            "enable_reflection": False,
        },
    )
    return before


def _deploy(run: RayRun, stop: _Stop) -> None:
    """Deploys the five and waits until each can be called. Raises NotStarted."""
    targets = [
        serve.RunTarget(
            application(name, run.settings, run.handover),
            name=name.value,
            route_prefix=f"/{name.value}",
        )
        for name in ServiceName
    ]
    serve.run_many(targets, wait_for_applications_running=False)
    ends = time.monotonic() + READY_SECONDS
    up = -1
    while up < len(ServiceName):
        if stop.asked(_POLL_SECONDS):
            raise NotStarted("stopped while starting")
        if time.monotonic() > ends:
            raise NotStarted(f"not all services came up within {READY_SECONDS:g} s")
        found = _running()
        if len(found) != up:
            up = len(found)
            _tell("stage", text=f"starting the services: {up} of {len(ServiceName)}")
    _until(lambda: _routed(run.port), ends)


def _running() -> set[str]:
    """Names of the applications that run. Raises NotStarted when one has failed for good."""
    applications = serve.status().applications
    for name in ServiceName:
        found = applications.get(name.value)
        if found is not None and found.status == ApplicationStatus.DEPLOY_FAILED:
            raise NotStarted(f"the {name.value} did not start; its log says why")
    return {name for name, found in applications.items() if found.status == ApplicationStatus.RUNNING}


def _routed(port: int) -> bool:
    """Whether the ingress knows the five: it is told of them after they run."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        asked = serve_pb2.ListApplicationsRequest()  # type: ignore[attr-defined]  # generated
        try:
            stub = serve_pb2_grpc.RayServeAPIServiceStub(channel)  # type: ignore[no-untyped-call]  # generated
            known = stub.ListApplications(asked, timeout=5)
        except grpc.RpcError:
            return False
    return set(ServiceName) <= set(known.application_names)


def _until(done: Callable[[], bool], ends: float) -> None:
    while not done():
        if time.monotonic() > ends:
            raise NotStarted("the ingress does not know the services")
        time.sleep(_POLL_SECONDS)


def _take_down(run: RayRun, served_before: bool) -> None:
    if not ray.is_initialized():
        return  # Serve, asked to shut down, would start a Ray to do so
    _tell("stage", text="stopping the services")
    if served_before:
        for name in ServiceName:
            serve.delete(name.value)
    else:
        serve.shutdown()  # type: ignore[no-untyped-call]  # it has no types
    ray.shutdown()


def _tell(event: str, **more: object) -> None:
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
