"""How often a step is tried: a provider's wait is waited for once; a model that fails for all is let be."""

import asyncio
from typing import Any

import pytest

from gateway.ingest.patience import Budgets, Patience, status_in
from services.domain.errors import ModelBusy, ModelDown, ServiceError, StoreDown
from services.domain.ids import JobId

JOB, OTHER = JobId("j"), JobId("k")


class Failing:
    """Work that fails with an error, the first `times` times."""

    def __init__(self, error: ServiceError, times: int = 1_000) -> None:
        self.error = error
        self.left = times
        self.calls = 0

    async def __call__(self) -> dict[str, Any]:
        self.calls += 1
        if self.left:
            self.left -= 1
            raise self.error
        return {}


def patience(attempts: int = 4, tries: int = 100) -> Patience:
    return Patience(attempts, 0.001, 0.001, 30, Budgets(tries))


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (ModelBusy(0.002), 4),
        (ModelBusy(0.002, waited=True), 1),
        (ModelBusy(31), 1),
        (StoreDown("memory"), 4),
    ],
)
@pytest.mark.case("429 with Retry-After")
async def test_what_the_engine_has_waited_for_is_not_waited_for_again(
    error: ServiceError, calls: int
) -> None:
    work = Failing(error)
    result = await patience().attempt(JOB, "step", work)
    assert work.calls == calls
    assert status_in(result) is not None


async def test_the_steps_of_a_job_share_what_they_may_try_again() -> None:
    steps = [Failing(ModelDown(retry_after_seconds=0.002)) for _ in range(50)]
    few = patience(tries=8)
    await asyncio.gather(*(few.attempt(JOB, f"step/{number}", work) for number, work in enumerate(steps)))
    assert sum(work.calls for work in steps) == len(steps) + 8
    other = Failing(ModelDown(retry_after_seconds=0.002))
    await few.attempt(OTHER, "step", other)
    assert other.calls == 4, "a job has its own"
    store = Failing(StoreDown("memory"))
    await few.attempt(JOB, "step", store)
    assert store.calls == 4, "stores are no models"


async def test_what_succeeds_pays_for_half_a_try() -> None:
    few = patience(tries=2)
    for _ in range(3):
        assert (
            status_in(await few.attempt(JOB, "step", Failing(ModelDown(retry_after_seconds=0.002), 1)))
            is None
        )
    assert few.models.take(JOB) is False
    for _ in range(10):
        few.models.earn(JOB)
    assert [few.models.take(JOB) for _ in range(3)] == [True, True, False]
