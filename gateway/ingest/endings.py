"""Endings: what a job came to, what it is charged, and its artifacts' removal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from google.rpc.status_pb2 import Status

from gateway.credits.money import MicroCredits
from gateway.credits.prices import Prices
from gateway.credits.values import NO_COURTESY, Courtesy
from gateway.errors import ChunksFailed, JobCancelled, TenantNotFound
from gateway.ingest.durable import JSON
from gateway.ingest.patience import status_in
from gateway.ingest.results import merged_result, result_of
from gateway.ingest.retrying import Left, unpacked
from gateway.store.clock import SECOND
from gateway.store.job_values import Job, JobKind, JobState, Outcome
from gateway.store.jobs import Jobs
from gateway.store.progress import Progress
from gateway.store.tenants import Limits, Tenants
from palimpsest.internal.v1 import resolver_pb2
from palimpsest.v1 import job_pb2
from services import metering
from services.domain.facts import NothingReason
from services.domain.ids import JobId, Revision
from services.domain.scope import TenantId
from services.runtime.status import status_of

UNSUPPORTED = -1
"""The number under which the outcome of a document's removed passages is kept."""
_HELD = NothingReason.QUARANTINED
OUTCOME = "outcome"
"""Artifact: what a chunk changed, by id."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What the steps of a job answered. `error` ends the whole job; failed chunks are in `failed`."""

    revision: Revision = Revision(0)
    earned_tokens: Sequence[int] = ()
    nothing_tokens: Sequence[int] = ()
    episodes: Sequence[str] = ()
    nothing: int = 0
    failed: int = 0
    reason: str = ""
    saved: int = 0
    document: str = ""
    version: int = 0
    error: Status | None = None
    first_failure: Status | None = None
    unsupported_failed: bool = False
    """The text is understood, but what it no longer says was not ended."""
    outcomes: Sequence[resolver_pb2.Outcome] | None = None
    """What was changed, in order; None: as the steps kept it."""
    deleted: Mapping[str, int] = field(default_factory=dict)
    """How much a retraction deleted and revoked, by the names of counts."""
    left: Left | None = None
    """Of an ingest: its chunks that failed, and those held back."""
    rebuilt: job_pb2.RebuildReport | None = None
    """What a rebuild found and made anew."""

    @classmethod
    def of_ingest(
        cls,
        prepared: JSON,
        understood: Mapping[int, JSON],
        resolved: Mapping[int, JSON],
        unsupported: JSON | None = None,
    ) -> "Ended":
        """Reads an ingest's step results, by chunk. A chunk earns when it was resolved."""
        error = status_in(prepared)
        if error is not None:
            return cls(error=error)
        places: Sequence[JSON | None] = prepared["chunks"]
        chunks = {index: chunk for index, chunk in enumerate(places) if chunk is not None}
        answered = {**understood, **resolved}
        nothing = [index for index, result in answered.items() if result.get("nothing")]
        earned = [
            index
            for index, result in resolved.items()
            if status_in(result) is None and not result.get("nothing")
        ]
        answers = [*understood.values(), *resolved.values()]
        failures = [status for status in map(status_in, answers) if status is not None]
        failed = [
            index
            for index in understood
            if status_in(understood[index]) is not None or status_in(resolved.get(index, {})) is not None
        ]
        undone = None if unsupported is None else status_in(unsupported)
        reasons = [str(answered[index]["nothing"]) for index in nothing]
        reasons += [str(chunk["nothing"]) for chunk in chunks.values() if chunk["nothing"]]
        published = [result for result in [*resolved.values(), unsupported or {}] if "revision" in result]
        return cls(
            revision=Revision(max((int(result["revision"]) for result in published), default=0)),
            earned_tokens=[int(chunks[index]["tokens"]) for index in earned],
            nothing_tokens=[int(chunks[index]["tokens"]) for index in nothing],
            episodes=[str(chunk["episode"]) for chunk in chunks.values()],
            nothing=len(nothing) + sum(bool(chunk["nothing"]) for chunk in chunks.values()),
            failed=len(failures),
            reason=str(prepared["nothing"]) or (reasons[0] if reasons and not earned else ""),
            saved=int(prepared["saved"]),
            document=str(prepared["document"]),
            version=int(prepared["version"]),
            first_failure=next(filter(_is_cancelled, failures), failures[0]) if failures else undone,
            unsupported_failed=undone is not None,
            left=Left(
                {index: chunks[index] for index in failed},
                len(places),
                str(prepared.get("time_zone", "")),
                {
                    **unpacked(prepared.get("held", {})),
                    **{index: one for index, one in chunks.items() if one["nothing"] == _HELD},
                },
            ),
        )


class Endings:
    """Ends jobs: state, charge and result in one transaction. Idempotent."""

    def __init__(
        self, jobs: Jobs, progress: Progress, prices: Prices, tenants: Tenants, defaults: Limits
    ) -> None:
        """`defaults`: of tenants without limits of their own. Of these, what small talk may cost a day."""
        self._jobs = jobs
        self._progress = progress
        self._prices = prices
        self._tenants = tenants
        self._defaults = defaults

    async def end(self, job_id: JobId, ended: Ended) -> Job:
        """Settles what was earned, gives the rest back, and forgets what steps kept."""
        job = await self._jobs.find(job_id)
        if job.finished:
            return job
        if job.attempt and ended.error is not None:
            # Nothing was tried: all that was left still is.
            ended = replace(ended, left=Left.from_bytes(await self._jobs.payload(job_id)))
        prices = await self._prices.of(job.hold.price_version)
        charge = (
            job.hold.spent
            if job.kind is JobKind.ASSERT and ended.error is None
            else sum(prices.ingest(tokens) for tokens in ended.earned_tokens)
        )
        courtesy = sum(prices.ingest(tokens) for tokens in ended.nothing_tokens)
        state = _state(ended)
        result = result_of(ended, await self._outcomes(job_id, ended))
        outcome = Outcome(
            state=state,
            charge=MicroCredits(charge),
            result=merged_result(job.result, result) if job.attempt else result,
            courtesy=await self._courtesy(job.scope.tenant, courtesy, prices.ingest_minimum),
            error=_error(ended, state),
            revision=ended.revision,
            reason=ended.reason,
            left=_left(ended, state) if job.kind is JobKind.INGEST else b"",
        )
        if ended.outcomes is None:
            # Text of users is gone when the end is told; ids, which a repeated end needs, are swept up later.
            await self._progress.drop_artifacts(job_id, but=OUTCOME)
        finished = await self._jobs.finish(job_id, outcome)
        if finished.finished_at is not None:
            seconds = (finished.finished_at - finished.created_at) / SECOND
            metering.JOB_SECONDS.record(seconds, {"kind": finished.kind.value, "state": finished.state.value})
        return finished

    async def _courtesy(self, tenant: TenantId, amount: int, minimum: MicroCredits) -> Courtesy:
        if not amount:
            return NO_COURTESY
        try:
            limits = (await self._tenants.get(tenant)).limits.over(self._defaults)
        except TenantNotFound:
            limits = self._defaults  # it was erased; its job must end all the same
        return Courtesy(MicroCredits(amount), MicroCredits(limits.goodwill_micros_per_day), minimum)

    async def _outcomes(self, job: JobId, ended: Ended) -> Sequence[resolver_pb2.Outcome]:
        if ended.outcomes is not None:
            return ended.outcomes
        kept = await self._progress.artifacts(job, OUTCOME)
        # What a document no longer says comes last, as it was done.
        order = sorted(kept, key=lambda chunk: (chunk == UNSUPPORTED, chunk))
        return [resolver_pb2.Outcome.FromString(kept[chunk]) for chunk in order]


def _is_cancelled(status: Status | None) -> bool:
    return status is not None and status.code == JobCancelled.code


def _state(ended: Ended) -> JobState:
    if _is_cancelled(ended.error) or _is_cancelled(ended.first_failure):
        return JobState.CANCELLED
    kept = ended.left is not None and ended.left.kept > 0
    if ended.error is not None:
        return JobState.PARTIAL if ended.deleted or ended.rebuilt or kept else JobState.FAILED
    if not ended.failed and not ended.unsupported_failed:
        return JobState.SUCCEEDED
    return JobState.PARTIAL if kept else JobState.FAILED


def _error(ended: Ended, state: JobState) -> Status | None:
    if state is JobState.CANCELLED:
        return status_of(JobCancelled())
    if ended.error is not None:
        return ended.error
    chunks = len(ended.episodes) if ended.left is None else ended.left.total
    if not ended.failed or (state is JobState.FAILED and chunks == 1):
        return ended.first_failure
    return status_of(ChunksFailed(ended.failed, chunks))


def _left(ended: Ended, state: JobState) -> bytes:
    """What a retry would do; a job that was cancelled, or is done, leaves nothing but what is held back."""
    if state is JobState.CANCELLED or ended.left is None or not (ended.left.chunks or ended.left.held):
        return b""
    return ended.left.to_bytes()
