"""Ids: deterministic UUIDv5 texts of our own alphabet (hex and dashes), never user text."""

import uuid
from typing import NewType

from services.domain.scope import Scope

EntityId = NewType("EntityId", str)
StatementId = NewType("StatementId", str)
SpanId = NewType("SpanId", str)
RecordId = NewType("RecordId", str)
"""Of a claim, an end, a denial, a verdict, a merge or a declaration."""
EpisodeId = NewType("EpisodeId", str)
PassageId = NewType("PassageId", str)
DocumentId = NewType("DocumentId", str)
"""Chosen by the tenant; unlike the others it may hold any printable text."""
SessionId = NewType("SessionId", str)
"""Chosen by the tenant."""
VoiceId = NewType("VoiceId", str)
JobId = NewType("JobId", str)

Revision = NewType("Revision", int)
"""A graph's own counter of published changes; 0 before the first."""

_NAMESPACE = uuid.UUID("6f0e3c1e-6d9c-5f0a-8a51-0d4c7c1b9f42")


def derive_id(scope: Scope, kind: str, *parts: str | int | None) -> str:
    """The id of a thing named by `parts` within a scope: same parts, same id, on every host.

    Parts are length-prefixed, so that no choice of user text makes two different lists collide.
    """
    texts = ["~" if part is None else f"{len(str(part))}:{part}" for part in parts]
    name = "|".join([scope.root, kind, *texts])
    return str(uuid.uuid5(_NAMESPACE, name.encode("utf-8", "surrogatepass").decode("latin-1")))


def session_key(scope: Scope, session: SessionId) -> str:
    """How a tenant's session reads in our own alphabet, for columns that hold no text of users."""
    return derive_id(scope, "session", session)
