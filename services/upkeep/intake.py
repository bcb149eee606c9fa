"""Intake: writes the items of a copy into stores, through their ports, under the same ids. Idempotent.

The revisions come last, so that no reader sees anything of a graph before all of it is there.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar, cast

from services.domain.identity import Merge
from services.domain.ids import RecordId, Revision
from services.domain.memory import DocumentVersion, Episode, VoiceClaim, VoiceEnd
from services.domain.predicates import Declared
from services.domain.records import Verdict
from services.domain.scope import Scope
from services.domain.summaries import Persona, SessionSummary
from services.stores.errors import WriteConflict
from services.stores.graph.port import Alias, Commit, Forgetting
from services.stores.memory.archive import Moved
from services.stores.memory.port import Decision, RevisionEntry, VoiceForgetting
from services.stores.memory.summaries import LabelVector
from services.stores.vectors.moving import move
from services.stores.vectors.port import Collection, VectorRow
from services.upkeep.items import (
    EntityItem,
    Item,
    Part,
    PassageItem,
    Point,
    StatementItem,
    VoiceItem,
    part_of,
    unpacked,
)
from services.upkeep.parts import Stores
from services.upkeep.rows import Expected, of_entity, of_passage, of_statement, of_voice

T = TypeVar("T")

BATCH = 400
"""Items written together."""


class Into(StrEnum):
    """Which store is written."""

    GRAPH = "graph"
    MEMORY = "memory"
    VECTORS = "vectors"


EVERYTHING = frozenset(Into)


class Intake:
    """Takes the items of one graph in the order of an export, and writes those of the stores asked for.

    `keep_vectors`: vectors that come with items are written as they are; without, texts are embedded.
    """

    def __init__(
        self,
        stores: Stores,
        scope: Scope,
        point: Point,
        into: frozenset[Into] = EVERYTHING,
        keep_vectors: bool = True,
    ) -> None:
        self._stores = stores
        self._scope = scope
        self._point = point
        self._into = into
        self._keep_vectors = keep_vectors
        self._waiting: defaultdict[Part, list[Item]] = defaultdict(list)
        self._count = 0
        self.taken = 0

    async def take(self, item: Item) -> None:
        """Raises what the stores raise, WriteConflict when the log holds other revisions."""
        self._waiting[part_of(item)].append(item)
        self._count += 1
        self.taken += 1
        if self._count >= BATCH:
            await self.flush()

    async def flush(self) -> None:
        """Writes what was taken; to be called once more at the end.

        What readers keep of the graph goes last: a crash before that is followed by the same items again.
        """
        waiting, self._waiting, self._count = self._waiting, defaultdict(list), 0
        if Into.GRAPH in self._into:
            await self._graph(waiting)
        if Into.MEMORY in self._into:
            await self._text(waiting)
            await self._voice(_of(waiting, Part.VOICE, VoiceItem))
            await self._readings(_of(waiting, Part.MERGES, Merge), _of(waiting, Part.DECLARATIONS, Declared))
            await self._stores.archive.apply(self._scope, self._moved(waiting))
            if decisions := _of(waiting, Part.DECISIONS, Decision):
                await self._stores.decisions.record(self._scope, decisions)
            await self._written(waiting)
        if Into.VECTORS in self._into:
            await self._rows(waiting)
            archived = [one.statement for one in self._moved(waiting) if one.archived]
            await move(self._stores.vectors, self._scope, archived, Collection.STATEMENTS, Collection.ARCHIVE)
        if Into.MEMORY in self._into:
            for entry in _of(waiting, Part.REVISIONS, RevisionEntry):
                await self._revision(entry)
        await self._stores.snapshots.drop(self._scope)

    async def _graph(self, waiting: Mapping[Part, Sequence[Item]]) -> None:
        apply, scope, revision = self._stores.graph.apply, self._scope, self._point.revision
        entities = [item.entity for item in _of(waiting, Part.ENTITIES, EntityItem)]
        if entities:
            await apply(scope, Commit(revision, entities=entities))
        by_revision: defaultdict[Revision, list[Alias]] = defaultdict(list)
        for alias in _of(waiting, Part.ALIASES, Alias):
            by_revision[alias.recorded_at].append(alias)
        for recorded_at, aliases in sorted(by_revision.items()):
            await apply(scope, Commit(recorded_at, aliases=aliases))
        items = _of(waiting, Part.STATEMENTS, StatementItem)
        if items:
            commit = Commit(
                revision,
                statements=[item.statement for item in items],
                claims=[claim for item in items for claim in item.claims],
                ends=[end for item in items for end in item.ends],
                denials=[denial for item in items for denial in item.denials],
                opened=[span for item in items for span in item.spans],
            )
            await apply(scope, commit)
        if verdicts := _of(waiting, Part.VERDICTS, Verdict):
            await apply(scope, Commit(revision, verdicts=verdicts))
        forgetting = Forgetting(
            revision,
            [item.statement.id for item in items if not item.statement.fact],
            [entity.id for entity in entities if not entity.name],
        )
        if forgetting.statements or forgetting.entities:
            # Their text is empty already; now a later revision can bring it back.
            await self._stores.graph.forget(scope, forgetting)

    async def _text(self, waiting: Mapping[Part, Sequence[Item]]) -> None:
        save = self._stores.text.save
        if episodes := _of(waiting, Part.EPISODES, Episode):
            await save(self._scope, episodes, [], None)
        if passages := [item.passage for item in _of(waiting, Part.PASSAGES, PassageItem)]:
            await save(self._scope, [], passages, None)
        for version in _of(waiting, Part.VERSIONS, DocumentVersion):
            await save(self._scope, [], [], version)

    async def _voice(self, items: Sequence[VoiceItem]) -> None:
        if not items:
            return
        aspects = [item.aspect for item in items]
        claims = [claim for aspect in aspects for claim in aspect.claims]
        ends = [end for aspect in aspects for end in aspect.ends]
        revision = self._point.revision
        await self._stores.voice.apply(self._scope, revision, aspects, claims, ends, [])
        for revoked_at, ids in _revocations([*claims, *ends]):
            await self._stores.voice.apply(self._scope, revoked_at, [], [], [], ids)
        if forgotten := [aspect.id for aspect in aspects if not aspect.text]:
            await self._stores.voice.forget_text(self._scope, VoiceForgetting(revision, forgotten))

    async def _written(self, waiting: Mapping[Part, Sequence[Item]]) -> None:
        store = self._stores.summaries
        for summary in _of(waiting, Part.SUMMARIES, SessionSummary):
            # Vectors of labels are made when labels are next compared.
            await store.save_session(self._scope, summary, [LabelVector(name) for name in summary.labels])
        for persona in _of(waiting, Part.PERSONA, Persona):
            there = await store.persona(self._scope)
            if there != persona:
                await store.save_persona(self._scope, persona, there.version if there else 0)

    async def _readings(self, merges: Sequence[Merge], declared: Sequence[Declared]) -> None:
        if merges or declared:
            apply = self._stores.readings.apply
            await apply(self._scope, self._point.revision, merges, declared, [])
            for revoked_at, ids in _revocations([*merges, *declared]):
                await apply(self._scope, revoked_at, [], [], ids)

    def _moved(self, waiting: Mapping[Part, Sequence[Item]]) -> list[Moved]:
        """Items of the archive, which come after their statements; nothing of them is after the point."""
        return [one.as_of(self._point.revision) for one in _of(waiting, Part.ARCHIVE, Moved)]

    async def _rows(self, waiting: Mapping[Part, Sequence[Item]]) -> None:
        wanted: list[tuple[Expected | None, str]] = []
        wanted += [(of_entity(one.entity), one.vector) for one in _of(waiting, Part.ENTITIES, EntityItem)]
        for item in _of(waiting, Part.STATEMENTS, StatementItem):
            wanted.append((of_statement(item.statement, item.spans, self._point.revision), item.vector))
        wanted += [(of_voice(one.aspect), one.vector) for one in _of(waiting, Part.VOICE, VoiceItem)]
        passages = _of(waiting, Part.PASSAGES, PassageItem)
        named = sorted({item.passage.episode for item in passages})
        episodes = {one.id: one for one in await self._stores.text.episodes(self._scope, named)}
        for one in passages:
            episode = episodes[one.passage.episode]
            wanted.append((of_passage(self._scope, one.passage, episode), one.vector))
        rows: defaultdict[Collection, list[VectorRow]] = defaultdict(list)
        bare: list[Expected] = []
        for expected, vector in wanted:
            if expected is not None and vector and self._keep_vectors:
                rows[expected.collection].append(expected.with_vector(unpacked(vector)))
            elif expected is not None:
                bare.append(expected)
        if bare:
            vectors = await self._stores.embedder.passages([one.text for one in bare])
            for expected, made in zip(bare, vectors, strict=True):
                rows[expected.collection].append(expected.with_vector(made))
        for collection, ready in rows.items():
            await self._stores.vectors.upsert(self._scope, collection, ready)

    async def _revision(self, entry: RevisionEntry) -> None:
        log = self._stores.revisions
        if (known := await log.entry(self._scope, entry.commit_id)) is not None:
            if known.revision != entry.revision:
                raise WriteConflict("the log holds other revisions")
            if known.published:
                return
        after = Revision(entry.revision - 1)
        await log.begin(self._scope, after, entry.commit_id, entry.at, b"", entry.summary)
        await log.publish(self._scope, entry.revision)


def _revocations(
    records: Sequence[VoiceClaim | VoiceEnd | Merge | Declared],
) -> list[tuple[Revision, list[RecordId]]]:
    """Which records each revision revoked, earliest first."""
    revoked: defaultdict[Revision, list[RecordId]] = defaultdict(list)
    for record in records:
        if record.revoked_at is not None:
            revoked[record.revoked_at].append(record.id)
    return sorted(revoked.items())


def _of(waiting: Mapping[Part, Sequence[Any]], part: Part, kind: type[T]) -> list[T]:
    return cast("list[T]", list(waiting.get(part, ())))
