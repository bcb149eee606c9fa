"""A gateway in a process of its own, over services elsewhere, which dies or falls asleep at a milestone.

Run as a module it is a nursery: it reads a line of JSON for each worker, forks it, and answers its process
id; the worker writes its address into the file `told`, and its output into `log`. The nursery has imported
what is costly to import, and nothing of gRPC, which can't be forked.
"""

import asyncio
import ctypes
import json
import os
import signal
import sys
import traceback
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import dbos  # noqa: F401  # here and not in each worker
import psycopg  # noqa: F401
import pydantic_settings  # noqa: F401
import sqlalchemy.ext.asyncio  # noqa: F401
import stamina  # noqa: F401
import structlog  # noqa: F401

_DIE_WITH_PARENT = 1


async def _work(asked: dict[str, Any]) -> None:
    from gateway.ingest.milestones import Milestone
    from gateway.ingest.patience import Patience
    from gateway.ingest.steps import StepSettings
    from gateway.main import open_gateway
    from gateway.services import ServiceName
    from gateway.settings import GatewaySettings
    from services.runtime.assertion import Signer
    from services.runtime.resources import clock

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    left = [[Milestone(milestone), times, what] for milestone, times, what in asked["fates"]]

    def reached(milestone: Milestone) -> None:
        """What happens to this process at a milestone that it has reached so many times."""
        for fate in left:
            if fate[0] is milestone:
                fate[1] -= 1
                if fate[1] == 0:
                    os.kill(os.getpid(), fate[2])

    patience = Patience(attempts=3, first_wait_seconds=0.02, longest_wait_seconds=0.1, total_seconds=30)
    async with AsyncExitStack() as stack:
        opened = await open_gateway(
            GatewaySettings(**asked["settings"]),
            {ServiceName(name): target for name, target in asked["targets"].items()},
            Signer(asked["secret"].encode(), clock),
            stack,
            clock,
            "scripted",
            StepSettings(patience=patience, reached=reached),
        )
        told = Path(asked["told"])
        told.with_suffix(".new").write_text(opened.target)
        told.with_suffix(".new").rename(told)
        await stop.wait()


def _child(asked: dict[str, Any]) -> None:
    """The worker's whole life; never returns."""
    code = 1
    try:
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        asyncio.run(_work(asked))
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for workers
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _child(json.loads(line))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
