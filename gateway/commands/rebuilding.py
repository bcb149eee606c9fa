"""RebuildGraph: what is derived of a graph is made anew from its records and texts, as a job."""

from gateway.credits.money import MicroCredits
from gateway.credits.prices import Prices
from gateway.errors import NotImplementedYet
from gateway.ingest.pipeline import Pipeline
from gateway.store.graphs import Graphs
from gateway.store.job_values import JobKind, Order
from gateway.store.job_view import job_message
from gateway.store.jobs import Jobs
from gateway.store.requests import fingerprint
from palimpsest.v1 import job_pb2, memory_graph_pb2
from services.domain.scope import Scope

METHOD = "MemoryService.RebuildGraph"


class RebuildGraph:
    """Accepts a rebuild, which costs nothing. Idempotent by request_id."""

    def __init__(self, jobs: Jobs, graphs: Graphs, prices: Prices, pipeline: Pipeline) -> None:
        self._jobs = jobs
        self._graphs = graphs
        self._prices = prices
        self._pipeline = pipeline

    async def __call__(
        self, scope: Scope, request: memory_graph_pb2.RebuildGraphRequest, max_jobs: int
    ) -> memory_graph_pb2.RebuildGraphResponse:
        """The job. Raises GraphNotFound, TooManyJobs, RequestIdReused, and NotImplementedYet for a new
        extraction: by another model or with other prompts.
        """
        if request.prompt_version or request.medium_model or request.low_model:
            raise NotImplementedYet("RebuildGraph by another model or prompt")
        await self._graphs.check(scope)
        prices = await self._prices.current()
        quote = job_pb2.Quote(price_version=prices.version)
        if request.validate_only:
            return memory_graph_pb2.RebuildGraphResponse(quote=quote)
        order = Order(
            scope=scope,
            kind=JobKind.REBUILD,
            method=METHOD,
            request_key=request.request_id,
            payload_hash=fingerprint(request),
            payload=b"",
            ceiling=MicroCredits(0),
            price_version=prices.version,
        )
        accepted = await self._jobs.accept(order, max_jobs)
        if accepted.fresh:
            await self._pipeline.submit(accepted.job)
        job = job_message(accepted.job, (), None)
        return memory_graph_pb2.RebuildGraphResponse(job=job, quote=quote)
