"""The gateway's composition root: stores, way to the services, durable pipeline, public API."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.api.admin import AdminServicer
from gateway.api.credits import CreditServicer
from gateway.api.jobs import JobsAndRetries
from gateway.api.memory import MemoryServicer
from gateway.api.mount import Servicers, served
from gateway.api.predicates import GraphsAndPredicates
from gateway.api.privacy import PrivacyServicer
from gateway.api.recall import RecallServicer
from gateway.commands.archiving import RestoreArchived
from gateway.commands.asking import Recall
from gateway.commands.asserting import AssertTriples
from gateway.commands.auditing import ListAuditEvents
from gateway.commands.batching import BatchAddEpisodes
from gateway.commands.browsing import Browsing
from gateway.commands.deleting import DeleteDocument, DeleteEpisode
from gateway.commands.erasing import Erase
from gateway.commands.exporting import ExportGraph
from gateway.commands.facts import ServiceFacts
from gateway.commands.importing import ImportGraph
from gateway.commands.ingesting import AddEpisode
from gateway.commands.judging import Judging
from gateway.commands.merging import Merging
from gateway.commands.predicates import Predicates
from gateway.commands.reads import Reads
from gateway.commands.rebuilding import RebuildGraph
from gateway.commands.retracting import RetractSource
from gateway.commands.retrying import RetryJob
from gateway.commands.rules import Rules
from gateway.commands.summaries import Summaries
from gateway.health import Probe
from gateway.ingest.archiving import Archiving
from gateway.ingest.background import Background
from gateway.ingest.dispatch import Dispatcher
from gateway.ingest.documents import Documents
from gateway.ingest.durable import DurableEngine, DurableSettings
from gateway.ingest.endings import Endings
from gateway.ingest.erasing import Erasing
from gateway.ingest.follower import Debounce, Follower
from gateway.ingest.following import Following, FollowSettings
from gateway.ingest.pipeline import Pipeline
from gateway.ingest.rebuilding import Rebuilding
from gateway.ingest.rereading import Rereading
from gateway.ingest.retaining import RetentionSweep
from gateway.ingest.retracting import Retracting
from gateway.ingest.retrying import Retrying
from gateway.ingest.steps import Steps, StepSettings
from gateway.ingest.taking import Taking
from gateway.ingest.undoing import Undoing
from gateway.policy import TextPolicy
from gateway.server import Gateway, serve
from gateway.services import ServiceName, Services
from gateway.settings import GatewaySettings
from gateway.store.schema import LEDGER_SCHEMA, PROGRESS_SCHEMA
from gateway.store.stores import Stores, open_stores
from palimpsest.tls import SCHEME
from services.domain.instants import Instant
from services.runtime import telemetry
from services.runtime.assertion import Signer
from services.runtime.databases import service_databases
from services.runtime.probing import STORES
from services.runtime.settings import ServiceSettings
from services.stores.sql.engine import Synchronous, engine_for
from services.stores.sql.migrations import Schema, migrates


@dataclass(frozen=True, slots=True)
class OpenGateway:
    """A gateway that serves, and what it keeps."""

    gateway: Gateway
    stores: Stores
    served: frozenset[str]
    """Paths of the RPCs that it answers; all others are not built yet."""
    tls: bool = False
    metrics_port: int = 0

    @property
    def target(self) -> str:
        """For clients on this machine."""
        return f"{SCHEME if self.tls else ''}127.0.0.1:{self.gateway.port}"


async def open_gateway_stores(settings: GatewaySettings) -> Stores:
    """Opens the databases that the settings name, migrated where the settings say so.

    Raises SchemaUnusable, StoreUnavailable.
    """
    (ledger_engine, _), (progress_engine, _) = databases = gateway_databases(settings)
    migrate_ledger, migrate_progress = (
        migrates(settings.migrate_at_start, engine) for engine, _ in databases
    )
    try:
        return await open_stores(
            ledger_engine,
            progress_engine,
            key_environment=settings.key_environment,
            tenant_limits=settings.tenant_limits,
            migrate_ledger=migrate_ledger,
            migrate_progress=migrate_progress,
        )
    except BaseException:
        for engine, _ in databases:
            await engine.dispose()
        raise


def gateway_databases(settings: GatewaySettings) -> Sequence[tuple[AsyncEngine, Schema]]:
    """The ledger's and the jobs' database. The caller disposes of the engines."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    ledger = settings.url(settings.ledger_url, "ledger.db")
    progress = settings.url(settings.jobs_url, "jobs.db")
    return (
        (engine_for(ledger, settings.postgres, synchronous=Synchronous.FULL), LEDGER_SCHEMA),
        (engine_for(progress, settings.postgres), PROGRESS_SCHEMA),
    )


def every_database(
    gateway: GatewaySettings, services: ServiceSettings
) -> Sequence[tuple[AsyncEngine, Schema]]:
    """All SQL databases of an installation, each with its store's schema. The caller disposes of the engines.

    The durable engine's own tables are not among them (gateway/ingest/durable.py migrates those).
    """
    return (*gateway_databases(gateway), *service_databases(services))


async def open_gateway(
    settings: GatewaySettings,
    targets: Mapping[ServiceName, str],
    signer: Signer,
    stack: AsyncExitStack,
    now: Callable[[], Instant],
    engine_name: str,
    step_settings: StepSettings | None = None,
    providers: frozenset[str] = frozenset(),
) -> OpenGateway:
    """Opens everything and serves; `stack` drains and closes it, last opened first.

    `engine_name` is the services' engine: answers tell it. `providers` are those that see texts here.
    """
    told = telemetry.start(settings.telemetry, "gateway", settings.gateway_host)
    stack.callback(told.close)
    stores = await open_gateway_stores(settings)
    stack.push_async_callback(stores.close)
    services = Services(targets, signer, stores.graphs.origin)
    stack.push_async_callback(services.close)
    engine = DurableEngine(
        DurableSettings(
            database_url=settings.url(settings.workflows_url, "workflows.db"),
            executor_id=settings.executor_id,
            concurrency=settings.workflow_concurrency,
        )
    )
    steps = Steps(
        services,
        stores.jobs,
        stores.graphs,
        stores.rules,
        stores.progress,
        stores.prices,
        replace(step_settings or StepSettings(), offered_models=settings.offered_models, providers=providers),
    )
    documents = Documents(services, steps.settings.store_seconds, steps.settings.model_seconds)
    pipeline = _pipeline(settings, stores, services, engine, steps, documents, now)
    stack.push_async_callback(engine.close)
    await engine.launch()
    background = Background()
    stack.push_async_callback(background.close)
    follower = _follower(settings, stores, services, steps, now)
    follower.start()
    stack.push_async_callback(follower.stop)
    retain = RetentionSweep(stores.retention, stores.jobs, stores.prices, pipeline)
    dispatcher = Dispatcher(stores, pipeline, settings.sweep_seconds, settings.executor_id, [retain])
    await dispatcher.start()
    stack.push_async_callback(dispatcher.stop)
    servicers = _servicers(
        settings, stores, services, pipeline, steps, documents, background, now, engine_name
    )
    probes = _probes(stores, services)
    gateway = await serve(servicers, stores.keys, stores.calls, settings, probes=probes)
    stack.push_async_callback(gateway.stop)
    return OpenGateway(gateway, stores, served(servicers), bool(settings.gateway_tls.certificate), told.port)


def _pipeline(
    settings: GatewaySettings,
    stores: Stores,
    services: Services,
    engine: DurableEngine,
    steps: Steps,
    documents: Documents,
    now: Callable[[], Instant],
) -> Pipeline:
    endings = Endings(stores.jobs, stores.progress, stores.prices, stores.tenants, settings.tenant_limits)
    told = steps.settings
    retracting = Retracting(documents, stores.jobs, stores.progress, told.patience, told.reached)
    retrying = Retrying(
        services, stores.jobs, stores.progress, told.patience, told.store_seconds, told.reached
    )
    rebuilding = Rebuilding(services, stores.jobs, told.patience, told.model_seconds)
    archiving = Archiving(
        services, stores.jobs, stores.graphs, told.patience, now, told.store_seconds, told.reached
    )
    erasing = Erasing.over(engine, services, stores, steps.settings)
    return Pipeline(
        engine,
        stores.jobs,
        steps,
        retracting,
        retrying,
        rebuilding,
        Rereading(services, stores.jobs, stores.graphs, steps),
        Undoing(services, stores.jobs, steps),
        archiving,
        endings,
        erasing,
        settings.chunk_concurrency,
    )


def _follower(
    settings: GatewaySettings,
    stores: Stores,
    services: Services,
    steps: Steps,
    now: Callable[[], Instant],
) -> Follower:
    told = steps.settings
    following = Following(
        services,
        stores.graphs,
        stores.jobs,
        stores.progress,
        now,
        FollowSettings(told.store_seconds, told.model_seconds, told.offered_models, told.providers),
    )
    debounce = Debounce(
        settings.follow_quiet_seconds, settings.follow_longest_seconds, settings.follow_concurrency
    )
    return Follower(stores.follow_ups, following, debounce)


def _probes(stores: Stores, services: Services) -> Mapping[str, Probe]:
    """How each thing that the gateway stands on is asked."""
    by_recall = {store: partial(services.probe, ServiceName.RECALL, store) for store in STORES}
    return {
        "ledger": stores.ledger_database.probe,
        "jobs": stores.progress_database.probe,
        **by_recall,
        **{name.value: partial(services.probe, name) for name in ServiceName},
    }


def _privacy(
    settings: GatewaySettings,
    stores: Stores,
    services: Services,
    steps: Steps,
    background: Background,
    pipeline: Pipeline,
    now: Callable[[], Instant],
) -> PrivacyServicer:
    taking = Taking(services, stores.imports, steps.settings.model_seconds, steps.settings.reached)
    take_in = ImportGraph(
        taking,
        stores.imports,
        stores.jobs,
        stores.prices,
        stores.calls,
        background,
        settings.data_dir,
        settings.max_import_bytes,
        settings.max_imports,
        settings.offered_models,
        steps.settings.providers,
    )
    return PrivacyServicer(
        Erase.over(stores, services, pipeline, now),
        ListAuditEvents(services, stores.graphs, stores.calls),
        ExportGraph(services, stores.graphs, stores.calls),
        take_in,
    )


def _servicers(
    settings: GatewaySettings,
    stores: Stores,
    services: Services,
    pipeline: Pipeline,
    steps: Steps,
    documents: Documents,
    background: Background,
    now: Callable[[], Instant],
    engine_name: str,
) -> Servicers:
    reads = Reads(services, stores.graphs, now)
    policy = TextPolicy(stores.graphs, steps.settings.providers)
    predicates = Predicates(services, stores.graphs, background, steps.settings.store_seconds, now)
    memory = _memory(settings, stores, services, pipeline, steps, documents, background, now, reads, policy)
    return {
        "GraphService": GraphsAndPredicates(
            stores.graphs,
            Rules(stores.rules),
            ServiceFacts(services),
            predicates,
            settings.offered_models,
        ),
        "MemoryService": memory,
        "RecallService": RecallServicer(
            Recall(services, stores.graphs, stores.ledger, stores.prices, now, engine_name, policy),
            reads,
            Summaries(
                services, stores.graphs, stores.follow_ups, background, steps.settings.store_seconds, now
            ),
            policy,
        ),
        "JobService": JobsAndRetries(
            stores.job_view, RetryJob(stores.jobs, stores.job_view, stores.prices, pipeline), settings
        ),
        "CreditService": CreditServicer(stores.ledger, stores.balance_watch),
        "PrivacyService": _privacy(settings, stores, services, steps, background, pipeline, now),
        "AdminService": AdminServicer.over(stores),
    }


def _memory(
    settings: GatewaySettings,
    stores: Stores,
    services: Services,
    pipeline: Pipeline,
    steps: Steps,
    documents: Documents,
    background: Background,
    now: Callable[[], Instant],
    reads: Reads,
    policy: TextPolicy,
) -> MemoryServicer:
    browsing = Browsing(services, stores.graphs, stores.job_view, now)
    add = AddEpisode(
        services, stores.jobs, stores.job_view, stores.ledger, stores.prices, pipeline, now, policy
    )
    asserting = AssertTriples(stores.jobs, stores.prices, pipeline, steps.asserting, background, now, policy)
    deleting = DeleteEpisode(
        services, stores.graphs, stores.requests, background, steps.settings.store_seconds
    )
    judging = Judging(
        services, stores.graphs, stores.requests, background, reads, steps.settings.store_seconds
    )
    merging = Merging(services, stores.graphs, stores.requests, background, steps.settings.store_seconds, now)
    deleting_documents = DeleteDocument(documents, stores.graphs, stores.requests, background)
    retract = RetractSource(stores.jobs, stores.graphs, stores.prices, documents, pipeline)
    return MemoryServicer(
        add,
        BatchAddEpisodes(add),
        asserting,
        deleting,
        deleting_documents,
        retract,
        RebuildGraph(
            services, stores.jobs, stores.graphs, stores.ledger, stores.prices, pipeline, now, steps.settings
        ),
        RestoreArchived(services, stores.graphs, stores.requests, background, steps.settings.store_seconds),
        reads,
        judging,
        browsing,
        merging,
        stores.job_view,
        policy,
        settings,
    )
