"""Endings: what a job came to, what it is charged, and its artifacts' removal."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from google.rpc.status_pb2 import Status

from gateway.credits.money import MicroCredits
from gateway.credits.prices import Prices
from gateway.credits.values import Courtesy
from gateway.errors import ChunksFailed
from gateway.ingest.durable import JSON
from gateway.ingest.patience import status_in
from gateway.store.job_values import Job, JobKind, JobState, Outcome
from gateway.store.jobs import Jobs
from gateway.store.progress import Progress
from palimpsest.v1 import job_pb2
from services.domain.ids import JobId, Revision
from services.runtime.status import status_of

MAX_IDS = 1000
"""Ids of one kind that a result lists; counts are always whole."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What the steps of a job answered. `error` ends the whole job; failed chunks are in `failed`."""

    resolved: Sequence[JSON] = ()
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
    first_failure: Status | None = field(default=None)

    @classmethod
    def of_ingest(
        cls, prepared: JSON, chunks: Sequence[JSON], understood: Sequence[JSON], resolved: Sequence[JSON]
    ) -> "Ended":
        """Reads an ingest's step results. A chunk earns when it was resolved."""
        error = status_in(prepared)
        if error is not None:
            return cls(error=error)
        open_chunks = [chunk for chunk in chunks if not chunk["nothing"]]
        nothing = [c for c, u in zip(open_chunks, understood, strict=True) if u.get("nothing")]
        kept = [
            c
            for c, u in zip(open_chunks, understood, strict=True)
            if status_in(u) is None and not u["nothing"]
        ]
        earned = [c for c, r in zip(kept, resolved, strict=False) if status_in(r) is None]
        failures = [s for s in map(status_in, [*understood, *resolved]) if s is not None]
        reasons = [str(u["nothing"]) for u in understood if u.get("nothing")]
        reasons += [str(c["nothing"]) for c in chunks if c["nothing"]]
        return cls(
            resolved=[result for result in resolved if status_in(result) is None],
            earned_tokens=[int(chunk["tokens"]) for chunk in earned],
            nothing_tokens=[int(chunk["tokens"]) for chunk in nothing],
            episodes=[str(chunk["episode"]) for chunk in chunks],
            nothing=len(nothing) + len(chunks) - len(open_chunks),
            failed=len(failures),
            reason=str(prepared["nothing"]) or (reasons[0] if reasons and not earned else ""),
            saved=int(prepared["saved"]),
            document=str(prepared["document"]),
            version=int(prepared["version"]),
            first_failure=failures[0] if failures else None,
        )


class Endings:
    """Ends jobs: state, charge and result in one transaction. Idempotent."""

    def __init__(self, jobs: Jobs, progress: Progress, prices: Prices, daily_courtesy: MicroCredits) -> None:
        """`daily_courtesy` is the most that one tenant's small talk may cost the platform on one UTC day."""
        self._jobs = jobs
        self._progress = progress
        self._prices = prices
        self._daily_courtesy = daily_courtesy

    async def end(self, job_id: JobId, ended: Ended) -> Job:
        """Settles what was earned, gives the rest back, and forgets what steps kept."""
        job = await self._jobs.find(job_id)
        prices = await self._prices.of(job.hold.price_version)
        charge = (
            job.hold.spent
            if job.kind is JobKind.ASSERT and ended.error is None
            else sum(prices.ingest(tokens) for tokens in ended.earned_tokens)
        )
        courtesy = sum(prices.ingest(tokens) for tokens in ended.nothing_tokens)
        state = _state(ended)
        outcome = Outcome(
            state=state,
            charge=MicroCredits(charge),
            result=_result(ended),
            courtesy=Courtesy(MicroCredits(courtesy), self._daily_courtesy, prices.ingest_minimum),
            error=_error(ended, state),
            revision=Revision(max([job.revision, *(int(r["revision"]) for r in _good(ended))])),
            reason=ended.reason,
        )
        final = await self._jobs.finish(job_id, outcome)
        await self._progress.drop_artifacts(job_id)
        return final


def _state(ended: Ended) -> JobState:
    if ended.error is not None:
        return JobState.FAILED
    if not ended.failed:
        return JobState.SUCCEEDED
    return JobState.PARTIAL if ended.earned_tokens or ended.nothing else JobState.FAILED


def _error(ended: Ended, state: JobState) -> Status | None:
    if ended.error is not None:
        return ended.error
    if not ended.failed:
        return None
    total = len(ended.episodes)
    if state is JobState.FAILED and total == 1:
        return ended.first_failure
    return status_of(ChunksFailed(ended.failed, total))


def _good(ended: Ended) -> Sequence[JSON]:
    return [result for result in ended.resolved if status_in(result) is None]


def _result(ended: Ended) -> job_pb2.JobResult:
    outcomes = [result["outcome"] for result in _good(ended)]

    def ids(name: str) -> list[str]:
        return list(dict.fromkeys(one for outcome in outcomes for one in outcome[name]))

    def total(name: str) -> int:
        return sum(int(outcome[name]) for outcome in outcomes)

    lists = {
        name: ids(name)
        for name in (
            "entities_added",
            "statements_added",
            "statements_ended",
            "statements_restored",
            "voice_added",
            "voice_ended",
        )
    }
    return job_pb2.JobResult(
        counts=job_pb2.JobCounts(
            nothing_chunks=ended.nothing,
            entities_added=len(lists["entities_added"]),
            statements_added=len(lists["statements_added"]),
            statements_ended=len(lists["statements_ended"]),
            statements_restored=len(lists["statements_restored"]),
            claims_added=total("claims"),
            ends_added=total("ends"),
            denials_added=total("denials"),
            voice_aspects_added=len(lists["voice_added"]),
            voice_aspects_ended=len(lists["voice_ended"]),
            tokens_saved=ended.saved,
        ),
        episode_ids=ended.episodes[:MAX_IDS],
        added_statement_ids=lists["statements_added"][:MAX_IDS],
        ended_statement_ids=lists["statements_ended"][:MAX_IDS],
        restored_statement_ids=lists["statements_restored"][:MAX_IDS],
        added_entity_ids=lists["entities_added"][:MAX_IDS],
        added_voice_aspect_ids=lists["voice_added"][:MAX_IDS],
        ended_voice_aspect_ids=lists["voice_ended"][:MAX_IDS],
        document_id=ended.document,
        document_version=ended.version,
        ids_truncated=any(len(found) > MAX_IDS for found in (*lists.values(), ended.episodes)),
    )
