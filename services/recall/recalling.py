"""Recalling: one question to one graph, from the plan to the prompt block."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from palimpsest.internal.v1 import recall_pb2 as pb
from services.domain.ids import EntityId
from services.domain.instants import FOREVER
from services.domain.names import name_key
from services.domain.scope import Scope
from services.recall.answer import Messages, plan_out
from services.recall.answerable import TOP, answerable
from services.recall.asking import Asking, says_something
from services.recall.beside import Beside
from services.recall.block import fact_items, merged, passage_items, voice_items
from services.recall.care import Care, at_once
from services.recall.describe import Described, describe, nothing_described
from services.recall.evidence import EvidenceNames
from services.recall.facts import Facts, FactsFound
from services.recall.facts_index import FactsIndex
from services.recall.followed import Followed
from services.recall.hot.queries import QueryVectors
from services.recall.hot.reads import FactReads, SaidReads, VectorSearches
from services.recall.mentions import AliasTable, speaks_of_assistant, speaks_of_self
from services.recall.pack import titled
from services.recall.parts import Parts
from services.recall.passages import PassageFound, Passages, PassagesFound
from services.recall.plan import Plan, make_plan, plan_as
from services.recall.question import Question, question_in
from services.recall.ranking import FactFound
from services.recall.readings import AS_THEMSELVES, Readings
from services.recall.revisions import Known, Revisions
from services.recall.seeds import Hints, Names
from services.recall.standing import Time
from services.recall.statement_terms import statement_terms
from services.recall.terms import terms
from services.recall.texts_index import TextsIndex, passage_terms
from services.recall.topics import TopicReader, Topics
from services.recall.voices import VoiceFound, Voices
from services.stores.graph.port import Records
from services.stores.memory.lexicons import Lexicons
from services.stores.vectors.port import Vector

LEAST_AGE = timedelta(days=1) // timedelta(microseconds=1)
"""Microseconds since its end of what is archived, at the least: no rule of retention may name less."""


@dataclass(frozen=True, slots=True)
class _Found:
    facts: Sequence[FactFound] = ()
    records: Records | None = None
    passages: Sequence[PassageFound] = ()
    voice: Sequence[VoiceFound] = ()
    whose: float = 1.0


class Recalling:
    """Answers questions. Indexes only propose: what is shown is read from the stores, as asked."""

    def __init__(
        self, parts: Parts, revisions: Revisions, names: Names, lexicons: Lexicons, readings: Readings
    ) -> None:
        self._parts = parts
        self._revisions = revisions
        self._names = names
        self._readings = readings
        self.facts_shelf = parts.facts_shelf(lexicons)
        self.whole_shelf = parts.facts_shelf(lexicons, whole=True)
        self.texts_shelf = parts.texts_shelf()
        self.queries = QueryVectors(parts.embedder)
        self.reads = FactReads(parts.graph, parts.revisions, self.facts_shelf, parts.options.hot)
        said = SaidReads(parts.text, parts.voice, self.texts_shelf, parts.options.hot)
        searches = VectorSearches(parts.vectors, self.facts_shelf, self.texts_shelf, parts.options.hot)
        self._facts = Facts(self.reads, searches, lexicons)
        self._passages = Passages(said, searches)
        self._voices = Voices(said, searches)
        self._topics = TopicReader(parts.summaries, parts.text)
        self._beside = Beside(Followed(parts, readings), parts.text)

    async def __call__(self, scope: Scope, request: pb.RecallRequest) -> pb.RecallResponse:
        """Raises ValidationFailed, EntityNotFound, RevisionNotReady; unless `allow_degraded` also
        StoreUnavailable and EngineError. Without the memory store no revision is known: that always raises.
        """
        question = question_in(request)
        care = Care(question.allow_degraded)
        known = await self._revisions.known(scope, request.known_at, request.min_revision)
        asking, hints = await self._asking(scope, question, known, care)
        found = await self._find(asking)
        described = await care.of(self._describe(asking, found), nothing_described(known.at))
        names = EvidenceNames(request.names_after)
        items = merged(
            fact_items(found.facts, described, names, asking.time),
            voice_items(found.voice, described, names),
            passage_items(found.passages, names),
        )
        packed = titled(request.title, items, question.limits.tokens)
        messages = Messages(described, names, packed, question.explain)
        wanted = (request.include_summaries, request.include_persona)
        summaries, persona = await care.of(
            self._beside.of(asking, wanted, found.facts, found.passages), ((), None)
        )
        return pb.RecallResponse(
            summaries=summaries,
            persona=persona,
            facts=messages.facts(found.facts),
            passages=messages.passages(found.passages),
            voice=messages.voice(found.voice),
            context=packed.text,
            context_tokens=packed.tokens,
            evidence=names.given,
            revision=known.at,
            degraded=sorted(care.degraded),
            answerable=_answerable(asking, found),
            plan=plan_out(asking, hints.unmatched) if question.explain else None,
            left_out=packed.left_out,
        )

    def words_held(self, scope: Scope) -> set[str]:
        """The words of passages and facts that are in memory."""
        texts = self.texts_shelf.held(scope)
        facts = [shelf.held(scope) for shelf in (self.facts_shelf, self.whole_shelf)]
        words = [index.statements.words for index in facts if index]
        return (texts.passages.words if texts else set()).union(*words)

    def drop_facts(self, scope: Scope) -> None:
        """Forgets the indexes of a graph's facts; the next use builds them anew."""
        self.facts_shelf.drop(scope)
        self.whole_shelf.drop(scope)

    async def _asking(
        self, scope: Scope, question: Question, known: Known, care: Care
    ) -> tuple[Asking, Hints]:
        reads = await care.of(self._readings.of(scope, known.at), AS_THEMSELVES)
        async with at_once() as group:
            facts = group.create_task(care.of(self.facts_shelf.get(scope, known), None))
            texts = group.create_task(care.of(self.texts_shelf.get(scope, known), None))
            hinting = group.create_task(care.of(self._names.hints(scope, question.hints, known.at), Hints()))
            embedding = group.create_task(care.of(self._vector(scope, question.asked.query), None))
        hints, index = hinting.result(), facts.result()
        plan = await self._plan(question, known, care, index)
        plan = await care.of(plan_as(self.reads, scope, plan, reads), plan)
        time = _time(question, plan)
        whole = index is not None and await care.of(self._asks_the_archive(scope, time, known, index), True)
        if whole:
            index = await care.of(self.whole_shelf.get(scope, known), None)
        words = terms(question.asked.query)
        nothing = Topics(frozenset() if question.labels else None)
        topics = await care.of(self._topics.of(scope, question.labels, words, known), nothing)
        asking = Asking(
            scope=scope,
            topics=topics,
            question=question,
            plan=plan,
            time=time,
            known=known,
            reads=reads,
            hints=hints.entities,
            terms=words,
            vector=embedding.result(),
            facts_index=index,
            texts_index=texts.result(),
            care=care,
            whole=whole,
            speakers=_speakers(texts.result(), question, plan),
        )
        return asking, hints

    async def _asks_the_archive(self, scope: Scope, time: Time, known: Known, index: FactsIndex) -> bool:
        """Whether something archived may be the answer: never of what holds now, as believed now.

        What is archived ended a day before, at the least: for a caller whose now was earlier it may hold.
        """
        if not index.moved_at:
            return False
        if not time.names_none or time.period or time.show_ended or known.at != known.current:
            return True
        clocks = await self._parts.revisions.clocks(scope, [index.moved_at])
        return time.now < clocks.get(index.moved_at, FOREVER) - LEAST_AGE

    async def _plan(self, question: Question, known: Known, care: Care, index: FactsIndex | None) -> Plan:
        nobody = AliasTable(())
        aliases = await care.of(index.aliases_at(known.at), nobody) if index else nobody
        return make_plan(question.asked, aliases, index.predicates if index else None)

    async def _vector(self, scope: Scope, query: str) -> Vector | None:
        return await self.queries.of(scope, query) if says_something(query) else None

    async def _find(self, asking: Asking) -> _Found:
        limits = asking.question.limits
        async with at_once() as group:
            facts = group.create_task(self._facts.find(asking, limits.facts)) if limits.facts else None
            passages = (
                group.create_task(self._passages.find(asking, limits.passages)) if limits.passages else None
            )
            voice = group.create_task(self._voices.find(asking)) if limits.voice else None
        statements = facts.result() if facts else FactsFound()
        said = passages.result() if passages else PassagesFound()
        return _Found(
            statements.facts,
            statements.records,
            said.passages,
            voice.result() if voice else (),
            said.whose,
        )

    async def _describe(self, asking: Asking, found: _Found) -> Described:
        views = {view.statement.id: view for fact in found.facts for view in (fact.view, *fact.replaced)}
        return await describe(
            self.reads,
            self.reads,
            self._parts.archive if asking.known.archives else None,
            asking.scope,
            list(views.values()),
            asking.known.at,
            read=found.records,
            reads=asking.reads,
        )


def _time(question: Question, plan: Plan) -> Time:
    """The time that the request names; only without one that which the question names."""
    time = question.time
    if not time.names_none:
        return time
    if plan.as_of is not None:
        return replace(time, as_of=plan.as_of)
    return replace(time, period=plan.period, show_ended=time.show_ended or plan.looks_back)


def _speakers(index: TextsIndex | None, question: Question, plan: Plan) -> frozenset[str]:
    """Whom a question names of those who speak; "I" is the user, "you" the assistant."""
    if index is None:
        return frozenset()
    others = {one.key for mention in plan.mentions for one in mention.entities}
    if speaks_of_self(question.asked.query):
        others.add(name_key(question.asked.user_name))
    if speaks_of_assistant(question.asked.query):
        others |= index.turns.assistants
    return index.turns.named_in(question.asked.query, others)


def _answerable(asking: Asking, found: _Found) -> float:
    index = asking.facts_index
    scored: list[tuple[float, Callable[[], Sequence[str]]]] = []
    scored += [(fact.fused.score, partial(statement_terms, fact.view)) for fact in found.facts]
    scored += [(one.fused.score, partial(passage_terms, one.passage)) for one in found.passages]
    scored.sort(key=lambda pair: -pair[0])
    named = {one.id for mention in asking.plan.mentions for one in mention.entities}
    about: set[EntityId] = set()
    for fact in found.facts:
        about |= {fact.view.subject.id} | ({fact.view.object.id} if fact.view.object else set())
    return answerable(
        terms(asking.plan.timeless),
        index.statements.idf if index else lambda _: 1.0,
        [set(words()) for _, words in scored[:TOP]],
        named,
        about,
        [set(terms(mention.text)) for mention in asking.plan.mentions],
        found.whose,
    )
