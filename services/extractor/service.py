"""The extractor's call: draw facts, in steps or at once, refuse what can't be believed. Owns no rows."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from palimpsest.internal.v1 import extractor_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import ValidationFailed, Violation
from services.domain.facts import DropReason, NothingReason, Turn, VoiceFact, WorldFact
from services.domain.recalled import is_recalled
from services.domain.scope import Scope
from services.extractor.dating import Dating
from services.extractor.guards import Guards, Refused
from services.llm import tasks
from services.llm.port import Answer, Engine, EngineError, ModelOutputInvalid, Receipt
from services.wire.facts import dropped_out, receipt_out, setting_in, turn_in, voice_out, world_out

T = TypeVar("T")


@dataclass(slots=True)
class _Log:
    """What a chunk cost, what was refused, and what went wrong and was passed over."""

    receipts: list[Receipt] = field(default_factory=list)
    dropped: list[values.DroppedFact] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def answered(self, answer: Answer[T]) -> None:
        self.receipts.append(answer.receipt)
        self.warnings += answer.warnings

    def refused(self, stage: str, refused: Sequence[Refused]) -> None:
        self.dropped += [dropped_out(one.reason, stage, one.turn) for one in refused]


class Extractor:
    """Draws facts from a chunk. Holds no state, so a repeated call asks the engine again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def extract(self, scope: Scope, request: pb.ExtractRequest) -> pb.ExtractResponse:
        """The facts of a chunk, each with a quote found in its turn; or why there are none.

        With the economy profile they come classified, and nothing is reflected on: that is done as they are
        resolved. Raises ValidationFailed, and EngineError where normalising, extracting or understanding
        fails. Reflection that fails leaves the facts as they are, with a warning.
        """
        turns, setting = _read(request)
        log = _Log()
        if all(is_recalled(turn.text) for turn in turns):
            nothing = NothingReason.RECALLED_TEXT if turns else NothingReason.NO_DURABLE_FACT
            return pb.ExtractResponse(nothing=nothing)
        drawn = self._at_once if setting.profile is tasks.Profile.ECONOMY else self._in_steps
        guards = Guards(turns, request.begins)
        try:
            return await drawn(scope, request, tasks.Normalise(turns, setting), guards, log)
        except EngineError as error:
            error.before = (*log.receipts, *error.before)
            raise

    async def _in_steps(
        self, scope: Scope, request: pb.ExtractRequest, chunk: tasks.Normalise, guards: Guards, log: _Log
    ) -> pb.ExtractResponse:
        normalised = await self._normalise(scope, chunk, log)
        if normalised.nothing is not None:
            return _response(normalised.nothing, (), (), request, log)
        task = tasks.Extract(chunk.turns, normalised.narrative, chunk.setting)
        world, voice = await self._draw(scope, task, guards, log)
        reflect = tasks.Reflect(normalised.narrative, world, voice, chunk.setting)
        world, voice = await self._reflect(scope, reflect, log)
        nothing_left = None if world or voice else _why_nothing(log.dropped)
        return _response(nothing_left, world, voice, request, log)

    async def _at_once(
        self, scope: Scope, request: pb.ExtractRequest, chunk: tasks.Normalise, guards: Guards, log: _Log
    ) -> pb.ExtractResponse:
        answer = await self._engine.understand(scope, tasks.Understand(chunk.turns, chunk.setting))
        log.answered(answer)
        understood = answer.value
        world = _believed("understand", understood.world, chunk, guards, log)
        voice = guards.voice(understood.voice)
        log.refused("understand", voice.refused)
        kept = [fact for fact in voice.facts if fact.kind is not None]
        aspectless = [fact.turn for fact in voice.facts if fact.kind is None]
        log.refused("understand", [Refused(DropReason.UNCLASSIFIED_VOICE, turn) for turn in aspectless])
        nothing = None if world or kept else understood.nothing or _why_nothing(log.dropped)
        response = _response(nothing, world, kept, request, log)
        response.classified = True
        return response

    async def _normalise(self, scope: Scope, task: tasks.Normalise, log: _Log) -> tasks.Normalised:
        answer = await self._engine.normalise(scope, task)
        log.answered(answer)
        if bool(answer.value.narrative.strip()) == (answer.value.nothing is not None):
            raise ModelOutputInvalid("normalise gave neither a narrative nor a reason, or both")
        return answer.value

    async def _draw(
        self, scope: Scope, task: tasks.Extract, guards: Guards, log: _Log
    ) -> tuple[Sequence[WorldFact], Sequence[VoiceFact]]:
        """World and voice at the same time, less what the guards refuse."""
        try:
            async with asyncio.TaskGroup() as both:
                asking_world = both.create_task(self._engine.extract_world(scope, task))
                asking_voice = both.create_task(self._engine.extract_voice(scope, task))
        except ExceptionGroup as failures:
            # One failure cancels the other task; callers are told by the error itself, not by a group.
            first, *others = failures.exceptions
            if isinstance(first, EngineError):
                first.before = tuple(
                    receipt for one in others if isinstance(one, EngineError) for receipt in one.receipts
                )
            for asked in (asking_world, asking_voice):
                if asked.done() and not asked.cancelled() and asked.exception() is None:
                    log.receipts.append(asked.result().receipt)
            raise first from None
        said, spoken = asking_world.result(), asking_voice.result()
        log.answered(said)
        log.answered(spoken)
        world = _believed("extract_world", said.value.facts, task, guards, log)
        voice = guards.voice(spoken.value.facts)
        log.refused("extract_voice", voice.refused)
        return world, voice.facts

    async def _reflect(
        self, scope: Scope, task: tasks.Reflect, log: _Log
    ) -> tuple[Sequence[WorldFact], Sequence[VoiceFact]]:
        """Without session noise; all of it when the engine fails."""
        if not task.world and not task.voice:
            return task.world, task.voice
        try:
            answer = await self._engine.reflect(scope, task)
        except EngineError as error:
            log.warnings.append(f"reflect failed, nothing was filtered: {type(error).__name__}")
            if error.receipt is not None:
                log.receipts.append(error.receipt)
            return task.world, task.voice
        log.answered(answer)
        kept_world, kept_voice = set(answer.value.world), set(answer.value.voice)
        noise = [fact.turn for at, fact in enumerate(task.world) if at not in kept_world]
        noise += [fact.turn for at, fact in enumerate(task.voice) if at not in kept_voice]
        log.refused("reflect", [Refused(DropReason.NOT_DURABLE, turn) for turn in noise])
        return (
            [fact for at, fact in enumerate(task.world) if at in kept_world],
            [fact for at, fact in enumerate(task.voice) if at in kept_voice],
        )


def _read(request: pb.ExtractRequest) -> tuple[Sequence[Turn], tasks.Setting]:
    try:
        turns = [turn_in(turn) for turn in request.turns]
        setting = setting_in(request.setting)
    except ValueError as error:
        raise ValidationFailed(Violation("turns, setting", str(error), "enum")) from error
    if len({turn.position for turn in turns}) < len(turns):
        raise ValidationFailed(Violation("turns", "each position once", "unique"))
    return turns, setting


def _believed(
    stage: str,
    facts: Sequence[WorldFact],
    chunk: tasks.Normalise | tasks.Extract,
    guards: Guards,
    log: _Log,
) -> Sequence[WorldFact]:
    """The facts that may be believed, with their dates checked."""
    world = guards.world(facts)
    dated = Dating(chunk.turns, chunk.setting).check(world.facts)
    log.warnings += dated.warnings
    log.refused(stage, world.refused)
    return dated.facts


def _why_nothing(dropped: Sequence[values.DroppedFact]) -> NothingReason:
    """Why nothing is left: what was said had come from this memory, or was not worth keeping."""
    recalled = bool(dropped) and all(one.reason == DropReason.RECALLED_TEXT for one in dropped)
    return NothingReason.RECALLED_TEXT if recalled else NothingReason.NO_DURABLE_FACT


def _response(
    nothing: NothingReason | None,
    world: Sequence[WorldFact],
    voice: Sequence[VoiceFact],
    request: pb.ExtractRequest,
    log: _Log,
) -> pb.ExtractResponse:
    passages = {turn.position: turn.passage_id for turn in request.turns}
    return pb.ExtractResponse(
        nothing=nothing or "",
        world=[world_out(fact, passages[fact.turn]) for fact in world],
        voice=[voice_out(fact, passages[fact.turn]) for fact in voice],
        dropped=log.dropped,
        receipts=[receipt_out(receipt) for receipt in log.receipts],
        warnings=log.warnings,
    )
