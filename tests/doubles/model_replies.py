"""What the model server answers: right replies in many clothes, and every way to misbehave."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """A chat request as the server saw it. `blocks`: the data blocks of the prompt, decoded line by line."""

    task: str
    model: str
    system: str
    user: str
    messages: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    blocks: Mapping[str, Sequence[Any]]

    @property
    def is_repair(self) -> bool:
        return len(self.messages) > 2

    @property
    def form(self) -> str:
        """How the shape of the answer was asked for: json_schema, tool or plain."""
        return (
            "json_schema" if "response_format" in self.body else "tool" if "tools" in self.body else "plain"
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. `content` goes into a tool call when one was asked for; `body` replaces all of it."""

    content: str = ""
    finish: str = "stop"
    refusal: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    delay_ms: float = 0
    body_delay_ms: float = 0
    drop: bool = False
    usage: bool = True


Responder = Callable[[Asked], Reply]


@dataclass(slots=True)
class Rule:
    """Answers requests of `task` (any when empty) whose data holds `contains`, at most `times` times."""

    task: str
    contains: str
    reply: Reply | Responder
    times: int | None = None

    def fits(self, asked: Asked) -> bool:
        return self.times != 0 and self.task in {"", asked.task} and self.contains in asked.user

    def answer(self, asked: Asked) -> Reply:
        if self.times is not None:
            self.times -= 1
        return self.reply if isinstance(self.reply, Reply) else self.reply(asked)


def answer(value: Any) -> Reply:
    """The value as JSON, as asked."""
    return Reply(json.dumps(value, ensure_ascii=False))


def text(content: str) -> Reply:
    return Reply(content)


def fenced(value: Any) -> Reply:
    return Reply(f"```json\n{json.dumps(value, indent=2)}\n```")


def in_prose(value: Any) -> Reply:
    return Reply(
        f"Sure! Here is what I found [see below]: {json.dumps(value)} Let me know if {{you}} need more."
    )


def thinking(value: Any) -> Reply:
    """A draft inside the reasoning must not be taken for the answer."""
    draft = '{"facts": [{"kind": "claim"}], "sentences": [], "verdicts": [{"new": 9}]}'
    return Reply(f"<think>\nMaybe {draft}? No.\n</think>\n{json.dumps(value)}")


def bare_list(items: Sequence[Any]) -> Reply:
    return Reply(json.dumps(items))


def cut(value: Any) -> Reply:
    """Cut off in the middle at the output limit."""
    whole = json.dumps(value)
    return Reply(whole[: len(whole) * 2 // 3], finish="length")


def refused() -> Reply:
    return Reply("", refusal="I can't help with that.")


def refused_in_prose() -> Reply:
    return Reply("I'm sorry, but I can't assist with that request.")


def filtered() -> Reply:
    return Reply("", finish="content_filter")


def noise(words: int = 8_000) -> Reply:
    """Words and brackets without an answer."""
    return Reply(" ".join("{[ lorem ipsum: [1, 2" if at % 9 == 0 else "lorem" for at in range(words)))


def rate_limited(seconds: float | str | None, reply: Reply | None = None) -> Reply:
    headers = {} if seconds is None else {"retry-after": str(seconds)}
    return replace(reply or Reply(), status=429, headers=headers, body=_error("rate_limit_exceeded"))


def failing(status: int = 500, code: str = "server_error", param: str | None = None) -> Reply:
    return Reply(status=status, body=_error(code, param))


def dropped() -> Reply:
    return Reply(drop=True)


def late(milliseconds: float, reply: Reply) -> Reply:
    """A slow first byte."""
    return replace(reply, delay_ms=milliseconds)


def stalled(milliseconds: float, reply: Reply) -> Reply:
    """The head at once, the body late."""
    return replace(reply, body_delay_ms=milliseconds)


def _error(code: str, param: str | None = None) -> dict[str, Any]:
    # The message quotes the prompt, as real servers do: it must not leak into our errors.
    message = f"{code}: bad {param or 'request'} near 'SECRET-PROMPT-TEXT'"
    return {"error": {"message": message, "type": code, "code": code, "param": param}}
