"""EraseGraph, EraseEntity, EraseTenant: accepted by marking what is erased; and how an erasure stands."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from google.protobuf.message import Message

from gateway.commands.reads import named, typed
from gateway.credits.money import MicroCredits
from gateway.credits.prices import Prices
from gateway.ingest.erasing import payload
from gateway.ingest.pipeline import Pipeline
from gateway.services import Services
from gateway.store.erasures import Erasure, Erasures
from gateway.store.graphs import Graphs
from gateway.store.job_values import JobKind, Order
from gateway.store.job_view import timestamp
from gateway.store.jobs import Jobs
from gateway.store.requests import fingerprint
from gateway.store.stores import Stores
from palimpsest.internal.v1 import recall_lists_pb2, values_pb2
from palimpsest.v1 import job_pb2, privacy_pb2
from services.domain.ids import JobId
from services.domain.instants import Instant
from services.domain.scope import GraphId, Scope, TenantId


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asked for what, and how long the services may take to find it."""

    request: Message
    request_id: str
    actor: str
    timeout_seconds: float = 0.0


class Erase:
    """Accepts erasures, which cost nothing. Idempotent by request_id."""

    def __init__(
        self,
        erasures: Erasures,
        jobs: Jobs,
        graphs: Graphs,
        prices: Prices,
        services: Services,
        pipeline: Pipeline,
        now: Callable[[], Instant],
    ) -> None:
        self._erasures = erasures
        self._jobs = jobs
        self._graphs = graphs
        self._prices = prices
        self._services = services
        self._pipeline = pipeline
        self._now = now

    @classmethod
    def over(cls, stores: Stores, services: Services, pipeline: Pipeline, now: Callable[[], Instant]) -> Self:
        """With what the gateway keeps."""
        return cls(stores.erasures, stores.jobs, stores.graphs, stores.prices, services, pipeline, now)

    async def graph(self, scope: Scope, asked: Asked) -> privacy_pb2.Erasure:
        """Raises GraphNotFound, GraphBeingErased, EntityBeingErased, RequestIdReused."""
        return await self._accepted(await self._order(scope, asked))

    async def tenant(self, tenant: TenantId, asked: Asked) -> privacy_pb2.Erasure:
        """Raises TenantNotFound, GraphBeingErased, RequestIdReused."""
        return await self._accepted(await self._order(Scope(tenant, GraphId("")), asked))

    async def entity(
        self, scope: Scope, request: privacy_pb2.EraseEntityRequest, asked: Asked
    ) -> privacy_pb2.Erasure:
        """Raises GraphNotFound, EntityNotFound, GraphBeingErased, EntityBeingErased, RequestIdReused."""
        known = await self._jobs.asked_before(await self._order(scope, asked))
        if known is not None:  # the entity may be gone by now
            return erasure_message(await self._erasures.find(scope.tenant, known.id))
        await self._graphs.check(scope, writing=True)
        read = recall_lists_pb2.ReadEntityRequest(
            entity=named(request.entity),
            type=typed(request.entity),
            known_at=values_pb2.KnownAt(),
            now=self._now(),
        )
        found = await self._services.call(
            scope, self._services.recall.ReadEntity, read, asked.timeout_seconds
        )
        entity = found.entity.entity.id
        return await self._accepted(await self._order(scope, asked, entity), entity)

    async def find(self, tenant: TenantId, erasure: str) -> privacy_pb2.Erasure:
        """An erasure of a tenant. Raises ErasureNotFound."""
        return erasure_message(await self._erasures.find(tenant, JobId(erasure)))

    async def _order(self, scope: Scope, asked: Asked, entity: str = "") -> Order:
        return Order(
            scope=scope,
            kind=JobKind.ERASURE,
            method=f"PrivacyService.{type(asked.request).__name__.removesuffix('Request')}",
            request_key=asked.request_id,
            payload_hash=fingerprint(asked.request),
            payload=payload(entity, asked.actor),
            ceiling=MicroCredits(0),
            price_version=(await self._prices.current()).version,
        )

    async def _accepted(self, order: Order, entity: str = "") -> privacy_pb2.Erasure:
        accepted = await self._erasures.begin(order, entity)
        if accepted.fresh:
            await self._pipeline.submit(accepted.job)
        return erasure_message(await self._erasures.find(order.scope.tenant, accepted.job.id))


def erasure_message(erasure: Erasure) -> privacy_pb2.Erasure:
    """The public form of an erasure."""
    message = privacy_pb2.Erasure(
        erasure_id=erasure.id,
        graph_id=erasure.scope.graph,
        entity_id=erasure.entity,
        state=job_pb2.JobState.Value(f"JOB_STATE_{erasure.state}"),
        created_at=timestamp(erasure.created_at),
        reports=erasure.reports,
    )
    if erasure.finished_at is not None:
        message.finished_at.CopyFrom(timestamp(erasure.finished_at))
    return message
