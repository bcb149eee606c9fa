"""RebuildGraph: what is derived of a graph is made anew, or every text of it is read anew, as a job.

Or a rebuild that read texts anew is undone.
"""

import asyncio
from collections.abc import Callable, Set
from dataclasses import replace

from gateway.credits.ledger import Ledger
from gateway.credits.money import MicroCredits, PriceTable
from gateway.credits.prices import Prices
from gateway.errors import JobNotFound, MaxCreditsExceeded, ValidationFailed, Violation
from gateway.ingest.pipeline import Pipeline
from gateway.ingest.rereading import Reading, gates, readable
from gateway.ingest.steps import StepSettings
from gateway.ingest.understanding import Models
from gateway.ingest.undoing import Undo
from gateway.services import Services
from gateway.store.graphs import Graphs
from gateway.store.job_values import JobKind, Order
from gateway.store.job_view import job_message
from gateway.store.jobs import Jobs
from gateway.store.requests import fingerprint
from palimpsest.v1 import job_pb2, memory_graph_pb2
from services.domain.ids import JobId
from services.domain.instants import Instant
from services.domain.scope import Scope

METHOD = "MemoryService.RebuildGraph"
CURRENT = "current"
"""The prompts of this release: it has one version of each."""


class RebuildGraph:
    """Accepts a rebuild. Idempotent by request_id."""

    def __init__(
        self,
        services: Services,
        jobs: Jobs,
        graphs: Graphs,
        ledger: Ledger,
        prices: Prices,
        pipeline: Pipeline,
        now: Callable[[], Instant],
        settings: StepSettings,
    ) -> None:
        self._services = services
        self._jobs = jobs
        self._graphs = graphs
        self._ledger = ledger
        self._prices = prices
        self._pipeline = pipeline
        self._now = now
        self._settings = settings

    async def __call__(
        self,
        scope: Scope,
        request: memory_graph_pb2.RebuildGraphRequest,
        actor: str,
        max_jobs: int,
        timeout_seconds: float,
    ) -> memory_graph_pb2.RebuildGraphResponse:
        """The job; with `validate_only` only what it would cost: nothing, unless texts are read anew.

        Raises GraphNotFound, JobNotFound, ValidationFailed, InsufficientCredits, MaxCreditsExceeded,
        TooManyJobs, RequestIdReused.
        """
        _check(request, self._settings.offered_models)
        await self._graphs.check(scope, writing=True)
        if request.undo_job_id:
            await self._check_undone(scope, JobId(request.undo_job_id))
        now, prices = self._now(), await self._prices.current()
        order = Order(
            scope=scope,
            kind=JobKind.REBUILD,
            method=METHOD,
            request_key=request.request_id,
            payload_hash=fingerprint(request),
            payload=_payload(request, actor, now),
            ceiling=MicroCredits(0),
            price_version=prices.version,
        )
        # A repeated call has its job, whatever reading the graph would cost by now.
        known = None if request.validate_only else await self._jobs.asked_before(order)
        if known is not None:
            return memory_graph_pb2.RebuildGraphResponse(job=job_message(known, (), None))
        quote = job_pb2.Quote(price_version=prices.version)
        if _is_anew(request):
            quote = await self._quote(scope, now, prices, timeout_seconds)
        if request.validate_only:
            return memory_graph_pb2.RebuildGraphResponse(quote=quote)
        if request.HasField("max_credits_micros") and quote.credits_micros > request.max_credits_micros:
            raise MaxCreditsExceeded(
                MicroCredits(quote.credits_micros), MicroCredits(request.max_credits_micros)
            )
        order = replace(order, ceiling=MicroCredits(quote.credits_micros))
        accepted = await self._jobs.accept(order, max_jobs)
        if accepted.fresh:
            await self._pipeline.submit(accepted.job)
        job = job_message(accepted.job, (), None)
        return memory_graph_pb2.RebuildGraphResponse(job=job, quote=quote)

    async def _check_undone(self, scope: Scope, id: JobId) -> None:
        job = await self._jobs.get(scope.tenant, id)
        if job.kind is not JobKind.REBUILD or job.scope != scope or not job.finished:
            raise JobNotFound(id)

    async def _quote(
        self, scope: Scope, now: Instant, prices: PriceTable, timeout_seconds: float
    ) -> job_pb2.Quote:
        """What reading every text anew costs: as much as to take each in. Raises DeadlineTooShort."""
        quote = job_pb2.Quote(price_version=prices.version)
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_seconds
        gate, after, more = await gates(self._graphs, scope), "", True
        while more:
            page = await readable(self._services, scope, now, gate, after, until - loop.time())
            after, more = page.after, bool(page.after)
            for one in page.episodes:
                if not one.nothing:
                    quote.token_count += one.tokens
                    quote.chunk_count += 1
                    quote.credits_micros += prices.ingest(one.tokens)
        quote.available_micros = (await self._ledger.balance(scope.tenant)).available
        return quote


def _payload(request: memory_graph_pb2.RebuildGraphRequest, actor: str, now: Instant) -> bytes:
    """What the pipeline reads; nothing for what is derived."""
    if request.undo_job_id:
        return Undo(request.undo_job_id, actor).to_bytes()
    reading = Reading(Models(request.medium_model, request.low_model), actor, now)
    return reading.to_bytes() if _is_anew(request) else b""


def _is_anew(request: memory_graph_pb2.RebuildGraphRequest) -> bool:
    return bool(request.prompt_version or request.medium_model or request.low_model)


def _check(request: memory_graph_pb2.RebuildGraphRequest, offered_models: Set[str]) -> None:
    violations = [
        Violation(name, "is no model that is offered", "models.offered")
        for name in ("medium_model", "low_model")
        if (model := getattr(request, name)) and model not in offered_models
    ]
    if request.prompt_version not in ("", CURRENT):
        violations.append(
            Violation("prompt_version", f"is no version of this server's: `{CURRENT}` is", "prompts.known")
        )
    if request.undo_job_id and _is_anew(request):
        violations.append(Violation("undo_job_id", "goes with no model or prompt version", "undo.alone"))
    if violations:
        raise ValidationFailed(*violations)
