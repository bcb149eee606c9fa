"""Checks of text and vectors: passages and voice aspects with their vectors, vectors with their owners."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence, Set

from services.domain.ids import EntityId, PassageId, StatementId, VoiceId
from services.domain.memory import VoiceAspect, VoiceClaim
from services.domain.scope import Scope
from services.stores.vectors.port import Collection
from services.upkeep.checks import UNOWNED, Check, Looking, Seen, vector_differences
from services.upkeep.differences import Difference, Kind
from services.upkeep.graph_checks import AliasCheck, EpisodeCheck, MergeCheck, StatementCheck
from services.upkeep.parts import Stores, pages
from services.upkeep.rows import Expected, of_passage, of_voice


class PassageCheck:
    """Each passage with its vector. A unit is a passage's id."""

    def __init__(self, looking: Looking) -> None:
        self._stores = looking.stores

    async def pages(self, scope: Scope) -> AsyncIterator[Sequence[str]]:
        async for passages in pages(lambda page: self._stores.text.scan_passages(scope, page)):
            yield [passage.id for passage in passages]

    async def look(self, seen: Seen, units: Sequence[str]) -> list[Difference]:
        passages = await self._stores.text.passages(seen.scope, [PassageId(unit) for unit in units])
        wanted = sorted({passage.episode for passage in passages})
        episodes = {one.id: one for one in await self._stores.text.episodes(seen.scope, wanted)}
        expected: dict[str, Expected] = {}
        for passage in passages:
            episode = episodes.get(passage.episode)
            if episode is None or episode.created_at >= seen.settled:
                continue
            if row := of_passage(seen.scope, passage, episode):
                expected[passage.id] = row
        stored = await self._stores.vectors.fetch(seen.scope, Collection.PASSAGES, list(expected))
        return vector_differences(seen.scope, expected, stored)


class VoiceCheck:
    """Each voice aspect with its vector and the passages of its claims. A unit is an aspect's id."""

    def __init__(self, looking: Looking) -> None:
        self._stores = looking.stores

    async def pages(self, scope: Scope) -> AsyncIterator[Sequence[str]]:
        async for aspects in pages(lambda page: self._stores.voice.scan(scope, page)):
            yield [aspect.id for aspect in aspects]

    async def look(self, seen: Seen, units: Sequence[str]) -> list[Difference]:
        aspects = await self._stores.voice.aspects(seen.scope, [VoiceId(unit) for unit in units])
        known = [aspect for aspect in aspects if aspect.created_at <= seen.known_at]
        expected: dict[str, Expected] = {one.id: row for one in known if (row := of_voice(one))}
        stored = await self._stores.vectors.fetch(seen.scope, Collection.VOICE, list(expected))
        return [*await self._evidence(seen, known), *vector_differences(seen.scope, expected, stored)]

    async def _evidence(self, seen: Seen, aspects: Sequence[VoiceAspect]) -> list[Difference]:
        claims = [claim for aspect in aspects for claim in aspect.claims if _counts(claim, seen)]
        text, scope = self._stores.text, seen.scope
        passages = {one.id for one in await text.passages(scope, [c.passage for c in claims if c.passage])}
        episodes = {one.id: one for one in await text.episodes(scope, [claim.episode for claim in claims])}
        found = []
        for claim in claims:
            episode = episodes.get(claim.episode)
            if episode is None and claim.episode:
                kind = Kind.EVIDENCE_WITHOUT_EPISODE
                found.append(Difference(kind, scope, claim.episode, "voice", claim.voice))
            elif episode is not None and episode.deleted_at is None and claim.passage not in passages:
                # Of a deleted one the whole evidence goes, and is looked at by its episode.
                kind = Kind.VOICE_WITHOUT_PASSAGE
                if claim.passage:
                    found.append(Difference(kind, scope, claim.id, claim.voice, claim.voice))
        return found


def _counts(claim: VoiceClaim, seen: Seen) -> bool:
    revoked = claim.revoked_at is not None and claim.revoked_at <= seen.known_at
    return claim.recorded_at <= seen.known_at and not revoked


class OwnerCheck:
    """Each vector of a collection with what it is of. A unit is the id that both have."""

    def __init__(self, looking: Looking, collection: Collection) -> None:
        self._stores = looking.stores
        self._collection = collection

    async def pages(self, scope: Scope) -> AsyncIterator[Sequence[str]]:
        async for ids in pages(lambda page: self._stores.vectors.scan(scope, self._collection, page)):
            yield ids

    async def look(self, seen: Seen, units: Sequence[str]) -> list[Difference]:
        kind = UNOWNED[self._collection]
        there = await self._stores.vectors.fetch(seen.scope, self._collection, units)
        owned = await _OWNERS[self._collection](self._stores, seen.scope, list(there))
        return [Difference(kind, seen.scope, id, unit=id) for id in there if id not in owned]


async def _statements(stores: Stores, scope: Scope, ids: Sequence[str]) -> set[str]:
    return await _told(stores, scope, ids) - await _in_archive(stores, scope, ids)


async def _archived(stores: Stores, scope: Scope, ids: Sequence[str]) -> set[str]:
    return await _told(stores, scope, ids) & await _in_archive(stores, scope, ids)


async def _in_archive(stores: Stores, scope: Scope, ids: Sequence[str]) -> Set[str]:
    return await stores.archive.among(scope, [StatementId(id) for id in ids])


async def _told(stores: Stores, scope: Scope, ids: Sequence[str]) -> set[str]:
    found = await stores.graph.records(scope, [StatementId(id) for id in ids])
    return {statement.id for statement in found.statements if statement.fact}


async def _entities(stores: Stores, scope: Scope, ids: Sequence[str]) -> set[str]:
    found = await stores.graph.entities(scope, [EntityId(id) for id in ids])
    return {entity.id for entity in found if entity.name}


async def _passages(stores: Stores, scope: Scope, ids: Sequence[str]) -> set[str]:
    return {passage.id for passage in await stores.text.passages(scope, [PassageId(id) for id in ids])}


async def _voice(stores: Stores, scope: Scope, ids: Sequence[str]) -> set[str]:
    found = await stores.voice.aspects(scope, [VoiceId(id) for id in ids])
    return {aspect.id for aspect in found if aspect.text}


_Owners = Callable[[Stores, Scope, Sequence[str]], Awaitable[set[str]]]
_OWNERS: Mapping[Collection, _Owners] = {
    Collection.STATEMENTS: _statements,
    Collection.ARCHIVE: _archived,
    Collection.ENTITIES: _entities,
    Collection.PASSAGES: _passages,
    Collection.VOICE: _voice,
}
"""Which of some ids have something that a vector is of."""


def all_checks(looking: Looking) -> Sequence[Check]:
    """In the order in which they are made: what others rest on first."""
    return [
        EpisodeCheck(looking),
        AliasCheck(looking),
        MergeCheck(looking),
        StatementCheck(looking),
        VoiceCheck(looking),
        PassageCheck(looking),
        *(OwnerCheck(looking, collection) for collection in _OWNERS),
    ]
