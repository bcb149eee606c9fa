"""The life of a process that serves: it starts, says so, serves until a signal, and closes what it opened."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any, TypeVar

import typer
from rich.console import Console

T = TypeVar("T")

Say = Callable[[str], None]
"""Is told each stage of a start."""


@contextmanager
def told(
    console: Console, mendable: tuple[type[Exception], ...], hints: Mapping[type[Exception], str]
) -> Iterator[None]:
    """What a user can mend, as one line and exit code 1. Anything else is a bug, and shows its traceback."""
    try:
        yield
    except mendable as error:
        hint = "".join(text for kind, text in hints.items() if isinstance(error, kind))
        console.print(
            f"can't start: {error}{hint}", style="red", markup=False, highlight=False, soft_wrap=True
        )
        raise typer.Exit(1) from error


async def serve_until_stopped(
    console: Console,
    start: Callable[[AsyncExitStack, Say], Coroutine[Any, Any, T]],
    started: Callable[[AsyncExitStack, T], None],
) -> None:
    """Starts, tells `started`, and waits for SIGINT or SIGTERM, which also cut a start short."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        with _progress(console) as say:
            running = await _unless(stop, start(stack, say))
        if running is not None:
            started(stack, running)
            await stop.wait()
        console.print("stopping …")
    console.print("stopped.")


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str], None]]:
    """Shows what is told: on a terminal in one line that changes, elsewhere in lines of their own."""
    with console.status("starting") as status:

        def say(stage: str) -> None:
            status.update(f"{stage} …")
            if not console.is_terminal:
                console.print(f"{stage} …")

        yield say


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`; None, and `work` cancelled, when told to stop before there is one."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        working.cancel()
        await asyncio.wait({working})
        return None
    finally:
        stopping.cancel()
