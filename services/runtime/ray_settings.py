"""Settings of Ray: how each service scales, what listens where. Imports no Ray."""

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.runtime.names import ServiceName


class ServiceScale(BaseModel):
    """How one service scales: as many replicas, within the bounds, as give each the target in flight."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    min_replicas: int = Field(ge=1)
    max_replicas: int = Field(ge=1)
    max_ongoing_requests: int = Field(ge=1)
    """Calls that one replica has at once; more wait in the ingress."""
    target_ongoing_requests: float = Field(gt=0)
    """Calls in flight a replica, on average, that scaling aims at."""
    cpus: float = Field(ge=0)
    """Processors that Ray reserves for a replica when it places it."""
    upscale_delay_seconds: float = Field(default=10, ge=0)
    """How long the load must last before replicas are added."""
    downscale_delay_seconds: float = Field(default=300, ge=0)
    """How long it must be gone before they are taken away."""
    look_back_seconds: float = Field(default=30, gt=0)
    """Load is an average over so long."""
    graceful_shutdown_timeout_seconds: float = Field(gt=0)
    """How long a replica that is taken away may end its calls: longer than the longest."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.min_replicas > self.max_replicas:
            raise ValueError("min_replicas is above max_replicas")
        if self.target_ongoing_requests > self.max_ongoing_requests:
            raise ValueError(
                "target_ongoing_requests is above max_ongoing_requests: it would never be reached"
            )
        return self

    @classmethod
    def of(cls, name: ServiceName) -> "ServiceScale":
        """The default of a service."""
        return _SCALES[name]


_STORE_CALL_SECONDS = 90.0
"""Above the longest call of a step that only reads and writes stores (60 s)."""
_MODEL_CALL_SECONDS = 330.0
"""Above the longest task of a model, all its retries included (300 s)."""

_WAITS_FOR_MODELS = ServiceScale(
    min_replicas=1,
    max_replicas=16,
    # Such a replica mostly waits: many calls at once, 60 % of them aimed at so that a burst finds room.
    max_ongoing_requests=40,
    target_ongoing_requests=24,
    cpus=0.5,
    graceful_shutdown_timeout_seconds=_MODEL_CALL_SECONDS,
)
_SCALES = {
    # Splits and embeds: bound by its processor.
    ServiceName.PREPROCESSOR: ServiceScale(
        min_replicas=1,
        max_replicas=16,
        max_ongoing_requests=4,
        target_ongoing_requests=2,
        cpus=1,
        graceful_shutdown_timeout_seconds=_STORE_CALL_SECONDS,
    ),
    ServiceName.EXTRACTOR: _WAITS_FOR_MODELS,
    ServiceName.CLASSIFIER: _WAITS_FOR_MODELS,
    ServiceName.RESOLVER: _WAITS_FOR_MODELS,
    # People wait for it: two replicas at least, so that losing one loses no time.
    ServiceName.RECALL: ServiceScale(
        min_replicas=2,
        max_replicas=16,
        max_ongoing_requests=16,
        target_ongoing_requests=8,
        cpus=1,
        graceful_shutdown_timeout_seconds=_STORE_CALL_SECONDS,
    ),
}


class RaySettings(BaseSettings):
    """How `palimpsest up` runs the services on Ray."""

    model_config = SettingsConfigDict(
        env_prefix="PALIMPSEST_RAY_",
        env_nested_delimiter="__",
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )

    address: str = ""
    """`host:port` of a cluster to join; empty starts one for this run, on loopback."""
    ingress: Literal["proxy", "haproxy"] = "proxy"
    """What stands before the replicas: Serve's own proxy, or HAProxy and replicas that listen themselves."""
    port: int = Field(default=0, ge=0, le=65535)
    """Port of that; 0 takes a free one."""
    object_store_megabytes: int = Field(default=100, ge=80)
    """Shared memory of Ray's object store. Calls go through it only when they are large."""
    slots: int = Field(default=32, ge=8)
    """Processors that the local cluster says it has. On one machine they bound how many replicas there may
    be, not what they use."""
    scale: dict[ServiceName, ServiceScale] = Field(default_factory=dict)
    """Scaling of single services where it differs from the default, as JSON: `{"recall": {…}}`."""

    @property
    def local(self) -> bool:
        """Whether the cluster is this run's own."""
        return not self.address

    @property
    def on_loopback(self) -> bool:
        """Whether all of it is on this machine, so that nothing may listen beyond it."""
        return self.local or self.address.partition(":")[0] in {"127.0.0.1", "localhost"}

    @property
    def replicas_have_settings(self) -> bool:
        """Whether replicas read the environment of their nodes: those of a cluster on other machines."""
        return not self.on_loopback

    def scale_of(self, name: ServiceName) -> ServiceScale:
        """What is set for a service, or else its default; on a cluster of this run's own at most four."""
        if name in self.scale:
            return self.scale[name]
        default = ServiceScale.of(name)
        return default.model_copy(update={"min_replicas": 1, "max_replicas": 4}) if self.local else default


class RayRun(BaseModel):
    """What the host of one run is told: settings, ports, files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: RaySettings
    port: int
    http_port: int
    handover: str
    """File of the replicas' settings; empty when they read the environment of their nodes."""
    folder: Path
    """Ray's own folder: sockets and logs of its processes. A short path: sockets have no long ones."""
