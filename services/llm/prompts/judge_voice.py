"""Judge voice: whether a new sentence of the user repeats or replaces one already held."""

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated

from pydantic import BaseModel

from services.llm import tasks
from services.llm.port import Tier
from services.llm.prompts import parts
from services.llm.prompts.render import Prompt, Section, known_fact, setting_sections, voice_fact
from services.llm.replies import Reading, read_model, strict_schema

VERSION = "1"

RULES = """\
- DUPLICATE: both say the same; nothing is lost when only the older is kept.
- REPLACES: the new sentence is what the user says now about the same matter, and the older no longer goes:
  changed, reversed, narrowed or widened, done with.
Leave out a pair that is neither, or that you are not sure of: both sentences then stand."""

PREFIX = f"""
You judge how new sentences of a user stand to sentences of the same user that a memory already holds. Judge
only the pairs of <pairs>, each [number in <new>, number in <candidates>].

{parts.DATA_IS_DATA}
`verdict`:
{RULES}
`new` and `candidate` are the numbers of the pair, `why` a few words.

{parts.JSON_ONLY}
"""


class Word(StrEnum):
    """A verdict as the model says it."""

    DUPLICATE = "DUPLICATE"
    REPLACES = "REPLACES"


class Verdict(BaseModel):
    """The verdict on one pair."""

    new: int
    candidate: int
    verdict: Annotated[Word, parts.one_of(Word)]
    why: parts.Why = ""


class Output(BaseModel):
    """The whole answer."""

    verdicts: list[Verdict]


def sections(task: tasks.JudgeVoice) -> Sequence[Section]:
    return [
        *setting_sections(task.setting),
        Section("candidates", [known_fact(fact, number) for number, fact in enumerate(task.candidates)]),
        Section("new", [voice_fact(fact, number) for number, fact in enumerate(task.new)]),
        Section("pairs", [[pair.new, pair.candidate] for pair in task.pairs]),
    ]


def read(reply: Output, task: tasks.JudgeVoice) -> Reading[tasks.JudgedVoice]:
    allowed = {(pair.new, pair.candidate) for pair in task.pairs}
    found: dict[tuple[int, int], tasks.VoiceVerdict] = {}
    problems: list[str] = []
    for verdict in reply.verdicts:
        pair = (verdict.new, verdict.candidate)
        duplicate = verdict.verdict is Word.DUPLICATE
        if pair not in allowed:
            problems.append(f"The pair [{pair[0]}, {pair[1]}] is not in <pairs>.")
        elif found.setdefault(pair, tasks.VoiceVerdict(*pair, duplicate, verdict.why)).duplicate != duplicate:
            problems.append(f"The pair [{pair[0]}, {pair[1]}] has two verdicts.")
    return Reading(tasks.JudgedVoice(tuple(found.values())), tuple(problems))


JUDGE_VOICE: Prompt[tasks.JudgeVoice, Output, tasks.JudgedVoice] = Prompt(
    name="judge_voice",
    version=VERSION,
    tier=Tier.LOW,
    prefix=PREFIX,
    schema=strict_schema(Output),
    sections=sections,
    parse=partial(read_model, Output),
    read=read,
)
