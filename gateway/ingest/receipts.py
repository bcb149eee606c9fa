"""Receipts: what jobs spent on models, kept with the job, whether the tasks gave an answer or failed."""

from collections import OrderedDict
from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeVar

from gateway.store.job_values import Job
from gateway.store.progress import Progress
from palimpsest.internal.v1 import values_pb2
from palimpsest.v1 import job_pb2
from services.domain.errors import ServiceError
from services.domain.ids import JobId
from services.runtime.status import receipts_of


class _Answer(Protocol):
    """A service's answer that tells what it cost."""

    @property
    def receipts(self) -> Sequence[values_pb2.Receipt]: ...


_STEPS = 10_000
AnswerT = TypeVar("AnswerT", bound=_Answer)


class Receipts:
    """Keeps receipts of steps."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._failures: OrderedDict[tuple[JobId, str], int] = OrderedDict()
        """Of the steps that failed lately, how often in this process."""

    async def counted(self, job: Job, step: str, position: int, asking: Awaitable[AnswerT]) -> AnswerT:
        """The answer, with what it cost kept under `step`: once, also when the step runs again.

        A failure is passed on, and has cost what it cost. A process that does the work of one that died
        counts its failures from the first, so that these, too, are told once.
        """
        try:
            answer = await asking
        except ServiceError as error:
            await self._keep(job, f"{step}/failed/{self._failed(job.id, step)}", position, receipts_of(error))
            raise
        await self._keep(job, step, position, answer.receipts)
        return answer

    def _failed(self, job: JobId, step: str) -> int:
        number = self._failures.pop((job, step), 0) + 1
        self._failures[job, step] = number
        while len(self._failures) > _STEPS:
            self._failures.popitem(last=False)
        return number

    async def _keep(self, job: Job, step: str, position: int, receipts: Sequence[values_pb2.Receipt]) -> None:
        if not receipts:
            return
        named = of_attempt(job, step)
        await self._progress.add_receipts(job.id, named, receipts[0].engine, stages_of(receipts), position)


def stages_of(receipts: Sequence[values_pb2.Receipt]) -> list[job_pb2.StageReceipt]:
    """One for each, as a job shows it."""
    return [
        job_pb2.StageReceipt(
            stage=receipt.stage,
            model=receipt.model,
            prompt_version=receipt.prompt_version,
            calls=receipt.calls,
            tokens_in=receipt.tokens_in,
            tokens_out=receipt.tokens_out,
            tokens_cached=receipt.tokens_cached,
            duration_millis=round(receipt.milliseconds),
        )
        for receipt in receipts
    ]


def of_attempt(job: Job, step: str) -> str:
    """A retry's step is one of its own, paid for by its own hold."""
    return f"retry/{job.attempt}/{step}" if job.attempt else step
