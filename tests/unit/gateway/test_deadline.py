"""The time a call gets: the caller's less a margin, or the cap; with too little left, none."""

import asyncio
from typing import Any, cast

import pytest

from gateway.errors import DeadlineTooShort, Overloaded
from gateway.interceptors.call import DOWNSTREAM_MARGIN_SECONDS, Call
from gateway.interceptors.deadline import LEAST_SECONDS, DeadlineCap
from gateway.keys import KeyScope
from gateway.rpcs import Rpc


class Remaining:
    """A context that knows nothing but how much time the caller gives."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds

    def time_remaining(self) -> float | None:
        return self._seconds


def call(seconds: float | None, capped: float = 10, longest: float = 20) -> Call:
    return Call("/m", Rpc(KeyScope.READ, capped, longest), cast("Any", Remaining(seconds)))


@pytest.mark.parametrize(
    ("remaining", "budget"),
    [(None, 10), (5, 5 - DOWNSTREAM_MARGIN_SECONDS), (15, 15 - DOWNSTREAM_MARGIN_SECONDS), (60, 20)],
)
async def test_the_budget_of_a_call(remaining: float | None, budget: float) -> None:
    asked = call(remaining)
    began = asyncio.get_running_loop().time()
    async with DeadlineCap().around(asked):
        assert asked.deadline >= began + budget
        assert asked.deadline <= asyncio.get_running_loop().time() + budget


@pytest.mark.parametrize("remaining", [0, LEAST_SECONDS, DOWNSTREAM_MARGIN_SECONDS + LEAST_SECONDS / 2])
async def test_with_too_little_time_no_work_is_begun(remaining: float) -> None:
    with pytest.raises(DeadlineTooShort):
        async with DeadlineCap().around(call(remaining)):
            raise AssertionError("work was begun")


async def test_work_that_takes_too_long_is_ended() -> None:
    with pytest.raises(DeadlineTooShort):
        async with DeadlineCap().around(call(None, capped=LEAST_SECONDS)):
            await asyncio.Event().wait()


async def test_what_a_late_gateway_took_the_time_of_is_told_to_come_again() -> None:
    late = DeadlineCap(lambda: True)
    with pytest.raises(Overloaded) as refused:
        async with late.around(call(LEAST_SECONDS)):
            raise AssertionError("work was begun")
    assert refused.value.retry_after_seconds is not None
    with pytest.raises(Overloaded):
        async with late.around(call(None, capped=LEAST_SECONDS)):
            await asyncio.Event().wait()


async def test_a_time_out_of_the_work_itself_stays_one() -> None:
    with pytest.raises(TimeoutError):
        async with DeadlineCap().around(call(None)):
            raise TimeoutError
