"""Removing an entity: everything of theirs is revoked as one revision, and then purged from every revision.

The revision derives what others' facts are without them. What is purged afterwards is no part of the past
either. Both find by id and by name what there is, so that a repeated call goes on with what is left.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from palimpsest.internal.v1 import erasing_pb2 as pb
from services.domain.errors import EntityNotFound
from services.domain.graph import Entity, EntityType, Literal, Statement
from services.domain.identity import MergeKind
from services.domain.ids import EntityId, RecordId, Revision, StatementId, VoiceId, derive_id
from services.domain.instants import Instant
from services.domain.mentions import Mentions, named_after, tells_somebody
from services.domain.names import name_key
from services.domain.records import Claim, Denial, End, Verdict
from services.domain.scope import Scope
from services.resolver.change import Draft
from services.resolver.erasing import Rows, stores_out
from services.resolver.naming import sentence
from services.resolver.publish import Publisher, Stores
from services.resolver.unwriting import Named, Unwriting
from services.stores.graph.port import Records, Revocation
from services.stores.memory.fences import Purged, check_generation
from services.stores.memory.groups import all_merges, connected
from services.stores.memory.port import Decision, ErasableMemory
from services.stores.paging import Page
from services.stores.vectors.port import Collection, VectorStore

ACTION = "erase_entity"
_PAGE = 200


@dataclass
class Theirs:
    """What there is of an entity in the stores of the resolver."""

    entities: list[EntityId] = field(default_factory=list)
    records: list[Records] = field(default_factory=list)
    """Of statements that go."""
    retold: dict[StatementId, str] = field(default_factory=dict)
    """Sentences of others' statements that name them, said anew."""
    emptied: dict[RecordId, Revocation] = field(default_factory=dict)
    """Records of others' statements whose words go."""
    voice: list[VoiceId] = field(default_factory=list)
    spoken: dict[RecordId, VoiceId] = field(default_factory=dict)
    """Claims of the voice that go while their aspects stay."""
    ended: list[RecordId] = field(default_factory=list)
    merges: list[RecordId] = field(default_factory=list)
    merge_reasons: list[RecordId] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    written: Named = field(default_factory=Named)
    """Summaries and sections of the persona that tell of them."""
    vectors: int = 0

    @property
    def statements(self) -> list[StatementId]:
        return [one.id for found in self.records for one in found.statements]

    @property
    def rows(self) -> Rows:
        """How much, by store and kind; kinds without any are left out."""
        kinds = {
            "graph": {
                "entities": len(self.entities),
                "statements": len(self.statements),
                "sentences": len(self.retold),
                "quotes": len(self.emptied),
            },
            "memory": {
                "voice": len(self.voice),
                "voice_claims": len(self.spoken),
                "voice_ends": len(self.ended),
                "merges": len(self.merges) + len(self.merge_reasons),
                "decisions": len(self.targets) + len(self.reasons),
                "summaries": len(self.written.sessions) + len(self.written.sections),
            },
            "vectors": {"rows": self.vectors},
        }
        return {store: {kind: n for kind, n in found.items() if n} for store, found in kinds.items()}


class Removing:
    """Plans the erasure of an entity, and carries it out in the resolver's stores."""

    def __init__(
        self,
        stores: Stores,
        memory: ErasableMemory,
        vectors: VectorStore,
        publisher: Publisher,
        now: Callable[[], Instant],
    ) -> None:
        self._stores = stores
        self._graph = stores.graph
        self._memory = memory
        self._vectors = vectors
        self._publisher = publisher
        self._unwriting = Unwriting(stores.summaries)
        self._now = now

    async def plan(self, scope: Scope, entity: EntityId) -> pb.Erased:
        """Whom it is about: all that ever read as the entity, and what is named after it.

        Raises EntityNotFound.
        """
        found = await self._graph.entities(scope, [entity])
        if not found or not found[0].name:
            raise EntityNotFound(entity)
        merges = await connected(self._stores.readings, scope, [entity])
        same = [merge for merge in merges if merge.kind is MergeKind.SAME]
        ids = {entity, *(side for merge in same for side in (merge.entity, merge.into))}
        names = _names(await self._graph.entities(scope, sorted(ids)))
        current = await self._stores.revisions.current(scope)
        mentions, others = Mentions(names), set[str]()
        for alias in await self._graph.aliases(scope, current):
            key = name_key(alias.name)
            if alias.entity in ids:
                names.add(key)
            elif mentions.named_in(key):
                if alias.type is EntityType.PREDICATE or named_after(key, names):
                    ids.add(alias.entity)
                    names.add(key)
                else:
                    others.add(key)
        cited: set[str] = set()
        async for page in self._naming(scope, sorted(ids)):
            every: list[Claim | End | Denial] = [*page.claims, *page.ends, *page.denials]
            cited |= {one.source.passage for one in every if one.source.passage}
        return pb.Erased(
            entity_ids=sorted(ids),
            names=sorted(key for key in names if tells_somebody(key)),
            others=sorted(others - names),
            passage_ids=sorted(cited),
        )

    async def erase(self, scope: Scope, request: pb.EraseEntityRequest) -> pb.EraseEntityResponse:
        """Idempotent by commit id, and by itself: a second time finds nothing. Raises Conflict."""
        theirs = await self._theirs(scope, request)
        if request.count_only:
            return pb.EraseEntityResponse(stores=stores_out(theirs.rows))
        if request.HasField("generation"):
            await check_generation(self._memory.fences, scope, request.generation)

        async def build(_known: Revision, revision: Revision) -> Draft:
            return self._draft(scope, request, await self._theirs(scope, request), revision)

        published = await self._publisher.publish(scope, f"erase:{request.commit_id}", build)
        await self._purge(scope, await self._theirs(scope, request), theirs)
        # What others keep of the graph is void: also of revisions that are past.
        await self._memory.fences.renew(scope)
        return pb.EraseEntityResponse(revision=published.revision, stores=stores_out(theirs.rows))

    def _draft(
        self, scope: Scope, request: pb.EraseEntityRequest, theirs: Theirs, revision: Revision
    ) -> Draft:
        draft = Draft(revision, forgotten=set(theirs.statements))
        for found in theirs.records:
            every: list[Claim | End | Denial] = [*found.claims, *found.ends, *found.denials]
            counting = {one.id: Revocation(one.id, one.statement) for one in every if one.revoked_at is None}
            draft.revocations |= counting
            draft.revocations |= {
                one.id: Revocation(one.id, one.left) for one in found.verdicts if one.revoked_at is None
            }
        draft.retold, draft.emptied = dict(theirs.retold), dict(theirs.emptied)
        draft.voice_revoked = dict(theirs.spoken)
        draft.readings_revoked = set(theirs.merges)
        draft.merges_emptied = set(theirs.merge_reasons)
        draft.parted = set(theirs.entities)
        made = derive_id(scope, "decision", ACTION, request.commit_id)
        draft.decisions = [
            Decision(made, revision, self._now(), ACTION, request.commit_id, request.actor, "erased")
        ]
        return draft

    async def _purge(self, scope: Scope, theirs: Theirs, before: Theirs) -> None:
        """Vectors first, then what tells whose they were; of `before`, what the revision has emptied."""
        statements = sorted({*theirs.statements, *before.statements})
        for collection, ids in (
            (Collection.STATEMENTS, statements),
            (Collection.ARCHIVE, statements),
            (Collection.ENTITIES, theirs.entities),
            (Collection.VOICE, theirs.voice),
        ):
            if ids:
                await self._vectors.delete(scope, collection, ids)
        await self._memory.purge(
            scope,
            Purged(
                voice=theirs.voice,
                records=list(theirs.spoken),
                ends=theirs.ended,
                targets=[*theirs.targets, *statements],
                reasons=theirs.reasons,
                merges=theirs.merges,
                merge_reasons=theirs.merge_reasons,
                statements=statements,
            ),
        )
        current = await self._stores.revisions.current(scope)
        await self._unwriting.remove(
            scope, current, theirs.written, [*statements, *theirs.voice, *before.voice]
        )
        await self._graph.purge(scope, statements, theirs.entities)

    async def _theirs(self, scope: Scope, request: pb.EraseEntityRequest) -> Theirs:
        erased = request.erased
        mentions, passages = Mentions(erased.names, erased.others), set(request.passage_ids)
        ids = [EntityId(id) for id in erased.entity_ids]
        theirs = Theirs()
        theirs.entities = [one.id for one in await self._graph.entities(scope, ids)]
        theirs.records = [page async for page in self._naming(scope, ids)]
        await self._of_others(scope, theirs, mentions, passages)
        await self._of_voice(scope, theirs, mentions, passages)
        for merge in await all_merges(self._stores.readings, scope):
            if {merge.entity, merge.into} & set(ids):
                theirs.merges.append(merge.id)
            elif mentions.named_in(merge.why):
                theirs.merge_reasons.append(merge.id)
        await self._decisions(scope, theirs, mentions, set(ids))
        gone = [*theirs.statements, *theirs.voice]
        theirs.written = await self._unwriting.named(scope, mentions, gone)
        for collection, rows in (
            (Collection.STATEMENTS, theirs.statements),
            (Collection.ARCHIVE, theirs.statements),
            (Collection.ENTITIES, ids),
            (Collection.VOICE, theirs.voice),
        ):
            if rows:
                theirs.vectors += len(await self._vectors.fetch(scope, collection, rows))
        return theirs

    async def _of_others(self, scope: Scope, theirs: Theirs, mentions: Mentions, passages: set[str]) -> None:
        """Goes through all statements: a value may name them, a sentence, a quote, a reason."""
        known = set(theirs.statements)
        page = Page(_PAGE)
        while True:
            listed = await self._graph.scan(scope, page)
            rest = [id for id in listed.items if id not in known]
            found = await self._graph.records(scope, rest)
            values = {one.id for one in found.statements if _value_names(one, mentions)}
            if values:
                theirs.records.append(await self._graph.records(scope, sorted(values)))
                known |= values
            await self._tell_anew(
                scope, theirs, [one for one in found.statements if one.id not in values], mentions
            )
            every: list[Claim | End | Denial] = [*found.claims, *found.ends, *found.denials]
            for one in every:
                if one.statement not in values and _quotes(one, mentions, passages):
                    theirs.emptied[one.id] = Revocation(one.id, one.statement)
            for verdict in found.verdicts:
                if not {verdict.left, verdict.right} & known and mentions.named_in(verdict.why):
                    theirs.emptied[verdict.id] = Revocation(verdict.id, verdict.left)
            if not listed.after:
                return
            page = Page(_PAGE, listed.after)

    async def _tell_anew(
        self, scope: Scope, theirs: Theirs, statements: Sequence[Statement], mentions: Mentions
    ) -> None:
        told = [one for one in statements if mentions.named_in(one.fact)]
        ids = {node for one in told for node in (one.subject, one.predicate, one.object)}
        wanted = sorted(node for node in ids if not isinstance(node, Literal))
        nodes = {node.id: node for node in await self._graph.entities(scope, wanted)} if wanted else {}
        for one in told:
            target = one.object if isinstance(one.object, Literal) else nodes[one.object]
            theirs.retold[one.id] = sentence(nodes[one.subject], nodes[one.predicate], target)

    async def _of_voice(self, scope: Scope, theirs: Theirs, mentions: Mentions, passages: set[str]) -> None:
        page = Page(_PAGE)
        while True:
            listed = await self._stores.voice.scan(scope, page)
            for aspect in listed.items:
                gone = {
                    claim.id: aspect.id
                    for claim in aspect.claims
                    if claim.passage in passages or mentions.named_in(claim.quote)
                }
                if mentions.named_in(aspect.text) or (gone and len(gone) == len(aspect.claims)):
                    theirs.voice.append(aspect.id)
                    continue
                theirs.spoken |= gone
                theirs.ended += [end.id for end in aspect.ends if mentions.named_in(end.why)]
            if not listed.after:
                return
            page = Page(_PAGE, listed.after)

    async def _decisions(self, scope: Scope, theirs: Theirs, mentions: Mentions, ids: set[EntityId]) -> None:
        gone: set[str] = {*ids, *theirs.statements, *theirs.voice}
        page = Page(_PAGE)
        while True:
            listed = await self._stores.decisions.list_decisions(scope, None, page)
            for one in listed.items:
                if {one.target, one.other} & gone:
                    theirs.targets += sorted({one.target, one.other} & gone)
                elif mentions.named_in(one.why):
                    theirs.reasons.append(one.target)
            if not listed.after:
                return
            page = Page(_PAGE, listed.after)

    async def _naming(self, scope: Scope, ids: Sequence[EntityId]) -> AsyncIterator[Records]:
        """Statements that name one of these, with all that is recorded of them."""
        page = Page(_PAGE)
        while True:
            listed = await self._graph.naming(scope, ids, page)
            if listed.items:
                yield await self._graph.records(scope, listed.items)
            if not listed.after:
                return
            page = Page(_PAGE, listed.after)


def _names(entities: Sequence[Entity]) -> set[str]:
    named = [name for one in entities for name in (one.name, *one.aliases)]
    return {one.key for one in entities if one.key} | {name_key(name) for name in named if name}


def _value_names(statement: Statement, mentions: Mentions) -> bool:
    return isinstance(statement.object, Literal) and mentions.named_in(statement.object.text)


def _quotes(one: Claim | End | Denial | Verdict, mentions: Mentions, passages: set[str]) -> bool:
    if isinstance(one, Verdict):
        return mentions.named_in(one.why)
    dated = one.time_text if isinstance(one, Claim) else ""
    quoted = one.source.quote
    return bool(quoted and one.source.passage in passages) or mentions.named_in(f"{quoted} {dated}")
