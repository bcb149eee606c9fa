"""Export: everything of a graph as of one point, read in pages while others go on writing.

What later revisions add is left out by their numbers. What a later one takes away is gone from the stores:
then the export is of no use, and says so.
"""

from collections.abc import AsyncIterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeVar

from services.domain.beliefs import in_force
from services.domain.graph import Entity, Literal, Span, Statement
from services.domain.identity import Merge
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision, StatementId, VoiceId
from services.domain.memory import Episode, VoiceClaim, VoiceEnd
from services.domain.predicates import Declared
from services.domain.records import Claim, Denial, End, Verdict
from services.domain.scope import Scope
from services.stores.graph.port import Records
from services.stores.memory.commits import RESOLVE
from services.stores.memory.port import RevisionEntry
from services.stores.vectors.moving import fetch_statements
from services.stores.vectors.port import Collection
from services.upkeep.closures import nodes_of
from services.upkeep.items import (
    EntityItem,
    Item,
    PassageItem,
    Point,
    StatementItem,
    VoiceItem,
    packed,
)
from services.upkeep.parts import Stores, pages

T = TypeVar("T", StatementId, VoiceId)
R = TypeVar("R", Claim, End, Denial, Verdict, VoiceClaim, VoiceEnd, Merge, Declared)

_ADDING = (
    RESOLVE,
    "assert:",
    "unsupported:",
    "merge:",
    "split:",
    "declare:",
    "end:",
    "deny:",
    "judge:",
    "end-voice:",
    "restore-voice:",
    "archive:",
    "restore-archived:",
)
"""Commit ids of revisions that only add; any other may have taken text away."""


class Disturbed(Exception):
    """Something of the graph was deleted since the point: what was there then can't be had any more."""


class Export:
    """One pass over one graph. `items` is to be read once, to its end."""

    def __init__(self, stores: Stores, scope: Scope, point: Point, with_vectors: bool = True) -> None:
        self._stores = stores
        self._scope = scope
        self._point = point
        self._with_vectors = with_vectors
        self._entities: set[EntityId] = set()
        self._half_seen: set[RecordId] = set()
        self._cited: set[EpisodeId] = set()

    async def items(self) -> AsyncIterator[Item]:
        """Every item, what it needs before it. Raises Disturbed, at the latest at the end."""
        for part in (self._graph, self._readings, self._voice, self._text):
            async for item in part():
                yield item
        async for decisions in pages(
            lambda page: self._stores.decisions.list_decisions(self._scope, None, page)
        ):
            for decision in decisions:
                if decision.revision <= self._point.revision:
                    yield decision
        async for item in self._written():
            yield item
        # Last: a revision that took something away while this was read was begun before it did.
        async for entries in pages(lambda page: self._stores.revisions.scan(self._scope, page)):
            for entry in entries:
                if self._known(entry):
                    yield entry

    async def _graph(self) -> AsyncIterator[Item]:
        async for ids in pages(lambda page: self._stores.graph.scan(self._scope, page)):
            for item in await self._statements(ids):
                yield item
        for item in await self._aliases():
            yield item
        async for moves in pages(lambda page: self._stores.archive.scan(self._scope, page)):
            for known in (moved.as_of(self._point.revision) for moved in moves):
                if known.archived_at:
                    yield known

    async def _statements(self, ids: Sequence[StatementId]) -> list[Item]:
        records = await self._stores.graph.records(self._scope, ids)
        found = [one for one in records.statements if one.created_at <= self._point.revision]
        nodes = {node for one in found for node in nodes_of(one)} - self._entities
        items: list[Item] = [*await self._nodes(nodes)]
        vectors = await self._vectors(Collection.STATEMENTS, [one.id for one in found])
        known = self._at_the_point(records)
        said: list[Claim | End | Denial] = [*known.claims, *known.ends, *known.denials]
        told = {record.statement for record in in_force(said)}
        told |= await self._read_otherwise([(one.statement, one.source.episode) for one in said], told)
        items += [self._statement(one, known, vectors.get(one.id, ""), one.id in told) for one in found]
        items += self._verdicts(known.verdicts, {one.id for one in found})
        return items

    async def _read_otherwise(self, said: Sequence[tuple[T, EpisodeId | None]], told: Set[T]) -> set[T]:
        """Beside `told`, what a text that was there then said by an earlier reading: its words are known."""
        silent = [(id, episode) for id, episode in said if episode and id not in told]
        cited = sorted({episode for _, episode in silent if episode})
        texts = await self._stores.text.episodes(self._scope, cited) if cited else ()
        until = self._point.until
        there = {one.id for one in texts if one.deleted_at is None or one.deleted_at > until}
        return {id for id, episode in silent if episode in there}

    def _statement(self, statement: Statement, known: Records, vector: str, told: bool) -> StatementItem:
        claims = tuple(one for one in known.claims if one.statement == statement.id)
        ends = tuple(one for one in known.ends if one.statement == statement.id)
        denials = tuple(one for one in known.denials if one.statement == statement.id)
        said: list[Claim | End | Denial] = [*claims, *ends, *denials]
        self._cited |= {record.source.episode for record in said if record.source.episode}
        spans = tuple(span for span in known.spans if span.statement == statement.id)
        return StatementItem(
            # A text that came back since the point was forgotten at it.
            statement if told else _forgotten(statement),
            claims,
            ends,
            denials,
            spans,
            vector if told else "",
        )

    def _verdicts(self, verdicts: Sequence[Verdict], page: set[StatementId]) -> list[Item]:
        """Each verdict once both its statements have been met."""
        items: list[Item] = []
        for verdict in verdicts:
            if {verdict.left, verdict.right} <= page:
                whole = True
            else:
                whole = verdict.id in self._half_seen
                self._half_seen ^= {verdict.id}
            if whole:
                items.append(verdict)
                if verdict.episode:
                    self._cited.add(verdict.episode)
        return items

    async def _aliases(self) -> list[Item]:
        aliases = await self._stores.graph.aliases(self._scope, self._point.revision)
        nodes = {alias.entity for alias in aliases} - self._entities
        created: dict[EntityId, Revision] = {}
        for entity in await self._stores.graph.entities(self._scope, sorted({a.entity for a in aliases})):
            created[entity.id] = entity.created_at
        return [
            *await self._nodes(nodes),
            *(
                replace(alias, recorded_at=alias.recorded_at or created[alias.entity])
                for alias in aliases
                if alias.entity in created
            ),
        ]

    async def _nodes(self, ids: set[EntityId]) -> list[EntityItem]:
        self._entities |= ids
        found: Sequence[Entity] = await self._stores.graph.entities(self._scope, sorted(ids)) if ids else ()
        vectors = await self._vectors(Collection.ENTITIES, [entity.id for entity in found])
        return [EntityItem(entity, vectors.get(entity.id, "")) for entity in found]

    async def _voice(self) -> AsyncIterator[Item]:
        async for aspects in pages(lambda page: self._stores.voice.scan(self._scope, page)):
            vectors = await self._vectors(Collection.VOICE, [aspect.id for aspect in aspects])
            for aspect in aspects:
                if aspect.created_at > self._point.revision:
                    continue
                claims, ends = self._records(aspect.claims), self._records(aspect.ends)
                self._cited |= {claim.episode for claim in claims if claim.episode}
                self._cited |= {end.episode for end in ends if end.episode}
                mine: set[VoiceId] = {aspect.id} if in_force(claims) else set()
                mine |= await self._read_otherwise([(aspect.id, one.episode) for one in claims], mine)
                text = aspect.text if mine else ""
                known = replace(aspect, text=text, claims=tuple(claims), ends=tuple(ends))
                yield VoiceItem(known, vectors.get(aspect.id, "") if text else "")

    async def _readings(self) -> AsyncIterator[Item]:
        async for merges in pages(lambda page: self._stores.readings.list_merges(self._scope, page)):
            known = self._records(merges)
            self._cited |= {merge.episode for merge in known if merge.episode}
            named = {side for merge in known for side in (merge.entity, merge.into)}
            for node in await self._nodes(named - self._entities):
                yield node
            for merge in known:
                yield merge
        for declared in self._records(await self._stores.readings.declared(self._scope)):
            yield declared

    async def _text(self) -> AsyncIterator[Item]:
        async for episodes in pages(lambda page: self._stores.text.scan_episodes(self._scope, page)):
            for episode in filter(self._was_there, episodes):
                late = episode.unlearned_at is not None and episode.unlearned_at > self._point.until
                yield replace(episode, unlearned_at=None) if late else episode
        async for passages in pages(lambda page: self._stores.text.scan_passages(self._scope, page)):
            wanted = sorted({passage.episode for passage in passages})
            known = await self._stores.text.episodes(self._scope, wanted)
            kept = {episode.id for episode in known if self._was_there(episode)}
            mine = [passage for passage in passages if passage.episode in kept]
            vectors = await self._vectors(Collection.PASSAGES, [passage.id for passage in mine])
            for passage in mine:
                yield PassageItem(passage, vectors.get(passage.id, ""))
        async for versions in pages(lambda page: self._stores.text.scan_versions(self._scope, page)):
            for version in versions:
                if version.created_at <= self._point.until:
                    yield version

    async def _written(self) -> AsyncIterator[Item]:
        """Summaries of then, and of the persona at least what is the user's."""
        store, revision = self._stores.summaries, self._point.revision
        async for found in pages(lambda page: store.scan_sessions(self._scope, page)):
            for summary in found:
                if summary.revision <= revision:
                    yield summary
        persona = await store.persona(self._scope)
        if persona is not None and persona.revision > revision:
            mine = tuple(section for section in persona.sections if section.protected)
            persona = replace(persona, sections=mine, revision=revision, made_from="")
        if persona is not None and persona.sections:
            yield persona

    def _was_there(self, episode: Episode) -> bool:
        """Saved until the point, or what something known then cites: clocks of hosts differ."""
        there = episode.created_at <= self._point.until or episode.id in self._cited
        if there and episode.deleted_at is not None and episode.deleted_at > self._point.until:
            raise Disturbed
        return there

    def _known(self, entry: RevisionEntry) -> bool:
        if entry.revision > self._point.revision and not entry.commit_id.startswith(_ADDING):
            raise Disturbed
        return entry.revision <= self._point.revision

    def _at_the_point(self, records: Records) -> Records:
        revision = self._point.revision
        return Records(
            records.statements,
            self._records(records.claims),
            self._records(records.ends),
            self._records(records.denials),
            self._records(records.verdicts),
            [_believed(span, revision) for span in records.spans if span.known_from <= revision],
        )

    def _records(self, records: Sequence[R]) -> list[R]:
        revision = self._point.revision
        return [
            replace(record, revoked_at=None)
            if record.revoked_at is not None and record.revoked_at > revision
            else record
            for record in records
            if record.recorded_at <= revision
        ]

    async def _vectors(self, collection: Collection, ids: Sequence[str]) -> Mapping[str, str]:
        if not self._with_vectors or not ids:
            return {}
        if collection is Collection.STATEMENTS:
            rows = await fetch_statements(self._stores.vectors, self._scope, ids)
        else:
            rows = await self._stores.vectors.fetch(self._scope, collection, ids)
        return {id: packed(row.vector) for id, row in rows.items()}


def _believed(span: Span, revision: Revision) -> Span:
    later = span.known_to is not None and span.known_to > revision
    return replace(span, known_to=None) if later else span


def _forgotten(statement: Statement) -> Statement:
    target = statement.object
    emptied = replace(target, text="") if isinstance(target, Literal) else target
    return replace(statement, fact="", object=emptied)
