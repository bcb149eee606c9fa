"""Retaining: time begins the jobs that archive."""

import structlog

from gateway.credits.money import MicroCredits
from gateway.credits.prices import Prices
from gateway.errors import EntityBeingErased, GraphBeingErased, GraphNotFound
from gateway.ingest.archiving import ACTOR
from gateway.ingest.pipeline import Pipeline
from gateway.store.job_values import JobKind, Order
from gateway.store.jobs import Jobs
from gateway.store.retention import Due, Retention

METHOD = ACTOR
PUT_OFF_SECONDS = 60.0
"""How long a graph waits whose entity is being erased."""

log = structlog.get_logger(__name__)


class RetentionSweep:
    """Begins a job for each graph that is due. Any number of processes may: one of them does."""

    def __init__(self, retention: Retention, jobs: Jobs, prices: Prices, pipeline: Pipeline) -> None:
        self._retention = retention
        self._jobs = jobs
        self._prices = prices
        self._pipeline = pipeline

    async def __call__(self) -> None:
        """Accepts jobs, which cost nothing and count to no limit. Raises StoreUnavailable."""
        for due in await self._retention.due():
            try:
                await self._begin(due)
            except GraphNotFound:
                continue  # another process was faster, or it is gone
            except (GraphBeingErased, EntityBeingErased):
                await self._retention.put_off(due, PUT_OFF_SECONDS)

    async def _begin(self, due: Due) -> None:
        order = Order(
            scope=due.scope,
            kind=JobKind.RETENTION,
            method=METHOD,
            # A tab is in no name of a caller's.
            request_key=f"{METHOD}\t{due.scope.key}\t{due.since}",
            payload_hash=METHOD,
            payload=b"",
            ceiling=MicroCredits(0),
            price_version=(await self._prices.current()).version,
        )
        accepted = await self._jobs.accept(order, marking=self._retention.marking(due))
        if accepted.fresh:
            await self._pipeline.submit(accepted.job)
            log.info("retention began", job=accepted.job.id)
