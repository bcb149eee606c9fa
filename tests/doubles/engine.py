"""An engine that answers what a test tells it, and keeps what it was asked."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from services.domain.scope import Scope
from services.llm import tasks
from services.llm.offline.telling import portray, summarise
from services.llm.port import Answer, Receipt

T = TypeVar("T")

JudgePredicates = Callable[[tasks.JudgeStatements], Sequence[tasks.PredicateVerdict]]
Judge = Callable[[tasks.JudgeStatements], Sequence[tasks.PairVerdict]]
JudgeEntities = Callable[[tasks.JudgeEntities], Sequence[tasks.EntityVerdict]]
JudgeVoice = Callable[[tasks.JudgeVoice], Sequence[tasks.VoiceVerdict]]
Summarise = Callable[[tasks.Summarise], tasks.Summarised]
Portray = Callable[[tasks.Portray], tasks.Portrayed]


class ScriptedEngine:
    """Says nothing unless told to, but tells facts as the rules do. `asked` keeps every task, in order."""

    name = "scripted"
    judges_predicates = True

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.narrative = "As it was said."
        self.world: tasks.WorldFacts = tasks.WorldFacts(())
        self.voice: tasks.VoiceFacts = tasks.VoiceFacts(())
        self.kept: tasks.Kept | None = None
        self.classified: tasks.Classified | None = None
        self.judge: Judge = lambda _: ()
        self.judge_of_predicates: JudgePredicates = lambda _: ()
        self.judge_of_entities: JudgeEntities = lambda _: ()
        self.judge_of_voice: JudgeVoice = lambda _: ()
        self.summary_of: Summarise = summarise
        self.portrait_of: Portray = portray

    async def normalise(self, _scope: Scope, task: tasks.Normalise) -> Answer[tasks.Normalised]:
        return self._answer("normalise", task, tasks.Normalised(narrative=self.narrative))

    async def extract_world(self, _scope: Scope, task: tasks.Extract) -> Answer[tasks.WorldFacts]:
        return self._answer("extract_world", task, self.world)

    async def extract_voice(self, _scope: Scope, task: tasks.Extract) -> Answer[tasks.VoiceFacts]:
        return self._answer("extract_voice", task, self.voice)

    async def reflect(self, _scope: Scope, task: tasks.Reflect) -> Answer[tasks.Kept]:
        everything = tasks.Kept(range(len(task.world)), range(len(task.voice)))
        return self._answer("reflect", task, self.kept or everything)

    async def classify(self, _scope: Scope, task: tasks.Classify) -> Answer[tasks.Classified]:
        as_sent = tasks.Classified(
            [(fact.aspect, fact.event_at) for fact in task.world], [fact.kind for fact in task.voice]
        )
        return self._answer("classify", task, self.classified or as_sent)

    async def judge_entities(self, _scope: Scope, task: tasks.JudgeEntities) -> Answer[tasks.JudgedEntities]:
        return self._answer("judge_entities", task, tasks.JudgedEntities(self.judge_of_entities(task)))

    async def judge_statements(self, _scope: Scope, task: tasks.JudgeStatements) -> Answer[tasks.Judged]:
        return self._answer(
            "judge_statements", task, tasks.Judged(self.judge(task), self.judge_of_predicates(task))
        )

    async def judge_voice(self, _scope: Scope, task: tasks.JudgeVoice) -> Answer[tasks.JudgedVoice]:
        return self._answer("judge_voice", task, tasks.JudgedVoice(self.judge_of_voice(task)))

    async def understand(self, scope: Scope, task: tasks.Understand) -> Answer[tasks.Understood]:
        """What the steps would say; of the tasks that they would be asked, none is kept."""
        self.asked.append(task)
        world = [
            replace(fact, aspect=about, event_at=at)
            for fact, (about, at) in zip(self.world.facts, self._classes().world, strict=True)
        ]
        voice = [
            replace(fact, kind=kind)
            for fact, kind in zip(self.voice.facts, self._classes().voice, strict=True)
        ]
        return Answer(tasks.Understood(world, voice), self._receipt("understand"))

    def _classes(self) -> tasks.Classified:
        as_told = tasks.Classified(
            [(fact.aspect, fact.event_at) for fact in self.world.facts],
            [fact.kind for fact in self.voice.facts],
        )
        return self.classified or as_told

    async def resolve(self, scope: Scope, task: tasks.Resolve) -> Answer[tasks.Resolved]:
        """By the answers to the parts, of which each is kept as if it were asked alone."""
        nothing = tasks.Resolved()
        resolved = tasks.Resolved(
            None if task.reflect is None else (await self.reflect(scope, task.reflect)).value,
            nothing.entities
            if task.entities is None
            else (await self.judge_entities(scope, task.entities)).value,
            nothing.statements
            if task.statements is None
            else (await self.judge_statements(scope, task.statements)).value,
            nothing.voice if task.voice is None else (await self.judge_voice(scope, task.voice)).value,
        )
        return Answer(resolved, self._receipt("resolve"))

    async def summarise(self, _scope: Scope, task: tasks.Summarise) -> Answer[tasks.Summarised]:
        return self._answer("summarise", task, self.summary_of(task))

    async def portray(self, _scope: Scope, task: tasks.Portray) -> Answer[tasks.Portrayed]:
        return self._answer("portray", task, self.portrait_of(task))

    def _answer(self, stage: str, task: object, value: T) -> Answer[T]:
        self.asked.append(task)
        return Answer(value, self._receipt(stage))

    def _receipt(self, stage: str) -> Receipt:
        return Receipt(stage, self.name, "script", 1, 10, 5, 0, 1.0, "1")
