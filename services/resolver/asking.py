"""Asking: what is to be judged of a chunk, put to the engine in one call, whatever parts it has.

One part alone is its own task; several are one combined task, and so is any with a reflection. A combined
answer that can't be used is asked for part by part.
"""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import structlog

from services.domain.scope import Scope
from services.llm.port import Answer, Engine, EngineError, ModelOutputInvalid, ModelRefused
from services.llm.tasks import (
    Judged,
    JudgedEntities,
    JudgedVoice,
    JudgeEntities,
    JudgeStatements,
    JudgeVoice,
    Kept,
    Pair,
    Reflect,
    Resolve,
    Setting,
)
from services.resolver.memo import EntityPair, Memo, Noise, PredicatePair, StatementPair, Told, VoicePair


class _OnPair(Protocol):
    @property
    def new(self) -> int: ...

    @property
    def candidate(self) -> int: ...


T = TypeVar("T")
KeyT = TypeVar("KeyT")
VerdictT = TypeVar("VerdictT", bound=_OnPair)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Offers:
    """What may be judged of a chunk. The keys of each part stand for its task's pairs, in their order."""

    setting: Setting
    reflect: Reflect | None = None
    entities: JudgeEntities | None = None
    entity_keys: Sequence[EntityPair] = ()
    statements: JudgeStatements | None = None
    statement_keys: Sequence[StatementPair] = ()
    predicate_keys: Sequence[PredicatePair] = ()
    voice: JudgeVoice | None = None
    voice_keys: Sequence[VoicePair] = ()

    def unknown(self, memo: Memo) -> "Offers":
        """What is left of it: the pairs that nobody was asked about."""
        entities = statements = voice = None
        named: list[tuple[Pair, EntityPair]] = []
        told: list[tuple[Pair, StatementPair]] = []
        words: list[tuple[Pair, PredicatePair]] = []
        spoken: list[tuple[Pair, VoicePair]] = []
        if self.entities is not None:
            named = _open(self.entities.pairs, self.entity_keys, memo.entities)
            entities = replace(self.entities, pairs=_left(named)) if named else None
        if self.statements is not None:
            told = _open(self.statements.pairs, self.statement_keys, memo.statements)
            words = _open(self.statements.predicate_pairs, self.predicate_keys, memo.predicates)
            if told or words:
                statements = replace(self.statements, pairs=_left(told), predicate_pairs=_left(words))
        if self.voice is not None:
            spoken = _open(self.voice.pairs, self.voice_keys, memo.voice)
            voice = replace(self.voice, pairs=_left(spoken)) if spoken else None
        return Offers(
            self.setting,
            self.reflect if memo.noise is None else None,
            entities,
            _right(named),
            statements,
            _right(told),
            _right(words),
            voice,
            _right(spoken),
        )

    @property
    def parts(self) -> int:
        """How many parts there are to judge."""
        return sum(part is not None for part in (self.entities, self.statements, self.voice))


class Asking:
    """Puts offers to an engine; what it says is kept in the memo, with what it cost."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __call__(self, scope: Scope, offers: Offers, memo: Memo) -> None:
        """Asks what is not known. Raises EngineError where judging failed.

        Doubt about names joins none: where no answer on names or predicates alone can be used, nothing is
        raised. A reflection that failed leaves the facts as they are.
        """
        left = offers.unknown(memo)
        if left.reflect is None and left.parts < 2:  # one part has a prompt of its own
            await self._each(scope, left, memo)
            return
        task = Resolve(left.setting, left.reflect, left.entities, left.statements, left.voice)
        try:
            answer = await self._engine.resolve(scope, task)
        except EngineError as error:
            if left.parts and not isinstance(error, ModelOutputInvalid | ModelRefused):
                raise
            _log.warning("not_resolved_at_once", parts=left.parts, why=type(error).__name__)
            memo.receipts += error.receipts
            memo.noise = memo.noise or Noise()
            await self._each(scope, left, memo)
            return
        memo.receipts.append(answer.receipt)
        resolved = answer.value
        if left.reflect is not None:
            memo.noise = _noise(resolved.kept, left.reflect)
        self._names(left, Answer(resolved.entities, answer.receipt), memo)
        self._facts(left, Answer(resolved.statements, answer.receipt), memo)
        self._voices(left, Answer(resolved.voice, answer.receipt), memo)

    async def _each(self, scope: Scope, left: Offers, memo: Memo) -> None:
        """Part by part."""
        engine = self._engine
        if left.entities is not None:
            names = await _tried(engine.judge_entities(scope, left.entities), memo, doubt=True)
            self._names(left, names, memo)
        if left.statements is not None:
            doubt = not left.statements.pairs
            facts = await _tried(engine.judge_statements(scope, left.statements), memo, doubt=doubt)
            self._facts(left, facts, memo)
        if left.voice is not None:
            self._voices(left, await _tried(engine.judge_voice(scope, left.voice), memo, doubt=False), memo)

    def _names(self, left: Offers, answer: Answer[JudgedEntities] | None, memo: Memo) -> None:
        if left.entities is not None:
            verdicts = () if answer is None else answer.value.verdicts
            _keep(memo.entities, left.entities.pairs, left.entity_keys, verdicts, answer)

    def _facts(self, left: Offers, answer: Answer[Judged] | None, memo: Memo) -> None:
        if left.statements is not None:
            told = Judged(()) if answer is None else answer.value
            task = left.statements
            _keep(memo.statements, task.pairs, left.statement_keys, told.verdicts, answer)
            _keep(memo.predicates, task.predicate_pairs, left.predicate_keys, told.predicates, answer)

    def _voices(self, left: Offers, answer: Answer[JudgedVoice] | None, memo: Memo) -> None:
        if left.voice is not None:
            verdicts = () if answer is None else answer.value.verdicts
            _keep(memo.voice, left.voice.pairs, left.voice_keys, verdicts, answer)


async def _tried(answering: Awaitable[Answer[T]], memo: Memo, *, doubt: bool) -> Answer[T] | None:
    """The answer; None for one that can't be used, where that is `doubt` and no failure."""
    try:
        answer = await answering
    except (ModelOutputInvalid, ModelRefused) as error:
        if not doubt:
            raise
        _log.warning("not_judged", why=type(error).__name__)
        memo.receipts += error.receipts
        return None
    memo.receipts.append(answer.receipt)
    return answer


def _keep(
    known: dict[KeyT, Told[VerdictT] | None],
    pairs: Sequence[Pair],
    keys: Sequence[KeyT],
    verdicts: Iterable[VerdictT],
    answer: Answer[T] | None,
) -> None:
    """Notes verdicts on pairs that were offered, the first on each; of the others, that there is none."""
    by_pair = dict(zip(pairs, keys, strict=True))
    for verdict in verdicts:
        key = by_pair.get(Pair(verdict.new, verdict.candidate))
        if key is not None and answer is not None and key not in known:
            known[key] = Told(verdict, answer.receipt)
    for key in keys:
        known.setdefault(key, None)


def _noise(kept: Kept | None, reflect: Reflect) -> Noise:
    """What is not kept."""
    if kept is None:
        return Noise()
    return Noise(
        frozenset(range(len(reflect.world))) - frozenset(kept.world),
        frozenset(range(len(reflect.voice))) - frozenset(kept.voice),
    )


def _open(
    pairs: Sequence[Pair], keys: Sequence[KeyT], known: Mapping[KeyT, object]
) -> list[tuple[Pair, KeyT]]:
    return [(pair, key) for pair, key in zip(pairs, keys, strict=True) if key not in known]


def _left(opened: Sequence[tuple[Pair, KeyT]]) -> Sequence[Pair]:
    return [pair for pair, _ in opened]


def _right(opened: Sequence[tuple[Pair, KeyT]]) -> Sequence[KeyT]:
    return [key for _, key in opened]
