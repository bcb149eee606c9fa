"""Entities: one by id or name with what reads as it, and lists of them in the order of their names."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from palimpsest.internal.v1 import recall_lists_pb2 as pb
from services.domain.errors import EntityNotFound, ValidationFailed, Violation
from services.domain.graph import Entity, EntityType
from services.domain.ids import EntityId, Revision
from services.domain.instants import Instant
from services.domain.names import compatible, name_key
from services.domain.scope import Scope
from services.recall.ids import is_our_id
from services.recall.messages import entity_out
from services.recall.parts import Parts
from services.recall.predicates import Predicates
from services.recall.readings import ReadAs, Readings
from services.recall.revisions import Revisions
from services.recall.seeds import Names
from services.stores.graph.port import AsOf, EntityFilter
from services.stores.paging import Listed, Page
from services.wire.fields import entity_type

MAX_PAGE = 500
DEFAULT_PAGE = 50
MAX_READ = 20
"""Pages read to fill one where merged ones are left out; a page may come back short of items."""


class Entities:
    """Reads entities as known at a revision."""

    def __init__(
        self, parts: Parts, revisions: Revisions, names: Names, predicates: Predicates, readings: Readings
    ) -> None:
        self._parts = parts
        self._revisions = revisions
        self._names = names
        self._predicates = predicates
        self._readings = readings

    async def read(self, scope: Scope, request: pb.ReadEntityRequest) -> pb.ReadEntityResponse:
        """By id one that reads as another is itself. Raises EntityNotFound, RevisionNotReady."""
        known = await self._revisions.known(scope, request.known_at)
        reads = await self._readings.of(scope, known.at)
        found = await self._found(scope, request, known.at, reads)
        if not found:
            raise EntityNotFound(request.entity)
        cards = await self._cards(scope, found, reads, known.at, Instant(request.now))
        return pb.ReadEntityResponse(entity=max(cards, key=lambda card: card.statements), revision=known.at)

    async def listed(self, scope: Scope, request: pb.ListEntitiesRequest) -> pb.ListEntitiesResponse:
        """Raises ValidationFailed, RevisionNotReady, StoreUnavailable."""
        known = await self._revisions.known(scope, request.known_at)
        reads = await self._readings.of(scope, known.at)
        prefix = name_key(request.name_prefix)
        where = EntityFilter(
            [_type(name) for name in request.types], prefix, await self._also(scope, prefix, reads, known.at)
        )
        size = min(request.page_size, MAX_PAGE) if request.page_size > 0 else DEFAULT_PAGE
        hidden: Mapping[EntityId, EntityId] = {} if request.include_merged else reads.merged
        try:
            listed = await self._page(scope, where, hidden, known.at, Page(size, request.after))
        except ValueError as error:
            raise ValidationFailed(Violation("page_token", "not a token of this list")) from error
        cards = await self._cards(scope, listed.items, reads, known.at, Instant(request.now))
        return pb.ListEntitiesResponse(entities=cards, after=listed.after, revision=known.at)

    async def _found(
        self, scope: Scope, request: pb.ReadEntityRequest, known_at: Revision, reads: ReadAs
    ) -> Sequence[Entity]:
        """Candidates, oldest first; those found by a name as what they read as."""
        wanted = entity_type(request.type) if request.type else EntityType.UNKNOWN
        if is_our_id(request.entity):
            here = await self._parts.graph.entities(scope, [EntityId(request.entity)])
            return [
                one
                for one in here
                if one.name
                and one.created_at <= known_at
                and (not request.type or compatible(one.type, wanted))
            ]
        if wanted is EntityType.PREDICATE:
            meant = await self._predicates.meant(scope, request.entity, known_at)
            found = [meant.shown] if meant else []
        else:
            found = await self._names.entities(scope, request.entity, known_at, wanted)
        roots = list(dict.fromkeys(reads.root(one.id) for one in found))
        return await self._parts.graph.entities(scope, roots)

    async def _also(self, scope: Scope, prefix: str, reads: ReadAs, known_at: Revision) -> Sequence[EntityId]:
        """What is found by a name of something that reads as it."""
        if not prefix or not reads.merged:
            return ()
        aliases = await self._parts.graph.aliases_of(scope, sorted(reads.merged), known_at)
        return sorted({reads.root(alias.entity) for alias in aliases if alias.key.startswith(prefix)})

    async def _page(
        self,
        scope: Scope,
        where: EntityFilter,
        hidden: Mapping[EntityId, EntityId],
        known_at: Revision,
        page: Page,
    ) -> Listed[Entity]:
        """Pages of the store of at most what is still wanted, so that its position is always ours."""
        found: list[Entity] = []
        after = page.after
        for _ in range(MAX_READ):
            listed = await self._parts.graph.list_entities(
                scope, where, known_at, Page(page.size - len(found), after)
            )
            found += [entity for entity in listed.items if entity.id not in hidden]
            after = listed.after
            if not after or len(found) >= page.size:
                break
        return Listed(found, after)

    async def _cards(
        self, scope: Scope, entities: Sequence[Entity], reads: ReadAs, known_at: Revision, now: Instant
    ) -> list[pb.EntityCard]:
        if not entities:
            return []
        groups = [_group(entity, reads) for entity in entities]
        members = dict.fromkeys(id for group in groups for id in group)
        names: defaultdict[EntityId, list[str]] = defaultdict(list)
        for alias in await self._parts.graph.aliases_of(scope, list(members), known_at):
            names[alias.entity].append(alias.name)
        # Of a merged one that is shown beside what it reads as, the statements are counted at both.
        apart, roots = _split(groups, reads)
        at = AsOf(known_at, now)
        counts = dict(zip(roots, await self._parts.graph.degrees(scope, roots, at), strict=True))
        if apart:
            counts |= dict(zip(apart, await self._parts.graph.degrees(scope, apart, at), strict=True))
        clocks = await self._parts.revisions.clocks(scope, sorted({one.created_at for one in entities}))
        return [
            pb.EntityCard(
                entity=entity_out(_with_names(entity, [name for id in group for name in names[id]])),
                created_at=entity.created_at,
                created_at_clock=clocks.get(entity.created_at, 0),
                merged_into=reads.merged.get(entity.id, ""),
                merged_ids=group[1:],
                statements=counts[group],
            )
            for entity, group in zip(entities, groups, strict=True)
        ]


def _group(entity: Entity, reads: ReadAs) -> tuple[EntityId, ...]:
    """All that reads as an entity, itself first."""
    return (entity.id,) if entity.id in reads.merged else tuple(reads.group(entity.id))


Group = tuple[EntityId, ...]


def _split(groups: Sequence[Group], reads: ReadAs) -> tuple[list[Group], list[Group]]:
    """Merged ones by themselves, and the rest: within each of the two no entity is in two groups."""
    apart = [group for group in groups if group[0] in reads.merged]
    return apart, [group for group in groups if group[0] not in reads.merged]


def _with_names(entity: Entity, names: Sequence[str]) -> Entity:
    others = dict.fromkeys([*entity.aliases, *names])
    others.pop(entity.name, None)
    return Entity(entity.id, entity.name, entity.key, entity.type, tuple(others), entity.created_at)


def _type(name: str) -> EntityType:
    try:
        return EntityType(name)
    except ValueError as error:
        raise ValidationFailed(Violation("types", "not a type of entities")) from error
