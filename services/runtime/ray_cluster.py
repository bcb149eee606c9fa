"""The services on Ray as the launcher sees them: a host process that is started, watched, stopped whole."""

import asyncio
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

import psutil
import structlog

from services.runtime import haproxy
from services.runtime.handover import hand_over
from services.runtime.logs import LOGS
from services.runtime.ports import free_port
from services.runtime.ray_settings import RayRun, RaySettings
from services.runtime.settings import ServiceSettings

log = structlog.get_logger(__name__)

HOST_MODULE = "services.runtime.ray_host"
RAY_FOLDER = "r"
KEPT_RUNS = 3
"""Runs whose logs of Ray itself are kept."""
_STOP_SECONDS = 30.0
_LONGEST_BASE_BYTES = 20
_SHORT_BASE = "/tmp"  # noqa: S108  # mkdtemp's folders there are their user's alone
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 30.0

Say = Callable[[str], None]


class RayNotStarted(OSError):
    """Ray or one of the services did not come up."""


class RayGaveUp(RayNotStarted):
    """Ray waited in vain for a process of its own; on a busy machine that says little about the next try."""


class RayServices:
    """The five services on Ray, behind one port. Started anew, on the same port, when Ray dies."""

    def __init__(self, services: ServiceSettings, settings: RaySettings) -> None:
        self._services = services
        self._settings = settings
        self._port = settings.port or free_port()
        self._host: _Host | None = None
        self._watch: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, services: ServiceSettings, settings: RaySettings, say: Say = lambda _: None) -> Self:
        """Starts and waits until all five can be called; `say` is told each stage. Raises RayNotStarted."""
        started = cls(services, settings)
        try:
            started._host = await started._start(say)
        except RayGaveUp as error:
            log.warning("Ray gave up; starting it once more", error=str(error))
            say("starting Ray once more")
            started._port = settings.port or free_port()
            started._host = await started._start(say)
        started._watch = asyncio.get_running_loop().create_task(started._keep_up())
        return started

    @property
    def target(self) -> str:
        """Where the gateway finds them: on a cluster of others, the node that its address names."""
        host = "127.0.0.1" if self._settings.on_loopback else self._settings.address.partition(":")[0]
        return f"{host}:{self._port}"

    async def stop(self) -> None:
        """Ends everything that was started. Calls in flight are not waited for: the gateway has drained."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        if self._host is not None:
            await self._host.stop()

    async def _start(self, say: Say) -> "_Host":
        return await _Host.start(self._services, self._settings, self._port, say)

    async def _keep_up(self) -> None:
        """Starts another host when one ends by itself, ever less often while that fails."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            assert self._host is not None, "started before it is watched"
            code = await self._host.ended()
            log.error("Ray has died; starting it anew", code=code)
            while True:
                try:
                    await self._host.stop()
                    self._host = await self._start(lambda stage: log.info(stage))
                except OSError as error:
                    # RayNotStarted, or no room for its files and logs: nobody else would start it.
                    log.error("Ray did not start", error=str(error), pause_seconds=pause)
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                else:
                    pause = _FIRST_PAUSE_SECONDS
                    break


class _Host:
    """One host process, its folder, and all that descends from it."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, logs: Path) -> None:
        self._process = process
        self._folder = folder
        self._logs = logs

    @classmethod
    async def start(cls, services: ServiceSettings, settings: RaySettings, port: int, say: Say) -> Self:
        logs = services.data_dir / LOGS
        logs.mkdir(parents=True, exist_ok=True)
        folder = _short_folder()
        try:
            process = await _launched(services, settings, port, folder, logs)
        except BaseException:
            shutil.rmtree(folder)  # there are secrets in it
            raise
        host = cls(process, folder, logs)
        try:
            await host._until_ready(say)
        except BaseException:
            await host.stop()
            raise
        return host

    async def ended(self) -> int:
        """Waits for the process to end; answers its exit code."""
        return await self._process.wait()

    async def stop(self) -> None:
        """Asks it to take everything down, ends what stays, keeps the logs. Idempotent."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            log.warning("Ray does not stop; ending it")
            self._process.kill()
            await self._process.wait()
        await asyncio.to_thread(self._clear)

    async def _until_ready(self, say: Say) -> None:
        assert self._process.stdout is not None, "asked for at the start"
        async for line in self._process.stdout:
            told = _told(line)
            match told.get("event"):
                case "stage":
                    say(str(told["text"]))
                case "failed":
                    raise RayNotStarted(f"{told['text']} ({self._logs})")
                case "gave up":
                    raise RayGaveUp(f"{told['text']} ({self._logs})")
                case "ready":
                    return
        raise RayNotStarted(f"Ray did not start; {self._logs / 'ray.log'} says why")

    def _clear(self) -> None:
        left = [process for process in psutil.process_iter() if _in_session(process.pid, self._process.pid)]
        for process in left:
            log.warning("ending what Ray left", pid=process.pid)
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(left, timeout=10)
        if self._folder.exists():
            try:
                self._keep_logs()
            except OSError as error:
                log.warning("logs of Ray are not kept", error=str(error))
            shutil.rmtree(self._folder, ignore_errors=True)

    def _keep_logs(self) -> None:
        kept = self._logs / "ray"
        for session in self._folder.glob(f"{RAY_FOLDER}/session_2*/logs"):
            shutil.copytree(session, kept / time.strftime("%Y%m%d-%H%M%S"), dirs_exist_ok=True)
        for old in sorted(kept.glob("*"))[:-KEPT_RUNS]:
            shutil.rmtree(old)


async def _launched(
    services: ServiceSettings, settings: RaySettings, port: int, folder: Path, logs: Path
) -> asyncio.subprocess.Process:
    """The host's process, just begun. Raises OSError."""
    run = RayRun(
        settings=settings,
        port=port,
        http_port=free_port(),
        handover="" if settings.replicas_have_settings else str(hand_over(services, folder)),
        # One further down: Ray opens its own folder to all users of the machine.
        folder=folder / RAY_FOLDER,
    )
    file = folder / "run.json"
    file.write_text(run.model_dump_json(), encoding="utf-8")
    with (logs / "ray.log").open("ab") as output:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            HOST_MODULE,
            str(file),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=output,
            env=_environment(settings, folder),
            # Ctrl-C of a terminal is for the launcher, which stops us after the gateway. And by their session
            # all processes of Ray are known, also those that have lost their parents.
            start_new_session=True,
        )


def _short_folder() -> Path:
    """A new folder with a path so short that Ray's sockets, seventy characters below it, can be opened."""
    usual = tempfile.gettempdir()
    base = usual if len(os.fsencode(usual)) <= _LONGEST_BASE_BYTES else _SHORT_BASE
    return Path(tempfile.mkdtemp(prefix="palray-", dir=base))


def _in_session(pid: int, session: int) -> bool:
    try:
        return os.getsid(pid) == session
    except ProcessLookupError:
        return False  # gone meanwhile


def _told(line: bytes) -> Mapping[str, object]:
    """One line of the host; what libraries print there is no object of ours."""
    try:
        told = json.loads(line)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _environment(settings: RaySettings, folder: Path) -> dict[str, str]:
    """What Ray reads before anything can be passed to it. All its processes inherit it."""
    environment = dict(os.environ) | {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONUNBUFFERED": "1"}
    if settings.on_loopback:
        # Ray's own word for "one machine": it then resolves itself to loopback and listens nowhere else.
        environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    if settings.ingress == "haproxy":
        environment |= haproxy.environment(folder, settings.on_loopback, free_port)
    if settings.local:
        token = folder / "token"
        token.touch(0o600)
        token.write_text(secrets.token_hex(32), encoding="utf-8")
        environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}
        environment.pop("RAY_AUTH_TOKEN", None)
        environment.pop("RAY_ADDRESS", None)
        # Ray gives way to all else on its machine; the gateway beside it would only wait for its answers.
        environment.setdefault("RAY_worker_niceness", "0")
    return environment
