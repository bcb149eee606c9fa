"""The SQL memory port: text, staged facts, voice, readings, the logs of revisions and decisions, summaries,
and snapshots of what readers hold of these.

Each protocol has one writer (docs/adr; owners are in the README): TextStore the preprocessor, SummaryStore
the classifier, SnapshotStore recall, all others the resolver; but snapshots are dropped by whoever removes.
Reads are open to every service. Writes are idempotent. Every method raises StoreUnavailable when the
store can't be reached.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from services.domain.ids import (
    DocumentId,
    EpisodeId,
    JobId,
    PassageId,
    RecordId,
    Revision,
    SessionId,
    VoiceId,
)
from services.domain.instants import Instant
from services.domain.memory import (
    DocumentVersion,
    Episode,
    Passage,
    VoiceAspect,
    VoiceClaim,
    VoiceEnd,
    VoiceKind,
)
from services.domain.scope import Scope
from services.stores.memory.decisions import Decision as Decision
from services.stores.memory.decisions import DecisionFilter as DecisionFilter
from services.stores.memory.decisions import DecisionLog as DecisionLog
from services.stores.memory.documents import DocumentTexts
from services.stores.memory.documents import EpisodeFilter as EpisodeFilter
from services.stores.memory.fences import ErasableMemory as ErasableMemory
from services.stores.memory.fences import FenceStore as FenceStore
from services.stores.memory.following import UNCHANGED, FollowedTexts, TextChanges
from services.stores.memory.readings import ReadingStore as ReadingStore
from services.stores.memory.snapshots import SnapshotStore as SnapshotStore
from services.stores.memory.summaries import SummaryStore as SummaryStore
from services.stores.paging import Listed, Page


class TextStore(DocumentTexts, FollowedTexts, Protocol):
    """Documents, their versions, episodes and passages."""

    async def save(
        self,
        scope: Scope,
        episodes: Sequence[Episode],
        passages: Sequence[Passage],
        version: DocumentVersion | None,
        generation: int | None = None,
        *,
        unknown: bool = False,
    ) -> None:
        """Writes a job's chunks, and the document version they came from, in one transaction.

        Rows with the same ids stay as they are. Raises UnstorableText before writing anything, and
        WriteConflict, with nothing written, when this version of the document is another job's already, and
        with `unknown` when another job has said some of the passages in their session meanwhile. Raises
        ScopeErased while the graph is erased, and where `generation`, if it is told, is over.
        """
        ...

    async def episodes(self, scope: Scope, ids: Sequence[EpisodeId]) -> Sequence[Episode]:
        """Those that exist, deleted ones included (with empty text), in the order asked."""
        ...

    async def passages(self, scope: Scope, ids: Sequence[PassageId]) -> Sequence[Passage]:
        """Those that exist, in the order asked."""
        ...

    async def passages_of(self, scope: Scope, episode: EpisodeId) -> Sequence[Passage]:
        """In order of position; none once the episode is deleted."""
        ...

    async def episodes_of_job(self, scope: Scope, job: JobId) -> Sequence[Episode]:
        """In order of position."""
        ...

    async def recent(
        self, scope: Scope, session: SessionId, before: Instant, limit: int
    ) -> Sequence[Episode]:
        """The session's latest saved before a clock time, newest first; none that is held back."""
        ...

    async def known_hashes(
        self, scope: Scope, session: SessionId | None, document: DocumentId | None, hashes: Sequence[str]
    ) -> frozenset[str]:
        """Which passage hashes this session or document already has.

        Episodes that are deleted, or whose understanding failed, are left out; likewise for message ids.
        """
        ...

    async def known_message_ids(
        self, scope: Scope, session: SessionId, message_ids: Sequence[str]
    ) -> frozenset[str]: ...

    async def latest_version(self, scope: Scope, document: DocumentId) -> DocumentVersion | None: ...

    async def version(self, scope: Scope, document: DocumentId, version: int) -> DocumentVersion | None: ...

    async def version_of_job(self, scope: Scope, job: JobId) -> DocumentVersion | None:
        """The document version that a job saved, if any."""
        ...

    async def document_passages(
        self, scope: Scope, document: DocumentId, before_version: int, page: Page
    ) -> Listed[Passage]:
        """Passages of the document's episodes of versions below `before_version`, deleted ones left out.

        In a stable order.
        """
        ...

    async def list_episodes(
        self, scope: Scope, session: SessionId | None, document: DocumentId | None, page: Page
    ) -> Listed[Episode]:
        """Oldest reference time first, deleted ones left out."""
        ...

    async def latest_episodes(self, scope: Scope, where: EpisodeFilter, page: Page) -> Listed[Episode]:
        """Latest reference time first, then the greater id; deleted ones left out.
        Raises ValueError for a position that this list did not give.
        """
        ...

    async def scan_passages(self, scope: Scope, page: Page) -> Listed[Passage]:
        """Every passage of a graph in a stable order, for search in memory and for export."""
        ...

    async def scan_episodes(self, scope: Scope, page: Page) -> Listed[Episode]:
        """Every episode of a graph in a stable order, deleted ones included; for export."""
        ...

    async def scan_versions(self, scope: Scope, page: Page) -> Listed[DocumentVersion]:
        """Every version of every document in a stable order, for export."""
        ...

    async def delete_episode(self, scope: Scope, episode: EpisodeId, at: Instant) -> bool:
        """Removes text and passages and marks the episode; False if it is not there or deleted already."""
        ...

    async def mark_unlearned(self, scope: Scope, episode: EpisodeId, at: Instant) -> None:
        """Keeps an episode whose understanding failed, and no longer counts its passages as known.

        One whose staged facts were closed was understood: it stays as it is.
        """
        ...

    async def mark_learned(self, scope: Scope, episode: EpisodeId) -> None:
        """Takes back `mark_unlearned`; what was held back is held no longer. Idempotent."""
        ...

    async def count_episodes(self, scope: Scope) -> int: ...


class StagingStore(Protocol):
    """Facts of an episode between storing and resolving: opaque bytes, invisible to every reader."""

    async def stage(self, scope: Scope, episode: EpisodeId, payload: bytes) -> None:
        """Keeps what an episode's chunk gave; staged again, the newer stands. Nothing, once it is closed."""
        ...

    async def staged(self, scope: Scope, episode: EpisodeId) -> bytes | None: ...

    async def unstage(self, scope: Scope, episode: EpisodeId) -> None: ...

    async def close(self, scope: Scope, episode: EpisodeId) -> None:
        """What was staged is in the graph now: it goes, and nothing is staged of the episode again."""
        ...


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """One revision: who asked for it, when it was begun, and, until it is published, what it writes."""

    revision: Revision
    commit_id: str
    at: Instant
    published: bool
    payload: bytes = b""
    summary: str = ""
    """JSON of ids and counts, without text of users; kept, for the answer to a repeated call.

    `context` in it, of a commit `resolve:` and an episode: the statements that it was understood with.
    `touched`: what it changed besides what it added.
    """


@dataclass(frozen=True, slots=True)
class Head:
    """The latest published revision, of which generation of the graph (services/stores/memory/fences.py).

    `texts` is what tells every change of the graph's texts. `archives`: something was archived, if only once;
    `labels`: some session has a label. Where not, nobody needs to ask.
    """

    current: Revision
    generation: int = 0
    texts: TextChanges = UNCHANGED
    archives: bool = True
    labels: bool = True


@dataclass(frozen=True, slots=True)
class LogState:
    """The latest published revision, the one under way, and the one begun under the commit id asked for."""

    current: Revision
    pending: RevisionEntry | None = None
    done: RevisionEntry | None = None
    generation: int = 0
    merged: bool = field(default=True, compare=False)
    """Whether any two ids may read as one: of most graphs none do, and then nobody needs to ask which."""
    archived: bool = field(default=True, compare=False)
    """Likewise, whether anything may be in the archive."""


class RevisionLog(Protocol):
    """The graph's counter and its intent log: what makes three stores change as one.

    A writer *begins* a revision by compare-and-set with everything it will write, applies that to the stores
    (idempotently), then *publishes*. A revision that was begun and not published is completed by whoever
    comes next, from its payload. So there is at most one unpublished revision, and none is ever lost.
    """

    async def current(self, scope: Scope) -> Revision:
        """The latest published revision; 0 for a graph that has none."""
        ...

    async def head(self, scope: Scope) -> Head:
        """`current` and all else that may change, at one moment. What is of another generation is void."""
        ...

    async def pending(self, scope: Scope) -> RevisionEntry | None:
        """The revision that was begun and not published, if any."""
        ...

    async def state(self, scope: Scope, commit_id: str) -> LogState:
        """`current`, `pending` and `entry` of a commit at one moment: what a writer asks before it begins."""
        ...

    async def begin(
        self,
        scope: Scope,
        after: Revision,
        commit_id: str,
        at: Instant,
        payload: bytes,
        summary: str,
        generation: int | None = None,
    ) -> RevisionEntry:
        """Begins revision `after + 1`. Raises WriteConflict if the latest begun revision is not `after`.

        Raises ScopeErased while the graph is erased, and where `generation`, if it is told, is over.
        """
        ...

    async def publish(
        self,
        scope: Scope,
        revision: Revision,
        decisions: Sequence[Decision] = (),
        *,
        forgets: bool = False,
    ) -> bool:
        """Makes a revision visible and drops its payload. False when another call had done so before.

        The decisions are recorded in either case, as DecisionLog does. `forgets`: words went with it from
        another store, so snapshots of the graph go too, in either case (see snapshots.py). Raises
        UnstorableText.
        """
        ...

    async def entry(self, scope: Scope, commit_id: str) -> RevisionEntry | None:
        """The revision begun under this id, if any: repeating a commit finds its first answer here."""
        ...

    async def at(self, scope: Scope, clock: Instant) -> Revision:
        """The latest revision published that was begun at or before a clock time; 0 if none."""
        ...

    async def clocks(self, scope: Scope, revisions: Sequence[Revision]) -> Mapping[Revision, Instant]:
        """When these revisions were begun; unknown ones are left out."""
        ...

    async def between(self, scope: Scope, after: Revision, until: Revision) -> Sequence[RevisionEntry]:
        """The published revisions after one, up to another, oldest first."""
        ...

    async def scan(self, scope: Scope, page: Page) -> Listed[RevisionEntry]:
        """Every revision that was begun, oldest first, for export."""
        ...

    async def since(self, scope: Scope, after: Revision, limit: int) -> Sequence[RevisionEntry]:
        """At most `limit` published revisions after this one, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class VoiceForgetting:
    """Whose text goes at a revision; ids and times stay.

    `aspects`: what no claim supports any more, with quotes and reasons of their records. `records`: of a
    deleted episode, about aspects that others support. `retold`: aspects whose sentence a deleted episode
    spoke, as another one says it; the reasons of what ended them go.
    """

    revision: Revision
    aspects: Sequence[VoiceId] = ()
    records: Sequence[tuple[VoiceId, RecordId]] = ()
    retold: Sequence[tuple[VoiceId, str]] = ()


@dataclass(frozen=True, slots=True)
class VoiceFilter:
    """Every field that is set must match. `held_at`: only what holds then (services/domain/voice.py)."""

    kinds: Sequence[VoiceKind] = ()
    episode: EpisodeId | None = None
    held_at: Instant | None = None


class VoiceStore(Protocol):
    """Voice aspects with their claims and ends, readable as known at a revision."""

    async def apply(
        self,
        scope: Scope,
        revision: Revision,
        aspects: Sequence[VoiceAspect],
        claims: Sequence[VoiceClaim],
        ends: Sequence[VoiceEnd],
        revoked: Sequence[RecordId],
    ) -> None:
        """Adds aspects (without their fields `claims` and `ends`), claims and ends, and revokes records."""
        ...

    async def aspects(self, scope: Scope, ids: Sequence[VoiceId]) -> Sequence[VoiceAspect]:
        """Those that exist, with every claim and end, revoked ones included, in the order asked."""
        ...

    async def list_aspects(
        self, scope: Scope, kinds: Sequence[VoiceKind], known_at: Revision, page: Page
    ) -> Listed[VoiceAspect]:
        """Aspects with a claim that counts in `known_at`, ended ones included; creation order."""
        ...

    async def list_held(
        self, scope: Scope, where: VoiceFilter, known_at: Revision, page: Page
    ) -> Listed[VoiceAspect]:
        """As `list_aspects`, filtered; latest start first, then the greater id.

        `episode`: with a claim of it that counts. Raises ValueError for a position that this list did not
        give.
        """
        ...

    async def of_episode(self, scope: Scope, episode: EpisodeId) -> Sequence[VoiceAspect]: ...

    async def scan(self, scope: Scope, page: Page) -> Listed[VoiceAspect]:
        """Every aspect with every claim and end, whenever recorded, in order of creation; for export."""
        ...

    async def forget_text(self, scope: Scope, forgetting: VoiceForgetting) -> None:
        """Empties text. Idempotent; of `aspects` those that some claim still supports are left as they are.

        An aspect added again at a later revision has its text back; one added late, by the same or an earlier
        revision, has not. Raises UnstorableText before writing anything.
        """
        ...
