"""Repairs: what is done about differences of each kind. Idempotent; what changes beliefs is a revision."""

from collections.abc import Iterable, Sequence

from services.domain.graph import Entity, EntityType, Statement
from services.domain.ids import (
    EntityId,
    EpisodeId,
    PassageId,
    RecordId,
    Revision,
    StatementId,
    VoiceId,
)
from services.domain.scope import Scope
from services.stores.graph.port import Alias, Commit, Forgetting, Revocation
from services.stores.vectors.port import Collection
from services.upkeep.checks import MISSING, UNOWNED, Seen
from services.upkeep.closures import nodes_of
from services.upkeep.differences import Difference, Kind
from services.upkeep.parts import Mends, Stores
from services.upkeep.rows import Expected, of_entity, of_passage, of_statement, of_voice


class Repairs:
    """Mends differences of one graph, those on which others rest first."""

    def __init__(self, stores: Stores, mends: Mends) -> None:
        self._stores = stores
        self._mends = mends

    async def mend(self, seen: Seen, differences: Sequence[Difference]) -> None:
        """Does what can be done; whoever calls looks again. Raises as the stores and the resolver do.

        What readers keep of the graph goes twice: before, since nobody finds again what a crash left mended;
        and after, since somebody may have read it meanwhile.
        """
        await self._stores.snapshots.drop(seen.scope)
        await self._mended(seen, differences)
        await self._stores.snapshots.drop(seen.scope)

    async def _mended(self, seen: Seen, differences: Sequence[Difference]) -> None:
        lost = [one for one in differences if one.kind is Kind.EDGE_WITHOUT_END]
        if lost:
            # Spans and rows of what lost an end are looked at again once it is back.
            await self._ends(seen, lost)
            return
        episodes = _ids(differences, Kind.EVIDENCE_WITHOUT_EPISODE)
        for episode in episodes:
            await self._mends.revoke_episode(seen.scope, seen.known_at, EpisodeId(episode))
        claims = {
            RecordId(one.id): VoiceId(one.unit)
            for one in differences
            if one.kind is Kind.VOICE_WITHOUT_PASSAGE
        }
        if claims:
            await self._mends.revoke_voice(seen.scope, seen.known_at, claims)
        again = [StatementId(id) for id in _ids(differences, Kind.SPANS_DIFFER)]
        unsupported = [StatementId(id) for id in _ids(differences, Kind.STATEMENT_WITHOUT_CLAIMS)]
        if again or unsupported:
            await self._mends.derive_again(seen.scope, seen.known_at, again, unsupported)
        if hulls := _ids(differences, Kind.HULL_TOO_NARROW):
            await self._widen(seen, [StatementId(id) for id in hulls])
        await self._vectors(seen, differences)

    async def _ends(self, seen: Seen, differences: Sequence[Difference]) -> None:
        """Gives lost entities back as far as anything tells of them; revokes records of lost statements."""
        records = [one for one in differences if one.what.startswith("record of ")]
        gone = [Revocation(RecordId(one.id), _lost(one)) for one in records]
        if gone:
            await self._stores.graph.apply(seen.scope, Commit(seen.known_at, revocations=gone))
        lost = {EntityId(one.id) for one in differences if one not in records}
        if lost:
            await self._rebuild(seen, lost, differences)

    async def _rebuild(self, seen: Seen, lost: set[EntityId], differences: Sequence[Difference]) -> None:
        graph, scope = self._stores.graph, seen.scope
        told: dict[EntityId, Alias] = {}
        for alias in await graph.aliases(scope, seen.known_at):
            if alias.entity in lost:
                told.setdefault(alias.entity, alias)
        units = sorted({StatementId(one.unit) for one in differences} - set(map(StatementId, lost)))
        statements = (await graph.records(scope, units)).statements
        entities = [_rebuilt(id, told.get(id), statements, seen.known_at) for id in sorted(lost)]
        await graph.apply(scope, Commit(seen.known_at, entities=entities))
        nameless = [entity.id for entity in entities if not entity.name]
        if nameless:
            # As if forgotten: whoever names it again gives it its name back.
            await graph.forget(scope, Forgetting(seen.known_at, entities=nameless))

    async def _widen(self, seen: Seen, statements: Sequence[StatementId]) -> None:
        """Spans that are there stay as they are; the store widens its hulls over them again."""
        records = await self._stores.graph.records(seen.scope, statements)
        await self._stores.graph.apply(seen.scope, Commit(seen.known_at, opened=records.spans))

    async def _vectors(self, seen: Seen, differences: Sequence[Difference]) -> None:
        for collection in MISSING:
            missing = [d.id for d in differences if d.kind is MISSING[collection]]
            missing += [
                d.id
                for d in differences
                if d.kind is Kind.VECTOR_DIFFERS and d.what.startswith(f"{collection}:")
            ]
            unowned = [d.id for d in differences if d.kind is UNOWNED[collection]]
            if unowned:
                await self._stores.vectors.delete(seen.scope, collection, unowned)
            if missing or unowned:
                # What is owned by now is written again: a writer may have come between.
                await self._write(seen, collection, [*missing, *unowned])

    async def _write(self, seen: Seen, collection: Collection, ids: Sequence[str]) -> None:
        """Writes the rows that these should have; a row that is there keeps its vector."""
        wanted = {row.row.id: row for row in await expected(self._stores, seen, collection, ids)}
        stored = await self._stores.vectors.fetch(seen.scope, collection, list(wanted))
        fresh = [row for id, row in wanted.items() if id not in stored]
        rows = [row.with_vector(stored[id].vector) for id, row in wanted.items() if id in stored]
        if fresh:
            vectors = await self._stores.embedder.passages([row.text for row in fresh])
            rows += [row.with_vector(vector) for row, vector in zip(fresh, vectors, strict=True)]
        if rows:
            await self._stores.vectors.upsert(seen.scope, collection, rows)


async def expected(
    stores: Stores, seen: Seen, collection: Collection, ids: Iterable[str]
) -> Sequence[Expected]:
    """The rows that things of these ids should have, as the other stores have them; absent ones have none."""
    asked, scope = sorted(set(ids)), seen.scope
    match collection:
        case Collection.STATEMENTS | Collection.ARCHIVE:
            archived = await stores.archive.among(scope, [StatementId(id) for id in asked])
            cold = collection is Collection.ARCHIVE
            wanted = [StatementId(id) for id in asked if (id in archived) == cold]
            records = await stores.graph.records(scope, wanted)
            found = [
                of_statement(
                    one, [span for span in records.spans if span.statement == one.id], seen.known_at, cold
                )
                for one in records.statements
            ]
        case Collection.ENTITIES:
            found = list(map(of_entity, await stores.graph.entities(scope, [EntityId(id) for id in asked])))
        case Collection.VOICE:
            found = list(map(of_voice, await stores.voice.aspects(scope, [VoiceId(id) for id in asked])))
        case Collection.PASSAGES:
            found = await _passages(stores, scope, [PassageId(id) for id in asked])
        case Collection.LABELS:
            found = []
    return [row for row in found if row is not None]


async def _passages(stores: Stores, scope: Scope, ids: Sequence[PassageId]) -> list[Expected | None]:
    passages = await stores.text.passages(scope, ids)
    named = sorted({passage.episode for passage in passages})
    episodes = {one.id: one for one in await stores.text.episodes(scope, named)}
    return [of_passage(scope, one, episodes[one.episode]) for one in passages if one.episode in episodes]


def _ids(differences: Iterable[Difference], *kinds: Kind) -> list[str]:
    return sorted({one.id for one in differences if one.kind in kinds})


def _lost(difference: Difference) -> StatementId:
    return StatementId(difference.what.removeprefix("record of "))


def _rebuilt(
    id: EntityId, alias: Alias | None, statements: Sequence[Statement], known_at: Revision
) -> Entity:
    """An entity as its alias tells it; without one nameless, of the kind that statements use it as."""
    naming = [statement for statement in statements if id in nodes_of(statement)]
    created = min((statement.created_at for statement in naming), default=known_at)
    if alias is not None:
        return Entity(id, alias.name, alias.key, alias.type, created_at=alias.recorded_at or created)
    is_predicate = any(statement.predicate == id for statement in naming)
    return Entity(id, "", "", EntityType.PREDICATE if is_predicate else EntityType.UNKNOWN, (), created)
