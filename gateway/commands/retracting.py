"""RetractSource: all that one source gave is deleted, as a job."""

from gateway.credits.money import MicroCredits
from gateway.credits.prices import Prices
from gateway.ingest.documents import Documents
from gateway.ingest.pipeline import Pipeline
from gateway.ingest.retracting import payload
from gateway.store.graphs import Graphs
from gateway.store.job_values import Accepted, JobKind, Order
from gateway.store.job_view import job_message
from gateway.store.jobs import Jobs
from gateway.store.requests import fingerprint
from palimpsest.v1 import memory_episodes_pb2
from services.domain.errors import SourceNotFound
from services.domain.scope import Scope

METHOD = "MemoryService.RetractSource"


class RetractSource:
    """Accepts a retraction, which costs nothing. Idempotent by request_id."""

    def __init__(
        self, jobs: Jobs, graphs: Graphs, prices: Prices, documents: Documents, pipeline: Pipeline
    ) -> None:
        self._jobs = jobs
        self._graphs = graphs
        self._prices = prices
        self._documents = documents
        self._pipeline = pipeline

    async def __call__(
        self,
        scope: Scope,
        request: memory_episodes_pb2.RetractSourceRequest,
        actor: str,
        max_jobs: int,
    ) -> memory_episodes_pb2.RetractSourceResponse:
        """The job. Raises GraphNotFound, SourceNotFound, TooManyJobs, RequestIdReused."""
        await self._graphs.check(scope, writing=True)
        prices = await self._prices.current()
        order = Order(
            scope=scope,
            kind=JobKind.RETRACTION,
            method=METHOD,
            request_key=request.request_id,
            payload_hash=fingerprint(request),
            payload=payload(request.source, actor),
            ceiling=MicroCredits(0),
            price_version=prices.version,
        )
        accepted = await self._accepted(order, request.source, max_jobs)
        if accepted.fresh:
            await self._pipeline.submit(accepted.job)
        return memory_episodes_pb2.RetractSourceResponse(job=job_message(accepted.job, (), None))

    async def _accepted(self, order: Order, source: str, max_jobs: int) -> Accepted:
        """A repeated call has its job, though nothing of the source is left by then."""
        known = await self._jobs.asked_before(order)
        if known is not None:
            return Accepted(known, fresh=False)
        if not await self._documents.of_source(order.scope, source, 1):
            raise SourceNotFound(source)
        return await self._jobs.accept(order, max_jobs)
