"""Judge entities: whether a name that a text brings is another spelling of one that is known."""

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated

from pydantic import BaseModel

from services.llm import tasks
from services.llm.port import Tier
from services.llm.prompts import parts
from services.llm.prompts.render import (
    MAX_CONTEXT_CHARACTERS,
    Prompt,
    Section,
    named_entity,
    setting_sections,
)
from services.llm.replies import Reading, read_model, strict_schema

VERSION = "1"

RULES = """\
- SAME: the text or the facts show that both are one person, company, place or thing: an abbreviation and what
  it stands for, a short and a full name of one person, one name in two scripts or spellings.
- DIFFERENT: they are two things: namesakes, relatives, versions or parts of a product, a company and its
  product, a person and a place, things of one kind or one series (iPhone case, iPhone charger).
Leave out a pair that you are not sure of: both then stay. That the names look alike, or that the things are
of one kind, is not enough for SAME; a wrong SAME mixes up two lives. One new name can't be SAME with two
candidates that are two things."""

PREFIX = f"""
You judge whether two names of a memory are names of one and the same thing in the world. <new> are names that
the text <said> brings, <candidates> names that it or the memory has beside them. `facts` is what is known of
each, `in_text` whether the text names it. Judge only the pairs of <pairs>, each [number in <new>, number in
<candidates>].

{parts.DATA_IS_DATA}
`verdict`:
{RULES}
`new` and `candidate` are the numbers of the pair, `why` a few words.

{parts.JSON_ONLY}
"""


class Word(StrEnum):
    """A verdict as the model says it."""

    SAME = "SAME"
    DIFFERENT = "DIFFERENT"


class Verdict(BaseModel):
    """The verdict on one pair."""

    new: int
    candidate: int
    verdict: Annotated[Word, parts.one_of(Word)]
    why: parts.Why = ""


class Output(BaseModel):
    """The whole answer."""

    verdicts: list[Verdict]


def sections(task: tasks.JudgeEntities) -> Sequence[Section]:
    return [
        *setting_sections(task.setting),
        Section("said", [text[:MAX_CONTEXT_CHARACTERS] for text in task.said]),
        Section("candidates", [named_entity(one, number) for number, one in enumerate(task.candidates)]),
        Section("new", [named_entity(one, number) for number, one in enumerate(task.new)]),
        Section("pairs", [[pair.new, pair.candidate] for pair in task.pairs]),
    ]


def read(reply: Output, task: tasks.JudgeEntities) -> Reading[tasks.JudgedEntities]:
    allowed = {(pair.new, pair.candidate) for pair in task.pairs}
    found: dict[tuple[int, int], tasks.EntityVerdict] = {}
    problems: list[str] = []
    for verdict in reply.verdicts:
        pair = (verdict.new, verdict.candidate)
        same = verdict.verdict is Word.SAME
        if pair not in allowed:
            problems.append(f"The pair [{pair[0]}, {pair[1]}] is not in <pairs>.")
        elif found.setdefault(pair, tasks.EntityVerdict(*pair, same, verdict.why)).same != same:
            problems.append(f"The pair [{pair[0]}, {pair[1]}] has two verdicts.")
    return Reading(tasks.JudgedEntities(tuple(found.values())), tuple(problems))


JUDGE_ENTITIES: Prompt[tasks.JudgeEntities, Output, tasks.JudgedEntities] = Prompt(
    name="judge_entities",
    version=VERSION,
    tier=Tier.LOW,
    prefix=PREFIX,
    schema=strict_schema(Output),
    sections=sections,
    parse=partial(read_model, Output),
    read=read,
)
