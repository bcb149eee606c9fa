"""Together: who waits while another of its key is at work goes with those who wait as well."""

import asyncio
from collections.abc import Sequence

import pytest

from gateway.ingest.together import Together
from services.domain.errors import ModelAnswerInvalid


class Worker:
    """Does groups when it may go; a group with a bad item fails whole."""

    def __init__(self) -> None:
        self.groups: list[Sequence[int]] = []
        self.places = asyncio.Semaphore(0)
        self.bad: set[int] = set()
        self.together: Together[int, int] = Together(self.work, most=4)

    async def work(self, items: Sequence[int]) -> Sequence[int]:
        self.groups.append(items)
        await self.places.acquire()
        if self.bad & set(items):
            raise ModelAnswerInvalid
        return [item * 10 for item in items]

    def let(self, groups: int = 99) -> None:
        """So many groups may go."""
        for _ in range(groups):
            self.places.release()

    async def started(self, items: Sequence[int], key: str = "a") -> list["asyncio.Task[int]"]:
        tasks = [asyncio.create_task(self._one(key, item)) for item in items]
        await asyncio.sleep(0)
        return tasks

    async def _one(self, key: str, item: int) -> int:
        return await self.together(key, item)


async def test_who_comes_meanwhile_goes_together_and_each_gets_its_own() -> None:
    worker = Worker()
    tasks = await worker.started([1, 2, 3, 4, 5, 6, 7])
    worker.let()
    assert await asyncio.gather(*tasks) == [10, 20, 30, 40, 50, 60, 70]
    assert [list(group) for group in worker.groups] == [[1], [2, 3, 4, 5], [6, 7]]


async def test_keys_do_not_wait_for_each_other() -> None:
    worker = Worker()
    await worker.started([1], "a")
    await worker.started([2], "b")
    assert [list(group) for group in worker.groups] == [[1], [2]]
    worker.let()


async def test_an_idle_key_waits_for_nobody() -> None:
    worker = Worker()
    worker.let()
    assert [await worker.together("a", item) for item in (1, 2)] == [10, 20]
    assert [list(group) for group in worker.groups] == [[1], [2]]


async def test_none_fails_for_another() -> None:
    worker = Worker()
    worker.bad = {3}
    tasks = await worker.started([1, 2, 3, 4])
    worker.let()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [one for one in ended if isinstance(one, int)] == [10, 20, 40]
    assert isinstance(ended[2], ModelAnswerInvalid)


async def test_who_leads_and_is_cut_leaves_the_others_to_go_alone() -> None:
    worker = Worker()
    first, *others = await worker.started([1, 2, 3])
    worker.let(1)
    await first
    for _ in range(10):
        await asyncio.sleep(0)
    assert [list(group) for group in worker.groups] == [[1], [2, 3]]
    others[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await others[0]
    worker.let()
    assert await others[1] == 30


async def test_who_waits_and_is_cut_is_left_out() -> None:
    worker = Worker()
    first, second, third = await worker.started([1, 2, 3])
    second.cancel()
    worker.let()
    assert [await first, await third] == [10, 30]
    assert [list(group) for group in worker.groups] == [[1], [3]]
    assert await worker.together("a", 4) == 40, "the key is free again"
