"""Understand: raw turns to classified facts in one call, for graphs of the economy profile.

What facts are is worded where the full profile words it: a fact means the same in both.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from pydantic import BaseModel, BeforeValidator

from services.domain.facts import NothingReason, VoiceFact, WorldFact
from services.domain.graph import GraphAspect
from services.domain.memory import VoiceKind
from services.llm import tasks
from services.llm.port import Tier
from services.llm.prompts import classify, extract_voice, extract_world, normalise, parts
from services.llm.prompts.render import Prompt, Section, setting_sections, turns_section
from services.llm.replies import Reading, read_model, strict_schema
from services.llm.times import parse_stated

VERSION = "1"

PREFIX = f"""
You extract what is worth remembering from the raw turns of <turns>: durable facts about the world as triples
with the time each holds (`facts`), and the user's own voice as whole sentences (`sentences`), each with what
it is about (`aspect`).

{parts.DATA_IS_DATA}
{parts.OWNERSHIP}
{parts.ASSISTANT}
The user is called as `user` of <setting> says. <recent_texts>, <similar_texts> and <known_facts> are there to
resolve pronouns and names; draw nothing from them. Relative dates are read in `time_zone`.

FACTS. A fact drawn from an assistant's turn needs `confirmed_by`: the number of the user's turn that confirms
it. In all other facts `confirmed_by` is null.

{extract_world.rules("these are sentences")}

SENTENCES: whole sentences in which the user says how things shall be done for them (directives), what they
prefer, what they habitually do, what they believe, what they aim at, what they have set themselves to do.
{extract_voice.rules("these are facts")}

ASPECTS
{classify.WORLD_ASPECTS}
{classify.VOICE_ASPECTS}

NOTHING. `nothing` is null where there is a fact or a sentence. Where nothing durable is said, both lists are
empty and `nothing` is one of {", ".join(normalise.REASONS)}.
{normalise.REASONS_TOLD}
{parts.JSON_ONLY}
"""


def _reason(value: object) -> object:
    """A reason in any case, with or without what goes before it elsewhere; other words are none."""
    words = str(value or "").upper().split()
    return next((reason for reason in normalise.REASONS if reason.value in words), None)


class Fact(extract_world.Fact):
    """One proposed fact with its class."""

    aspect: Annotated[GraphAspect | None, parts.maybe_of(GraphAspect)] = None
    event_at: parts.When = None


class Sentence(extract_voice.Sentence):
    """One proposed sentence with its class."""

    aspect: Annotated[VoiceKind | None, parts.maybe_of(VoiceKind)] = None


class Output(BaseModel):
    """The whole answer."""

    facts: list[Fact]
    sentences: list[Sentence]
    nothing: Annotated[NothingReason | None, BeforeValidator(_reason)] = None


def sections(task: tasks.Understand) -> Sequence[Section]:
    return [*setting_sections(task.setting), turns_section(task.turns, task.setting)]


def read(reply: Output, task: tasks.Understand) -> Reading[tasks.Understood]:
    extract = tasks.Extract(task.turns, "", task.setting)
    world, wrong = extract_world.drawn(reply.facts, extract)
    voice, more = extract_voice.drawn(reply.sentences, extract)
    facts = tuple(_classified(fact, reply.facts[at]) for at, fact in world)
    sentences = tuple(_voiced(said, reply.sentences[at]) for at, said in voice)
    nothing = None if facts or sentences or wrong or more else reply.nothing
    return Reading(tasks.Understood(facts, sentences, nothing), (*wrong, *more))


def _classified(fact: WorldFact, told: Fact) -> WorldFact:
    time = parse_stated(told.event_at)
    return replace(fact, aspect=told.aspect, event_at=None if time is None else time.at)


def _voiced(fact: VoiceFact, told: Sentence) -> VoiceFact:
    return replace(fact, kind=told.aspect)


UNDERSTAND: Prompt[tasks.Understand, Output, tasks.Understood] = Prompt(
    name="understand",
    version=VERSION,
    tier=Tier.MEDIUM,
    prefix=PREFIX,
    schema=strict_schema(Output),
    sections=sections,
    parse=partial(read_model, Output),
    read=read,
    usable=lambda value: bool(value.world or value.voice),
)
