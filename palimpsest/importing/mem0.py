"""mem0: memories and the relations of its graph, as get_all and the platform's list of memories give them.

A memory is a sentence, no triple: it becomes a message, to be understood like any other, said when it was
last written (`updated_at`, else `created_at`). A relation becomes a claim; it has no date of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from palimpsest.chats import MOST_BYTES, Unreadable, chosen_id
from palimpsest.dates import timestamp
from palimpsest.importing import fitting
from palimpsest.importing.reading import File, Part, parts_of
from palimpsest.importing.values import Fact, Named, Reading, Record, Said, Words
from palimpsest.v1 import episode_pb2, memory_ingest_pb2

SOURCE = "mem0"
_OWNERS = ("user_id", "agent_id", "app_id", "run_id", "session_id")
_TEXTS = ("memory", "data", "content", "text")
_TARGETS = ("destination", "target")
_KEPT = frozenset(
    {"id", *_OWNERS, *_TEXTS, "created_at", "updated_at", "metadata", "categories", "role", "actor_id", "owner"}
)
_AS_METADATA = ("id", "created_at", "updated_at", "expiration_date", "replaced_by")
_ROLES = {"assistant": episode_pb2.MESSAGE_ROLE_ASSISTANT, "system": episode_pb2.MESSAGE_ROLE_SYSTEM}
_MOST_PAIRS = 32
_MOST_KEY, _MOST_VALUE = 64, 512


@dataclass(frozen=True, slots=True)
class _Found:
    part: Part
    kind: str
    owner: str
    changed: datetime


def read(files: Sequence[File], only: str = "", said: datetime | None = None) -> Reading:
    """All records. `only` chooses a user (or agent, app, run, where there is no user).

    Raises Unreadable for a file that is no JSON, or when there are several users and none is chosen.
    """
    reading = Reading()
    found = list(_found(files, reading, said))
    owners = {one.owner for one in found if one.owner}
    if len(owners) > 1 and not only:
        raise Unreadable(f"{len(owners):,} users: choose one with --only, each for a graph of its own")
    for one in found:
        if only and one.owner != only:
            reading.leave_out(one.part.place, one.kind, "of another user, or of none")
        elif one.kind == "memory":
            _memory(one, reading)
        else:
            _relation(one, reading)
    return reading


def _found(files: Sequence[File], reading: Reading, said: datetime | None) -> Iterable[_Found]:
    for file in files:
        for part in parts_of(file):
            try:
                if part.why:
                    raise Unreadable(part.why)
                yield _Found(part, _kind(part.value), _owner(part.value), said or file.changed)
            except Unreadable as error:
                reading.refuse(part.place, "record", str(error))


def _kind(value: Mapping[str, Any]) -> str:
    if "source" in value and any(name in value for name in ("relationship", "relation")):
        return "relation"
    if any(name in value for name in _TEXTS):
        return "memory"
    raise Unreadable("neither a memory nor a relation of mem0")


def _owner(value: Mapping[str, Any]) -> str:
    """Whose it is, by the first of the ids that are given."""
    return next((own for own in (fitting.text_of(value.get(name), name) for name in _OWNERS) if own), "")


def _memory(found: _Found, reading: Reading) -> None:
    value, record = found.part.value, Record(found.part.place, "memory")
    try:
        text = next((text for text in (fitting.text_of(value.get(name), name) for name in _TEXTS) if text), "")
        if not text.strip():
            raise Unreadable("`memory` is empty")
        if len(text.encode()) > MOST_BYTES:
            raise Unreadable(f"`memory` is larger than {MOST_BYTES >> 10} KiB")
        said = _said(found)
        id = fitting.text_of(value.get("id"), "id")
        role = fitting.text_of(value.get("role"), "role").lower()
        message = memory_ingest_pb2.EpisodeMessage(
            message_id=chosen_id(f"mem0/{id}/{said.at.isoformat()}") if id else "",
            role=_ROLES.get(role, episode_pb2.MESSAGE_ROLE_USER),
            speaker=" ".join(fitting.text_of(value.get("actor_id"), "actor_id").split())[:200],
            text=text,
            time=timestamp(said.at) if said.told else None,
        )
        run = fitting.text_of(value.get("run_id") or value.get("session_id"), "run_id")
        request = memory_ingest_pb2.AddEpisodeRequest(
            kind=episode_pb2.EPISODE_KIND_CONVERSATION,
            messages=memory_ingest_pb2.EpisodeMessages(messages=[message]),
            session_id=chosen_id(f"mem0/{run or found.owner or 'memories'}"),
            source=SOURCE,
            reference_time=timestamp(said.at),
            metadata=_metadata(value, record.notes),
        )
    except Unreadable as error:
        reading.refuse(record.place, "memory", str(error))
        return
    reading.take(record, [Words(request, said)])


def _metadata(value: Mapping[str, Any], notes: list[str]) -> dict[str, str]:
    """Ids and dates of mem0, categories and the user's own metadata, as far as an episode has room."""
    given: dict[str, Any] = {f"mem0_{name}": value.get(name) for name in _AS_METADATA}
    categories = value.get("categories")
    if isinstance(categories, list):
        given["mem0_categories"] = ", ".join(str(one) for one in categories)
    own = value.get("metadata") or {}
    if not isinstance(own, dict):
        raise Unreadable("`metadata` is no object")
    given |= own
    kept: dict[str, str] = {}
    for name, one in given.items():
        if one is None or one == "":
            continue
        text = one if isinstance(one, str) else str(one).lower() if isinstance(one, bool) else str(one)
        plain = isinstance(one, str | int | float) and name.isprintable() and text.isprintable()
        if plain and len(kept) < _MOST_PAIRS and 0 < len(name) <= _MOST_KEY and len(text) <= _MOST_VALUE:
            kept[name] = text
        else:
            notes.append("metadata that is long, nested, or more than an episode has room for")
    notes += [
        f"`{name}` of a memory"
        for name, one in value.items()
        if name not in _KEPT and name not in _AS_METADATA and one not in (None, "", [], {})
    ]
    return kept


def _relation(found: _Found, reading: Reading) -> None:
    value, record = found.part.value, Record(found.part.place, "relation")
    try:
        target = next((value[name] for name in _TARGETS if value.get(name) is not None), None)
        subject = fitting.name_of(value.get("source"), "source")
        predicate = fitting.predicate_of(value.get("relationship") or value.get("relation"), "relationship")
        object = fitting.name_of(target, "destination")
        fact = Fact(
            Named(_spaced(subject)),
            predicate,
            Named(_spaced(object)),
            _said(found),
            f"{_spaced(subject)} {predicate.replace('_', ' ')} {_spaced(object)}",
            SOURCE,
        )
    except Unreadable as error:
        reading.refuse(record.place, "relation", str(error))
        return
    if not fact.said.told:
        record.notes.append("the date of a relation, which mem0 does not export: said when the file was written")
    reading.take(record, [fact])


def _spaced(name: str) -> str:
    """mem0 writes names of its graph as `alice_smith`."""
    return " ".join(name.replace("_", " ").split()) or name


def _said(found: _Found) -> Said:
    for name in ("updated_at", "created_at"):
        at = fitting.time_of(found.part.value.get(name), name)
        if at is not None:
            return Said(at.at)
    return Said(found.changed, told=False)
