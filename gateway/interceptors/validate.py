"""The step that holds a request against the rules beside its fields, and tells every one it breaks."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from google.protobuf.message import Message
from protovalidate import Validator

from gateway.errors import ValidationFailed, Violation
from gateway.interceptors.call import Call

MOST_VIOLATIONS = 100
"""A status travels in headers, which have an end; a request with more has enough to mend."""


class Validate:
    """Refuses a request that breaks a rule. A stream's messages are checked by its handler."""

    def __init__(self) -> None:
        self._validator = Validator()

    @asynccontextmanager
    async def around(self, call: Call) -> AsyncIterator[None]:
        if call.rpc is not None and isinstance(call.request, Message):
            violations = self.violations(call.request)
            if violations:
                raise ValidationFailed(*violations[:MOST_VIOLATIONS])
        yield

    def violations(self, message: Message) -> Sequence[Violation]:
        """All rules that a message breaks."""
        return [
            Violation(
                field_path(found.proto.field), found.proto.message or "is invalid", found.proto.rule_id or ""
            )
            for found in self._validator.collect_violations(message)
        ]


def field_path(path: Any) -> str:
    """`claims[0].subject` for a field path of protovalidate; "" for the whole message."""
    text = ""
    for element in getattr(path, "elements", ()):
        text += ("." if text else "") + element.field_name
        text += _subscript(element)
    return text


def _subscript(element: Any) -> str:
    subscript = getattr(element, "subscript", None)
    if subscript is None:
        return ""
    value = getattr(subscript, "value", subscript)
    return f"[{value!r}]" if isinstance(value, str) else f"[{value}]"
