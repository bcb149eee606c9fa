"""Probes: a call that asks whether a service, or a store behind it, answers. The front answers it itself."""

from typing import Protocol, runtime_checkable

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from services.domain.scope import GraphId, Scope, TenantId
from services.runtime.descriptors import DESCRIPTORS
from services.runtime.names import ServiceName

PROBE = "palimpsest-probe"
"""Metadata: the store that is asked for; "" for the service alone. The call is then not carried out."""

NOBODYS = Scope(TenantId(""), GraphId(""))
"""What probes are signed for: no tenant has an empty id, so no row is its."""

STORES = ("graph", "memory", "vectors")
"""What the recall service answers for: it reads all of them."""


@runtime_checkable
class Probed(Protocol):
    """A service that answers for stores."""

    async def probe(self, scope: Scope, store: str) -> None:
        """Reads something small. Raises StoreUnavailable."""
        ...


def probing_method(service: ServiceName) -> MethodDescriptor:
    """The RPC that carries probes of a service: any with one answer does."""
    return next(rpc for rpc in DESCRIPTORS[service].methods if not rpc.server_streaming)


def empty_answer(service: str, rpc: str) -> Message:
    """What a probe that went well is answered."""
    return GetMessageClass(DESCRIPTORS[ServiceName(service)].methods_by_name[rpc].output_type)()
