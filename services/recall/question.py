"""Question: a recall request as typed values; what can't be read is refused, never ignored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from palimpsest.internal.v1 import recall_pb2 as pb
from services.domain.errors import ValidationFailed, Violation
from services.domain.graph import GraphAspect
from services.domain.instants import Instant, Interval
from services.domain.memory import VoiceKind
from services.recall.plan import Asked
from services.recall.standing import Time
from services.wire.fields import maybe

MAX_HOPS = 4
MAX_ITEMS = 200

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is wanted. 0 facts or passages: none; 0 tokens: no limit."""

    facts: int
    passages: int
    tokens: int
    hops: int
    voice: bool


@dataclass(frozen=True, slots=True)
class Question:
    asked: Asked
    time: Time
    limits: Limits
    aspects: tuple[GraphAspect, ...] = ()
    voice_kinds: tuple[VoiceKind, ...] = ()
    hints: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    explain: bool = False
    allow_degraded: bool = False

    @property
    def is_filtered(self) -> bool:
        """Whether a filter alone says enough to answer without a word to search for."""
        return bool(self.aspects or self.labels) or not self.time.names_none


def question_in(request: pb.RecallRequest) -> Question:
    """Raises ValidationFailed with every violation."""
    violations: list[Violation] = []
    aspects = _known(request.graph_aspects, GraphAspect, "graph_aspects", violations)
    kinds = _known(request.voice_aspects, VoiceKind, "voice_aspects", violations)
    zone = request.time_zone or "UTC"
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        violations.append(Violation("time_zone", "not an IANA time zone"))
    start, end = maybe(request, "range_start"), maybe(request, "range_end")
    if start is not None and end is not None and start >= end:
        violations.append(Violation("time_range", "must end after it starts"))
    if violations:
        raise ValidationFailed(*violations)
    asked = Asked(request.query, Instant(request.now), zone, request.user_name)
    within = None if start is None and end is None else Interval(start, end)
    return Question(
        asked=asked,
        time=Time(asked.now, maybe(request, "as_of"), within, None, request.include_ended),
        limits=_limits(request),
        aspects=aspects,
        voice_kinds=kinds,
        hints=tuple(dict.fromkeys(hint for hint in request.entity_hints if hint.strip())),
        labels=tuple(request.labels),
        explain=request.explain,
        allow_degraded=request.allow_degraded,
    )


def _limits(request: pb.RecallRequest) -> Limits:
    return Limits(
        facts=min(max(request.max_facts, 0), MAX_ITEMS) if request.include_facts else 0,
        passages=min(max(request.max_passages, 0), MAX_ITEMS) if request.include_passages else 0,
        tokens=max(request.token_budget, 0),
        hops=min(max(request.max_hops, 0), MAX_HOPS),
        voice=request.include_voice,
    )


def _known(
    names: Sequence[str], read: Callable[[str], V], field: str, violations: list[Violation]
) -> tuple[V, ...]:
    found: list[V] = []
    for name in names:
        try:
            found.append(read(name))
        except ValueError:
            violations.append(Violation(field, "not a name of an aspect"))
    return tuple(found)
