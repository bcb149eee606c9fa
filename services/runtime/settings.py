"""Settings of the services: which stores, which engine, which embedder. Read once, by a composition root."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.llm.settings import EmbeddingSettings, LocalEmbedderSettings, ModelSettings
from services.runtime.telemetry import TelemetrySettings
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.sql.settings import MigrateAtStart, PostgresSettings
from services.stores.vectors.settings import MilvusSettings


class ServiceSettings(BaseSettings):
    """What the five services stand on. The defaults need nothing but this machine."""

    model_config = SettingsConfigDict(
        env_prefix="PALIMPSEST_",
        env_nested_delimiter="__",
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )

    data_dir: Path = Path(".palimpsest")
    """Folder of the embedded stores, their logs and secrets."""
    graph: Literal["sql", "nebula"] = "sql"
    """Where graphs lie: `sql` is the database of PALIMPSEST_GRAPH_URL; `nebula` is a NebulaGraph cluster that
    `palimpsest-admin bootstrap` has made ready."""
    nebula: NebulaSettings | None = None
    """The cluster; needed when `graph` is nebula."""
    graph_url: str = ""
    """`sqlite:////path` or `postgresql://…`; empty is graph.db in the data folder."""
    memory_url: str = ""
    """The same for documents, episodes, passages, voice aspects and revisions; empty is memory.db."""
    migrate_at_start: MigrateAtStart = "embedded"
    """Databases that a server brings to its version when it starts: `embedded` is SQLite files; others it
    refuses until `palimpsest-admin migrate` has run."""
    postgres: PostgresSettings = Field(default_factory=PostgresSettings)
    """Connections to PostgreSQL."""
    vectors_uri: str = ""
    """`http://host:port` or `https://host:port` of a Milvus server; empty starts Milvus Lite on loopback."""
    vectors_token: SecretStr = SecretStr("")
    """`user:password` or a token of the Milvus server."""
    vectors: MilvusSettings = Field(default_factory=MilvusSettings)
    """How the Milvus server is used."""
    engine: Literal["offline", "openai"] = "offline"
    """`offline` understands English by rules and says so in every receipt; `openai` is any such endpoint."""
    model: ModelSettings | None = None
    """The endpoint and its models; needed when `engine` is openai."""
    embedder: Literal["local", "openai"] = "local"
    """`local` is the packaged model (English and Chinese)."""
    embedding: EmbeddingSettings | None = None
    """The endpoint and its model; needed when `embedder` is openai."""
    local_embedder: LocalEmbedderSettings = Field(default_factory=LocalEmbedderSettings)
    """How the packaged model runs."""
    telemetry: TelemetrySettings = Field(default_factory=TelemetrySettings)
    """What the process tells of itself."""
    assertion_secret: SecretStr = SecretStr("")
    """Checks the scope of calls from the gateway, which signs with the same one; at least 16 bytes.
    `palimpsest up` makes one for its run; replicas of another cluster need it set."""
    assertion_secret_other: SecretStr = SecretStr("")
    """Another secret that is taken as well. To change the secret: put the new one here, give it to the
    gateways as theirs, then make it `assertion_secret` and empty this."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.graph == "nebula" and self.nebula is None:
            raise ValueError("graph=nebula needs PALIMPSEST_NEBULA__ADDRESSES")
        if self.engine == "openai" and self.model is None:
            raise ValueError(
                "engine=openai needs PALIMPSEST_MODEL__BASE_URL and PALIMPSEST_MODEL__MEDIUM_MODEL"
            )
        if self.embedder == "openai" and self.embedding is None:
            raise ValueError("embedder=openai needs PALIMPSEST_EMBEDDING__BASE_URL, __MODEL and __DIMENSION")
        return self

    def sql_url(self, given: str, file: str) -> str:
        """A URL that was set, or else that of a file in the data folder."""
        return given or f"sqlite:///{self.data_dir.resolve() / file}"
