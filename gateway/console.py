"""The console beside a gateway: a process of its own, which ends when the one that started it does."""

import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass

DEFAULT_PORT = 7235
STOP_SECONDS = 15.0
_SAYS = "console"
"""How the line begins in which it says where it is."""


class ConsoleNotStarted(Exception):
    """It ended instead of serving; what it said of that is on standard error."""


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """As `palimpsest up` was told."""

    port: int = DEFAULT_PORT
    """On 127.0.0.1; 0 takes a free one."""
    allow_changes: bool = False


async def open_console(target: str, options: ConsoleOptions, stack: AsyncExitStack) -> str:
    """Starts a console over the gateway at `target`; returns its URL. `stack` stops it.

    Raises ConsoleNotStarted.
    """
    command = [sys.executable, "-m", "palimpsest.console", "--with-parent", "--target", target]
    command += ["--address", f"127.0.0.1:{options.port}"]
    command += ["--allow-changes"] if options.allow_changes else []
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    stack.push_async_callback(_stop, process)
    assert process.stdout is not None
    says, _, url = (await process.stdout.readline()).decode().strip().partition(" ")
    if says != _SAYS:
        raise ConsoleNotStarted("the console did not start")
    return url.strip()


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Its standard input ends, and so does it; at once when it takes too long."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
