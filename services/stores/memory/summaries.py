"""The port of what follows ingests, a part of the memory port: labels, summaries of sessions, the persona.

The classifier writes it; the resolver removes what cites forgotten text, in the revision that forgets it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.domain.ids import Revision, SessionId
from services.domain.scope import Scope
from services.domain.summaries import Cited, Label, Persona, SessionSummary
from services.stores.paging import Listed, Page


@dataclass(frozen=True, slots=True)
class LabelVector:
    """A label as it is told from others: its vector (32-bit floats, little-endian) and whose it is."""

    name: str
    vector: bytes = b""
    embedder: str = ""


class SummaryStore(Protocol):
    """What is written about one graph. Raises StoreUnavailable, UnstorableText before writing anything."""

    async def sessions(self, scope: Scope, sessions: Sequence[SessionId]) -> Sequence[SessionSummary]:
        """Those that are summarised, in the order asked."""
        ...

    async def scan_sessions(self, scope: Scope, page: Page) -> Listed[SessionSummary]:
        """Every summary of a graph in a stable order."""
        ...

    async def citing(self, scope: Scope, ids: Collection[str]) -> Sequence[SessionId]:
        """Sessions whose summary rests on one of these statements or voice aspects, by name."""
        ...

    async def save_session(
        self,
        scope: Scope,
        summary: SessionSummary,
        labels: Sequence[LabelVector] = (),
        generation: int | None = None,
    ) -> bool:
        """Replaces what there is of a session, unless that is of a later revision; False then.

        `labels`: those of its labels that may be new. One that no session carries any more goes. Idempotent.
        Raises WriteConflict where a later revision has taken text away: it may be in the summary still;
        ScopeErased while the graph is erased, and where `generation`, if it is told, is over.
        """
        ...

    async def drop_session(self, scope: Scope, session: SessionId, revision: Revision) -> None:
        """Removes what there is of a session of this or an earlier revision, and labels of no other."""
        ...

    async def label_vectors(self, scope: Scope) -> Sequence[LabelVector]:
        """Every label of a graph, by its lower-cased name."""
        ...

    async def labels(self, scope: Scope) -> Sequence[Label]:
        """Every label, most used first, then by its lower-cased name."""
        ...

    async def labelled(self, scope: Scope, names: Collection[str]) -> Sequence[SessionId]:
        """Sessions that carry one of these labels, compared lower-cased; by name."""
        ...

    async def persona(self, scope: Scope) -> Persona | None: ...

    async def save_persona(
        self, scope: Scope, persona: Persona, after: int, generation: int | None = None
    ) -> None:
        """Replaces the persona of version `after` (0: there is none). Raises WriteConflict for another's.

        Raises WriteConflict and ScopeErased as `save_session` does, too.
        """
        ...

    async def followed(self, scope: Scope) -> Revision:
        """The revision up to which everything is written; 0 at first."""
        ...

    async def follow(self, scope: Scope, revision: Revision, generation: int | None = None) -> None:
        """Everything up to `revision` is written; never goes back. Raises ScopeErased as `save_session`."""
        ...

    async def start_over(self, scope: Scope) -> None:
        """All is to be looked at again: nothing counts as written up to any revision."""
        ...

    async def forget(self, scope: Scope, revision: Revision, ids: Collection[str]) -> None:
        """Removes every sentence that cites one of these, and title and labels of its session. Idempotent.

        They are made anew from what is left. What was read before `revision` is not written any more.
        """
        ...


def without(sentences: Sequence[Cited], ids: Collection[str]) -> tuple[Cited, ...]:
    """The sentences that cite none of these."""
    gone = set(ids)
    return tuple(one for one in sentences if not gone.intersection(one.ids))
