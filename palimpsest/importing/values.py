"""Values of an import: records of files, and the facts and texts that they become."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from palimpsest.dates import Dated, timestamp
from palimpsest.v1 import entity_pb2, memory_ingest_pb2

Input = memory_ingest_pb2.ClaimInput | memory_ingest_pb2.EndInput | memory_ingest_pb2.DenialInput
Key = str
"""Of a fact or text: from its content alone, wherever in whichever file it stands."""


class Form(StrEnum):
    """What is said of a triple: it holds, it stopped, it did not hold."""

    CLAIM = "claim"
    END = "end"
    DENIAL = "denial"


class Fate(StrEnum):
    """What came of a record; every record has exactly one."""

    IMPORTED = "imported"
    READY = "ready"
    """It would be imported: this is a dry run."""
    KNOWN = "known"
    """All that it says was taken in by an earlier import."""
    SAME = "same"
    """Another record of the files says the same; that one counts."""
    REFUSED = "refused"
    """It can't be read, or the server refuses it."""
    FAILED = "failed"
    """A text that was accepted and could not be understood; the same import tries it again."""
    LEFT_OUT = "leftOut"
    """It is of a kind that is not carried, or was not asked for."""
    UNSENT = "unsent"
    """The import stopped before it."""


@dataclass(frozen=True, slots=True)
class Named:
    """An entity by its name."""

    name: str
    type: entity_pb2.EntityType.ValueType = entity_pb2.ENTITY_TYPE_UNSPECIFIED


@dataclass(frozen=True, slots=True)
class Said:
    """When something was said. `told`: by the record itself; otherwise taken from its file."""

    at: datetime
    told: bool = True


@dataclass(frozen=True, slots=True)
class Fact:
    """One claim, end or denial. `end` of an END is when it stopped; of a DENIAL both are its period."""

    subject: Named
    predicate: str
    object: Named | entity_pb2.Literal
    said: Said
    quote: str
    source: str
    form: Form = Form.CLAIM
    start: Dated | None = None
    end: Dated | None = None
    fact: str = ""
    confidence: float | None = None

    @property
    def key(self) -> Key:
        told = self.input()
        if not self.said.told:
            told.ClearField("reference_time")
        return _digest(self.form, self.source, told.SerializeToString(deterministic=True))

    def input(self) -> Input:
        """As AssertTriples takes it."""
        given: dict[str, Any] = {
            "subject": _entity(self.subject),
            "predicate": self.predicate,
            "object": entity_pb2.ObjectRef(entity=_entity(self.object))
            if isinstance(self.object, Named)
            else entity_pb2.ObjectRef(literal=self.object),
            "reference_time": timestamp(self.said.at),
            "quote": self.quote,
            "confidence": self.confidence,
        }
        match self.form:
            case Form.CLAIM:
                dates = _dated(self.start, "valid_at") | _dated(self.end, "invalid_at")
                return memory_ingest_pb2.ClaimInput(**given, **dates, fact=self.fact)
            case Form.END:
                return memory_ingest_pb2.EndInput(**given, **_dated(self.end, "ended_at"))
            case _:
                return memory_ingest_pb2.DenialInput(
                    **given,
                    denied_from=self.start.timestamp if self.start else None,
                    denied_until=self.end.timestamp if self.end else None,
                )


@dataclass(frozen=True, slots=True)
class Words:
    """A text to be understood: a request of AddEpisode without graph and request id."""

    request: memory_ingest_pb2.AddEpisodeRequest
    said: Said

    @property
    def key(self) -> Key:
        told = memory_ingest_pb2.AddEpisodeRequest()
        told.CopyFrom(self.request)
        if not self.said.told:
            told.ClearField("reference_time")
        return _digest("text", "", told.SerializeToString(deterministic=True))


Item = Fact | Words


@dataclass(slots=True)
class Record:
    """A record of a file. `place` tells where it stands: `edges.jsonl line 12`."""

    place: str
    kind: str
    items: list[Key] = field(default_factory=list)
    """What it becomes."""
    rests_on: list[Key] = field(default_factory=list)
    """Of one that becomes nothing by itself: facts that carry it."""
    why: str = ""
    """Why it was not taken, where that is known before anything is sent."""
    left_out: bool = False
    same_as: str = ""
    """The place of a record that says the same."""
    notes: list[str] = field(default_factory=list)
    """What of it is not carried, although the record is."""


@dataclass(slots=True)
class Reading:
    """All records of the files, and what they become, each once."""

    records: list[Record] = field(default_factory=list)
    items: dict[Key, Item] = field(default_factory=dict)
    _first: dict[Key, str] = field(default_factory=dict)

    def take(self, record: Record, items: Sequence[Item], rests_on: Sequence[Key] = ()) -> list[Key]:
        """Adds a record with what it becomes; the keys of that."""
        self.records.append(record)
        fresh = False
        for item in items:
            key = item.key
            fresh = fresh or key not in self.items
            self.items.setdefault(key, item)
            self._first.setdefault(key, record.place)
            record.items.append(key)
        record.rests_on.extend(rests_on)
        if record.items and not fresh:
            record.same_as = self._first[record.items[0]]
        return record.items

    def refuse(self, place: str, kind: str, why: str) -> None:
        self.records.append(Record(place, kind, why=why))

    def leave_out(self, place: str, kind: str, why: str) -> None:
        self.records.append(Record(place, kind, why=why, left_out=True))


def marked(graph: str, key: Key) -> str:
    """A name of a fact or text in a graph, to be known by in calls and reports: 40 hex digits."""
    return _digest(graph, key)[:40]


def _entity(named: Named) -> entity_pb2.EntityRef:
    return entity_pb2.EntityRef(name=named.name, type=named.type)


def _dated(date: Dated | None, field: str) -> dict[str, Any]:
    """A time and its precision as fields of a message."""
    return {field: date.timestamp, f"{field}_precision": date.precision} if date else {}


def _digest(*parts: str | bytes) -> Key:
    made = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        made.update(len(raw).to_bytes(8, "big") + raw)
    return made.hexdigest()
