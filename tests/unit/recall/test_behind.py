"""What is done behind answers: it is held until it ends, and ends when its service does."""

import asyncio

import pytest

from services.recall.behind import Behind


async def test_what_is_started_runs_until_it_ends() -> None:
    behind, done = Behind(later_seconds=0), asyncio.Event()

    async def work() -> None:
        done.set()

    await behind.start(work)
    assert done.is_set()
    await behind.close()


async def test_closing_ends_what_is_under_way_and_waits_for_it() -> None:
    behind, begun, ended = Behind(later_seconds=0), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.set()

    async def waits() -> None:
        await asyncio.Event().wait()

    task, other = behind.start(work), behind.start(waits)
    await begun.wait()
    await behind.close()
    assert ended.is_set()
    assert other.cancelled()
    with pytest.raises(asyncio.CancelledError):
        await task
    await behind.close()


async def test_what_waits_when_its_service_ends_is_not_begun() -> None:
    behind, begun = Behind(later_seconds=60), asyncio.Event()

    async def work() -> None:
        begun.set()

    task = behind.start(work)
    await asyncio.sleep(0)
    await behind.close()
    assert task.cancelled()
    assert not begun.is_set()
