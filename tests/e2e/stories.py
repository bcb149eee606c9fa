"""The conversations of tests/cases/conversations.yaml and others like them, told to a running product."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from palimpsest.v1 import job_pb2
from tests import yaml_files
from tests.e2e.talking import ASSISTANT, USER, Fact, Memory, Message

Said = str | tuple[Message, ...]
Line = tuple[str, Said]
"""A day, and what was said on it."""

_ROLES = {"user": USER, "assistant": ASSISTANT}
_MESSAGES_SAID_ON = "2025-01-01"


@dataclass(frozen=True, slots=True)
class Story:
    """What is said, and every fact that must follow."""

    name: str
    lines: tuple[Line, ...]
    facts: frozenset[Fact]

    @classmethod
    def of(cls, name: str, lines: Sequence[Line], *facts: Fact) -> "Story":
        return cls(name, tuple(lines), frozenset(facts))


@cache
def case(name: str) -> dict[str, Any]:
    """A case by its id."""
    file = Path(__file__).parent.parent / "cases" / "conversations.yaml"
    found: dict[str, Any] = next(one for one in yaml_files.read(file) if one["id"] == name)
    return found


def lines(name: str) -> list[Line]:
    """What a case says."""
    found = case(name)
    if "messages" in found:
        messages = tuple((_ROLES[one["role"]], str(one["text"])) for one in found["messages"])
        return [(_MESSAGES_SAID_ON, messages)]
    return [(day.isoformat(), str(text)) for day, text in found["say"]]


def talk(*texts: str) -> tuple[Message, ...]:
    """Messages of a user and an assistant by turns, the user first."""
    return tuple((ASSISTANT if number % 2 else USER, text) for number, text in enumerate(texts))


async def tell(memory: Memory, story: Sequence[Line]) -> list[job_pb2.Job]:
    """Says each line and waits for its job; returns the finished jobs."""
    return [await memory.say(said, at) for at, said in story]
