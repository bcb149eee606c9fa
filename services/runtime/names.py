"""Names that the gateway and every runtime share: the five services, and the metadata that names one."""

from enum import StrEnum


class ServiceName(StrEnum):
    """The five services; in Ray also the names of their applications."""

    PREPROCESSOR = "preprocessor"
    EXTRACTOR = "extractor"
    CLASSIFIER = "classifier"
    RESOLVER = "resolver"
    RECALL = "recall"


APPLICATION = "application"
"""Metadata of every internal call: which service it is for. Ray Serve routes by it, servicers check it."""
TRACE = "palimpsest-trace"
"""Metadata: the job or request that an internal call belongs to, for the log."""
AFFINITY = "session_id"
"""Metadata: calls with one value prefer one replica (Ray Serve's own name for it)."""
ROUTED_BY_SCOPE = frozenset({ServiceName.RECALL, ServiceName.RESOLVER})
"""Where calls of one graph prefer one replica: recall holds the graph's indexes there, and the resolver its
queue of writers. Any other replica answers the same, later."""
