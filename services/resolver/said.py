"""Said: what a source says of one triple, dated: an engine's fact or an assertion, drafted as a record."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from rapidfuzz import fuzz

from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.facts import FactKind, Mention, StatedTime, WorldFact
from services.domain.graph import Entity, GraphAspect, Literal, Statement, statement_id
from services.domain.ids import EntityId, EpisodeId, PassageId, RecordId, StatementId, derive_id
from services.domain.instants import Instant, Precision
from services.domain.lexicon import Lexicon
from services.domain.names import literal, name_key
from services.domain.predicates import Vocabulary
from services.domain.records import Claim, Denial, End, Source
from services.domain.scope import Scope
from services.resolver.change import Draft
from services.resolver.naming import Naming
from services.stores.graph.port import AsOf, GraphStore, NodePair
from services.wire.fields import fact_kind, graph_aspect, maybe, mention_in, precision_in, target_in

_SAME_THING = 90
"""RapidFuzz token-set ratio from which a loose object ("the Honda") means the open one ("Honda Civic")."""
_DETERMINER = re.compile(r"(the|a|an|my|our|your|his|her|its|their)\s+")
_OPEN_OBJECTS = 100
"""How many objects of a slot, the latest, are compared with an end's loose one."""

Triple = tuple[EntityId, EntityId, EntityId | Literal]


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

    @property
    def names_loosely(self) -> bool:
        """Whether the object may be named by a part of its name."""
        return self.loose and self.kind is not FactKind.CLAIM and isinstance(self.object, Mention)


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


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a text that is read anew said before: of statements that it alone told (`alone`), and that it said
    to be over, or not so (`over`).

    An end that names its object loosely means none of the former; of the latter it may mean each.
    """

    alone: Set[StatementId] = frozenset()
    over: Set[StatementId] = frozenset()


UNREAD = Earlier()


class Drafter:
    """Turns what was said into statements and records of one draft. Ids follow from what was said."""

    def __init__(
        self, graph: GraphStore, scope: Scope, naming: Naming, draft: Draft, before: Earlier = UNREAD
    ) -> None:
        self._graph = graph
        self._scope = scope
        self._naming = naming
        self._draft = draft
        self._before = before

    async def add(self, said: Sequence[Said]) -> list[StatementId]:
        """Drafts all and answers the statement of each, in order. Claims come first: an end may name one.

        The store is asked a few times, however much was said.
        """
        mentions = [one.subject for one in said]
        mentions += [one.object for one in said if isinstance(one.object, Mention)]
        said = [_recorded(one, self._naming.lexicon) for one in said]
        await self._naming.prepare(mentions, [one.predicate for one in said])
        triples: dict[int, Triple] = {}
        for at, one in enumerate(said):
            if not one.names_loosely:
                triples[at] = (*self._slot(one), self._naming.target(one.object))
        triples |= await self._loose(said, triples)
        ids = {at: statement_id(self._scope, *triple) for at, triple in triples.items()}
        await self._read(ids.values())
        told = {statement.id for statement in self._draft.stored.statements if statement.fact}
        for at in sorted(triples, key=lambda at: (said[at].kind is not FactKind.CLAIM, at)):
            self._state(ids[at], triples[at], said[at], told)
            self._record(said[at], ids[at])
        return [ids[at] for at in range(len(said))]

    def _slot(self, said: Said) -> NodePair:
        return self._naming.entity(said.subject).id, self._naming.predicate(said.predicate).id

    async def _loose(self, said: Sequence[Said], triples: Mapping[int, Triple]) -> dict[int, Triple]:
        """What ends and denials mean that name their object loosely: the only open one that fits, if any."""
        asked = {at: self._slot(one) for at, one in enumerate(said) if one.names_loosely}
        open_ones = await self._open(set(asked.values())) if asked else {}
        for at, (subject, predicate, target) in triples.items():
            # Said to hold in the same breath.
            if said[at].kind is FactKind.CLAIM and said[at].end is None and not isinstance(target, Literal):
                open_ones.setdefault((subject, predicate), []).append(self._naming.known_as(target))
        found: dict[int, Triple] = {}
        for at, slot in asked.items():
            mention = said[at].object
            assert isinstance(mention, Mention), "literals are not named loosely"
            found[at] = (*slot, self._meant(mention, open_ones.get(slot, ())))
        return found

    def _meant(self, mention: Mention, open_ones: Sequence[Entity]) -> EntityId:
        exact = self._naming.find(mention)
        by_id = {entity.id: entity for entity in open_ones}
        if exact is not None and exact.id in by_id:
            return exact.id
        name = _bare(mention.name)
        fitting = [
            entity
            for entity in by_id.values()
            if fuzz.token_set_ratio(name, _bare(entity.name)) >= _SAME_THING
        ]
        return self._naming.keep(fitting[0]) if len(fitting) == 1 else self._naming.entity(mention).id

    async def _open(self, slots: Collection[NodePair]) -> dict[NodePair, list[Entity]]:
        """The objects of slots that hold without an end, as known; of a slot, whatever reads as in it."""
        lexicon = self._naming.lexicon
        asked: dict[NodePair, list[NodePair]] = {}
        for slot in slots:
            for predicate in lexicon.alike(slot[1]):
                asked.setdefault((slot[0], predicate), []).append(slot)
        stored = await self._graph.slots(self._scope, sorted(asked))
        before = self._before
        ids = [id for found in stored.values() for id in found[-_OPEN_OBJECTS:] if id not in before.alone]
        open_ones: dict[NodePair, list[Entity]] = {}
        for view in await self._graph.views(self._scope, ids, AsOf(self._naming.known)) if ids else ():
            is_open = any(span.invalid_at is None for span in view.spans)
            if view.object is not None and (is_open or view.statement.id in before.over):
                for slot in asked[view.statement.subject, view.statement.predicate]:
                    open_ones.setdefault(slot, []).append(view.object)
        return open_ones

    async def _read(self, statements: Iterable[StatementId]) -> None:
        """Looks the records up on which drafting and deriving both build."""
        self._draft.read = set(statements)
        if self._draft.read:
            self._draft.stored = await self._graph.records(self._scope, sorted(self._draft.read))

    def _state(self, made: StatementId, triple: Triple, said: Said, told: Collection[StatementId]) -> None:
        """Drafts a statement unless the graph has it; one whose text was forgotten is drafted anew."""
        if made in self._draft.statements or made in told:
            return
        fact = said.fact or self._naming.sentence(*triple)
        self._draft.statements[made] = Statement(
            made, *triple, fact, said.aspect, said.event_at, self._draft.revision
        )

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


def _recorded(said: Said, lexicon: Lexicon) -> Said:
    """The same from the object's end, where that is how its predicate is recorded.

    Whom it is said of is then named by its own name, never by a part of it.
    """
    inverse = lexicon.turned(said.predicate)
    if inverse is None or not isinstance(said.object, Mention):
        return said
    return replace(said, subject=said.object, predicate=inverse, object=said.subject, loose=False)


def _bare(name: str) -> str:
    """A name without its case and its article."""
    folded = name.casefold()
    article = _DETERMINER.match(folded)
    return folded[article.end() :] if article else folded
