"""Settings of a Milvus server, as the composition root fills them. Nothing here reads the environment."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from services.stores.vectors.layout import Index
from services.stores.vectors.options import MilvusOptions, Tls
from services.stores.vectors.port import Consistency


class MilvusSettings(BaseModel):
    """How a Milvus server is reached and used. Where it is, and who we are to it, is told apart."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    prefix: str = Field(default="palimpsest", pattern=r"^[a-z][a-z0-9]{0,31}$")
    """Begins the names of collections, so that installations can share a server."""
    timeout_seconds: float = Field(default=10.0, gt=0)
    """For a call, a try over a new connection included."""
    setup_seconds: float = Field(default=60.0, gt=0)
    """For making, loading or dropping a collection, and for an erasure."""
    reads: Literal["session", "strong"] = "session"
    """`session`: a process reads what it wrote itself, and what others wrote within some 0.2 seconds.
    `strong`: what anybody wrote, each time; about 0.2 seconds slower."""
    index: Literal["AUTOINDEX", "HNSW"] = "AUTOINDEX"
    """Vector index of collections made from now on; Milvus Lite has none."""
    hnsw_m: int = Field(default=16, ge=2, le=2_048)
    """HNSW: neighbours of a node."""
    hnsw_ef_construction: int = Field(default=200, ge=8)
    """HNSW: candidates while building."""
    hnsw_ef: int = Field(default=128, ge=1, le=32_768)
    """HNSW: candidates while searching; never fewer than the results asked for."""
    flush_rows: int = Field(default=1_000, ge=1)
    """Milvus Lite: rows written until they are flushed."""
    flush_seconds: float = Field(default=2.0, gt=0)
    """Milvus Lite: time after which they are flushed at the latest."""
    watch_seconds: float = Field(default=5.0, ge=0)
    """How long a writer may go on before it looks again whether its embedder's vectors are still in use."""
    tls_authorities: str = ""
    """PEM file of whom to trust for an `https://` address; empty is whom the machine trusts."""
    tls_certificate: str = ""
    """PEM file of our own certificate, where the server asks for one; needs `tls_authorities`."""
    tls_key: str = ""
    """PEM file of its key."""
    tls_server_name: str = ""
    """Name in the server's certificate, where it is not the one in the address."""

    @property
    def pause_seconds(self) -> float:
        """How long any process of these settings may act on what it saw before."""
        return self.watch_seconds + self.timeout_seconds

    def options(self, uri: str, token: str, embedder: str, dimension: int) -> MilvusOptions:
        """For the vectors of one embedder on one server."""
        return MilvusOptions(
            uri=uri,
            embedder=embedder,
            dimension=dimension,
            prefix=self.prefix,
            token=token,
            tls=Tls(self.tls_authorities, self.tls_certificate, self.tls_key, self.tls_server_name),
            timeout_seconds=self.timeout_seconds,
            setup_seconds=self.setup_seconds,
            reads=Consistency.STRONG if self.reads == "strong" else Consistency.SESSION,
            index=Index(self.index, self.hnsw_m, self.hnsw_ef_construction, self.hnsw_ef),
            flush_rows=self.flush_rows,
            flush_seconds=self.flush_seconds,
            watch_seconds=self.watch_seconds,
        )
