"""Followed: what is to be written after ingests is gathered here, and what was written is read."""

from collections.abc import Collection, Iterable, Sequence

from palimpsest.internal.v1 import summaries_pb2 as pb
from services.domain.errors import PersonaNotFound, SessionNotFound
from services.domain.graph import GraphAspect
from services.domain.ids import EntityId, EpisodeId, Revision, SessionId
from services.domain.instants import Instant
from services.domain.memory import VoiceAspect, VoiceKind
from services.domain.names import name_key
from services.domain.scope import Scope
from services.domain.summaries import Cited, Persona, PersonaSection, SessionSummary
from services.domain.voice import claims_at, held
from services.llm.tasks import UNNAMED_USER
from services.recall.parts import Parts
from services.recall.readings import Readings, shown_as
from services.recall.told import Standing, statement_told, voice_told
from services.stores.graph.port import AsOf, StatementFilter, StatementView
from services.stores.memory.port import Head, VoiceFilter
from services.stores.paging import Page

MAX_FACTS = 80
"""Facts that a session, or a persona, is written from: what holds and is the latest."""
_PAGE = 200
_PORTRAYED = (VoiceKind.PREFERENCE, VoiceKind.DIRECTIVE)
_DEFAULT_PAGE = 50


class Followed:
    """Reads and gathers. Raises StoreUnavailable."""

    def __init__(self, parts: Parts, readings: Readings) -> None:
        self._parts = parts
        self._readings = readings
        self._standing = Standing(parts.graph, parts.voice)

    async def gather_session(
        self, scope: Scope, request: pb.GatherSessionRequest
    ) -> pb.GatherSessionResponse:
        """What is believed and some text of the session says; nothing for one that is deleted."""
        head = await self._parts.revisions.head(scope)
        episodes = await self._episodes(scope, SessionId(request.session_id))
        if not episodes:
            return pb.GatherSessionResponse(facts=_facts(head, (), ()))
        where = StatementFilter(episodes=episodes, include_ended=True)
        views = await self._views(scope, where, AsOf(head.current))
        voice: dict[str, VoiceAspect] = {}
        for episode in episodes:
            for aspect in await self._parts.voice.of_episode(scope, episode):
                if {claim.episode for claim in claims_at(aspect, head.current)} & set(episodes):
                    voice[aspect.id] = aspect
        return pb.GatherSessionResponse(facts=_facts(head, views, voice.values()))

    async def gather_persona(
        self, scope: Scope, request: pb.GatherPersonaRequest
    ) -> pb.GatherPersonaResponse:
        """Identity facts of the user that hold (of everybody, where the graph has no user), and the voice."""
        head, now = await self._parts.revisions.head(scope), Instant(request.now)
        where = StatementFilter(aspects=(GraphAspect.IDENTITY,))
        views = await self._views(scope, where, AsOf(head.current, valid_at=now))
        user = await self._user(scope, request.user_name or UNNAMED_USER, head.current)
        mine = [view for view in views if view.subject.id in user]
        # As the store gives them for an instant, spans are those that hold then; they are cited as believed.
        ids = [view.statement.id for view in mine or views]
        believed = await self._parts.graph.views(scope, ids, AsOf(head.current)) if ids else ()
        reads = await self._readings.of(scope, head.current)
        shown = await shown_as(self._parts.graph, scope, believed, reads)
        voice = await self._voice(scope, now, head.current)
        return pb.GatherPersonaResponse(facts=_facts(head, shown, voice))

    async def read_persona(self, scope: Scope, request: pb.ReadPersonaRequest) -> pb.ReadPersonaResponse:
        """Raises PersonaNotFound."""
        known = await self._parts.revisions.current(scope)
        persona = await self.persona(scope, known, Instant(request.now))
        if persona is None:
            raise PersonaNotFound
        return pb.ReadPersonaResponse(persona=persona)

    async def persona(self, scope: Scope, known_at: Revision, at: Instant) -> pb.Persona | None:
        """As far as it stands as known at a revision, with what holds at a time; None without one."""
        found = await self._parts.summaries.persona(scope)
        if found is None or not found.sections:
            return None
        told = [sentence for section in found.sections for sentence in section.sentences]
        return _persona_out(found, await self._standing.of(scope, told, known_at, at))

    async def list_labels(self, scope: Scope, request: pb.ListLabelsRequest) -> pb.ListLabelsResponse:
        """Most used first."""
        labels = await self._parts.summaries.labels(scope)
        last = request.skip + (request.page_size or _DEFAULT_PAGE)
        return pb.ListLabelsResponse(
            labels=[pb.Label(name=one.name, sessions=one.sessions) for one in labels[request.skip : last]],
            more=last < len(labels),
        )

    async def read_session(self, scope: Scope, request: pb.ReadSessionRequest) -> pb.ReadSessionResponse:
        """Empty until it is written. Raises SessionNotFound for one without texts."""
        session = SessionId(request.session_id)
        listed = await self._parts.text.list_episodes(scope, session, None, Page(1))
        if not listed.items:
            raise SessionNotFound(session)
        known = await self._parts.revisions.current(scope)
        found = await self.summaries(scope, [session], known)
        return pb.ReadSessionResponse(summary=found[0] if found else pb.SessionSummary(session_id=session))

    async def summaries(
        self, scope: Scope, sessions: Sequence[SessionId], known_at: Revision
    ) -> list[pb.SessionSummary]:
        """Of those that are summarised, as far as they stand as known at a revision, in the order asked."""
        found = await self._parts.summaries.sessions(scope, sessions)
        told = [sentence for summary in found for sentence in summary.sentences]
        standing = await self._standing.of(scope, told, known_at)
        return [_summary_out(summary, standing) for summary in found]

    async def _episodes(self, scope: Scope, session: SessionId) -> list[EpisodeId]:
        found: list[EpisodeId] = []
        page = Page(_PAGE)
        while True:
            listed = await self._parts.text.list_episodes(scope, session, None, page)
            found += [episode.id for episode in listed.items]
            if not listed.after:
                return found
            page = Page(_PAGE, listed.after)

    async def _views(self, scope: Scope, where: StatementFilter, at: AsOf) -> list[StatementView]:
        found: list[StatementView] = []
        page = Page(_PAGE)
        while True:
            listed = await self._parts.graph.list_statements(scope, where, at, page)
            found += [view for view in listed.items if view.statement.fact]
            if not listed.after:
                break
            page = Page(_PAGE, listed.after)
        reads = await self._readings.of(scope, at.known_at)
        return await shown_as(self._parts.graph, scope, found, reads)

    async def _user(self, scope: Scope, name: str, known_at: Revision) -> set[EntityId]:
        """What the user's name means, with all that reads as it."""
        key = name_key(name)
        found = await self._parts.graph.find_entities(scope, [key], known_at)
        reads = await self._readings.of(scope, known_at)
        return {reads.root(entity.id) for entity in found.get(key, ())}

    async def _voice(self, scope: Scope, now: Instant, known_at: Revision) -> list[VoiceAspect]:
        found: list[VoiceAspect] = []
        page = Page(_PAGE)
        while True:
            where = VoiceFilter(kinds=_PORTRAYED, held_at=now)
            listed = await self._parts.voice.list_held(scope, where, known_at, page)
            found += [aspect for aspect in listed.items if aspect.text]
            if not listed.after:
                return found
            page = Page(_PAGE, listed.after)


def _facts(head: Head, views: Iterable[StatementView], voice: Iterable[VoiceAspect]) -> pb.ToldFacts:
    """At most MAX_FACTS of each kind of source: what holds first, then the latest; in order of creation."""
    statements = [(view.statement.created_at, statement_told(view)) for view in views]
    spoken = [
        (aspect.created_at, voice_told(aspect, interval))
        for aspect in voice
        if aspect.text and (interval := held(aspect, head.current)) is not None
    ]
    told: list[pb.ToldFact] = []
    for found in (statements, spoken):
        chosen = sorted(found, key=lambda one: (one[1].HasField("invalid_at"), -one[0], _id_of(one[1])))
        chosen = chosen[:MAX_FACTS]
        told += [one for _, one in sorted(chosen, key=lambda one: (one[0], _id_of(one[1])))]
    return pb.ToldFacts(facts=told, revision=head.current, generation=head.generation)


def _id_of(fact: pb.ToldFact) -> str:
    return fact.statement_id or fact.voice_id


def _cited_out(sentences: Iterable[Cited]) -> list[pb.CitedSentence]:
    return [
        pb.CitedSentence(text=one.text, statement_ids=one.statements, voice_ids=one.voice)
        for one in sentences
    ]


def _summary_out(summary: SessionSummary, standing: Collection[Cited]) -> pb.SessionSummary:
    kept = [one for one in summary.sentences if one in standing]
    return pb.SessionSummary(
        session_id=summary.session,
        title=summary.title,
        labels=summary.labels,
        sentences=_cited_out(kept),
        updated_at=summary.updated_at,
        revision=summary.revision,
        stale=len(summary.sentences) - len(kept),
    )


def _persona_out(persona: Persona, standing: Collection[Cited]) -> pb.Persona:
    shown = [(section, [one for one in section.sentences if one in standing]) for section in persona.sections]
    return pb.Persona(
        sections=[_section_out(section, kept) for section, kept in shown if section.protected or kept],
        version=persona.version,
        updated_at=persona.updated_at,
        revision=persona.revision,
        stale=sum(len(section.sentences) - len(kept) for section, kept in shown),
    )


def _section_out(section: PersonaSection, kept: Iterable[Cited]) -> pb.PersonaSection:
    return pb.PersonaSection(
        id=section.id,
        title=section.title,
        text=section.text,
        sentences=_cited_out(kept),
        protected=section.protected,
    )
