"""Options of the Milvus store. Imports no client: settings are read by processes that have no vectors."""

from dataclasses import dataclass, field

from services.stores.vectors import layout
from services.stores.vectors.port import Consistency


@dataclass(frozen=True, slots=True)
class Tls:
    """How an `https://` server is known, and who we are to it. Paths of PEM files; "" for none."""

    authorities: str = ""
    """Whom to trust; "" is whom the machine trusts."""
    certificate: str = ""
    key: str = ""
    """Ours, where the server asks for one; `authorities` is needed then."""
    server_name: str = ""
    """The name in the server's certificate, where it isn't the one in the address."""

    def arguments(self) -> dict[str, str]:
        """As pymilvus wants them."""
        if self.certificate:
            given = {
                "client_pem_path": self.certificate,
                "client_key_path": self.key,
                "ca_pem_path": self.authorities,
            }
        else:
            given = {"server_pem_path": self.authorities}
        return {name: value for name, value in {**given, "server_name": self.server_name}.items() if value}


@dataclass(frozen=True, slots=True)
class MilvusOptions:
    """Where the server is, and whose vectors these are."""

    uri: str
    """`http://host:port`, or `https://…` for TLS."""
    embedder: str
    """Names the collections, with the dimension: vectors of two models never meet."""
    dimension: int
    prefix: str = "palimpsest"
    """Begins every name on the server, so that installations can share one. Lower-case letters and digits."""
    token: str = field(default="", repr=False)
    """`user:password`, or a token."""
    tls: Tls = Tls()
    timeout_seconds: float = 10.0
    """For a call. Connecting, making a collection and erasing may take `setup_seconds`."""
    setup_seconds: float = 60.0
    reads: Consistency = Consistency.SESSION
    """What a read that asks for SESSION gets: that, or STRONG, which sees the writes of all processes."""
    index: layout.Index = field(default_factory=layout.Index)
    """The vector index of collections made from now on, on a real server. Milvus Lite gets none."""
    flush_rows: int = 1_000
    """Milvus Lite scans unflushed rows in Python, at some 35 µs a row and search; so flush at this many,"""
    flush_seconds: float = 2.0
    """or this long after the first of them. A real server flushes by itself."""
    watch_seconds: float = 5.0
    """How long a writer may go on before it looks again whether these vectors are still in use."""

    @property
    def fingerprint(self) -> str:
        """Tells this embedder's collections from those of others."""
        return layout.fingerprint(self.embedder, self.dimension)
