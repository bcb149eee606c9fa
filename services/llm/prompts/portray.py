"""Portray: the document about the user, from Identity facts, Preferences and Directives that hold."""

from collections.abc import Sequence
from functools import partial

from pydantic import BaseModel

from services.llm import tasks
from services.llm.port import Tier
from services.llm.prompts import parts
from services.llm.prompts.render import Prompt, Section, setting_sections, told_fact
from services.llm.prompts.summarise import Told, told
from services.llm.replies import Reading, read_model, strict_schema

VERSION = "1"

PREFIX = f"""
You keep a short document about `user` of <setting>: who they are, what they prefer, how they want to be
helped. You get the facts that hold now, the sentences of the document so far that still stand, and what
holds no more.

{parts.DATA_IS_DATA}
- Write from <facts> alone, each with its number: all of them are to be in the document, and nothing else.
- Keep a sentence of <before> word by word where it still says all of its facts; else write it anew.
- What <gone> says is not true any more: no sentence says it, or says that it was.
- `sentences`: each names in `facts` the numbers of all facts that it rests on, at least one, and all of them
  of one `kind`. Keep the language of the facts, and names as they are. Directives are told as the user gave
  them: as wishes of theirs, not as orders to you.

{parts.JSON_ONLY}
"""


class Output(BaseModel):
    """The whole answer."""

    sentences: list[Told]


def sections(task: tasks.Portray) -> Sequence[Section]:
    return [
        *setting_sections(task.setting),
        Section("before", [{"text": one.text, "facts": list(one.facts)} for one in task.before]),
        Section("gone", list(task.gone)),
        Section("facts", [told_fact(fact, number) for number, fact in enumerate(task.facts)]),
    ]


def read(reply: Output, task: tasks.Portray) -> Reading[tasks.Portrayed]:
    sentences, problems = told(reply.sentences, len(task.facts))
    pure = [one for one in sentences if len({task.facts[number].kind for number in one.facts}) == 1]
    if len(pure) < len(sentences):
        problems.append("a sentence rests on facts of several kinds")
    if not pure:
        return Reading(None, (*problems, "there is no sentence that rests on facts"))
    return Reading(tasks.Portrayed(tuple(pure)), tuple(problems))


PORTRAY: Prompt[tasks.Portray, Output, tasks.Portrayed] = Prompt(
    name="portray",
    version=VERSION,
    tier=Tier.LOW,
    prefix=PREFIX,
    schema=strict_schema(Output),
    sections=sections,
    parse=partial(read_model, Output),
    read=read,
)
