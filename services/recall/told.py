"""Told: facts to be written about, and whether what was written of them still stands."""

from collections.abc import Iterable, Mapping, Sequence

from palimpsest.internal.v1 import summaries_pb2 as pb
from services.domain.graph import Literal
from services.domain.ids import Revision, StatementId, VoiceId
from services.domain.instants import Instant, Interval
from services.domain.memory import VoiceAspect
from services.domain.scope import Scope
from services.domain.summaries import Cited, basis_of, basis_of_all
from services.domain.voice import held
from services.stores.graph.port import AsOf, GraphStore, StatementView
from services.stores.memory.port import VoiceStore


def statement_basis(view: StatementView) -> str:
    """How a statement reads, as believed."""
    return basis_of(view.statement.fact, ((span.valid_at, span.invalid_at) for span in view.spans))


def voice_basis(aspect: VoiceAspect, interval: Interval) -> str:
    """How a sentence of the voice reads, as held."""
    return basis_of(aspect.text, [(interval.start, interval.end)])


def statement_told(view: StatementView) -> pb.ToldFact:
    """A believed statement; it begins with its first span and ends with its last."""
    target = view.statement.object
    named = target.text if isinstance(target, Literal) else view.object.name if view.object else ""
    return pb.ToldFact(
        statement_id=view.statement.id,
        fact=view.statement.fact,
        kind=view.statement.aspect or "",
        valid_at=view.spans[0].valid_at,
        invalid_at=view.spans[-1].invalid_at,
        subject=view.subject.name,
        predicate=view.predicate.name,
        object=named,
        basis=statement_basis(view),
    )


def voice_told(aspect: VoiceAspect, interval: Interval) -> pb.ToldFact:
    return pb.ToldFact(
        voice_id=aspect.id,
        fact=aspect.text,
        kind=aspect.kind,
        valid_at=interval.start,
        invalid_at=interval.end,
        basis=voice_basis(aspect, interval),
    )


class Standing:
    """Tells which sentences still stand: all that they cite reads as it did when they were written."""

    def __init__(self, graph: GraphStore, voice: VoiceStore) -> None:
        self._graph = graph
        self._voice = voice

    async def of(
        self, scope: Scope, sentences: Iterable[Cited], known_at: Revision, at: Instant | None = None
    ) -> frozenset[Cited]:
        """Those that stand as known at a revision; with `at`, those whose facts all hold then.

        Raises StoreUnavailable.
        """
        asked = list(sentences)
        read = await self._read(scope, asked, known_at, at)
        return frozenset(
            one
            for one in asked
            if one.ids
            and all(id in read for id in one.ids)
            and basis_of_all((id, read[id]) for id in one.ids) == one.basis
        )

    async def _read(
        self, scope: Scope, sentences: Sequence[Cited], known_at: Revision, at: Instant | None
    ) -> Mapping[str, str]:
        """How each that is cited reads, by id; what is not believed, or doesn't hold, is absent."""
        statements = dict.fromkeys(id for one in sentences for id in one.statements)
        voice = dict.fromkeys(id for one in sentences for id in one.voice)
        read: dict[str, str] = {}
        ids: list[StatementId] = list(statements)
        for view in await self._graph.views(scope, ids, AsOf(known_at)) if ids else ():
            holding = at is None or any(Interval(s.valid_at, s.invalid_at).contains(at) for s in view.spans)
            if view.spans and view.statement.fact and holding:
                read[view.statement.id] = statement_basis(view)
        aspects: list[VoiceId] = list(voice)
        for aspect in await self._voice.aspects(scope, aspects) if aspects else ():
            interval = held(aspect, known_at) if aspect.text else None
            if interval is not None and (at is None or interval.contains(at)):
                read[aspect.id] = voice_basis(aspect, interval)
        return read
