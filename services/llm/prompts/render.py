"""Rendering: a prompt is a static prefix, then a task's data, each text locked inside a JSON string.

The prefix comes first and never changes, so that servers can cache it. Data comes last. Every text of users
is a JSON string in which `<`, `>` and invisible characters are escaped: no text can spell one of the tags
that delimit it, and what a model copies from it into JSON decodes to the very characters that were sent.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Generic, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import regex

from services.domain.facts import Turn, VoiceFact, WorldFact
from services.domain.graph import Literal
from services.domain.instants import Instant, moment
from services.llm.port import Tier
from services.llm.replies import Reading
from services.llm.tasks import KnownFact, NamedEntity, Setting, ToldFact
from services.llm.times import iso, show

TaskT = TypeVar("TaskT")
ReplyT = TypeVar("ReplyT")
ValueT = TypeVar("ValueT")

MAX_CONTEXT_CHARACTERS = 3_000
"""Of each earlier text that is shown to resolve references: its end, or the beginning of a similar one."""

_HIDDEN = regex.compile(r"[<>\p{Cc}\p{Cf}\p{Zl}\p{Zp}--\u200c\u200d]", regex.V1)
"""Escaped in data: the delimiters' own characters, and all that can't be seen but emoji joiners."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Section:
    """A named block of data: one JSON value a line."""

    name: str
    lines: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Prompt(Generic[TaskT, ReplyT, ValueT]):
    """One task for a model: what it is told, what data it gets, and how its reply is read.

    `schema` is None where the reply is text. `parse` finds the reply in what the model wrote; `read` checks
    it against what was sent and makes the task's value of it. Where elements had to be left out, `usable`
    says whether the rest is still an answer.
    """

    name: str
    version: str
    tier: Tier
    prefix: str
    schema: dict[str, Any] | None
    sections: Callable[[TaskT], Sequence[Section]]
    parse: Callable[[str], Reading[ReplyT]]
    read: Callable[[ReplyT, TaskT], Reading[ValueT]]
    usable: Callable[[ValueT], bool] = lambda value: True


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a model is sent: `system` is the same for every task of a prompt, `user` holds the data."""

    system: str
    user: str

    @property
    def digest(self) -> str:
        """64 hex digits; equal for equal prompts on every host."""
        text = f"{len(self.system)}:{self.system}{self.user}"
        return hashlib.sha256(text.encode()).hexdigest()


def render(prompt: Prompt[TaskT, ReplyT, ValueT], task: TaskT) -> Rendered:
    """The messages of one task. Equal input gives equal bytes."""
    head = f"# task: {prompt.name} {prompt.version}\n\n"
    blocks = [
        f"<{section.name}>\n" + "".join(f"{data(line)}\n" for line in section.lines) + f"</{section.name}>"
        for section in prompt.sections(task)
        if section.lines
    ]
    return Rendered(head + prompt.prefix.strip() + "\n", "\n".join(blocks) + "\n")


def data(value: Any) -> str:
    """One line of JSON that holds neither `<` nor `>`, nor a line break, nor a lone surrogate."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    text = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    return _HIDDEN.sub(lambda match: _escape(match.group()), text)


def setting_sections(setting: Setting) -> list[Section]:
    """What surrounds a chunk, from the most to the least stable; empty blocks are left out by `render`."""
    zone = _zone(setting.time_zone)
    local = _local(setting.reference_time, zone)
    about = {
        "kind": setting.kind.value,
        "user": setting.user,
        "languages": list(setting.languages),
        "source": setting.source,
        "heading": list(setting.heading),
        "reference_time": local.isoformat(),
        "weekday": f"{local:%A}",
        "iso_week": f"{local:%G-W%V}",
        "time_zone": setting.time_zone,
    }
    return [
        Section("ingestion_rules", list(setting.rules)),
        Section("known_predicates", list(setting.known_predicates)),
        Section("known_entities", [_known_entity(name, setting) for name in setting.known_entities]),
        Section("known_facts", [known_fact(fact) for fact in setting.known_facts]),
        Section("similar_texts", [text[:MAX_CONTEXT_CHARACTERS] for text in setting.similar]),
        Section("recent_texts", [text[-MAX_CONTEXT_CHARACTERS:] for text in setting.recent]),
        Section("setting", [about]),
    ]


def _known_entity(name: str, setting: Setting) -> str | dict[str, Any]:
    """Its name; beside other names by which the text calls it, where it does."""
    also = [other for other, meant in setting.known_names if meant == name]
    return {"name": name, "also": also} if also else name


def turns_section(turns: Sequence[Turn], setting: Setting) -> Section:
    """The raw turns, each with its number."""
    zone = _zone(setting.time_zone)
    return Section("turns", [_turn(turn, zone) for turn in turns])


def known_fact(fact: KnownFact, number: int | None = None) -> dict[str, Any]:
    shown: dict[str, Any] = {} if number is None else {"number": number}
    shown["fact"] = fact.fact
    shown["since"] = None if fact.valid_at is None else show(fact.valid_at)
    shown["until"] = None if fact.invalid_at is None else show(fact.invalid_at)
    return shown | ({"source": fact.source} if fact.source else {})


def told_fact(fact: ToldFact, number: int) -> dict[str, Any]:
    shown = known_fact(KnownFact(fact.fact, fact.valid_at, fact.invalid_at), number)
    return {name: value for name, value in shown.items() if value is not None} | {"kind": fact.kind}


def named_entity(entity: NamedEntity, number: int) -> dict[str, Any]:
    shown = {"number": number, "name": entity.name, "type": entity.type.value, "in_text": entity.here}
    facts = [{name: value for name, value in known_fact(one).items() if value} for one in entity.facts]
    return shown | {"facts": facts}


def world_fact(fact: WorldFact, number: int) -> dict[str, Any]:
    target = fact.object.text if isinstance(fact.object, Literal) else fact.object.name
    times = {name: iso(time) for name in ("start", "end") if (time := getattr(fact, name)) is not None}
    triple = [fact.subject.name, fact.predicate, target]
    return {"number": number, "kind": fact.kind.value, "fact": fact.fact, "triple": triple, **times}


def voice_fact(fact: VoiceFact, number: int) -> dict[str, Any]:
    kind = {} if fact.kind is None else {"kind": fact.kind.value}
    return {"number": number, "sentence": fact.text, **kind}


def _turn(turn: Turn, zone: tzinfo) -> dict[str, Any]:
    said_at = None if turn.said_at is None else _local(turn.said_at, zone).isoformat()
    about = {"speaker": turn.speaker, "role": turn.role.value, "said_at": said_at}
    return {"turn": turn.position, **{key: value for key, value in about.items() if value}, "text": turn.text}


def _local(at: Instant, zone: tzinfo) -> datetime:
    try:
        return moment(at).astimezone(zone)
    except OverflowError:
        return moment(at)  # within hours of the calendar's ends


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC  # the gateway checks names; one that this host lacks must not stop an ingest


def _escape(character: str) -> str:
    """As JSON escapes it: a pair of surrogates beyond the first plane."""
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
