"""Publish: how a draft becomes a revision, in three stores that change as one.

The order is: intent in the revision log (compare-and-set), graph, voice aspects, readings, archive, vectors,
revision.
Each step is idempotent, so a crash anywhere is completed by whoever publishes to the graph next. Where words
went, snapshots of the graph go in the last step: none is kept that was read before it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from services.domain.beliefs import BeliefChanges, believed, changes, derive
from services.domain.errors import Conflict
from services.domain.graph import EntityType, Literal, Span
from services.domain.ids import EntityId, RecordId, Revision, StatementId, VoiceId
from services.domain.instants import Instant
from services.domain.lexicon import synonyms_in
from services.domain.records import Claim, Denial, End
from services.domain.scope import Scope
from services.resolver.change import (
    Change,
    Draft,
    Outcome,
    Published,
    change_from_json,
    change_to_json,
    outcome_from_json,
    outcome_to_json,
)
from services.resolver.closure import Closure, Read
from services.resolver.index import Index
from services.resolver.met import Met
from services.resolver.orphaned import orphaned
from services.resolver.readings import Readings
from services.resolver.touching import touched
from services.stores.errors import ScopeErased, UnstorableText, WriteConflict
from services.stores.graph.port import ClosedSpan, Commit, Forgetting, GraphStore, Records, Revocation
from services.stores.memory.archive import ArchiveStore, Moved
from services.stores.memory.lexicons import Lexicons
from services.stores.memory.port import (
    DecisionLog,
    LogState,
    ReadingStore,
    RevisionEntry,
    RevisionLog,
    SummaryStore,
    VoiceForgetting,
    VoiceStore,
)

_ATTEMPTS = 200
"""How often a lost race for a graph's next revision is run again; each loss means another writer won.

Many, since races are not fair: who lost one first completes what the winner began, while the winner's next
writer is already at work. Whoever has a queue of fifty may win them all.
"""

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""NUL as JSON escapes it; not a backslash of a text, itself escaped, with u0000 after it."""

Sweep = Callable[[Scope], Awaitable[None]]
"""Removes everything of a graph of which nothing should be there."""
Build = Callable[[Revision, Revision], Awaitable[Draft]]
"""Makes a draft for a revision (second) from what is known at another (first)."""


@dataclass(frozen=True, slots=True)
class Stores:
    """What a revision is written to."""

    graph: GraphStore
    revisions: RevisionLog
    voice: VoiceStore
    decisions: DecisionLog
    readings: ReadingStore
    archive: ArchiveStore
    summaries: SummaryStore


class Publisher:
    """Serialises the writes of a graph. Within a process by a lock, between processes by the revision log."""

    def __init__(
        self,
        stores: Stores,
        index: Index,
        lexicons: Lexicons,
        now: Callable[[], Instant],
        sweep: Sweep | None = None,
    ) -> None:
        """`sweep` is for who finds, when all is written, that the graph was erased meanwhile."""
        self._sweep = sweep
        self._stores = stores
        self._index = index
        self._lexicons = lexicons
        self._now = now
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._met: dict[str, Met] = {}
        """Of the graphs that a revision is drafted of just now."""

    async def publish(self, scope: Scope, commit_id: str, build: Build) -> Published:
        """Publishes what `build` drafts, once for each commit id; a repeated one gets its first answer.

        An empty draft publishes nothing and answers the current revision.
        Raises Conflict when other writers win every race, ScopeErased where the graph is erased meanwhile,
        StoreUnavailable and EngineError as they come.
        """
        lock = self._locks.setdefault(scope.key, asyncio.Lock())
        async with lock:
            for _ in range(_ATTEMPTS):
                state = await self._settled(scope, commit_id)
                if state.done is not None:
                    return _published(state.done)
                self._met[scope.key] = self._meeting(state)
                try:
                    draft = await build(state.current, Revision(state.current + 1))
                    if draft.empty:
                        return Published(state.current)
                    change, outcome = await self._derive(scope, draft)
                finally:
                    del self._met[scope.key]
                try:
                    entry = await self._stores.revisions.begin(
                        scope,
                        state.current,
                        commit_id,
                        self._now(),
                        _payload(change),
                        outcome_to_json(outcome),
                        state.generation,
                    )
                except WriteConflict:
                    continue
                if not entry.published:  # by another process, which was asked the same
                    await self._complete(scope, entry)
                return _published(entry)
        raise Conflict

    async def read(self, scope: Scope, known: Revision, statements: Sequence[StatementId]) -> Read:
        """The closure of statements as it stands, for a draft that depends on what it holds.

        Ids that are no statement's are left out. Raises StoreUnavailable.
        """
        draft = Draft(known, again=set(statements))
        met = self._met.get(scope.key)
        if met is None or met.known != known:
            met = self._meeting(LogState(known))
        lexicon = await self._lexicons.at(scope, known)
        readings = Readings(met, scope, draft)
        closure = Closure(self._stores.graph, met, readings, (lexicon, lexicon), scope, draft)
        return Read(await closure.read(), closure.cardinality, closure.reading)

    def _meeting(self, state: LogState) -> Met:
        return Met(self._stores.graph, self._stores.readings, state)

    async def settle(self, scope: Scope) -> None:
        """Completes the revision that was begun and not published, if any. Raises as `publish` does."""
        async with self._locks.setdefault(scope.key, asyncio.Lock()):
            await self._settled(scope, "")

    async def _settled(self, scope: Scope, commit_id: str) -> LogState:
        """The log once whatever a crash left in it is completed."""
        while True:
            state = await self._stores.revisions.state(scope, commit_id)
            self._lexicons.renew(scope, state.generation)
            if state.pending is None:
                return state
            await self._complete(scope, state.pending)

    async def _complete(self, scope: Scope, entry: RevisionEntry) -> None:
        change = change_from_json(entry.payload)
        await self._stores.graph.apply(scope, change.commit)
        revoked = [*(record for _, record in change.voice_revoked), *change.voice_undone]
        if change.voice or change.voice_claims or change.voice_ends or revoked:
            await self._stores.voice.apply(
                scope,
                entry.revision,
                change.voice,
                change.voice_claims,
                change.voice_ends,
                revoked,
            )
        reads_anew = bool(change.merges or change.declared or change.readings_revoked)
        if reads_anew:
            await self._stores.readings.apply(
                scope, entry.revision, change.merges, change.declared, change.readings_revoked
            )
        orphans = await self._forget(scope, change, entry.revision)
        await self._stores.archive.apply(scope, _moved(change, entry.revision))
        await self._index.write(scope, change)
        await self._index.remove(scope, change, orphans)
        published = await self._stores.revisions.publish(
            scope, entry.revision, change.decisions, forgets=change.forgets
        )
        if not published:
            # Another process was faster, and later revisions may have forgotten what was written just now.
            if await self._stores.revisions.entry(scope, entry.commit_id) is None:
                await self._void(scope)
            await self._index.sweep(scope, change)
        elif not reads_anew:
            self._lexicons.follow(scope, entry.revision)

    async def _void(self, scope: Scope) -> None:
        """The log has lost the revision: the graph was erased while it was written. Raises ScopeErased."""
        if self._sweep is not None and not await self._stores.revisions.current(scope):
            await self._sweep(scope)
        raise ScopeErased

    async def _forget(self, scope: Scope, change: Change, revision: Revision) -> Sequence[EntityId]:
        """Empties what the change makes forgotten; answers the entities that nothing names any more."""
        orphans = await orphaned(self._stores.graph, scope, change, revision)
        if change.unsupported or orphans or change.emptied or change.retold:
            await self._stores.graph.forget(
                scope, Forgetting(revision, change.unsupported, orphans, change.emptied, change.retold)
            )
        if change.merges_emptied:
            await self._stores.readings.forget_text(scope, change.merges_emptied)
        emptied = change.words_revoked
        if change.unsupported_voice or emptied or change.voice_retold:
            await self._stores.voice.forget_text(
                scope,
                VoiceForgetting(revision, change.unsupported_voice, emptied, change.voice_retold),
            )
        if gone := [*change.unsupported, *change.unsupported_voice, *orphans]:
            await self._stores.decisions.forget_text(scope, gone)
        retold = [id for id, _ in (*change.retold, *change.voice_retold)]
        if gone := [*change.unsupported, *change.unsupported_voice, *retold]:
            await self._stores.summaries.forget(scope, revision, gone)
        return orphans

    async def _derive(self, scope: Scope, draft: Draft) -> tuple[Change, Outcome]:
        before = await self._lexicons.at(scope, Revision(draft.revision - 1))
        synonyms = synonyms_in(draft.merges.values(), draft.keys)
        after = before.after(draft.declared.values(), draft.readings_revoked, synonyms)
        met = self._met[scope.key]
        readings = Readings(met, scope, draft)
        closure = Closure(self._stores.graph, met, readings, (before, after), scope, draft)
        records = await closure.read()
        if left := _left_alone(records, draft):
            draft.revocations |= left
            records = await closure.read()
        derived = derive(records, closure.cardinality, reading=closure.reading)
        spans = changes(scope, draft.revision, records.spans, derived)
        unsupported = _unsupported(records, draft)
        commit = Commit(
            revision=draft.revision,
            entities=tuple(draft.entities.values()),
            aliases=tuple(draft.aliases.values()),
            statements=tuple(draft.statements.values()),
            claims=tuple(draft.claims.values()),
            ends=tuple(draft.ends.values()),
            denials=tuple(draft.denials.values()),
            verdicts=tuple(draft.verdicts.values()),
            revocations=tuple(draft.revocations.values()),
            opened=spans.opened,
            closed=tuple(ClosedSpan(span.id, span.statement) for span in spans.closed),
        )
        change = Change(
            commit=commit,
            voice=tuple(draft.voice.values()),
            voice_claims=tuple(draft.voice_claims.values()),
            voice_ends=tuple(draft.voice_ends.values()),
            voice_undone=tuple(sorted(draft.voice_undone)),
            voice_revoked=tuple(sorted((voice, record) for record, voice in draft.voice_revoked.items())),
            voice_emptied=_voice_emptied(draft),
            decisions=tuple(replace(item, revision=draft.revision) for item in draft.decisions),
            unsupported=unsupported,
            unsupported_voice=tuple(sorted(draft.voice_unsupported)),
            emptied=tuple(draft.emptied.values()),
            retold=tuple(sorted(draft.retold.items())),
            voice_retold=tuple(sorted(draft.voice_retold.items())),
            merges=tuple(draft.merges.values()),
            declared=tuple(draft.declared.values()),
            readings_revoked=tuple(sorted(draft.readings_revoked)),
            merges_emptied=tuple(sorted(draft.merges_emptied)),
            archived=tuple(sorted(draft.archived)),
            restored=await self._restored(scope, draft, commit),
            orphans=_named_by(records, unsupported),
        )
        known = believed(records.spans, Revision(draft.revision - 1))
        return change, replace(_outcome(draft, spans, known), touched=touched(change, draft))

    async def _restored(self, scope: Scope, draft: Draft, commit: Commit) -> tuple[StatementId, ...]:
        """Archived statements that come back: those asked for, and all of which anything new is said."""
        told = draft.touched() | draft.retold.keys() | draft.statements.keys()
        told |= {span.statement for span in commit.opened} | {span.statement for span in commit.closed}
        asked = sorted((told | draft.restored) - draft.archived)
        if not asked or not self._met[scope.key].archived:
            return ()
        return tuple(sorted(await self._stores.archive.among(scope, asked)))


def _moved(change: Change, revision: Revision) -> list[Moved]:
    return [
        *(Moved(one, archived_at=revision) for one in change.archived),
        *(Moved(one, restored_at=revision) for one in change.restored),
    ]


def _payload(change: Change) -> bytes:
    """The change as JSON. Raises UnstorableText now rather than leave a revision that no store can take."""
    try:
        payload = change_to_json(change)
    except ValueError as error:
        raise UnstorableText from error
    if _NUL.search(payload):
        raise UnstorableText
    return payload


def _published(entry: RevisionEntry) -> Published:
    return Published(entry.revision, outcome_from_json(entry.summary))


def _left_alone(records: Records, draft: Draft) -> dict[RecordId, Revocation]:
    """What users recorded by hand of statements whose every text the draft revokes: it speaks of nothing."""
    touched = draft.forgotten | {revocation.statement for revocation in draft.revocations.values()}
    if draft.keeps_words or not touched:
        return {}
    every: list[Claim | End | Denial] = [*records.claims, *records.ends, *records.denials]
    counting = [one for one in every if one.statement in touched and one.revoked_at is None]
    told = {one.statement for one in counting if one.source.episode is not None}
    return {one.id: Revocation(one.id, one.statement) for one in counting if one.statement not in told}


def _unsupported(records: Records, draft: Draft) -> tuple[StatementId, ...]:
    touched = draft.forgotten | {revocation.statement for revocation in draft.revocations.values()}
    if draft.keeps_words or not touched:
        return ()
    supported = {claim.statement for claim in records.claims if claim.revoked_at is None}
    supported |= {end.statement for end in records.ends if end.revoked_at is None}
    supported |= {denial.statement for denial in records.denials if denial.revoked_at is None}
    return tuple(sorted(touched - supported))


def _voice_emptied(draft: Draft) -> tuple[tuple[VoiceId, RecordId], ...]:
    revoked = {} if draft.keeps_words else draft.voice_revoked
    return tuple(sorted((voice, record) for record, voice in (revoked | draft.voice_emptied).items()))


def _named_by(records: Records, unsupported: tuple[StatementId, ...]) -> tuple[EntityId, ...]:
    gone = set(unsupported)
    named: set[EntityId] = set()
    for statement in records.statements:
        if statement.id in gone:
            named |= {statement.subject, statement.predicate}
            if not isinstance(statement.object, Literal):
                named.add(statement.object)
    return tuple(sorted(named))


def _outcome(draft: Draft, spans: BeliefChanges, known: Sequence[Span]) -> Outcome:
    closed = {span.id for span in spans.closed}
    still = [span for span in known if span.id not in closed]
    before = {span.statement for span in known if span.invalid_at is None}
    after = {span.statement for span in (*still, *spans.opened) if span.invalid_at is None}
    claimed = {claim.statement for claim in draft.claims.values()}
    moved = {span.statement for span in (*spans.opened, *spans.closed)} | set(draft.retold)
    moved |= draft.archived | draft.restored
    heard = {one.voice for one in draft.voice_claims.values()}
    heard |= {one.voice for one in draft.voice_ends.values()}
    heard |= {*draft.voice_revoked.values(), *draft.voice_undone.values(), *draft.voice_retold}
    return Outcome(
        entities_added=tuple(
            sorted(entity.id for entity in draft.entities.values() if entity.type is not EntityType.PREDICATE)
        ),
        statements_added=tuple(sorted(draft.statements)),
        statements_ended=tuple(sorted(before - after)),
        statements_restored=tuple(sorted(after - before - claimed)),
        statements_expired=tuple(
            sorted({span.statement for span in known} - {span.statement for span in (*still, *spans.opened)})
        ),
        voice_added=tuple(sorted(draft.voice)),
        voice_ended=tuple(sorted({end.voice for end in draft.voice_ends.values()})),
        claims=len(draft.claims),
        ends=len(draft.ends),
        denials=len(draft.denials),
        revoked=draft.revoked,
        archived=len(draft.archived),
        unarchived=len(draft.restored),
        undone=tuple(draft.undone),
        judged=tuple(draft.judged),
        asserted=tuple(draft.asserted),
        dropped=tuple(draft.dropped),
        receipts=tuple(draft.receipts),
        reads_as=draft.reads_as,
        context=draft.context,
        statements_moved=tuple(sorted(moved - set(draft.statements))),
        voice_moved=tuple(sorted(heard - set(draft.voice))),
        episodes=draft.episodes,
    )
