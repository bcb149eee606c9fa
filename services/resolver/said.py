"""Said: what a source says of one triple, dated: an engine's fact or an assertion, drafted as a record."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.facts import FactKind, Mention, StatedTime, WorldFact
from services.domain.graph import Entity, GraphAspect, Literal
from services.domain.ids import EntityId, EpisodeId, PassageId, RecordId, StatementId, derive_id
from services.domain.instants import Instant, Precision
from services.domain.names import literal, name_key
from services.domain.predicates import Vocabulary
from services.domain.records import Claim, Denial, End, Source
from services.domain.scope import Scope
from services.resolver.change import Draft
from services.resolver.naming import Naming, draft_statement
from services.stores.graph.port import AsOf, GraphStore, StatementFilter, StatementView
from services.stores.paging import Page
from services.wire.fields import fact_kind, graph_aspect, maybe, mention_in, precision_in, target_in

_SAME_THING = 90
"""RapidFuzz token-set ratio from which a loose object ("the Honda") means the open one ("Honda Civic")."""
_DETERMINER = re.compile(r"(the|a|an|my|our|your|his|her|its|their)\s+")
_OPEN_OBJECTS = 100
"""How many open objects of a slot are compared with an end's loose one."""


@dataclass(frozen=True, slots=True)
class Said:
    """One triple said to hold, to have ended at `end`, or not to have held in [start, end)."""

    kind: FactKind
    subject: Mention
    predicate: str
    object: Mention | Literal
    fact: str
    attested_at: Instant
    source: Source
    start: Instant | None = None
    start_precision: Precision = Precision.INSTANT
    end: Instant | None = None
    end_precision: Precision = Precision.INSTANT
    seen: Instant | None = None
    confidence: float = 1.0
    time_text: str = ""
    aspect: GraphAspect | None = None
    event_at: Instant | None = None
    loose: bool = False
    """Drawn from text, where an end's object may be named by part of its name."""


def said_of_fact(
    fact: WorldFact, passage: PassageId | None, episode: EpisodeId, attested_at: Instant
) -> Said:
    """A fact of an engine. A date it could not read stays as text and the claim is undated."""
    start, end = fact.start or StatedTime(""), fact.end or StatedTime("")
    unread = [time.text for time in (start, end) if time.at is None and time.text]
    backwards = start.at is not None and end.at is not None and end.at < start.at
    return Said(
        kind=fact.kind,
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object,
        fact=fact.fact,
        attested_at=attested_at,
        source=Source(episode, passage, fact.quote),
        start=start.at,
        start_precision=start.precision,
        end=None if backwards else end.at,
        end_precision=end.precision,
        seen=None if fact.seen is None else fact.seen.at,
        confidence=fact.confidence,
        time_text="; ".join(unread),
        aspect=fact.aspect,
        event_at=fact.event_at,
        loose=True,
    )


def said_of_assertion(message: pb.Assertion) -> Said:
    """A triple given directly. Raises ValueError when its kind or its object is missing."""
    return Said(
        kind=fact_kind(message.kind),
        subject=mention_in(message.subject),
        predicate=message.predicate,
        object=target_in(message.object),
        fact=message.fact,
        attested_at=Instant(message.attested_at),
        source=Source(EpisodeId(message.episode_id), PassageId(message.passage_id), message.quote),
        start=maybe(message, "start"),
        start_precision=precision_in(message.start_precision),
        end=maybe(message, "end"),
        end_precision=precision_in(message.end_precision),
        seen=maybe(message, "seen"),
        confidence=message.confidence,
        aspect=graph_aspect(message.aspect),
    )


def check(said: Said, vocabulary: Vocabulary) -> None:
    """Raises ValueError for what has no key: no name, no word as predicate, a literal not of its kind."""
    vocabulary.canonical(said.predicate)
    if isinstance(said.object, Literal):
        literal(said.object.kind, said.object.text)
    elif not (said.object.id or name_key(said.object.name)):
        raise ValueError("an object needs a name")
    if not (said.subject.id or name_key(said.subject.name)):
        raise ValueError("a subject needs a name")


class Drafter:
    """Turns what was said into statements and records of one draft. Ids follow from what was said."""

    def __init__(self, graph: GraphStore, scope: Scope, naming: Naming, draft: Draft) -> None:
        self._graph = graph
        self._scope = scope
        self._naming = naming
        self._draft = draft

    async def add(self, said: Sequence[Said]) -> list[StatementId]:
        """Drafts all and answers the statement of each, in order. Claims come first: an end may name one."""
        mentions = [one.subject for one in said]
        mentions += [one.object for one in said if isinstance(one.object, Mention)]
        await self._naming.prepare(mentions, [one.predicate for one in said])
        statements: dict[int, StatementId] = {}
        for position in sorted(range(len(said)), key=lambda at: said[at].kind is not FactKind.CLAIM):
            statements[position] = await self._one(said[position])
        return [statements[position] for position in range(len(said))]

    async def _one(self, said: Said) -> StatementId:
        subject = self._naming.entity(said.subject)
        predicate = self._naming.predicate(said.predicate)
        target = await self._target(said, subject, predicate)
        statement = await draft_statement(
            self._graph,
            self._scope,
            self._draft,
            (subject.id, predicate.id, target),
            said.fact or self._sentence(subject, predicate, target),
            said.aspect,
            said.event_at,
        )
        self._record(said, statement)
        return statement

    async def _target(self, said: Said, subject: Entity, predicate: Entity) -> EntityId | Literal:
        """The object; what an end or a denial names loosely is the only open object that fits it."""
        if said.kind is FactKind.CLAIM or isinstance(said.object, Literal) or not said.loose:
            return self._naming.target(said.object)
        exact = self._naming.find(said.object)
        views = await self._open(subject, predicate)
        if exact is not None and any(view.statement.object == exact.id for view in views):
            return exact.id
        name = _bare(said.object.name)
        fitting = [
            view.object
            for view in views
            if view.object and fuzz.token_set_ratio(name, _bare(view.object.name)) >= _SAME_THING
        ]
        if len(fitting) != 1:
            return self._naming.entity(said.object).id
        return self._naming.keep(fitting[0])

    async def _open(self, subject: Entity, predicate: Entity) -> Sequence[StatementView]:
        listed = await self._graph.list_statements(
            self._scope,
            StatementFilter(subjects=[subject.id], predicates=[predicate.id]),
            AsOf(self._naming.known),
            Page(_OPEN_OBJECTS),
        )
        return listed.items

    def _record(self, said: Said, statement: StatementId) -> None:
        source, draft = said.source, self._draft
        parts = (
            statement,
            source.episode,
            source.passage,
            source.quote,
            said.start,
            said.end,
            said.seen,
            said.attested_at,
            f"{said.start_precision:d}{said.end_precision:d}",
        )
        made = RecordId(derive_id(self._scope, said.kind, *parts))
        match said.kind:
            case FactKind.CLAIM:
                seen = said.attested_at if said.seen is None else said.seen
                draft.claims[made] = Claim(
                    made,
                    statement,
                    said.start,
                    said.end,
                    said.attested_at,
                    seen,
                    source,
                    said.start_precision,
                    said.end_precision,
                    said.confidence,
                    said.time_text,
                    draft.revision,
                )
            case FactKind.END:
                # "I left Google", undated: it is over by the time it is said.
                at = said.attested_at if said.end is None else said.end
                draft.ends[made] = End(
                    made,
                    statement,
                    at,
                    said.attested_at,
                    source,
                    said.end_precision,
                    confidence=said.confidence,
                    recorded_at=draft.revision,
                )
            case FactKind.DENIAL:
                draft.denials[made] = Denial(
                    made,
                    statement,
                    said.start,
                    said.end,
                    said.attested_at,
                    source,
                    said.confidence,
                    draft.revision,
                )

    def _sentence(self, subject: Entity, predicate: Entity, target: EntityId | Literal) -> str:
        named = target.text if isinstance(target, Literal) else self._naming.name(target)
        return f"{subject.name} {predicate.name.replace('_', ' ')} {named}"


def _bare(name: str) -> str:
    """A name without its case and its article."""
    folded = name.casefold()
    article = _DETERMINER.match(folded)
    return folded[article.end() :] if article else folded
