"""The resolver service: stages facts, resolves them into revisions, takes assertions, revokes episodes."""

from collections.abc import Callable
from dataclasses import astuple, dataclass

from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import EpisodeNotFound, ValidationFailed, Violation
from services.domain.facts import DropReason
from services.domain.ids import EpisodeId, PassageId, Revision, StatementId
from services.domain.instants import Instant
from services.domain.memory import Episode, Passage
from services.domain.predicates import Vocabulary
from services.domain.scope import Scope
from services.llm.port import Embedder, Engine
from services.resolver.change import Draft, Outcome
from services.resolver.index import Index
from services.resolver.memo import Memo
from services.resolver.naming import Naming
from services.resolver.publish import Publisher, Stores
from services.resolver.revoke import Revocations
from services.resolver.said import Drafter, Said, check, said_of_assertion, said_of_fact
from services.resolver.verdicts import Verdicts
from services.resolver.voice import Spoken, Voice
from services.stores.graph.port import GraphStore
from services.stores.memory.port import StagingStore, TextStore
from services.stores.vectors.port import VectorStore
from services.wire.facts import dropped_out, receipt_out, setting_in, voice_in, world_in


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


class Resolver:
    """Keeps the graph one graph. Any replica can answer any call: all state is in the stores."""

    def __init__(self, parts: Parts) -> None:
        self._graph: GraphStore = parts.stores.graph
        self._text = parts.text
        self._staging = parts.staging
        self._vocabulary = parts.vocabulary
        index = Index(self._graph, parts.vectors, parts.embedder)
        self._publisher = Publisher(parts.stores, index, parts.vocabulary, parts.now)
        self._verdicts = Verdicts(self._graph, parts.vectors, parts.embedder, parts.engine, parts.vocabulary)
        self._voice = Voice(parts.stores.voice, parts.vectors, parts.embedder, parts.engine)
        self._revocations = Revocations(self._graph, parts.stores.voice, parts.text, parts.now)

    async def store_facts(self, scope: Scope, request: pb.StoreFactsRequest) -> pb.StoreFactsResponse:
        """Stages what a chunk gave. Idempotent by episode. Raises EpisodeNotFound."""
        await self._episode(scope, EpisodeId(request.episode_id))
        await self._staging.stage(scope, EpisodeId(request.episode_id), request.SerializeToString())
        return pb.StoreFactsResponse(world=len(request.world), voice=len(request.voice))

    async def resolve(self, scope: Scope, request: pb.ResolveRequest) -> pb.ResolveResponse:
        """Publishes a staged chunk. Idempotent by episode. Raises EpisodeNotFound, Conflict, EngineError."""
        episode = await self._episode(scope, EpisodeId(request.episode_id))
        commit_id = f"resolve:{episode.id}"
        payload = await self._staging.staged(scope, episode.id)
        staged = pb.StoreFactsRequest.FromString(payload or b"")
        memo = Memo()
        dropped: list[values.DroppedFact] = []

        async def build(known: Revision, revision: Revision) -> Draft:
            return await self._draft(scope, episode, staged, (known, revision), memo, dropped)

        published = await self._publisher.publish(scope, commit_id, build)
        await self._staging.unstage(scope, episode.id)
        return pb.ResolveResponse(
            revision=published.revision,
            outcome=_outcome(published.outcome),
            receipts=[receipt_out(receipt) for receipt in memo.receipts],
            dropped=dropped,
        )

    async def assert_(self, scope: Scope, request: pb.AssertRequest) -> pb.AssertResponse:
        """Records triples given directly. Idempotent by commit id. Raises ValidationFailed, Conflict."""
        try:
            said = [said_of_assertion(message) for message in request.assertions]
            for one in said:
                check(one, self._vocabulary)
        except ValueError as error:
            raise ValidationFailed(Violation("assertions", str(error))) from error
        statements: list[StatementId] = []

        async def build(known: Revision, revision: Revision) -> Draft:
            draft = Draft(revision)
            statements[:] = await self._drafter(scope, known, draft).add(said)
            return draft

        published = await self._publisher.publish(scope, f"assert:{request.commit_id}", build)
        if not statements:  # published before: the ids follow from the triples, nothing is recorded again
            await build(published.revision, published.revision)
        return pb.AssertResponse(
            revision=published.revision, statement_ids=statements, outcome=_outcome(published.outcome)
        )

    async def revoke(self, scope: Scope, request: pb.RevokeRequest) -> pb.RevokeResponse:
        """Revokes all that an episode said. Idempotent by commit id. Raises EpisodeNotFound, Conflict."""
        episode = await self._episode(scope, EpisodeId(request.episode_id), deleted=True)
        await self._staging.unstage(scope, episode.id)

        async def build(_known: Revision, revision: Revision) -> Draft:
            return await self._revocations.draft(scope, episode.id, revision, request.actor, request.why)

        published = await self._publisher.publish(scope, f"revoke:{request.commit_id}", build)
        revoked = published.outcome.revoked
        return pb.RevokeResponse(
            revision=published.revision,
            revoked=sum(astuple(revoked)),
            claims=revoked.claims,
            ends=revoked.ends,
            denials=revoked.denials,
            voice=revoked.voice,
            outcome=_outcome(published.outcome),
        )

    async def end_unsupported(
        self, scope: Scope, request: pb.EndUnsupportedRequest
    ) -> pb.EndUnsupportedResponse:
        """Ends statements whose every claim lies in a passage that went. Idempotent by commit id."""
        removed = [PassageId(passage) for passage in request.removed_passage_ids]

        async def build(_known: Revision, revision: Revision) -> Draft:
            return await self._revocations.unsupported(
                scope, removed, Instant(request.at), EpisodeId(request.episode_id), revision
            )

        published = await self._publisher.publish(scope, f"unsupported:{request.commit_id}", build)
        return pb.EndUnsupportedResponse(revision=published.revision, outcome=_outcome(published.outcome))

    async def _episode(self, scope: Scope, episode: EpisodeId, deleted: bool = False) -> Episode:
        found = await self._text.episodes(scope, [episode])
        if not found or (found[0].deleted_at is not None and not deleted):
            raise EpisodeNotFound(episode)
        return found[0]

    def _drafter(self, scope: Scope, known: Revision, draft: Draft) -> Drafter:
        naming = Naming(self._graph, self._vocabulary, scope, known, draft)
        return Drafter(self._graph, scope, naming, draft)

    async def _draft(
        self,
        scope: Scope,
        episode: Episode,
        staged: pb.StoreFactsRequest,
        revisions: tuple[Revision, Revision],
        memo: Memo,
        dropped: list[values.DroppedFact],
    ) -> Draft:
        known, revision = revisions
        draft = Draft(revision)
        passages = {passage.id: passage for passage in await self._text.passages_of(scope, episode.id)}
        dropped.clear()
        said = _said(staged, episode, passages, self._vocabulary, dropped)
        await self._drafter(scope, known, draft).add(said)
        if staged.HasField("setting"):
            setting = setting_in(staged.setting)
            await self._verdicts.add(scope, draft, known, setting, episode.id, memo)
            spoken = [_spoken(message, episode, passages) for message in staged.voice]
            await self._voice.add(scope, draft, known, spoken, setting, episode.id, memo)
        return draft


def _said(
    staged: pb.StoreFactsRequest,
    episode: Episode,
    passages: dict[PassageId, Passage],
    vocabulary: Vocabulary,
    dropped: list[values.DroppedFact],
) -> list[Said]:
    said: list[Said] = []
    for message in staged.world:
        passage = passages.get(PassageId(message.passage_id))
        if passage is None:
            dropped.append(dropped_out(DropReason.UNKNOWN_TURN, "resolve", message.turn))
            continue
        try:
            one = said_of_fact(world_in(message), passage.id, episode.id, _attested(passage, episode))
            check(one, vocabulary)
        except ValueError:
            dropped.append(dropped_out(DropReason.INVALID, "resolve", message.turn))
            continue
        said.append(one)
    return said


def _spoken(message: values.VoiceFact, episode: Episode, passages: dict[PassageId, Passage]) -> Spoken:
    passage = passages.get(PassageId(message.passage_id))
    attested_at = episode.reference_time if passage is None else _attested(passage, episode)
    return Spoken(voice_in(message), None if passage is None else passage.id, attested_at)


def _attested(passage: Passage, episode: Episode) -> Instant:
    return episode.reference_time if passage.said_at is None else passage.said_at


def _outcome(outcome: Outcome) -> pb.Outcome:
    return pb.Outcome(
        entities_added=outcome.entities_added,
        statements_added=outcome.statements_added,
        statements_supported=outcome.statements_supported,
        statements_ended=outcome.statements_ended,
        statements_restored=outcome.statements_restored,
        voice_added=outcome.voice_added,
        voice_ended=outcome.voice_ended,
        claims=outcome.claims,
        ends=outcome.ends,
        denials=outcome.denials,
    )
