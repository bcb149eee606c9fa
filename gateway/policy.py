"""What a graph says of a text before anything keeps or reads it: who may see it, what is blacked out."""

import asyncio
from collections.abc import Set
from typing import Any, TypeVar

from google.protobuf.message import Message

from gateway.errors import GraphNotFound, ValidationFailed, Violation
from gateway.patterns import TookTooLong
from gateway.redaction import Redactor
from gateway.store.graphs import Graphs
from palimpsest.v1 import entity_pb2
from palimpsest.v1.graph_pb2 import GraphSettings
from services.domain.errors import ModelNotAllowed
from services.domain.scope import Scope

Request = TypeVar("Request", bound=Message)

_NO_TEXT = frozenset({"time_zone", "page_token", "cursor", "source", "predicate"})
"""Fields of requests that are names, not text; so are all whose name ends in `_id` or `_ids`."""


TOO_SLOW = Violation(
    "settings.redaction.patterns", "did not get through this text in time", "redaction.patterns.in_time"
)
"""What is not blacked out is not taken."""


class TextPolicy:
    """Holds texts to the settings of their graph. `providers` are those that see texts of this server."""

    def __init__(self, graphs: Graphs, providers: Set[str]) -> None:
        self._graphs = graphs
        self._providers = providers

    async def __call__(self, scope: Scope, request: Request) -> Request:
        """The request as it may be kept and read. Raises ModelNotAllowed, ValidationFailed (see TOO_SLOW)."""
        try:
            settings = (await self._graphs.get(scope)).settings
        except GraphNotFound:
            return request
        check_providers(settings, self._providers)
        redactor = Redactor(settings.redaction)
        if not redactor:
            return request
        # In a thread of its own: a text of two megabytes takes seconds at worst.
        try:
            return await asyncio.to_thread(redacted, request, redactor)
        except TookTooLong:
            raise ValidationFailed(TOO_SLOW) from None


def check_providers(settings: GraphSettings, providers: Set[str]) -> None:
    """Raises ModelNotAllowed when one of `providers` may not see the graph's text."""
    allowed = settings.models.allowed_providers
    if allowed and not providers <= set(allowed):
        raise ModelNotAllowed


def redacted(request: Request, redactor: Redactor) -> Request:
    """A copy with marks in every text; names that the caller chose (ids, sources) stay as they are."""
    copy = type(request)()
    copy.CopyFrom(request)
    _redact(copy, redactor)
    return copy


def _redact(message: Message, redactor: Redactor) -> None:
    if isinstance(message, entity_pb2.Literal):
        _redact_literal(message, redactor)
        return
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            _redact_map(value, redactor)
        elif field.message_type is not None:
            for one in value if field.is_repeated else [value]:
                _redact(one, redactor)
        elif field.type == field.TYPE_STRING and not _is_name(field.name):
            if field.is_repeated:
                value[:] = [redactor.text(one) for one in value]
            else:
                setattr(message, field.name, redactor.text(value))


def _redact_map(entries: Any, redactor: Redactor) -> None:
    for key, value in list(entries.items()):
        if isinstance(value, str):
            del entries[key]
            entries[redactor.text(key)] = redactor.text(value)


def _redact_literal(literal: entity_pb2.Literal, redactor: Redactor) -> None:
    if literal.WhichOneof("value") == "string_value":
        literal.string_value = redactor.text(literal.string_value)
    elif literal.WhichOneof("value") == "number_value" and (mark := redactor.mark_of(literal.number_value)):
        literal.string_value = mark


def _is_name(field: str) -> bool:
    return field in _NO_TEXT or field.endswith(("_id", "_ids"))
