"""The recall service: reads memory, and keeps snapshots of what it holds. Any replica can answer any call."""

from palimpsest.internal.v1 import erasing_pb2 as erasing_pb
from palimpsest.internal.v1 import recall_decisions_pb2 as decisions_pb
from palimpsest.internal.v1 import recall_diff_pb2 as diff_pb
from palimpsest.internal.v1 import recall_lists_pb2 as lists_pb
from palimpsest.internal.v1 import recall_pb2 as pb
from services.domain.errors import EpisodeNotFound, VoiceAspectNotFound
from services.domain.ids import EntityId, EpisodeId, VoiceId
from services.domain.scope import Scope
from services.domain.voice import claims_at
from services.recall.browsing import Browsing
from services.recall.changed import Changed
from services.recall.decisions import Decisions
from services.recall.diffs import Diffs
from services.recall.entities import Entities
from services.recall.followed import Followed
from services.recall.following import Following
from services.recall.keeping import Keeping
from services.recall.lists import Lists
from services.recall.messages import episode_out, voice_out
from services.recall.parts import Parts
from services.recall.predicates import Predicates
from services.recall.readings import Readings
from services.recall.recalling import Recalling
from services.recall.revisions import Revisions
from services.recall.seeds import Names
from services.recall.statements import Statements
from services.recall.surroundings import Surroundings
from services.stores.memory.lexicons import Lexicons
from services.stores.vectors.port import Collection

_NONE = "00000000-0000-5000-8000-000000000000"


class Recall(Following):
    """Finds what matters for a question as of any date, and reads everything else of a graph.

    Every method raises StoreUnavailable when a store is down. A graph that nothing was written to reads as
    empty. Its only state are indexes of lately used graphs, each of one scope alone.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._decisions = Decisions(parts.decisions)
        revisions = Revisions(parts.revisions, parts.options.wait_seconds, self.forget)
        self._revisions = revisions
        lexicons = Lexicons(parts.readings, parts.graph, parts.vocabulary)
        readings = Readings(parts.readings, lexicons, parts.graph)
        self._lexicons, self._readings = lexicons, readings
        names = Names(parts.graph, readings)
        self._predicates = Predicates(parts.graph, lexicons, parts.revisions, revisions)
        self._recalling = Recalling(parts, revisions, names, lexicons, readings)
        self._statements = Statements(parts, revisions, names, self._predicates, readings)
        self._lists = Lists(parts, revisions, names, self._predicates, readings, self._recalling.reads)
        self._entities = Entities(parts, revisions, names, self._predicates, readings)
        self._browsing = Browsing(parts, revisions)
        self._diffs = Diffs(parts, revisions, readings)
        self._surroundings = Surroundings(parts, readings, lexicons)
        self._changed, self._followed = Changed(parts), Followed(parts, readings)
        recalling = self._recalling
        self._keeping = Keeping(parts, recalling.facts_shelf, recalling.texts_shelf)

    @property
    def held_scopes(self) -> int:
        """How many graphs have an index in memory."""
        return len({*self._recalling.facts_shelf.scopes, *self._recalling.texts_shelf.scopes})

    def words_held(self, scope: Scope) -> set[str]:
        """The words that the indexes of a graph's passages and facts hold; for checks of an erasure."""
        return self._recalling.words_held(scope)

    def forget(self, scope: Scope) -> None:
        """Drops all that is in memory of a graph: it was erased, or something of it."""
        self._recalling.drop_facts(scope)
        self._recalling.texts_shelf.drop(scope)
        self._recalling.queries.drop(scope)
        for kept in (self._lexicons, self._readings, self._diffs, self._statements.dependents):
            kept.drop(scope)

    async def close(self) -> None:
        """Ends what is done behind answers; to be called before the stores are closed."""
        await self._parts.behind.close()

    async def settled(self) -> None:
        """Waits for what is done behind answers; for tests and measurements."""
        await self._parts.behind.settled()

    async def forget_scope(
        self, scope: Scope, request: erasing_pb.ForgetScopeRequest
    ) -> erasing_pb.ForgetScopeResponse:
        """Of the memory of this replica alone; others find out when they are next asked. Idempotent."""
        del request
        self.forget(scope)
        return erasing_pb.ForgetScopeResponse()

    async def probe(self, scope: Scope, store: str) -> None:
        """Reads of one store (graph, memory, vectors) what no scope has. Raises StoreUnavailable."""
        match store:
            case "graph":
                await self._parts.graph.entities(scope, [EntityId(_NONE)])
            case "memory":
                await self._parts.revisions.current(scope)
            case "vectors":
                await self._parts.vectors.fetch(scope, Collection.PASSAGES, [_NONE])

    async def recall(self, scope: Scope, request: pb.RecallRequest) -> pb.RecallResponse:
        """Answers any question. Raises ValidationFailed, EntityNotFound, RevisionNotReady, EngineError."""
        return await self._recalling(scope, request)

    async def walk(self, scope: Scope, request: pb.WalkRequest) -> pb.WalkResponse:
        """Raises EntityNotFound, RevisionNotReady."""
        return await self._lists.walk(scope, request)

    async def gather_context(
        self, scope: Scope, request: pb.GatherContextRequest
    ) -> pb.GatherContextResponse:
        """Raises EpisodeNotFound, EngineError."""
        return await self._surroundings.gather(scope, request)

    async def read_graph(self, scope: Scope, request: pb.ReadGraphRequest) -> pb.ReadGraphResponse:
        """Zeros for a graph that nothing was written to."""
        del request  # it names nothing: the scope does
        current = await self._parts.revisions.current(scope)
        counts = await self._parts.graph.counts(scope, current)
        clocks = await self._parts.revisions.clocks(scope, [current])
        archived = await self._parts.archive.count(scope)
        return pb.ReadGraphResponse(
            entities=counts.entities,
            statements=counts.statements,
            episodes=await self._parts.text.count_episodes(scope),
            claims=counts.claims,
            revision=current,
            revision_at=clocks.get(current),
            archived=archived,
        )

    async def read_episode(self, scope: Scope, request: pb.ReadEpisodeRequest) -> pb.ReadEpisodeResponse:
        """A deleted one is told by its id and dates. Raises EpisodeNotFound."""
        id = EpisodeId(request.episode_id)
        found = await self._parts.text.episodes(scope, [id])
        if not found:
            raise EpisodeNotFound(request.episode_id)
        passages = await self._parts.text.passages_of(scope, id)
        return pb.ReadEpisodeResponse(episode=episode_out(found[0], list(passages)))

    async def read_statement(
        self, scope: Scope, request: pb.ReadStatementRequest
    ) -> pb.ReadStatementResponse:
        """Raises StatementNotFound, RevisionNotReady."""
        return await self._statements.read(scope, request)

    async def list_statements(
        self, scope: Scope, request: pb.ListStatementsRequest
    ) -> pb.ListStatementsResponse:
        """Raises ValidationFailed, RevisionNotReady."""
        return await self._lists.statements(scope, request)

    async def read_timeline(self, scope: Scope, request: pb.ReadTimelineRequest) -> pb.ReadTimelineResponse:
        """Raises EntityNotFound, PredicateNotFound, RevisionNotReady."""
        return await self._statements.timeline(scope, request)

    async def list_decisions(
        self, scope: Scope, request: decisions_pb.ListDecisionsRequest
    ) -> decisions_pb.ListDecisionsResponse:
        """None for a graph on which nothing was decided."""
        return await self._decisions.list(scope, request)

    async def read_voice_aspect(
        self, scope: Scope, request: pb.ReadVoiceAspectRequest
    ) -> pb.ReadVoiceAspectResponse:
        """Raises VoiceAspectNotFound, RevisionNotReady."""
        known = await self._revisions.known(scope, request.known_at)
        found = await self._parts.voice.aspects(scope, [VoiceId(request.voice_id)])
        if not found or not found[0].text or not claims_at(found[0], known.at):
            raise VoiceAspectNotFound(request.voice_id)
        return pb.ReadVoiceAspectResponse(voice=voice_out(found[0], known.at), revision=known.at)

    async def list_episodes(
        self, scope: Scope, request: lists_pb.ListEpisodesRequest
    ) -> lists_pb.ListEpisodesResponse:
        """Raises ValidationFailed."""
        return await self._browsing.episodes(scope, request)

    async def list_voice_aspects(
        self, scope: Scope, request: lists_pb.ListVoiceAspectsRequest
    ) -> lists_pb.ListVoiceAspectsResponse:
        """Raises ValidationFailed, RevisionNotReady."""
        return await self._browsing.voice(scope, request)

    async def read_entity(
        self, scope: Scope, request: lists_pb.ReadEntityRequest
    ) -> lists_pb.ReadEntityResponse:
        """Raises EntityNotFound, RevisionNotReady."""
        return await self._entities.read(scope, request)

    async def list_entities(
        self, scope: Scope, request: lists_pb.ListEntitiesRequest
    ) -> lists_pb.ListEntitiesResponse:
        """Raises ValidationFailed, RevisionNotReady."""
        return await self._entities.listed(scope, request)

    async def list_predicates(
        self, scope: Scope, request: lists_pb.ListPredicatesRequest
    ) -> lists_pb.ListPredicatesResponse:
        """Raises ValidationFailed, RevisionNotReady."""
        return await self._predicates.list(scope, request)

    async def diff(self, scope: Scope, request: diff_pb.DiffRequest) -> diff_pb.DiffResponse:
        """Raises ValidationFailed, RevisionNotReady."""
        return await self._diffs.page(scope, request)
