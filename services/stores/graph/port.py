"""The graph port: what every graph store must do.

A store keeps no published revision of its own: every read names the revision it wants to know the graph as
of (`known_at`), and a commit stays invisible until readers are told its revision (see the revision log in
services/stores/memory). All writes are idempotent: applying a commit twice changes nothing.
Every method raises StoreUnavailable when the store can't be reached.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from services.domain.graph import Entity, EntityType, GraphAspect, Span, Statement
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision, SpanId, StatementId
from services.domain.instants import Instant, Interval
from services.domain.records import Claim, Denial, End, Verdict
from services.domain.scope import Scope
from services.stores.paging import Listed, Page

NodePair = tuple[EntityId, EntityId]
"""A subject with a predicate, or with an object."""


@dataclass(frozen=True, slots=True)
class Alias:
    """A key (services/domain/names.py) under which an entity of this type is found.

    `recorded_at`, the revision that brought it, is told by reads alone: a commit's own is written.
    """

    key: str
    type: EntityType
    entity: EntityId
    name: str
    recorded_at: Revision = field(default=Revision(0), compare=False)


@dataclass(frozen=True, slots=True)
class Revocation:
    """From the commit's revision on, `record` counts no more. `statement`: its own; a verdict's left one."""

    record: RecordId
    statement: StatementId


@dataclass(frozen=True, slots=True)
class ClosedSpan:
    """From the commit's revision on, `span` is no longer believed."""

    span: SpanId
    statement: StatementId


@dataclass(frozen=True, slots=True)
class Commit:
    """All that one revision adds to a graph. Records and opened spans carry `revision` themselves.

    Statements name entities, and records, spans and aliases name their nodes: those of this commit or of
    earlier ones. What is there already under the same id stays as it is.
    """

    revision: Revision
    entities: Sequence[Entity] = ()
    aliases: Sequence[Alias] = ()
    statements: Sequence[Statement] = ()
    claims: Sequence[Claim] = ()
    ends: Sequence[End] = ()
    denials: Sequence[Denial] = ()
    verdicts: Sequence[Verdict] = ()
    revocations: Sequence[Revocation] = ()
    opened: Sequence[Span] = ()
    closed: Sequence[ClosedSpan] = ()


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Whose text goes at a revision; ids, times and revisions stay.

    `statements` and `entities`: what nothing supports any more. With them go facts and literals, and quotes,
    dates as text and reasons of their records; names, keys and aliases, which no key finds any more.
    `records`: of a deleted episode, about statements that others support: quotes, dates as text, reasons.
    `retold`: statements whose sentence a deleted episode wrote, said anew; reasons of verdicts on them go.
    """

    revision: Revision
    statements: Sequence[StatementId] = ()
    entities: Sequence[EntityId] = ()
    records: Sequence[Revocation] = ()
    retold: Sequence[tuple[StatementId, str]] = ()


@dataclass(frozen=True, slots=True)
class Records:
    """Every record and span of some statements, revoked and past ones included."""

    statements: Sequence[Statement]
    claims: Sequence[Claim]
    ends: Sequence[End]
    denials: Sequence[Denial]
    verdicts: Sequence[Verdict]
    spans: Sequence[Span]


@dataclass(frozen=True, slots=True)
class AsOf:
    """Which spans a read sees: those believed in `known_at`; those that hold at `valid_at` if it is set.

    `since`/`until` instead keep spans that meet that half-open period. Both axes combine.
    Nothing recorded or created after `known_at` is seen.
    """

    known_at: Revision
    valid_at: Instant | None = None
    since: Instant | None = None
    until: Instant | None = None


@dataclass(frozen=True, slots=True)
class StatementView:
    """A statement, its nodes, and its spans as asked (believed in `known_at`), earliest first."""

    statement: Statement
    subject: Entity
    predicate: Entity
    object: Entity | None
    spans: Sequence[Span]
    episodes: Sequence[EpisodeId]
    """Episodes of its claims that count in `known_at`, earliest attested first."""


@dataclass(frozen=True, slots=True)
class StatementFilter:
    """Every field that is set must match.

    `include_ended`: also what holds no more. Left False, a read that names no world time (neither `valid_at`
    nor a period) keeps statements with a span that has no end; one that names a time goes by that alone.
    `episodes`: statements with a claim of one of these episodes that counts. `contested`: whether one of the
    spans as asked is. `invalidated_by`: statements with a believed span that this episode ended (by a claim,
    an end or a denial of its own); these are ended by nature, so `include_ended` has no say.
    """

    subjects: Sequence[EntityId] = ()
    predicates: Sequence[EntityId] = ()
    objects: Sequence[EntityId] = ()
    aspects: Sequence[GraphAspect] = ()
    episodes: Sequence[EpisodeId] = ()
    invalidated_by: EpisodeId | None = None
    contested: bool | None = None
    include_ended: bool = False


Together = Mapping[EntityId, Sequence[EntityId]]
"""For each entity that reads as another, or another as it: all of its group, itself too."""
NOBODY: Together = MappingProxyType({})
NAME_HEAD = 64
"""Characters of a name's key by which entities are ordered: a key may be longer than a position can be."""


@dataclass(frozen=True, slots=True)
class EntityFilter:
    """Entities of some types; none: all but PREDICATE.

    `prefix` is a key: only entities with an alias whose key begins so, and those of `also` (of whose names
    the caller knows otherwise).
    """

    types: Sequence[EntityType] = ()
    prefix: str = ""
    also: Sequence[EntityId] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A statement that a walk met, `hop` steps (from 1) from a seed, reached over `via`."""

    view: StatementView
    hop: int
    via: EntityId


@dataclass(frozen=True, slots=True)
class Counts:
    entities: int
    statements: int
    claims: int


def with_groups(nodes: Iterable[EntityId], together: Together) -> set[EntityId]:
    """These entities, each with all of its group."""
    return {member for node in nodes for member in together.get(node, (node,))}


class GraphStore(Protocol):
    """Bi-temporal statements of many scopes. See the module's text for revisions and idempotency."""

    async def apply(self, scope: Scope, commit: Commit) -> None:
        """Writes all of a commit; after a crash, applying it again completes it.

        Spans already there under the same id are left as they are. Raises UnstorableText before
        writing anything.
        """
        ...

    async def find_entities(
        self, scope: Scope, keys: Sequence[str], known_at: Revision
    ) -> Mapping[str, Sequence[Entity]]:
        """Entities by keys of their aliases, one indexed look-up; oldest first, a key with none is absent.

        An entity is found by its own key only if that is among its aliases.
        """
        ...

    async def entities(self, scope: Scope, ids: Sequence[EntityId]) -> Sequence[Entity]:
        """Those that exist, in the order asked, each once."""
        ...

    async def aliases(self, scope: Scope, known_at: Revision) -> Sequence[Alias]:
        """The whole alias table of a graph, for planners and hot scopes."""
        ...

    async def aliases_of(self, scope: Scope, ids: Sequence[EntityId], known_at: Revision) -> Sequence[Alias]:
        """The aliases of some entities, one indexed look-up; by key, type, entity."""
        ...

    async def list_entities(
        self, scope: Scope, where: EntityFilter, known_at: Revision, page: Page
    ) -> Listed[Entity]:
        """By the first NAME_HEAD characters of the key, then id; forgotten ones are left out.

        No index has this order: a page reads the graph's entities. Raises ValueError for a position that
        this store did not give.
        """
        ...

    async def degrees(self, scope: Scope, groups: Sequence[Sequence[EntityId]], at: AsOf) -> Sequence[int]:
        """For each group of entities: the statements with a span as asked that name one of them.

        In any role, predicates too; a statement that names several of a group counts once. Groups share no
        entity.
        """
        ...

    async def views(self, scope: Scope, ids: Sequence[StatementId], at: AsOf) -> Sequence[StatementView]:
        """Statements by id in the order asked, each once; one without a span as asked has empty `spans`.

        A statement created after `known_at` is absent.
        """
        ...

    async def records(self, scope: Scope, ids: Sequence[StatementId]) -> Records:
        """Every record and span of these statements, whenever recorded; each list oldest first."""
        ...

    async def slot(self, scope: Scope, subject: EntityId, predicate: EntityId) -> Sequence[StatementId]:
        """Every statement of a subject and predicate, whenever recorded; oldest first."""
        ...

    async def slots(
        self, scope: Scope, pairs: Sequence[NodePair]
    ) -> Mapping[NodePair, Sequence[StatementId]]:
        """As `slot`, for many subjects with their predicates at once; a pair with none is absent."""
        ...

    async def between(
        self, scope: Scope, pairs: Sequence[NodePair]
    ) -> Mapping[NodePair, Sequence[StatementId]]:
        """Every statement of each subject and object, oldest first; a pair with none is absent."""
        ...

    async def of_predicate(
        self, scope: Scope, predicate: EntityId, target: EntityId | None, page: Page
    ) -> Listed[StatementId]:
        """Every statement of a predicate, whenever recorded; with `target`, those of this object alone.

        Oldest first, then by id. Raises ValueError for a position that this store did not give.
        """
        ...

    async def naming(self, scope: Scope, entities: Sequence[EntityId], page: Page) -> Listed[StatementId]:
        """Every statement with one of these entities in any place, whenever recorded; oldest first.

        Each once; of no entities none. Raises ValueError for a position that this store did not give.
        """
        ...

    async def of_episode(self, scope: Scope, episode: EpisodeId) -> Records:
        """The records that cite an episode (statements and spans of them left out), revoked ones included."""
        ...

    async def list_statements(
        self, scope: Scope, where: StatementFilter, at: AsOf, page: Page
    ) -> Listed[StatementView]:
        """Statements with at least one span as asked, in a stable order (creation, then id).

        Raises ValueError for a position that this store did not give.
        """
        ...

    async def walk(
        self,
        scope: Scope,
        seeds: Sequence[EntityId],
        at: AsOf,
        max_hops: int,
        per_level: int,
        together: Together = NOBODY,
    ) -> Sequence[Step]:
        """Breadth first over statements in both directions, nearest then newest first.

        Newest is created last, then by id, so that an order can't change once published. Each level keeps at
        most `per_level` statements; a statement is met once; predicates are not walked through. `via` is the
        subject when a hop came from both ends. Who is met, a seed too, is met with all of its group: those
        that read as one are one node, and a hop between two of them leads nowhere.
        """
        ...

    async def scan(self, scope: Scope, page: Page) -> Listed[StatementId]:
        """All statement ids in order of creation, then of id: what comes later is put at the end.

        For export, verification and indexes that are brought forward.
        """
        ...

    async def counts(self, scope: Scope, known_at: Revision) -> Counts:
        """Entities (predicates left out), statements with a believed span, claims that count."""
        ...

    async def orphans(self, scope: Scope, ids: Sequence[EntityId], known_at: Revision) -> Sequence[EntityId]:
        """Those of these entities that no statement with a record that counts in `known_at` names.

        A verdict alone keeps no entity. In the order asked, each once.
        """
        ...

    async def forget(self, scope: Scope, forgetting: Forgetting) -> None:
        """Empties text. Idempotent.

        A commit of a later revision that has a statement or an entity again brings its text back; one of the
        same or an earlier revision, applied late, does not. Raises UnstorableText before writing anything.
        """
        ...

    async def purge(
        self, scope: Scope, statements: Sequence[StatementId], entities: Sequence[EntityId]
    ) -> None:
        """Removes statements with all of their records, spans and verdicts, and entities with their aliases.

        For good, past revisions too, unlike `forget`. No other statement may name these entities. Idempotent.
        """
        ...

    async def rows(self, scope: Scope) -> Mapping[str, int]:
        """How much is stored of a scope, by kind, past and forgotten things too; without kinds of none.

        Reads what is stored, not what is published: empty exactly when nothing of the scope is left.
        """
        ...

    async def erase(self, scope: Scope) -> None:
        """Removes every trace of a scope. Idempotent."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class CompactsFiles(Protocol):
    """A graph store with files of its own, in which deleted bytes would stay until they are written over."""

    async def compact(self) -> None:
        """Nothing that was deleted is left in the files. Waits for writers. Idempotent."""
        ...


@runtime_checkable
class KeepsHulls(Protocol):
    """A graph store that keeps hulls apart from spans and can tell them, so that they can be verified."""

    async def hulls(self, scope: Scope, ids: Sequence[StatementId]) -> Mapping[StatementId, Interval]:
        """The hulls by which the store sieves; a statement with an empty one is absent."""
        ...
