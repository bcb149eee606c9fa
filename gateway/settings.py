"""Settings of the gateway: from the environment (PALIMPSEST_…), with units in names, printed redacted."""

from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy import make_url

from gateway.store.tenants import Limits
from gateway.tls import TlsSettings
from services.runtime.telemetry import TelemetrySettings
from services.stores.sql.settings import MigrateAtStart, PostgresSettings


class GatewaySettings(BaseSettings):
    """What the gateway needs to run. Read when it is made, never at import."""

    model_config = SettingsConfigDict(
        env_prefix="PALIMPSEST_",
        env_nested_delimiter="__",
        frozen=True,
        use_attribute_docstrings=True,
    )

    gateway_host: str = "127.0.0.1"
    """Address to listen on. Other than loopback only behind a network policy."""
    gateway_port: int = Field(default=7233, ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    gateway_tls: TlsSettings = Field(default_factory=TlsSettings)
    """TLS of that port."""
    health_port: int | None = Field(default=None, ge=0, le=65535)
    """A second port that answers grpc.health.v1 and nothing else, without TLS: for probes that speak none, as
    those of Kubernetes. 0 takes a free one; empty: none."""
    data_dir: Path = Path(".palimpsest")
    """Folder of the embedded databases."""
    ledger_url: str = ""
    """Database of tenants, keys, credits and jobs: `sqlite:////path` or `postgresql://…`; empty is ledger.db
    in the data folder."""
    jobs_url: str = ""
    """Database of the progress of jobs, likewise; on PostgreSQL it may be the ledger's."""
    workflows_url: str = ""
    """Database of the durable engine, likewise; on PostgreSQL it has a schema of its own."""
    migrate_at_start: MigrateAtStart = "embedded"
    """Databases that a server brings to its version when it starts: `embedded` is SQLite files; others it
    refuses until `palimpsest-admin migrate` has run."""
    postgres: PostgresSettings = Field(default_factory=PostgresSettings)
    """Connections to PostgreSQL."""
    executor_id: str = Field(default="gateway-0", pattern=r"^[A-Za-z0-9._-]{1,64}$")
    """Name of this process to the durable engine: unique, and the same after a restart."""
    workflow_concurrency: int = Field(default=16, ge=0)
    """Jobs that this process works on at once; 0: it takes calls and leaves jobs to other processes."""
    chunk_concurrency: int = Field(default=8, ge=1)
    """Chunks that it understands at once."""
    services_target: str = ""
    """`host:port` of services that run elsewhere, for `palimpsest gateway`."""
    key_environment: str = Field(default="live", pattern=r"^[a-z0-9]{1,16}$")
    """The `<env>` of new API keys, `pk_<env>_<id>_<secret>`."""
    assertion_secret: SecretStr = SecretStr("")
    """Signs the scope of calls to the services; at least 16 bytes. Empty: one is made for this process."""
    failed_keys_per_minute: int = Field(default=30, ge=1)
    """Refused API keys after which a peer must wait."""

    max_in_flight_calls: int = Field(default=256, ge=1)
    """Calls that are worked on at once, at most: fewer while the event loop is late, so that each ends in
    time. Streams, and calls that only wait for a job, are counted apart."""
    max_waiting_calls: int = Field(default=256, ge=0)
    """Calls that may wait for a place; more are refused with OVERLOADED."""
    admission_wait_seconds: float = Field(default=2.0, gt=0)
    """How long a call waits for a place."""
    max_streams: int = Field(default=1000, ge=1)
    """Streams (WatchJob, …) that are open at once."""
    max_streams_per_tenant: int = Field(default=100, ge=1)
    """Of these, streams of one tenant."""
    tenant_requests_per_second: int = Field(default=100, ge=1)
    """Calls a second of a tenant without limits of its own, on average."""
    tenant_request_burst: int = Field(default=200, ge=0)
    """Calls above that average that it may make at once."""
    tenant_max_in_flight: int = Field(default=128, ge=1)
    """Its calls that are handled at once."""
    tenant_max_jobs: int = Field(default=1000, ge=1)
    """Its unfinished jobs."""
    tenant_max_graphs: int = Field(default=100_000, ge=1)
    """Its graphs."""
    tenant_max_bytes_per_day: int = Field(default=10 * 1024**3, ge=1)
    """Bytes of text, of assertions and of imports that it may send in a day (UTC)."""
    tenant_goodwill_micros_per_day: int = Field(default=1_000_000, ge=0)
    """Micro-credits of work that taught nothing and is not charged, a day (UTC); then the minimum is."""

    max_message_bytes: int = Field(default=16 * 1024 * 1024, ge=1024 * 1024)
    """Largest request. Above the cap of documents, so that their typed refusal comes first."""
    max_document_bytes: int = Field(default=2 * 1024 * 1024, ge=1024)
    """Largest text of one call (UTF-8); above it DOCUMENT_TOO_LARGE."""
    max_import_bytes: int = Field(default=1024 * 1024 * 1024, ge=1024)
    """Largest graph that is imported; its data waits in the data folder until all of it is there."""
    max_imports: int = Field(default=4, ge=1)
    """Imports at once."""
    max_concurrent_streams: int = Field(default=1000, ge=100)
    """HTTP/2 streams of one connection."""
    max_connection_age_seconds: int = Field(default=1800, ge=10)
    """After this a connection is closed gracefully, so that clients spread anew."""
    keepalive_seconds: int = Field(default=120, ge=10)
    """How often a silent connection is asked whether its client is still there."""
    health_seconds: float = Field(default=5.0, gt=0)
    """How often grpc.health.v1 looks at the stores and services that the gateway stands on."""
    health_probe_seconds: float = Field(default=5.0, gt=0)
    """After so long without an answer one of them is told as NOT_SERVING."""
    drain_wait_seconds: float = Field(default=0.0, ge=0)
    """How long, after a stop, calls are still taken while NOT_SERVING is told: what a balancer needs to see
    it, some 5 seconds in Kubernetes."""
    drain_seconds: float = Field(default=10.0, ge=0)
    """How long calls may end after that, while new ones are refused with OVERLOADED; then they are
    cancelled."""
    reflection: bool = False
    """Serve gRPC reflection."""
    offered_models: frozenset[str] = frozenset()
    """Models at the endpoint that graphs may choose in place of its two, as a JSON list; a graph that names
    another is refused, or, where the offer was withdrawn, understood with those two."""
    follow_quiet_seconds: float = Field(default=5.0, ge=0)
    """Labels, summaries and persona of a graph are made when nothing has changed in it for so long…"""
    follow_longest_seconds: float = Field(default=60.0, ge=0)
    """…or changes have gone on for so long."""
    follow_concurrency: int = Field(default=2, ge=1)
    """Graphs whose labels, summaries and persona this process makes at once."""
    telemetry: TelemetrySettings = Field(default_factory=TelemetrySettings)
    """What the process tells of itself."""
    sweep_seconds: float = Field(default=5.0, gt=0)
    """How often expired holds, old request keys and left artifacts are looked for."""

    @property
    def tenant_limits(self) -> Limits:
        """Limits of tenants without their own."""
        return Limits(
            requests_per_second=self.tenant_requests_per_second,
            request_burst=self.tenant_request_burst,
            max_in_flight=self.tenant_max_in_flight,
            max_jobs=self.tenant_max_jobs,
            max_graphs=self.tenant_max_graphs,
            max_bytes_per_day=self.tenant_max_bytes_per_day,
            goodwill_micros_per_day=self.tenant_goodwill_micros_per_day,
        )

    def url(self, given: str, file: str) -> str:
        """A URL that was set, or else that of a file in the data folder."""
        return given or f"sqlite:///{self.data_dir.resolve() / file}"

    def redacted(self) -> dict[str, Any]:
        """Every setting, without secrets and passwords; to be printed at start."""
        shown = self.model_dump()
        for name in ("ledger_url", "jobs_url", "workflows_url"):
            if shown[name]:
                shown[name] = make_url(shown[name]).render_as_string(hide_password=True)
        return {name: str(value) if isinstance(value, SecretStr) else value for name, value in shown.items()}
