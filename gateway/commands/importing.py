"""ImportGraph: an export becomes a graph that was not there, unchanged, or nothing at all."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

from google.protobuf.json_format import ParseDict, ParseError

from gateway.api.graphs import check_settings
from gateway.commands.exporting import FORMAT
from gateway.credits.money import MicroCredits
from gateway.credits.prices import Prices
from gateway.errors import Overloaded, ValidationFailed, Violation
from gateway.ingest.background import Background
from gateway.ingest.spool import Spool
from gateway.ingest.taking import Taking, imported
from gateway.interceptors.call import Caller
from gateway.interceptors.validate import Validate
from gateway.policy import check_providers
from gateway.store.calls import Call, CallLog
from gateway.store.imports import Imports, Making
from gateway.store.job_values import Job, JobKind, JobState, Order, Outcome
from gateway.store.job_view import job_message
from gateway.store.jobs import Jobs
from palimpsest.v1 import privacy_pb2
from palimpsest.v1.graph_pb2 import GraphSettings
from palimpsest.v1.job_pb2 import JobResult
from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.upkeep.lines import GraphLine

METHOD = "PrivacyService.ImportGraph"
Messages = AsyncIterator[privacy_pb2.ImportGraphRequest]


class ImportGraph:
    """Takes an export. Costs nothing; idempotent by request_id and by what is sent."""

    def __init__(
        self,
        taking: Taking,
        imports: Imports,
        jobs: Jobs,
        prices: Prices,
        calls: CallLog,
        background: Background,
        folder: Path,
        most_bytes: int,
        most_at_once: int,
        offered_models: frozenset[str] = frozenset(),
        providers: frozenset[str] = frozenset(),
    ) -> None:
        """`folder` is where data waits until all of it is there: `most_bytes` of each of `most_at_once`."""
        self._taking = taking
        self._imports = imports
        self._jobs = jobs
        self._prices = prices
        self._calls = calls
        self._background = background
        self._folder = folder
        self._most_bytes = most_bytes
        self._places = asyncio.Semaphore(most_at_once)
        self._offered_models = offered_models
        self._providers = providers
        self._validate = Validate()

    async def __call__(self, messages: Messages, caller: Caller) -> privacy_pb2.ImportGraphResponse:
        """The job, which has ended: the graph is there. Nothing is written before everything is checked.

        Raises ValidationFailed (broken, foreign, cut or of a newer version), DocumentTooLarge, GraphExists,
        TooManyGraphs, DailyBytesExceeded, Overloaded, RequestIdReused, and what services and stores raise.
        """
        if self._places.locked():
            raise Overloaded("imports")
        await self._places.acquire()
        spool, handed_over = Spool(self._folder, self._most_bytes), False
        try:
            start = await self._start(messages)
            scope = caller.scope(start.graph_id)
            await self._imports.check(scope)
            graph = spool.end(await self._received(messages, spool))
            settings = self._settings(graph)
            work = self._background.start(self._carried_out(caller, scope, start, spool, (graph, settings)))
            handed_over = True
        finally:
            if not handed_over:
                self._leave(spool)
        # The caller may leave; an import that was begun is carried out all the same.
        job = await asyncio.shield(work)
        return privacy_pb2.ImportGraphResponse(job=job_message(job, (), None))

    def _leave(self, spool: Spool) -> None:
        spool.close()
        self._places.release()

    async def _start(self, messages: Messages) -> privacy_pb2.ImportStart:
        async for message in messages:
            self._check(message)
            if message.WhichOneof("part") != "start":
                break
            if message.start.header.format_version != FORMAT:
                found = message.start.header.format_version
                raise ValidationFailed(
                    Violation(
                        "start.header.format_version",
                        f"is {found}; this version reads {FORMAT}",
                        "export.format",
                    )
                )
            return message.start
        raise ValidationFailed(Violation("start", "must come first", "export.order"))

    async def _received(self, messages: Messages, spool: Spool) -> privacy_pb2.ExportTrailer:
        trailer: privacy_pb2.ExportTrailer | None = None
        async for message in messages:
            self._check(message)
            if trailer is not None or message.WhichOneof("part") == "start":
                raise ValidationFailed(
                    Violation("part", "start, data, trailer: in this order", "export.order")
                )
            if message.HasField("trailer"):
                trailer = message.trailer
            else:
                await spool.take(message.data)
        if trailer is None:
            raise ValidationFailed(Violation("trailer", "is missing: the export was cut", "export.order"))
        return trailer

    def _check(self, message: privacy_pb2.ImportGraphRequest) -> None:
        violations = self._validate.violations(message)
        if violations:
            raise ValidationFailed(*violations)

    def _settings(self, graph: GraphLine) -> GraphSettings:
        settings = GraphSettings()
        try:
            ParseDict(graph.settings, settings)
        except ParseError:
            raise ValidationFailed(Violation("data", "has unknown settings", "export.settings")) from None
        violations = self._validate.violations(settings)
        if violations:
            raise ValidationFailed(*violations)
        check_settings(settings, self._offered_models)
        check_providers(settings, self._providers)
        return settings

    async def _carried_out(
        self,
        caller: Caller,
        scope: Scope,
        start: privacy_pb2.ImportStart,
        spool: Spool,
        given: tuple[GraphLine, GraphSettings],
    ) -> Job:
        graph, settings = given
        try:
            order = await self._order(scope, start, spool)
            known = await self._jobs.asked_before(order)
            if known is None:
                making = Making(
                    imported(scope, graph),
                    order.payload_hash,
                    settings,
                    Instant(graph.created_at),
                    Instant(graph.updated_at),
                    bytes=spool.size,
                )
                await self._taking(making, spool, graph, start.header.revision)
                await self._tell(caller, scope, start)
                known = (await self._jobs.accept(order, taken=True)).job
            if known.finished:
                return known
            revision = Revision(start.header.revision)
            ended = Outcome(JobState.SUCCEEDED, MicroCredits(0), JobResult(), revision=revision)
            return await self._jobs.finish(known.id, ended)
        finally:
            self._leave(spool)

    async def _order(self, scope: Scope, start: privacy_pb2.ImportStart, spool: Spool) -> Order:
        asked = start.SerializeToString(deterministic=True) + spool.sha256.encode()
        prices = await self._prices.current()
        return Order(
            scope=scope,
            kind=JobKind.IMPORT,
            method=METHOD,
            request_key=start.request_id,
            payload_hash=hashlib.sha256(asked).hexdigest(),
            payload=b"",
            ceiling=MicroCredits(0),
            price_version=prices.version,
        )

    async def _tell(self, caller: Caller, scope: Scope, start: privacy_pb2.ImportStart) -> None:
        named = f"{METHOD}\0{start.request_id}\0{scope.graph}".encode()
        kept = Call(
            tenant=scope.tenant,
            id=hashlib.sha256(named).hexdigest()[:32],
            action="ImportGraph",
            key=caller.key,
            graph=scope.graph,
            request=start.request_id,
            revision=start.header.revision,
        )
        await self._calls.record(kept)
