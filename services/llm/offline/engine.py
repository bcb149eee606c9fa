"""OfflineEngine: the Engine port by rules. No model is called, no key is needed, nothing leaves the process.

It understands English and Chinese. It would rather find little than something wrong, and its receipts say
what it is.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from services.domain.facts import NothingReason, Turn, WorldFact
from services.domain.memory import Role
from services.domain.scope import Scope
from services.llm import tasks
from services.llm.offline.aspects import classify_voice, classify_world
from services.llm.offline.identities import judge_entities
from services.llm.offline.parser import Parser, shared
from services.llm.offline.script import is_chinese
from services.llm.offline.sentences import Sentence, Talk, split
from services.llm.offline.speaking import speaker_of
from services.llm.offline.telling import portray, summarise
from services.llm.offline.verdicts import judge_statements, judge_voice
from services.llm.offline.voice import voice_facts
from services.llm.offline.world import Parsed, confirmations, prepared, world_facts
from services.llm.port import Answer, Receipt

RULES_VERSION = "offline-en-zh-1"
"""Changes whenever a rule changes what is found; stands where models have a prompt version."""

T = TypeVar("T")


class OfflineEngine:
    """Understands English and Chinese by rules. Its only state is the parsers' caches; they hold no scope."""

    def __init__(self, parser: Parser = shared) -> None:
        self._parser = parser

    @property
    def name(self) -> str:
        return "offline"

    @property
    def judges_predicates(self) -> bool:
        """Rules know no meanings: see services/resolver/likening.py for what is known without them."""
        return False

    async def normalise(self, scope: Scope, task: tasks.Normalise) -> Answer[tasks.Normalised]:
        """Leaves the words as they are; finds out whether there is anything to remember."""
        began = time.perf_counter()
        chunk = [(turn, split(turn.text)) for turn in task.turns]
        said = _counting(chunk)
        reason = _nothing(said)
        if reason is not None:
            return self._answer("normalise", began, tasks.Normalised(nothing=reason))
        return self._answer("normalise", began, tasks.Normalised(narrative=_narrative(said, task.setting)))

    async def extract_world(self, scope: Scope, task: tasks.Extract) -> Answer[tasks.WorldFacts]:
        began = time.perf_counter()
        facts = await self._parser.run(lambda: self._world(task))
        return self._answer("extract_world", began, tasks.WorldFacts(facts))

    def _world(self, task: tasks.Extract) -> Sequence[WorldFact]:
        chunk = [(turn, split(turn.text)) for turn in task.turns]
        english = [prepared(item.text) for _, items in chunk for item in items if not is_chinese(item.text)]
        docs = iter(self._parser.parse_now(english))
        parsed = [
            Parsed(turn, [(item, None if is_chinese(item.text) else next(docs)) for item in items])
            for turn, items in chunk
        ]
        return world_facts(parsed, task.setting)

    async def extract_voice(self, scope: Scope, task: tasks.Extract) -> Answer[tasks.VoiceFacts]:
        began = time.perf_counter()
        chunk = [(turn, split(turn.text)) for turn in task.turns]
        return self._answer("extract_voice", began, tasks.VoiceFacts(voice_facts(chunk, task.setting)))

    async def reflect(self, scope: Scope, task: tasks.Reflect) -> Answer[tasks.Kept]:
        """Keeps all but what is said twice in the same words: the rules have dropped the noise already."""
        began = time.perf_counter()
        world = _first_positions(
            [(f.kind, f.subject, f.predicate, f.object, f.start, f.end, f.turn, f.quote) for f in task.world]
        )
        voice = _first_positions([" ".join(fact.text.casefold().split()) for fact in task.voice])
        return self._answer("reflect", began, tasks.Kept(world, voice))

    async def classify(self, scope: Scope, task: tasks.Classify) -> Answer[tasks.Classified]:
        began = time.perf_counter()
        value = tasks.Classified(classify_world(task.world), classify_voice(task.voice))
        return self._answer("classify", began, value)

    async def judge_entities(self, scope: Scope, task: tasks.JudgeEntities) -> Answer[tasks.JudgedEntities]:
        began = time.perf_counter()
        return self._answer("judge_entities", began, tasks.JudgedEntities(judge_entities(task)))

    async def judge_statements(self, scope: Scope, task: tasks.JudgeStatements) -> Answer[tasks.Judged]:
        began = time.perf_counter()
        return self._answer("judge_statements", began, tasks.Judged(judge_statements(task)))

    async def judge_voice(self, scope: Scope, task: tasks.JudgeVoice) -> Answer[tasks.JudgedVoice]:
        began = time.perf_counter()
        return self._answer("judge_voice", began, tasks.JudgedVoice(judge_voice(task)))

    async def understand(self, scope: Scope, task: tasks.Understand) -> Answer[tasks.Understood]:
        """The steps of the full profile one after the other: rules cost no calls that could be saved."""
        began = time.perf_counter()
        narrative = (await self.normalise(scope, tasks.Normalise(task.turns, task.setting))).value
        if narrative.nothing is not None:
            return self._answer("understand", began, tasks.Understood(nothing=narrative.nothing))
        extract = tasks.Extract(task.turns, narrative.narrative, task.setting)
        world = (await self.extract_world(scope, extract)).value.facts
        voice = (await self.extract_voice(scope, extract)).value.facts
        aspects, kinds = classify_world(world), classify_voice(voice)
        understood = tasks.Understood(
            [
                replace(fact, aspect=about, event_at=at)
                for fact, (about, at) in zip(world, aspects, strict=True)
            ],
            [replace(fact, kind=kind) for fact, kind in zip(voice, kinds, strict=True)],
        )
        return self._answer("understand", began, understood)

    async def resolve(self, scope: Scope, task: tasks.Resolve) -> Answer[tasks.Resolved]:
        began = time.perf_counter()
        named, told, said = task.entities, task.statements, task.voice
        resolved = tasks.Resolved(
            None if task.reflect is None else (await self.reflect(scope, task.reflect)).value,
            tasks.JudgedEntities() if named is None else (await self.judge_entities(scope, named)).value,
            tasks.Judged(()) if told is None else (await self.judge_statements(scope, told)).value,
            tasks.JudgedVoice() if said is None else (await self.judge_voice(scope, said)).value,
        )
        return self._answer("resolve", began, resolved)

    async def summarise(self, scope: Scope, task: tasks.Summarise) -> Answer[tasks.Summarised]:
        began = time.perf_counter()
        return self._answer("summarise", began, summarise(task))

    async def portray(self, scope: Scope, task: tasks.Portray) -> Answer[tasks.Portrayed]:
        began = time.perf_counter()
        return self._answer("portray", began, portray(task))

    def _answer(self, stage: str, began: float, value: T) -> Answer[T]:
        milliseconds = (time.perf_counter() - began) * 1000
        return Answer(value, Receipt(stage, self.name, "rules", 0, 0, 0, 0, milliseconds, RULES_VERSION))


def _first_positions(items: Sequence[object]) -> list[int]:
    seen: list[object] = []
    kept: list[int] = []
    for position, item in enumerate(items):
        if item not in seen:
            seen.append(item)
            kept.append(position)
    return kept


Said = Sequence[tuple[Turn, Sequence[Sentence]]]


def _counting(chunk: Said) -> Said:
    """The turns whose words may be remembered: not those of an assistant whom nobody confirmed."""
    confirmed = confirmations([turn for turn, _ in chunk])
    return [
        (turn, items)
        for turn, items in chunk
        if turn.role is not Role.SYSTEM and (turn.role is not Role.ASSISTANT or turn.position in confirmed)
    ]


def _nothing(said: Said) -> NothingReason | None:
    """Why nothing is to be remembered, or None where some sentence states something."""
    talks = [item.talk for _, items in said for item in items]
    asked = {turn.position for turn, _ in said if turn.role is Role.ASSISTANT}
    stated = any(
        item.talk is Talk.STATEMENT or (item.talk is Talk.QUESTION and turn.position in asked)
        for turn, items in said
        for item in items
    )
    if stated:
        return None
    for talk, reason in (
        (Talk.RECALLED, NothingReason.RECALLED_TEXT),
        (Talk.SMALL, NothingReason.SMALL_TALK),
    ):
        if talks and all(found is talk for found in talks):
            return reason
    return NothingReason.NO_DURABLE_FACT


def _narrative(said: Said, setting: tasks.Setting) -> str:
    """What was stated, under its speakers' names where there is more than one."""
    names = {
        turn.position: "Assistant" if turn.role is Role.ASSISTANT else speaker_of(turn, setting)
        for turn, _ in said
    }
    lines: list[str] = []
    for turn, items in said:
        asked = turn.role is Role.ASSISTANT  # a confirmed question states something
        stated = " ".join(
            item.text
            for item in items
            if item.talk is Talk.STATEMENT or (asked and item.talk is Talk.QUESTION)
        )
        if stated:
            lines.append(f"{names[turn.position]}: {stated}" if len(set(names.values())) > 1 else stated)
    return "\n".join(lines)
