"""Reflect: which of the extracted facts are session noise."""

from collections.abc import Sequence
from functools import partial

from pydantic import BaseModel

from services.llm import tasks
from services.llm.port import Tier
from services.llm.prompts import parts
from services.llm.prompts.render import Prompt, Section, setting_sections, voice_fact, world_fact
from services.llm.replies import Reading, read_model, strict_schema

VERSION = "1"

NOISE = """\
true only of
this session, about the act of talking, trivial, said twice (name all but the best), or not about anything
that someone could ask for in a month. Doubt keeps a fact. A fact with a date, an end, a decision, a name, a
place, a relation, a tool in use or a standing wish is not noise."""

PREFIX = f"""
You look over facts that were extracted from one text and say which of them are session noise: {NOISE}

{parts.DATA_IS_DATA}
`noise_world` lists the numbers of noise in <world_facts>, `noise_voice` those of noise in <voice_facts>;
empty lists are a good answer.

{parts.JSON_ONLY}
"""


class Output(BaseModel):
    """The whole answer."""

    noise_world: list[int]
    noise_voice: list[int]


def sections(task: tasks.Reflect) -> Sequence[Section]:
    return [
        *setting_sections(task.setting),
        Section("narrative", [task.narrative] if task.narrative else []),
        Section("world_facts", [world_fact(fact, number) for number, fact in enumerate(task.world)]),
        Section("voice_facts", [voice_fact(fact, number) for number, fact in enumerate(task.voice)]),
    ]


def read(reply: Output, task: tasks.Reflect) -> Reading[tasks.Kept]:
    world, problems = _kept(len(task.world), reply.noise_world, "noise_world")
    voice, more = _kept(len(task.voice), reply.noise_voice, "noise_voice")
    return Reading(tasks.Kept(world, voice), (*problems, *more))


def _kept(count: int, noise: Sequence[int], name: str) -> tuple[tuple[int, ...], list[str]]:
    problems = [parts.unknown(at, range(count), name) for at in noise if not 0 <= at < count]
    return tuple(at for at in range(count) if at not in set(noise)), problems


REFLECT: Prompt[tasks.Reflect, Output, tasks.Kept] = Prompt(
    name="reflect",
    version=VERSION,
    tier=Tier.LOW,
    prefix=PREFIX,
    schema=strict_schema(Output),
    sections=sections,
    parse=partial(read_model, Output),
    read=read,
)
