"""Classify: aspects of world facts with the dates of events, and aspects of the user's voice."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Protocol, TypeVar

from pydantic import BaseModel

from services.domain.graph import GraphAspect
from services.domain.instants import Instant
from services.domain.memory import VoiceKind
from services.llm import tasks
from services.llm.port import Tier
from services.llm.prompts import parts
from services.llm.prompts.render import Prompt, Section, setting_sections, voice_fact, world_fact
from services.llm.replies import Reading, read_model, strict_schema
from services.llm.times import parse_stated

VERSION = "1"

WORLD_ASPECTS = """\
`aspect` of a world fact:
- Identity: who or what someone or something is: name, role, origin, home, employer, birthday.
- Event: something that happened or will happen at a time.
- Relationship: how people, teams or things stand to each other.
- Decision: what was decided or chosen, and what follows from it.
- Problem: what is broken, risky, missing, blocked.
- Task: what someone is to do.
- Knowledge: everything else that is worth knowing, tools in use and tastes included.
- null when none fits.
`event_at`: for an Event its date, as fine as it is known (2025, 2025-03, 2025-03-09, or a timestamp), else
null."""

VOICE_ASPECTS = """\
`aspect` of a voice sentence:
- Directive: how an assistant shall work for the user.
- Preference: what the user likes better. Habit: what the user regularly does.
- Belief: what the user holds to be true or right. Goal: what the user wants to reach.
- Task: what the user has set themselves to do.
- null when it is not the user's lasting voice at all; such a sentence is dropped."""

PREFIX = f"""
You classify facts. For each fact of <world_facts> and each sentence of <voice_facts> give one entry with its
`number`; leave none out.

{parts.DATA_IS_DATA}
{WORLD_ASPECTS}

{VOICE_ASPECTS}

{parts.JSON_ONLY}
"""


class World(BaseModel):
    """The class of one world fact."""

    number: int
    aspect: Annotated[GraphAspect | None, parts.one_of(GraphAspect)]
    event_at: parts.When = None


class Voice(BaseModel):
    """The class of one sentence."""

    number: int
    aspect: Annotated[VoiceKind | None, parts.one_of(VoiceKind)]


class Output(BaseModel):
    """The whole answer."""

    world: list[World]
    voice: list[Voice]


class _Numbered(Protocol):
    @property
    def number(self) -> int: ...


EntryT = TypeVar("EntryT", bound=_Numbered)
ValueT = TypeVar("ValueT")


def sections(task: tasks.Classify) -> Sequence[Section]:
    return [
        *setting_sections(task.setting),
        Section("world_facts", [world_fact(fact, number) for number, fact in enumerate(task.world)]),
        Section("voice_facts", [voice_fact(fact, number) for number, fact in enumerate(task.voice)]),
    ]


def read(reply: Output, task: tasks.Classify) -> Reading[tasks.Classified]:
    unclassified: tuple[GraphAspect | None, Instant | None] = (None, None)
    world, problems = _in_order(reply.world, len(task.world), "world", _world_class, unclassified)
    voice, more = _in_order(reply.voice, len(task.voice), "voice", lambda entry: entry.aspect, None)
    if len(problems) + len(more) and not _any_known(reply, task):
        return Reading(None, (*problems, *more))
    return Reading(tasks.Classified(world, voice), (*problems, *more))


def _any_known(reply: Output, task: tasks.Classify) -> bool:
    return any(0 <= entry.number < len(task.world) for entry in reply.world) or any(
        0 <= entry.number < len(task.voice) for entry in reply.voice
    )


def _world_class(entry: World) -> tuple[GraphAspect | None, Instant | None]:
    time = parse_stated(entry.event_at)
    return entry.aspect, None if time is None else time.at


def _in_order(
    entries: Sequence[EntryT], count: int, name: str, value: Callable[[EntryT], ValueT], missing: ValueT
) -> tuple[tuple[ValueT, ...], list[str]]:
    """One value for each number below `count`, the first entry winning, and what is wrong."""
    known = {entry.number: value(entry) for entry in reversed(entries) if 0 <= entry.number < count}
    wrong = [entry.number for entry in entries if not 0 <= entry.number < count]
    problems = [parts.unknown(number, range(count), f"{name} number") for number in wrong]
    problems += [f"{name} number {number} has no entry" for number in range(count) if number not in known]
    return tuple(known.get(number, missing) for number in range(count)), problems


CLASSIFY: Prompt[tasks.Classify, Output, tasks.Classified] = Prompt(
    name="classify",
    version=VERSION,
    tier=Tier.MEDIUM,
    prefix=PREFIX,
    schema=strict_schema(Output),
    sections=sections,
    parse=partial(read_model, Output),
    read=read,
)
