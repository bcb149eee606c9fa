"""The classifier's calls: what facts are about, and what is written of them in short."""

from dataclasses import replace

from palimpsest.internal.v1 import classifier_pb2 as pb
from palimpsest.internal.v1 import summaries_pb2 as following
from services.classifier.parts import Parts
from services.classifier.portraying import Portraying
from services.classifier.summarising import Summarising
from services.domain.errors import ValidationFailed, Violation
from services.domain.facts import DropReason, VoiceFact, WorldFact
from services.domain.ids import Revision
from services.domain.scope import Scope
from services.llm import tasks
from services.llm.port import Engine, ModelOutputInvalid
from services.wire.facts import dropped_out, receipt_out, setting_in, voice_in, voice_out, world_in, world_out


class Classifying:
    """Gives facts their aspects. Holds no state, so a repeated call asks the engine again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def classify(self, scope: Scope, request: pb.ClassifyRequest) -> pb.ClassifyResponse:
        """All triples, each with an aspect where one fits, and the sentences that have a kind.

        Raises ValidationFailed and EngineError; ModelOutputInvalid also for an answer of another length.
        """
        task = _read(request)
        if not task.world and not task.voice:
            return pb.ClassifyResponse()
        answer = await self._engine.classify(scope, task)
        classes = answer.value
        if (len(classes.world), len(classes.voice)) != (len(task.world), len(task.voice)):
            raise ModelOutputInvalid("classify answered for another number of facts")
        response = pb.ClassifyResponse(receipts=[receipt_out(answer.receipt)])
        for message, fact, (aspect, event_at) in zip(request.world, task.world, classes.world, strict=True):
            classified = replace(fact, aspect=aspect, event_at=event_at)
            response.world.append(world_out(classified, message.passage_id))
        for sentence, said, kind in zip(request.voice, task.voice, classes.voice, strict=True):
            if kind is None:
                response.dropped.append(dropped_out(DropReason.UNCLASSIFIED_VOICE, "classify", said.turn))
            else:
                response.voice.append(voice_out(replace(said, kind=kind), sentence.passage_id))
        return response


class Classifier(Classifying):
    """Gives facts their aspects; owns labels, titles, summaries and the persona."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts.engine)
        self._summarising = Summarising(parts)
        self._portraying = Portraying(parts)
        self._summaries = parts.summaries

    async def summarise(
        self, scope: Scope, request: following.SummariseRequest
    ) -> following.SummariseResponse:
        """Idempotent by the facts. Raises ValidationFailed, EngineError, ScopeErased, StoreUnavailable."""
        return await self._summarising(scope, request)

    async def update_persona(
        self, scope: Scope, request: following.UpdatePersonaRequest
    ) -> following.UpdatePersonaResponse:
        """Idempotent by the facts. Raises as `summarise`, and Conflict when edits win every race."""
        return await self._portraying.update(scope, request)

    async def edit_persona(
        self, scope: Scope, request: following.EditPersonaRequest
    ) -> following.EditPersonaResponse:
        """Idempotent: what is so already is no edit. Raises Conflict where another version is there."""
        return await self._portraying.edit(scope, request)

    async def note_followed(
        self, scope: Scope, request: following.NoteFollowedRequest
    ) -> following.NoteFollowedResponse:
        """Idempotent; never goes back. Raises ScopeErased."""
        await self._summaries.follow(scope, Revision(request.revision), request.generation)
        return following.NoteFollowedResponse()


def _read(request: pb.ClassifyRequest) -> tasks.Classify:
    try:
        world: list[WorldFact] = [world_in(message) for message in request.world]
        voice: list[VoiceFact] = [voice_in(message) for message in request.voice]
        return tasks.Classify(world, voice, setting_in(request.setting))
    except ValueError as error:
        raise ValidationFailed(Violation("world, voice, setting", str(error), "enum")) from error
