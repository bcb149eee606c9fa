"""Summarise: a title, topic names and a cited summary of a session, from its resolved facts."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import BaseModel

from services.domain.summaries import LABEL_CHARACTERS, MAX_LABELS, is_title
from services.llm import tasks
from services.llm.port import Tier
from services.llm.prompts import parts
from services.llm.prompts.render import Prompt, Section, setting_sections, told_fact
from services.llm.replies import Reading, read_model, strict_schema

VERSION = "1"
MAX_SENTENCES = 12

PREFIX = f"""
You write what is left of one session in short, from the facts that were learned in it: a title, one to three
topic names, and a summary.

{parts.DATA_IS_DATA}
<facts> holds all that you know, each with its number. What is in no fact is not written. A fact with `until`
has ended: it is told in the past, with that date. Keep the language of the facts, and names as they are.
- `title`: 3 to 8 words that tell this session from others. No full stop.
- `labels`: 1 to 3 short topic names, the broadest first. Take one of <labels> where it fits, letter by
  letter; make a new one only where none does.
- `sentences`: at most {MAX_SENTENCES} sentences, the most telling first. Each names in `facts` the numbers of
  all facts that it rests on, at least one; facts that belong together share a sentence.

{parts.JSON_ONLY}
"""


class Told(BaseModel):
    """One sentence."""

    text: parts.Sentence
    facts: list[int]


class Output(BaseModel):
    """The whole answer."""

    title: str
    labels: list[parts.Name]
    sentences: list[Told]


def sections(task: tasks.Summarise) -> Sequence[Section]:
    return [
        *setting_sections(task.setting),
        Section("labels", list(task.labels)),
        Section("facts", [told_fact(fact, number) for number, fact in enumerate(task.facts)]),
    ]


def told(replied: Sequence[Any], facts: int) -> tuple[list[tasks.ToldSentence], list[str]]:
    """The sentences whose every number was sent, and what is wrong with the others."""
    kept: list[tasks.ToldSentence] = []
    problems: list[str] = []
    for one in replied:
        wrong = [number for number in one.facts if not 0 <= number < facts]
        problems += [parts.unknown(number, range(facts), "fact") for number in wrong]
        if not one.facts:
            problems.append("a sentence names no fact that it rests on")
        elif not wrong:
            kept.append(tasks.ToldSentence(one.text, tuple(dict.fromkeys(one.facts))))
    return kept, problems


def read(reply: Output, task: tasks.Summarise) -> Reading[tasks.Summarised]:
    sentences, problems = told(reply.sentences[:MAX_SENTENCES], len(task.facts))
    title = " ".join(reply.title.split()).rstrip(".。")
    labels = [name for name in reply.labels if len(name) <= LABEL_CHARACTERS and "\n" not in name]
    if not is_title(title):
        problems.append("the title has not 3 to 8 words")
    if not labels:
        problems.append("there is no label of a few words")
    if not sentences:
        problems.append("there is no sentence that rests on facts")
    if not (is_title(title) and labels and sentences):
        return Reading(None, tuple(problems))
    return Reading(tasks.Summarised(title, tuple(labels[:MAX_LABELS]), tuple(sentences)), tuple(problems))


SUMMARISE: Prompt[tasks.Summarise, Output, tasks.Summarised] = Prompt(
    name="summarise",
    version=VERSION,
    tier=Tier.LOW,
    prefix=PREFIX,
    schema=strict_schema(Output),
    sections=sections,
    parse=partial(read_model, Output),
    read=read,
)
