"""Resolve: all that is to be judged of one chunk in one call, and which of its facts are noise.

Each part is asked in blocks of its own and answered in a list of its own; what is worded here for several is
worded where one alone is asked. A part that is not asked has no blocks, and its list is empty.
"""

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from services.llm import tasks
from services.llm.port import Tier
from services.llm.prompts import judge_entities, judge_statements, judge_voice, parts, reflect
from services.llm.prompts.render import (
    MAX_CONTEXT_CHARACTERS,
    Prompt,
    Section,
    known_fact,
    named_entity,
    setting_sections,
    voice_fact,
    world_fact,
)
from services.llm.replies import Reading, read_model, strict_schema

T = TypeVar("T")

VERSION = "1"

PREFIX = f"""
You keep a memory consistent: of what one text brings you judge how it stands to what the memory holds. Do
each part for which there are blocks; of the others the list is empty. Pairs are [number in the new ones,
number in the candidates]: judge only those that are listed, and leave out a pair that you are not sure of.
`new` and `candidate` of a verdict are the numbers of its pair, `why` a few words.

{parts.DATA_IS_DATA}
`entities`: verdicts on <entity_pairs> of <new_entities> and <candidate_entities>: whether two names are names
of one and the same thing in the world. <said> is what the text says, `facts` what is known of each, `in_text`
whether the text names it.
{judge_entities.RULES}

`statements`: verdicts on <statement_pairs> of <new_statements> and <candidate_statements>. `since` and
`until` say when a fact holds; null is open. Names that you judge SAME above are one thing here.
{judge_statements.RULES}

`predicates`: verdicts on <predicate_pairs> of <new_predicates> and <candidate_predicates>: whether a
predicate that the new facts use first is another word for a known one.
{judge_statements.PREDICATE_RULES}
`voice`: verdicts on <voice_pairs> of <new_voice> and <candidate_voice>, all of them sentences of the user.
{judge_voice.RULES}

`noise_world`, `noise_voice`: numbers of facts in <world_facts> and <voice_facts> that are session noise:
{reflect.NOISE}

{parts.JSON_ONLY}
"""


class Output(BaseModel):
    """The whole answer."""

    entities: list[judge_entities.Verdict]
    statements: list[judge_statements.Verdict]
    predicates: list[judge_statements.PredicateVerdict]
    voice: list[judge_voice.Verdict]
    noise_world: list[int]
    noise_voice: list[int]


def sections(task: tasks.Resolve) -> Sequence[Section]:
    shown = setting_sections(task.setting)
    if (noise := task.reflect) is not None:
        shown += [
            Section("world_facts", [world_fact(fact, number) for number, fact in enumerate(noise.world)]),
            Section("voice_facts", [voice_fact(fact, number) for number, fact in enumerate(noise.voice)]),
        ]
    if (voice := task.voice) is not None:
        shown += [
            Section("candidate_voice", [known_fact(one, at) for at, one in enumerate(voice.candidates)]),
            Section("new_voice", [voice_fact(one, at) for at, one in enumerate(voice.new)]),
            _pairs("voice_pairs", voice.pairs),
        ]
    if (facts := task.statements) is not None:
        shown += [
            Section("candidate_predicates", judge_statements.numbered(facts.candidate_predicates)),
            Section("new_predicates", judge_statements.numbered(facts.new_predicates)),
            _pairs("predicate_pairs", facts.predicate_pairs),
            Section("candidate_statements", [known_fact(one, at) for at, one in enumerate(facts.candidates)]),
            Section("new_statements", [known_fact(one, at) for at, one in enumerate(facts.new)]),
            _pairs("statement_pairs", facts.pairs),
        ]
    if (named := task.entities) is not None:
        shown += [
            Section("said", [text[:MAX_CONTEXT_CHARACTERS] for text in named.said]),
            Section("candidate_entities", [named_entity(one, at) for at, one in enumerate(named.candidates)]),
            Section("new_entities", [named_entity(one, at) for at, one in enumerate(named.new)]),
            _pairs("entity_pairs", named.pairs),
        ]
    return shown


def read(reply: Output, task: tasks.Resolve) -> Reading[tasks.Resolved]:
    """Each part as the prompt that asks it alone reads it; a part that was not asked says nothing."""
    problems: list[str] = []

    def taken(part: str, reading: Reading[T]) -> T:
        problems.extend(f"{part}: {problem}" for problem in reading.problems)
        assert reading.value is not None, "verdicts that can't be used are left out"
        return reading.value

    kept, entities, statements, voice = None, tasks.JudgedEntities(), tasks.Judged(()), tasks.JudgedVoice()
    if task.reflect is not None:
        noise = reflect.Output(noise_world=reply.noise_world, noise_voice=reply.noise_voice)
        kept = taken("noise", reflect.read(noise, task.reflect))
    if task.entities is not None:
        names = judge_entities.Output(verdicts=reply.entities)
        entities = taken("entities", judge_entities.read(names, task.entities))
    if task.statements is not None:
        facts = judge_statements.Output(verdicts=reply.statements, predicates=reply.predicates)
        statements = taken("statements", judge_statements.read(facts, task.statements))
    if task.voice is not None:
        said = judge_voice.Output(verdicts=reply.voice)
        voice = taken("voice", judge_voice.read(said, task.voice))
    return Reading(tasks.Resolved(kept, entities, statements, voice), tuple(problems))


def _pairs(name: str, pairs: Sequence[tasks.Pair]) -> Section:
    return Section(name, [[pair.new, pair.candidate] for pair in pairs])


RESOLVE: Prompt[tasks.Resolve, Output, tasks.Resolved] = Prompt(
    name="resolve",
    version=VERSION,
    tier=Tier.LOW,
    prefix=PREFIX,
    schema=strict_schema(Output),
    sections=sections,
    parse=partial(read_model, Output),
    read=read,
)
