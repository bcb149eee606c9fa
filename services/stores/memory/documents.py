"""The port of documents and sources as wholes: what is listed of them, and what goes with them at once."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.domain.ids import DocumentId, EpisodeId, SessionId
from services.domain.instants import Instant
from services.domain.memory import Episode, Passage, VersionHead
from services.domain.scope import Scope


@dataclass(frozen=True, slots=True)
class TextGone:
    """How many episodes and passages a deletion removed; 0 of what was gone before."""

    episodes: int = 0
    passages: int = 0


@dataclass(frozen=True, slots=True)
class EpisodeFilter:
    """Every field that is set must match. Said in `[since, until)`. `held`: only those held back."""

    session: SessionId | None = None
    document: DocumentId | None = None
    source: str = ""
    since: Instant | None = None
    until: Instant | None = None
    held: bool = False


class DocumentTexts(Protocol):
    """Part of TextStore, which see."""

    async def version_heads(self, scope: Scope, document: DocumentId) -> Sequence[VersionHead]:
        """Every version that is kept, newest first."""
        ...

    async def last_version(self, scope: Scope, document: DocumentId) -> int:
        """The greatest number that a version ever had, also of deleted ones: none is given twice."""
        ...

    async def of_document(
        self, scope: Scope, document: DocumentId, version: int | None = None
    ) -> Sequence[Episode]:
        """Every episode of a document, or of one version, deleted ones included; by version and position."""
        ...

    async def of_source(self, scope: Scope, source: str, limit: int) -> Sequence[Episode]:
        """The first episodes of a source by id, deleted ones left out (they name no source any more)."""
        ...

    async def delete_episodes(self, scope: Scope, episodes: Sequence[EpisodeId], at: Instant) -> TextGone:
        """As `delete_episode`, of several in one transaction. Idempotent."""
        ...

    async def delete_versions(
        self,
        scope: Scope,
        document: DocumentId,
        version: int | None,
        seen: Collection[EpisodeId],
        keeping: tuple[Sequence[Episode], Sequence[Passage]],
        at: Instant,
    ) -> TextGone:
        """Removes a version (None: every one) of a document with its episodes, in one transaction.

        `seen` are the episodes that the caller has looked at, and revokes. Of the passages, those in
        `keeping` stay, as they are there: with episodes of another version, which are saved. The
        texts of other versions stay whole: they say themselves what they say. Idempotent.
        Raises WriteConflict, with nothing written, when a version that would keep something is gone, or an
        episode has come that is not in `seen`.
        """
        ...
