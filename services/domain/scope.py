"""Scope: whose memory a call touches. Made only by the authenticator; every port method takes it first."""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import NewType

TenantId = NewType("TenantId", str)
GraphId = NewType("GraphId", str)


@dataclass(frozen=True)
class Scope:
    """One graph of one tenant. There is no default scope and no way to leave one."""

    tenant: TenantId
    graph: GraphId
    origin: str = field(default="", compare=False)
    """Of an imported graph: the key of the scope in which it was begun. Its new ids follow from that one, so
    that what was known before the import is recognised after it."""

    @cached_property
    def key(self) -> str:
        """16 hex digits that prefix every stored id; not reversible, stable for ever."""
        # The length makes (tenant, graph) injective whatever characters the two names hold.
        text = f"{len(self.tenant)}:{self.tenant}{self.graph}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def root(self) -> str:
        """What ids of this graph are derived from: 16 hex digits, the same wherever it is imported."""
        return self.origin or self.key
