"""The resolver service: stages facts, resolves them into revisions, takes assertions, revokes episodes."""

from collections.abc import Callable
from dataclasses import dataclass

from palimpsest.internal.v1 import resolver_entities_pb2 as entities_pb
from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.errors import EpisodeNotFound, ValidationFailed, Violation
from services.domain.ids import EpisodeId, PassageId, Revision, derive_id
from services.domain.instants import Instant
from services.domain.predicates import Cardinality, Declaration, Vocabulary
from services.domain.scope import Scope
from services.llm.port import Embedder, Engine, EngineError
from services.resolver.answers import outcome_out, why_nothing, withdrawals_in
from services.resolver.archiving import Archiving, Shelving
from services.resolver.carrying import Carried, Carrying
from services.resolver.change import Asserted, Draft, Outcome
from services.resolver.deciding import SOURCE_REMOVED, Action, By, decide, decide_said
from services.resolver.declaring import Asking, Declaring
from services.resolver.drafting import Drafting
from services.resolver.erasers import Erasing
from services.resolver.erasing import ScopeErasing
from services.resolver.hands import Deciding
from services.resolver.index import Index
from services.resolver.judging import Judging
from services.resolver.likening import Likening
from services.resolver.memo import Memo
from services.resolver.mending import Mending
from services.resolver.merging import Merging
from services.resolver.parting import Parting
from services.resolver.publish import Publisher, Stores
from services.resolver.reading import Reading
from services.resolver.removing import Removing
from services.resolver.rereading import Rereading
from services.resolver.revoke import Deletion, Revocations
from services.resolver.said import check, said_of_assertion
from services.resolver.sameness import Sameness
from services.resolver.undoing import Undoing
from services.resolver.verdicts import Verdicts
from services.resolver.voice import Voice
from services.resolver.voicing import Voicing
from services.stores.graph.port import GraphStore
from services.stores.memory.commits import first_reading
from services.stores.memory.lexicons import Lexicons
from services.stores.memory.port import ErasableMemory, StagingStore, TextStore
from services.stores.paging import Page
from services.stores.vectors.port import VectorStore
from services.upkeep.parts import Stores as Upkept
from services.wire.facts import dropped_out, receipt_out
from services.wire.predicates import predicate_out

_LATEST = Page(10)
"""Decisions on a text that are looked at: of readings anew, and their undoing, the last ones."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the resolver stands on."""

    stores: Stores
    text: TextStore
    staging: StagingStore
    vectors: VectorStore
    embedder: Embedder
    engine: Engine
    vocabulary: Vocabulary
    now: Callable[[], Instant]
    memory: ErasableMemory


class Resolver(Deciding, Carrying, Erasing, Shelving):
    """Keeps the graph one graph. Any replica can answer any call: all state is in the stores."""

    def __init__(self, parts: Parts) -> None:
        self._graph: GraphStore = parts.stores.graph
        stores, readings = parts.stores, parts.stores.readings
        self._text = parts.text
        self._decisions = parts.stores.decisions
        self._clocks = parts.stores.revisions.clocks
        self._staging = parts.staging
        self._vocabulary = parts.vocabulary
        self._lexicons = lexicons = Lexicons(readings, self._graph, parts.vocabulary)
        parting = Parting(self._graph, readings, lexicons)
        index = Index(self._graph, stores.voice, stores.archive, parts.vectors, parts.embedder)
        self._scopes = ScopeErasing(self._graph, parts.memory, parts.vectors)
        self._publisher = Publisher(parts.stores, index, lexicons, parts.now, self._scopes.swept)
        self._removing = Removing(parts.stores, parts.memory, parts.vectors, self._publisher, parts.now)
        self._drafting = Drafting(
            self._graph,
            parts.text,
            lexicons,
            parts.engine,
            _judges(parts, lexicons),
            Rereading(self._graph, stores.voice, readings, parting),
            parts.vocabulary,
            parts.now,
        )
        self._now = parts.now
        self._revocations = Revocations(
            self._graph,
            parts.stores.voice,
            parts.text,
            parts.stores.decisions,
            parts.now,
            parting,
        )
        undoing = Undoing(self._graph, stores.voice, readings, parts.text, stores.revisions)
        self._reading = Reading(self._publisher, self._drafting, undoing, parts.now)
        self._declaring = Declaring(self._graph, lexicons, parts.now)
        self._judging = Judging(self._publisher, parts.now)
        self._archiving = Archiving(stores, self._publisher, parts.now)
        self._voicing = Voicing(self._publisher, parts.stores.voice, parts.now)
        self._merging = Merging(self._graph, parts.stores.readings, self._publisher, parts.now)
        self.mending = Mending(self._publisher, self._revocations, parts.stores.voice, parts.now)
        """Repairs that change what is believed; asked for by upkeep, not by callers."""
        self._carried = Carried(
            carried_stores(parts), parts.vocabulary, self.mending, parts.memory.erase, parts.memory.fences
        )

    async def store_facts(self, scope: Scope, request: pb.StoreFactsRequest) -> pb.StoreFactsResponse:
        """Stages what a chunk gave. Idempotent by episode. Raises EpisodeNotFound."""
        await self._drafting.kept(scope, [EpisodeId(request.episode_id)])
        await self._staging.stage(scope, EpisodeId(request.episode_id), request.SerializeToString())
        return pb.StoreFactsResponse()

    async def resolve(self, scope: Scope, request: pb.ResolveRequest) -> pb.ResolveResponse:
        """Publishes a staged chunk, unless it was read anew meanwhile. Idempotent by episode.

        Raises EpisodeNotFound, Conflict, EngineError.
        """
        id = EpisodeId(request.episode_id)
        payload = await self._staging.staged(scope, id)
        staged = pb.StoreFactsRequest.FromString(payload or b"")
        memo = Memo()
        last = Draft(Revision(0))

        async def build(known: Revision, revision: Revision) -> Draft:
            nonlocal last
            read_anew = await self._was_read_anew(scope, id)
            mine = pb.StoreFactsRequest(episode_id=id) if read_anew else staged
            last = await self._drafting.draft(scope, id, mine, (known, revision), memo)
            return last

        try:
            published = await self._publisher.publish(scope, first_reading(id), build)
        except EngineError as error:
            error.before = (*memo.receipts, *error.before)
            raise
        if payload is not None:
            await self._staging.close(scope, id)
        # A draft that came to nothing is not published, yet it cost something too.
        told = published.outcome if published.outcome != Outcome() else last
        return pb.ResolveResponse(
            revision=published.revision,
            outcome=outcome_out(published.outcome),
            receipts=[receipt_out(receipt) for receipt in told.receipts],
            dropped=[dropped_out(one.reason, "resolve", one.turn) for one in told.dropped],
            nothing=why_nothing(staged, memo),
        )

    async def _was_read_anew(self, scope: Scope, id: EpisodeId) -> bool:
        listed = await self._decisions.list_decisions(scope, id, _LATEST)
        return any(decision.action == Action.READ_ANEW for decision in listed.items)

    async def resolve_anew(self, scope: Scope, request: pb.ResolveAnewRequest) -> pb.ResolveAnewResponse:
        """Puts a new reading of a text in place of the old. See Reading."""
        return await self._reading.anew(scope, request)

    async def list_read_anew(self, scope: Scope, request: pb.ListReadAnewRequest) -> pb.ListReadAnewResponse:
        """The episodes that a commit read anew. See Reading."""
        return await self._reading.read_by(scope, request)

    async def undo_reading(self, scope: Scope, request: pb.UndoReadingRequest) -> pb.UndoReadingResponse:
        """Takes a reading back. See Reading."""
        return await self._reading.undo(scope, request)

    async def assert_(self, scope: Scope, request: pb.AssertRequest) -> pb.AssertResponse:
        """Records triples given directly. Idempotent by commit id: a repeated one is told what it recorded.

        Raises ValidationFailed, EpisodeNotFound (one that keeps them was deleted), EntityNotFound, Conflict.
        """
        try:
            said = [said_of_assertion(message) for message in request.assertions]
            for one in said:
                check(one, self._vocabulary)
        except ValueError as error:
            raise ValidationFailed(Violation("assertions", str(error))) from error

        async def build(known: Revision, revision: Revision) -> Draft:
            draft = Draft(revision)
            keeping = list(dict.fromkeys(one.source.episode for one in said if one.source.episode))
            await self._drafting.kept(scope, keeping)
            statements = await (await self._drafting.drafter(scope, known, draft)).add(said)
            draft.asserted = [
                Asserted(statement, one.source.episode or EpisodeId(""))
                for statement, one in zip(statements, said, strict=True)
            ]
            by = By("call", request=request.request_id)
            for target in keeping:
                decide(scope, draft, self._now(), Action.ASSERT, target, by)
            decide_said(scope, draft, self._now(), by)
            return draft

        published = await self._publisher.publish(scope, f"assert:{request.commit_id}", build)
        return pb.AssertResponse(
            revision=published.revision,
            statement_ids=[one.statement for one in published.outcome.asserted],
            episode_ids=[one.episode for one in published.outcome.asserted],
            outcome=outcome_out(published.outcome),
        )

    async def revoke(self, scope: Scope, request: pb.RevokeRequest) -> pb.RevokeResponse:
        """Revokes all that episodes said, as one revision. Idempotent by commit id and what is deleted, and
        by itself.

        Their text goes before: what is being published of them then is revoked, or refused for want of it.
        Raises EpisodeNotFound, Conflict.
        """
        named = [request.episode_id] if request.episode_id else []
        ids = [EpisodeId(id) for id in dict.fromkeys([*named, *request.episode_ids])]
        missing = set(ids) - {episode.id for episode in await self._text.episodes(scope, ids)}
        if missing:
            raise EpisodeNotFound(min(missing))
        for id in ids:
            if await self._staging.staged(scope, id) is not None:
                await self._staging.unstage(scope, id)
        deletion = _deletion(request)
        target = request.target or (ids[0] if len(ids) == 1 else derive_id(scope, "several", *ids))

        async def build(_known: Revision, revision: Revision) -> Draft:
            return await self._revocations.draft(scope, ids, revision, deletion)

        published = await self._publisher.publish(scope, f"revoke:{request.commit_id}:{target}", build)
        revoked = published.outcome.revoked
        return pb.RevokeResponse(
            revision=published.revision,
            claims=revoked.claims,
            ends=revoked.ends,
            denials=revoked.denials,
            voice=revoked.voice,
            outcome=outcome_out(published.outcome),
        )

    async def end_unsupported(
        self, scope: Scope, request: pb.EndUnsupportedRequest
    ) -> pb.EndUnsupportedResponse:
        """Ends statements whose every claim lies in a passage that went. Idempotent by commit id."""
        removed = [PassageId(passage) for passage in request.removed_passage_ids]

        async def build(_known: Revision, revision: Revision) -> Draft:
            draft = await self._revocations.unsupported(
                scope, removed, Instant(request.at), EpisodeId(request.episode_id), revision
            )
            decide_said(scope, draft, self._now(), SOURCE_REMOVED)
            return draft

        published = await self._publisher.publish(scope, f"unsupported:{request.commit_id}", build)
        return pb.EndUnsupportedResponse(revision=published.revision, outcome=outcome_out(published.outcome))

    async def declare_predicate(
        self, scope: Scope, request: pb.DeclarePredicateRequest
    ) -> pb.DeclarePredicateResponse:
        """Declares a predicate. Idempotent by commit id, and by content: what is so already changes nothing.

        Raises Conflict, and ValidationFailed for what contradicts itself or other declarations, or changes
        too much.
        """
        try:
            cardinality = Cardinality(request.cardinality)
        except ValueError as error:
            raise ValidationFailed(Violation("cardinality", "is single or multi")) from error
        declaration = Declaration(request.name, cardinality, tuple(request.aliases), request.inverse or None)
        asking = Asking(request.commit_id, request.actor, request.why)

        async def build(known: Revision, revision: Revision) -> Draft:
            return await self._declaring.draft(scope, known, revision, declaration, asking)

        published = await self._publisher.publish(scope, f"declare:{request.commit_id}", build)
        lexicon = await self._lexicons.at(scope, published.revision)
        name = lexicon.known.canonical(declaration.name)
        record = lexicon.declared.get(name)
        since = record.recorded_at if record else published.revision
        clocks = await self._clocks(scope, [since])
        return pb.DeclarePredicateResponse(
            revision=published.revision,
            outcome=outcome_out(published.outcome),
            predicate=predicate_out(lexicon, name, since, clocks.get(since)),
        )

    async def merge(self, scope: Scope, request: entities_pb.MergeRequest) -> entities_pb.MergeResponse:
        """Makes entities read as another. See Merging."""
        return await self._merging.merge(scope, request)

    async def split(self, scope: Scope, request: entities_pb.SplitRequest) -> entities_pb.SplitResponse:
        """Makes an entity read as itself again. See Merging."""
        return await self._merging.split(scope, request)


def _judges(parts: Parts, lexicons: Lexicons) -> tuple[Sameness, Verdicts, Voice]:
    """Who finds what of a chunk is to be judged, and records it."""
    graph, readings, vectors, embedder = (
        parts.stores.graph,
        parts.stores.readings,
        parts.vectors,
        parts.embedder,
    )
    likening = Likening(graph, readings, vectors, embedder, parts.engine, parts.vocabulary)
    return (
        Sameness(graph, readings, vectors, embedder),
        Verdicts(graph, vectors, embedder, lexicons, readings, parts.text, likening, parts.now),
        Voice(parts.stores.voice, vectors, embedder, parts.now),
    )


def carried_stores(parts: Parts) -> Upkept:
    """The stores of the resolver as upkeep sees them."""
    stores = parts.stores
    return Upkept(
        stores.graph, parts.text, stores.voice, stores.revisions, stores.decisions, stores.readings,
        stores.archive, stores.summaries, parts.memory.snapshots, parts.vectors, parts.embedder,
        parts.now,
    )  # fmt: skip


def _deletion(request: pb.RevokeRequest) -> Deletion:
    return Deletion(
        request.actor,
        request.why,
        request.action,
        request.target,
        withdrawals_in(request.withdrawals),
    )
