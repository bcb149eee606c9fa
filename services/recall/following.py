"""The calls by which what follows ingests is gathered and read, as the recall service serves them."""

from palimpsest.internal.v1 import summaries_pb2 as pb
from services.domain.scope import Scope
from services.recall.changed import Changed
from services.recall.followed import Followed
from services.recall.keeping import Keeping


class Following:
    """A part of the recall service, which sets `_changed`, `_followed` and `_keeping`."""

    _changed: Changed
    _followed: Followed
    _keeping: Keeping

    async def read_changes(self, scope: Scope, request: pb.ReadChangesRequest) -> pb.ReadChangesResponse:
        """See Changed.since_written. With the last of what is to be written, the graph is quiet."""
        changes = await self._changed.since_written(scope, request)
        if changes.nothing:
            self._keeping.changed(scope)
        return changes

    async def gather_session(
        self, scope: Scope, request: pb.GatherSessionRequest
    ) -> pb.GatherSessionResponse:
        """See Followed.gather_session."""
        return await self._followed.gather_session(scope, request)

    async def gather_persona(
        self, scope: Scope, request: pb.GatherPersonaRequest
    ) -> pb.GatherPersonaResponse:
        """See Followed.gather_persona."""
        return await self._followed.gather_persona(scope, request)

    async def read_persona(self, scope: Scope, request: pb.ReadPersonaRequest) -> pb.ReadPersonaResponse:
        """Raises PersonaNotFound."""
        return await self._followed.read_persona(scope, request)

    async def list_labels(self, scope: Scope, request: pb.ListLabelsRequest) -> pb.ListLabelsResponse:
        """None for a graph without sessions."""
        return await self._followed.list_labels(scope, request)

    async def read_session(self, scope: Scope, request: pb.ReadSessionRequest) -> pb.ReadSessionResponse:
        """Raises SessionNotFound."""
        return await self._followed.read_session(scope, request)
