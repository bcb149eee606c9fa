"""RetryJob: what failed, or is released, of a job is understood under it, with a hold of its own."""

from gateway.credits.prices import Prices
from gateway.errors import JobNotFailed
from gateway.ingest.pipeline import Pipeline
from gateway.ingest.retrying import Left
from gateway.store.job_values import Accepted, Job, Order
from gateway.store.job_view import JobView
from gateway.store.jobs import Jobs
from gateway.store.requests import fingerprint
from palimpsest.v1 import jobs_pb2
from services.domain.ids import JobId
from services.domain.scope import TenantId

METHOD = "JobService.RetryJob"


class RetryJob:
    """Accepts a retry at today's prices. Idempotent by request_id."""

    def __init__(self, jobs: Jobs, view: JobView, prices: Prices, pipeline: Pipeline) -> None:
        self._jobs = jobs
        self._view = view
        self._prices = prices
        self._pipeline = pipeline

    async def __call__(
        self, tenant: TenantId, request: jobs_pb2.RetryJobRequest, max_jobs: int
    ) -> jobs_pb2.RetryJobResponse:
        """The job, QUEUED again; for a repeated call as it stands.

        Raises JobNotFound, JobNotFailed, InsufficientCredits, TooManyJobs, RequestIdReused.
        """
        accepted = await self._accepted(
            await self._jobs.get(tenant, JobId(request.job_id)), request, max_jobs
        )
        if not accepted.job.finished:
            await self._pipeline.submit(accepted.job)
        return jobs_pb2.RetryJobResponse(job=await self._view.read(tenant, accepted.job.id))

    async def _accepted(self, job: Job, request: jobs_pb2.RetryJobRequest, max_jobs: int) -> Accepted:
        prices = await self._prices.current()
        left = _chosen(job, request.release)
        order = Order(
            scope=job.scope,
            kind=job.kind,
            method=METHOD,
            request_key=request.request_id,
            payload_hash=fingerprint(request),
            payload=b"" if left is None else left.to_bytes(),
            ceiling=prices.ingest(0) if left is None else left.quote(prices),
            price_version=prices.version,
        )
        known = await self._jobs.asked_before(order)
        if known is not None:
            return Accepted(known, fresh=False)
        if left is None:
            raise JobNotFailed
        return await self._jobs.retry(order, job.id, max_jobs)


def _chosen(job: Job, release: bool) -> Left | None:
    """What is to be taken up; None when there is nothing."""
    if not job.left:
        return None
    left = Left.from_bytes(job.left)
    left = left.released() if release else left
    return left if left.chunks else None
