"""mem0: memories, what they were before, and relations, as get_all, history and the platform give them.

A memory is a sentence, no triple: it becomes a message, to be understood like any other, said when it was
last written (`updated_at`, else `created_at`). So does each earlier wording in its history. A relation of
mem0's graph becomes a claim; it has no date of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from palimpsest.chats import MOST_BYTES, Unreadable, chosen_id
from palimpsest.dates import timestamp
from palimpsest.importing import fitting
from palimpsest.importing.reading import File, Part, parts_of
from palimpsest.importing.values import Fact, Key, Named, Reading, Record, Said, Words
from palimpsest.v1 import episode_pb2, memory_ingest_pb2

SOURCE = "mem0"
_OWNERS = ("user_id", "agent_id", "app_id", "run_id", "session_id")
_TEXTS = ("memory", "data", "content", "text")
_TARGETS = ("destination", "target")
_KEPT = frozenset(
    {
        "id", "hash", *_OWNERS, *_TEXTS, "created_at", "updated_at", "metadata", "categories", "role",
        "actor_id", "owner", "history", "memory_id", "old_memory", "new_memory", "event", "is_deleted",
        "input",
    }
)  # fmt: skip
_AS_METADATA = ("id", "created_at", "updated_at", "expiration_date", "replaced_by")
_ROLES = {"assistant": episode_pb2.MESSAGE_ROLE_ASSISTANT, "system": episode_pb2.MESSAGE_ROLE_SYSTEM}
_MOST_PAIRS = 32
_MOST_KEY, _MOST_VALUE = 64, 512
_ONE_WRITE = timedelta(minutes=1)
"""A wording of the history that is no older than this than the memory, and reads alike, is the memory."""


@dataclass(frozen=True, slots=True)
class _Found:
    part: Part
    kind: str
    owner: str
    changed: datetime

    @property
    def memory(self) -> str:
        """The id of the memory that it is, or belongs to."""
        value = self.part.value
        return fitting.text_of(value.get("memory_id" if self.kind == "history" else "id"), "id")


@dataclass(frozen=True, slots=True)
class _Taken:
    """A memory that was taken in, as its history is compared with it."""

    place: str
    text: str
    said: Said
    keys: Sequence[Key]


def read(files: Sequence[File], only: str = "", said: datetime | None = None) -> Reading:
    """All records. `only` chooses a user (or agent, app, run, where there is no user).

    Raises Unreadable for a file that is no JSON, or when there are several users and none is chosen.
    """
    reading = Reading()
    found = list(_found(files, reading, said))
    owner_of = {one.memory: one.owner for one in found if one.kind == "memory"}
    found = [one if one.owner else replace(one, owner=owner_of.get(one.memory, "")) for one in found]
    owners = {one.owner for one in found if one.owner}
    if len(owners) > 1 and not only:
        raise Unreadable(f"{len(owners):,} users: choose one with --only, each for a graph of its own")
    chosen: dict[str, list[_Found]] = {"memory": [], "history": [], "relation": []}
    for one in found:
        if only and one.owner != only:
            reading.leave_out(one.part.place, one.kind, "of another user, or of none")
        else:
            chosen[one.kind].append(one)
    taken: dict[str, _Taken] = {}
    for one in chosen["memory"]:
        _memory(one, taken, reading)
    _histories(chosen["history"], taken, reading)
    for one in chosen["relation"]:
        _relation(one, reading)
    return reading


def _found(files: Sequence[File], reading: Reading, said: datetime | None) -> Iterable[_Found]:
    for file in files:
        for part in _spread(parts_of(file)):
            try:
                if part.why:
                    raise Unreadable(part.why)
                one = _Found(part, _kind(part.value), _owner(part.value), said or file.changed)
                assert one.memory is not None  # refused here, where its id is no text
                yield one
            except Unreadable as error:
                reading.refuse(part.place, "record", str(error))


def _spread(parts: Iterable[Part]) -> Iterable[Part]:
    """Each part, and after it the history that it carries, which is its owner's."""
    for part in parts:
        yield part
        history = part.value.get("history")
        if not isinstance(history, list):
            continue
        above = {name: part.value[name] for name in _OWNERS if name in part.value}
        for at, one in enumerate(history):
            place = f"{part.place} history[{at}]"
            if isinstance(one, dict):
                yield Part(place, {**above, "memory_id": part.value.get("id"), **one}, "history")
            else:
                yield Part(place, {}, "history", "no object")


def _kind(value: Mapping[str, Any]) -> str:
    if "source" in value and any(name in value for name in ("relationship", "relation")):
        return "relation"
    if "memory_id" in value and ("new_memory" in value or "event" in value):
        return "history"
    if any(name in value for name in _TEXTS):
        return "memory"
    raise Unreadable("neither a memory nor a relation of mem0")


def _owner(value: Mapping[str, Any]) -> str:
    """Whose it is, by the first of the ids that are given."""
    return next((own for own in (fitting.text_of(value.get(name), name) for name in _OWNERS) if own), "")


def _memory(found: _Found, taken: dict[str, _Taken], reading: Reading) -> None:
    value, record = found.part.value, Record(found.part.place, "memory")
    try:
        text = next(
            (text for text in (fitting.text_of(value.get(name), name) for name in _TEXTS) if text), ""
        )
        said = _said(found)
        words = _words(found, text, said, record.notes)
    except Unreadable as error:
        reading.refuse(record.place, "memory", str(error))
        return
    keys = reading.take(record, [words])
    if found.memory:
        taken.setdefault(found.memory, _Taken(record.place, text, said, keys))


def _histories(found: Sequence[_Found], taken: Mapping[str, _Taken], reading: Reading) -> None:
    """What memories were before. Of those that were deleted nothing is brought back."""
    deleted = {one.memory for one in found if _is_deletion(one)} - taken.keys()
    for one in found:
        try:
            event = fitting.text_of(one.part.value.get("event"), "event").upper() or "ADD"
            text = fitting.text_of(one.part.value.get("new_memory"), "new_memory")
            if one.memory in deleted:
                reading.leave_out(one.part.place, "history", "of a memory that was deleted")
            elif event not in ("ADD", "UPDATE"):
                reading.leave_out(one.part.place, "history", "an event that wrote nothing")
            else:
                _wording(one, text, taken.get(one.memory), reading)
        except Unreadable as error:
            reading.refuse(one.part.place, "history", str(error))


def _is_deletion(found: _Found) -> bool:
    value = found.part.value
    return str(value.get("event")).upper() == "DELETE" or bool(value.get("is_deleted"))


def _wording(found: _Found, text: str, memory: _Taken | None, reading: Reading) -> None:
    """Raises Unreadable."""
    record, said = Record(found.part.place, "history"), _said(found)
    words = _words(found, text, said, record.notes)
    if memory is not None and memory.text == text and abs(memory.said.at - said.at) <= _ONE_WRITE:
        record.rests_on, record.same_as = [*memory.keys], memory.place
        reading.records.append(record)
    else:
        reading.take(record, [words])


def _words(found: _Found, text: str, said: Said, notes: list[str]) -> Words:
    """A memory, or what it was before, as a message. Raises Unreadable."""
    value = found.part.value
    if not fitting.has_words(text):
        raise Unreadable("there is no text in it")
    if len(text.encode()) > MOST_BYTES:
        raise Unreadable(f"its text is larger than {MOST_BYTES >> 10} KiB")
    role = fitting.text_of(value.get("role"), "role").lower()
    run = fitting.text_of(value.get("run_id") or value.get("session_id"), "run_id")
    written = said.at.isoformat() if said.told else ""
    message = memory_ingest_pb2.EpisodeMessage(
        message_id=chosen_id(f"mem0/{found.memory}/{written}") if found.memory else "",
        role=_ROLES.get(role, episode_pb2.MESSAGE_ROLE_USER),
        speaker=fitting.line_of(value.get("actor_id"), "actor_id"),
        text=text,
        time=timestamp(said.at) if said.told else None,
    )
    request = memory_ingest_pb2.AddEpisodeRequest(
        kind=episode_pb2.EPISODE_KIND_CONVERSATION,
        messages=memory_ingest_pb2.EpisodeMessages(messages=[message]),
        session_id=chosen_id(f"mem0/{run or found.owner or 'memories'}"),
        source=SOURCE,
        reference_time=timestamp(said.at),
        metadata=_metadata(value, notes),
    )
    return Words(request, said)


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
        record.notes.append(
            "the date of a relation, which mem0 does not export: said when the file was written"
        )
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
