"""The engine: each task is one prompt, read strictly, repaired once, and paid for in a receipt."""

import asyncio
import re
import time
from typing import Protocol, TypeVar

import structlog

from services.domain.scope import Scope, TenantId
from services.llm import prompts, tasks
from services.llm.openai_engine.endpoint import Endpoint, Meter, Reply
from services.llm.openai_engine.ladder import Ladder, Question, Rung
from services.llm.port import (
    Answer,
    EngineError,
    ModelOutputCut,
    ModelOutputInvalid,
    ModelRefused,
    ModelUnavailable,
    Receipt,
)
from services.llm.prompts.render import Prompt, Rendered, render
from services.llm.replies import MAX_PROBLEMS, Reading, without_thoughts
from services.llm.settings import ModelSettings


class _Set(Protocol):
    """Every task: it has a setting."""

    @property
    def setting(self) -> tasks.Setting: ...


TaskT = TypeVar("TaskT", bound=_Set)
ReplyT = TypeVar("ReplyT")
ValueT = TypeVar("ValueT")

_CLIPPED = 12_000
"""Characters of a bad answer that are shown back to the model: enough to mend it, too few to drown in."""

_REFUSAL = re.compile(
    r"^\W*(i('m| am) (very |so |really )?(sorry|afraid|unable)|sorry\b"
    r"|i (can('|no)t|can not|won't|must decline)|as an ai\b|抱歉|对不起|很抱歉|我无法|我不能)",
    re.IGNORECASE,
)

_log = structlog.get_logger(__name__)


class OpenAIEngine:
    """An Engine on any OpenAI-compatible endpoint. Owns its endpoint; `aclose` closes it."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._endpoint = Endpoint(settings)
        fixed = None if settings.structured_output == "auto" else Rung(settings.structured_output)
        self._ladder = Ladder(self._endpoint, fixed)

    @property
    def name(self) -> str:
        return "openai"

    @property
    def judges_predicates(self) -> bool:
        return True

    @property
    def wait_seconds(self) -> float:
        """How long the endpoint has asked us to wait; 0 when it may be called."""
        return self._endpoint.wait_seconds

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    async def normalise(self, scope: Scope, task: tasks.Normalise) -> Answer[tasks.Normalised]:
        return await self._run(prompts.NORMALISE, scope, task)

    async def extract_world(self, scope: Scope, task: tasks.Extract) -> Answer[tasks.WorldFacts]:
        return await self._run(prompts.EXTRACT_WORLD, scope, task)

    async def extract_voice(self, scope: Scope, task: tasks.Extract) -> Answer[tasks.VoiceFacts]:
        return await self._run(prompts.EXTRACT_VOICE, scope, task)

    async def reflect(self, scope: Scope, task: tasks.Reflect) -> Answer[tasks.Kept]:
        if not task.world and not task.voice:
            return self._free(prompts.REFLECT, task, tasks.Kept((), ()))
        return await self._run(prompts.REFLECT, scope, task)

    async def classify(self, scope: Scope, task: tasks.Classify) -> Answer[tasks.Classified]:
        if not task.world and not task.voice:
            return self._free(prompts.CLASSIFY, task, tasks.Classified((), ()))
        return await self._run(prompts.CLASSIFY, scope, task)

    async def judge_entities(self, scope: Scope, task: tasks.JudgeEntities) -> Answer[tasks.JudgedEntities]:
        if not task.pairs:
            return self._free(prompts.JUDGE_ENTITIES, task, tasks.JudgedEntities())
        return await self._run(prompts.JUDGE_ENTITIES, scope, task)

    async def judge_statements(self, scope: Scope, task: tasks.JudgeStatements) -> Answer[tasks.Judged]:
        if not task.pairs and not task.predicate_pairs:
            return self._free(prompts.JUDGE_STATEMENTS, task, tasks.Judged(()))
        return await self._run(prompts.JUDGE_STATEMENTS, scope, task)

    async def judge_voice(self, scope: Scope, task: tasks.JudgeVoice) -> Answer[tasks.JudgedVoice]:
        if not task.pairs:
            return self._free(prompts.JUDGE_VOICE, task, tasks.JudgedVoice(()))
        return await self._run(prompts.JUDGE_VOICE, scope, task)

    async def understand(self, scope: Scope, task: tasks.Understand) -> Answer[tasks.Understood]:
        return await self._run(prompts.UNDERSTAND, scope, task)

    async def resolve(self, scope: Scope, task: tasks.Resolve) -> Answer[tasks.Resolved]:
        return await self._run(prompts.RESOLVE, scope, task)

    async def summarise(self, scope: Scope, task: tasks.Summarise) -> Answer[tasks.Summarised]:
        return await self._run(prompts.SUMMARISE, scope, task)

    async def portray(self, scope: Scope, task: tasks.Portray) -> Answer[tasks.Portrayed]:
        if not task.facts:
            return self._free(prompts.PORTRAY, task, tasks.Portrayed(()))
        return await self._run(prompts.PORTRAY, scope, task)

    async def _run(self, prompt: Prompt[TaskT, ReplyT, ValueT], scope: Scope, task: TaskT) -> Answer[ValueT]:
        meter = Meter()
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._settings.task_timeout_seconds):
                value, warnings = await self._ask(prompt, scope.tenant, task, meter)
        except TimeoutError as late:
            error = ModelUnavailable(f"{prompt.name} took longer than its time limit")
            error.receipt = self._receipt(prompt, task, meter, started)
            raise error from late
        except EngineError as error:
            error.receipt = self._receipt(prompt, task, meter, started)
            raise
        return Answer(value, self._receipt(prompt, task, meter, started), warnings)

    async def _ask(
        self, prompt: Prompt[TaskT, ReplyT, ValueT], tenant: TenantId, task: TaskT, meter: Meter
    ) -> tuple[ValueT, tuple[str, ...]]:
        """The value and what had to be left out of it, after at most one repair."""
        model = self._model(prompt, task)
        question = self._question(prompt, render(prompt, task))
        reply = await self._ladder.ask(tenant, model, question, meter)
        first = _read(prompt, task, reply)
        if first.value is not None and not first.problems:
            return first.value, ()
        _refuse_if_refused(first, reply)
        _log.warning("model_answer_repaired", task=prompt.name, model=model, problems=len(first.problems))

        again = await self._ladder.ask(tenant, model, self._repair(question, reply, first.problems), meter)
        second = _read(prompt, task, again)
        best = second if second.value is not None else first
        if best.value is None:
            _refuse_if_refused(second, again)
            if again.cut:
                raise ModelOutputCut(f"{prompt.name}: cut off at the output limit, after one repair")
            raise ModelOutputInvalid(f"{prompt.name}: not of the asked shape after one repair")
        return best.value, best.problems

    def _question(self, prompt: Prompt[TaskT, ReplyT, ValueT], rendered: Rendered) -> Question:
        messages = (
            {"role": "system", "content": rendered.system},
            {"role": "user", "content": rendered.user},
        )
        return Question(prompt.name, messages, prompt.schema, self._settings.max_output_tokens)

    def _repair(self, question: Question, reply: Reply, problems: tuple[str, ...]) -> Question:
        listed = "\n".join(f"- {problem}" for problem in problems[:MAX_PROBLEMS])
        complaint = (
            f"That answer can't be used:\n{listed}\n"
            "Do the same task again and answer whole and correct, in the form that was asked, and no more."
        )
        messages = (
            *question.messages,
            {"role": "assistant", "content": reply.text[:_CLIPPED] or "(empty)"},
            {"role": "user", "content": complaint},
        )
        return Question(question.name, messages, question.schema, question.max_output_tokens)

    def _free(self, prompt: Prompt[TaskT, ReplyT, ValueT], task: TaskT, value: ValueT) -> Answer[ValueT]:
        """An answer that needs no model: nothing was asked."""
        return Answer(value, self._receipt(prompt, task, Meter(), time.perf_counter()))

    def _model(self, prompt: Prompt[TaskT, ReplyT, ValueT], task: TaskT) -> str:
        setting = task.setting
        return self._settings.model_of(prompt.tier, setting.medium_model, setting.low_model)

    def _receipt(
        self, prompt: Prompt[TaskT, ReplyT, ValueT], task: TaskT, meter: Meter, started: float
    ) -> Receipt:
        return Receipt(
            stage=prompt.name,
            engine=self.name,
            model=self._model(prompt, task),
            calls=meter.calls,
            tokens_in=meter.tokens_in,
            tokens_out=meter.tokens_out,
            tokens_cached=meter.tokens_cached,
            milliseconds=(time.perf_counter() - started) * 1000,
            prompt_version=prompt.version,
        )


def _read(prompt: Prompt[TaskT, ReplyT, ValueT], task: TaskT, reply: Reply) -> Reading[ValueT]:
    """The reply as the prompt reads it; unusable where leaving out what is wrong leaves nothing."""
    parsed = prompt.parse(reply.text)
    problems = parsed.problems
    value: ValueT | None = None
    if parsed.value is not None:
        reading = prompt.read(parsed.value, task)
        value, problems = reading.value, (*problems, *reading.problems)
    if problems and value is not None and not prompt.usable(value):
        value = None
    if value is None and reply.cut:
        problems = ("It was cut off at the output limit: answer much more briefly.", *problems)
    return Reading(value, problems)


def _refuse_if_refused(reading: Reading[ValueT], reply: Reply) -> None:
    """Raises ModelRefused when the model declined in prose rather than by the protocol."""
    if reading.value is None and _REFUSAL.match(without_thoughts(reply.text[:2_000])):
        raise ModelRefused("the model declined to answer")
