"""Merging: entities that a user says are one, or are not. Records say how ids read; nothing is moved."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from palimpsest.internal.v1 import resolver_entities_pb2 as pb
from services.domain.beliefs import in_force
from services.domain.errors import EntityNotFound, NotMerged, ValidationFailed, Violation
from services.domain.graph import Entity
from services.domain.identity import Merge, MergeKind, counting_merges, merged
from services.domain.ids import EntityId, RecordId, Revision, derive_id
from services.domain.instants import Instant
from services.domain.kernel.joined import Joined
from services.domain.names import compatible
from services.domain.records import Judge
from services.domain.scope import Scope
from services.resolver.change import Draft
from services.resolver.publish import Publisher
from services.stores.graph.port import GraphStore
from services.stores.memory.groups import connected
from services.stores.memory.port import Decision, ReadingStore

MERGE, SPLIT = "merge_entities", "split_entity"


class Merging:
    """The commands Merge and Split, each one revision with its decisions."""

    def __init__(
        self, graph: GraphStore, readings: ReadingStore, publisher: Publisher, now: Callable[[], Instant]
    ) -> None:
        self._graph = graph
        self._readings = readings
        self._publisher = publisher
        self._now = now

    async def merge(self, scope: Scope, request: pb.MergeRequest) -> pb.MergeResponse:
        """From now on all read as one entity, whatever anybody said of them. Idempotent by commit id.

        Into one that reads as another: into that. Where a user said so already, nothing is recorded.
        Raises EntityNotFound, ValidationFailed (types that can't be one; into itself), Conflict.
        """
        into = EntityId(request.into_id)
        entities = [EntityId(id) for id in dict.fromkeys(request.entity_ids)]
        if into in entities:
            raise ValidationFailed(_violation(entities.index(into), "it can't be merged into itself"))
        last = Draft(Revision(0))

        async def build(known: Revision, revision: Revision) -> Draft:
            nonlocal last
            last = await self._merged(scope, request, (into, entities), known, Draft(revision))
            return last

        published = await self._publisher.publish(scope, f"merge:{request.commit_id}", build)
        return pb.MergeResponse(
            revision=published.revision, entity_id=published.outcome.reads_as or last.reads_as or into
        )

    async def split(self, scope: Scope, request: pb.SplitRequest) -> pb.SplitResponse:
        """From now on an entity reads as itself, with those that were merged into it.

        Idempotent by commit id. Raises EntityNotFound, NotMerged, Conflict.
        """

        async def build(known: Revision, revision: Revision) -> Draft:
            return await self._split(scope, request, known, Draft(revision))

        published = await self._publisher.publish(scope, f"split:{request.commit_id}", build)
        return pb.SplitResponse(revision=published.revision, former_id=published.outcome.reads_as or "")

    async def _merged(
        self,
        scope: Scope,
        request: pb.MergeRequest,
        asked: tuple[EntityId, Sequence[EntityId]],
        known: Revision,
        draft: Draft,
    ) -> Draft:
        into, entities = asked
        await self._there(scope, [into, *entities])
        counting = in_force(await connected(self._readings, scope, [into, *entities]), known)
        reads = merged(counting)
        target = reads.get(into, into)
        groups = _groups(reads, [target, *entities])
        await self._fitting(scope, [groups[target], *(groups[reads.get(one, one)] for one in entities)])
        at = _later_than(counting, self._now())
        said = {
            frozenset(couple)
            for couple, merge in counting_merges(counting).items()
            if merge.judge is Judge.USER and merge.kind is MergeKind.SAME
        }
        for entity in entities:
            is_one = reads.get(entity) == target and frozenset((entity, target)) in said
            if entity != target and not is_one:
                self._record(scope, draft, (entity, target, MergeKind.SAME), request, at)
        # What kept any of these apart would keep them apart still: a newer word takes it back.
        whole = {id for entity in entities for id in groups[reads.get(entity, entity)]} | groups[target]
        for merge in counting if draft.merges else ():
            if merge.kind is MergeKind.APART and {merge.entity, merge.into} <= whole:
                draft.part(merge)
        draft.reads_as = target
        return draft

    async def _split(self, scope: Scope, request: pb.SplitRequest, known: Revision, draft: Draft) -> Draft:
        entity = EntityId(request.entity_id)
        await self._there(scope, [entity])
        counting = in_force(await connected(self._readings, scope, [entity]), known)
        former = merged(counting).get(entity)
        if former is None:
            raise NotMerged
        same = [merge for merge in counting if merge.kind is MergeKind.SAME]
        others: Joined[EntityId] = Joined()
        for merge in same:
            if entity not in (merge.entity, merge.into):
                others.join(merge.entity, merge.into)
        for merge in same:
            # What leads out of it, and whatever else ties it to those that it leaves.
            back = merge.into == entity and others.root(merge.entity) == others.root(former)
            if merge.entity == entity or back:
                draft.part(merge)
        at = _later_than(counting, self._now())
        self._record(scope, draft, (entity, former, MergeKind.APART), request, at)
        draft.reads_as = former
        return draft

    def _record(
        self,
        scope: Scope,
        draft: Draft,
        said: tuple[EntityId, EntityId, MergeKind],
        request: pb.MergeRequest | pb.SplitRequest,
        at: Instant,
    ) -> None:
        entity, into, kind = said
        made = RecordId(derive_id(scope, "merge", entity, into, int(kind), "user", request.commit_id))
        draft.merges[made] = Merge(
            made, entity, into, kind, Judge.USER, at, request.why, recorded_at=draft.revision
        )
        action = MERGE if kind is MergeKind.SAME else SPLIT
        decision = derive_id(scope, "decision", action, entity, draft.revision)
        draft.decisions.append(
            Decision(
                decision,
                draft.revision,
                self._now(),
                action,
                entity,
                request.actor,
                request.why,
                other=into,
                request=request.commit_id,
            )
        )

    async def _there(self, scope: Scope, ids: Sequence[EntityId]) -> Mapping[EntityId, Entity]:
        found = {one.id: one for one in await self._graph.entities(scope, ids)}
        for id in ids:
            if id not in found or not found[id].name:  # one whose text was forgotten is gone for callers
                raise EntityNotFound(id)
        return found

    async def _fitting(self, scope: Scope, groups: Sequence[Iterable[EntityId]]) -> None:
        """Raises ValidationFailed for each group, after the first, that can't be one with those before."""
        ids = sorted({id for group in groups for id in group})
        types = {one.id: one.type for one in await self._graph.entities(scope, ids)}
        into, *others = [{types[id] for id in group if id in types} for group in groups]
        wrong: list[Violation] = []
        for at, kinds in enumerate(others):
            if all(compatible(one, other) for one in into for other in kinds):
                into |= kinds
            else:
                wrong.append(_violation(at, "its type is not that of what it is merged into"))
        if wrong:
            raise ValidationFailed(*wrong)


def _violation(at: int, what: str) -> Violation:
    return Violation(f"entity_ids[{at}]", what, "merge_entities.one_thing")


def _groups(
    reads: Mapping[EntityId, EntityId], entities: Iterable[EntityId]
) -> Mapping[EntityId, set[EntityId]]:
    """By what they read as, all that read so; of `entities` also those that read as themselves alone."""
    groups = {reads.get(entity, entity): {reads.get(entity, entity)} for entity in entities}
    for entity, into in reads.items():
        groups.setdefault(into, {into}).add(entity)
    return groups


def _later_than(merges: Iterable[Merge], now: Instant) -> Instant:
    """Now, or just after what users said before by a clock that was ahead: the newest word counts."""
    return Instant(max([now, *(one.attested_at + 1 for one in merges if one.judge is Judge.USER)]))
