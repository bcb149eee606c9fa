"""Summarising: title, labels and cited summary of a session, made from its resolved facts."""

from palimpsest.internal.v1 import summaries_pb2 as pb
from services.classifier.labelling import Labelling
from services.classifier.parts import Parts
from services.classifier.told import Told
from services.domain.errors import ValidationFailed, Violation
from services.domain.ids import Revision, SessionId
from services.domain.scope import Scope
from services.domain.summaries import SessionSummary
from services.llm import tasks
from services.wire.facts import receipt_out, setting_in

OFFERED = 60
"""Labels of the graph that an engine is shown; beyond them what it makes is compared all the same."""


class Summarising:
    """Writes what is left of a session. A call with the same facts asks no model and writes nothing."""

    def __init__(self, parts: Parts) -> None:
        self._engine = parts.engine
        self._summaries = parts.summaries
        self._labelling = Labelling(parts.summaries, parts.embedder)
        self._now = parts.now

    async def __call__(self, scope: Scope, request: pb.SummariseRequest) -> pb.SummariseResponse:
        """Raises ValidationFailed, EngineError, ScopeErased, StoreUnavailable."""
        session, told = SessionId(request.session_id), Told(request.facts.facts)
        revision = Revision(request.facts.revision)
        if not told.messages:
            await self._summaries.drop_session(scope, session, revision)
            return pb.SummariseResponse()
        made_from = told.made_from(self._engine.name)
        before = await self._summaries.sessions(scope, [session])
        if before and before[0].made_from == made_from:
            return pb.SummariseResponse()
        known = await self._labelling.known(scope)
        task = tasks.Summarise(told.facts, [label.name for label in known][:OFFERED], _setting(request))
        answer = await self._engine.summarise(scope, task)
        labels = await self._labelling.unified(answer.value.labels, known)
        summary = SessionSummary(
            session=session,
            title=answer.value.title,
            labels=tuple(label.name for label in labels),
            sentences=tuple(map(told.cited, answer.value.sentences)),
            updated_at=self._now(),
            revision=revision,
            made_from=made_from,
            model=answer.receipt.model,
            prompt_version=answer.receipt.prompt_version,
        )
        made = await self._summaries.save_session(scope, summary, labels, request.facts.generation)
        return pb.SummariseResponse(made=made, receipts=[receipt_out(answer.receipt)])


def _setting(request: pb.SummariseRequest) -> tasks.Setting:
    try:
        return setting_in(request.setting)
    except ValueError as error:
        raise ValidationFailed(Violation("setting", str(error), "enum")) from error
