"""Graphiti: its entity nodes, entity edges and episodes, as rows of a query or as APOC exports them.

An edge becomes a claim: `valid_at` and `invalid_at` are its start and end, `fact` its sentence and quote, and
it was said when its episode was (`reference_time`, else the episode's `valid_at`, else `created_at`). When
Graphiti itself learned or gave something up (`created_at`, `expired_at`) is its own system time, which a
memory that learns it today can't have.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from palimpsest.chats import Unreadable, chosen_id
from palimpsest.importing import episodes, fitting
from palimpsest.importing.reading import File, Part, parts_of
from palimpsest.importing.values import Fact, Key, Named, Reading, Record, Said
from palimpsest.v1 import entity_pb2

SOURCE = "graphiti"
_NODE = frozenset(
    {"uuid", "name", "group_id", "labels", "created_at", "summary", "attributes", "name_embedding"}
)
_GROUP_LABEL = re.compile(r"Entity_\w+")
_PLAIN_LABELS = frozenset({"Entity", "Node"})
_LEFT_OUT = {
    "community": "a community: it is made anew from the facts, not carried",
    "saga": "a saga: sessions and their summaries are made anew, not carried",
    "mention": "a link between an episode and what it mentions, which a fact's quote tells instead",
}


@dataclass(slots=True)
class _Node:
    place: str
    named: Named
    created: Said
    summary: str
    labels: list[str]
    attributes: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)
    facts: list[Key] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Found:
    """A part, its file's date, its group, and what kind of record it is."""

    part: Part
    value: dict[str, Any]
    changed: datetime
    kind: str
    group: str


def read(files: Sequence[File], only: str = "", said: datetime | None = None, texts: bool = False) -> Reading:
    """All records. `only` chooses a group, `texts` takes episodes in as texts to be understood.

    Raises Unreadable for a file that is no JSON, or when there are several groups and none is chosen.
    """
    reading = Reading()
    found = list(_found(files, reading, said))
    groups = {one.group for one in found if one.group}
    if len(groups) > 1 and not only:
        raise Unreadable(f"{len(groups):,} groups: choose one with --only, each for a graph of its own")
    chosen = []
    for one in found:
        if only and one.group != only:
            reading.leave_out(one.part.place, one.kind, "of another group")
        else:
            chosen.append(one)
    nodes = _nodes(chosen, reading)
    said_in = _episodes(chosen, reading, texts)
    for one in chosen:
        if one.kind == "edge":
            _edge(one, nodes, said_in, reading)
    _tell_namesakes(nodes.values())
    for node in nodes.values():
        _take_node(node, reading)
    return reading


def _found(files: Sequence[File], reading: Reading, said: datetime | None) -> Iterable[_Found]:
    known: dict[str, str] = {}  # ids of Neo4j, which APOC's relationships name, to uuids
    for file in files:
        for part in parts_of(file):
            if part.why:
                reading.refuse(part.place, "record", part.why)
                continue
            try:
                value = _plain(part.value, known)
                kind = _kind(value, part.under)
                group = fitting.text_of(value.get("group_id"), "group_id")
            except Unreadable as error:
                reading.refuse(part.place, "record", str(error))
                continue
            if kind in _LEFT_OUT:
                reading.leave_out(part.place, kind, _LEFT_OUT[kind])
            else:
                yield _Found(part, value, said or file.changed, kind, group)


def _plain(value: dict[str, Any], known: dict[str, str]) -> dict[str, Any]:
    """A row as a query gives it, also of what APOC exports: `properties` beside `type`, `start`, `end`."""
    properties = value.get("properties")
    if not isinstance(properties, dict) or value.get("type") not in ("node", "relationship"):
        return value
    if value["type"] == "node":
        known[str(value.get("id"))] = str(properties.get("uuid"))
        return {**properties, "labels": value.get("labels", [])}
    ends = {}
    for side, name in (("start", "source_node_uuid"), ("end", "target_node_uuid")):
        end = value.get(side)
        if not isinstance(end, dict):
            raise Unreadable(f"a relationship without `{side}`")
        own = end.get("properties")
        uuid = own.get("uuid") if isinstance(own, dict) else None
        ends[name] = uuid or known.get(str(end.get("id")), "")
    return {**properties, **ends, "relationship": value.get("label", "")}


def _kind(value: Mapping[str, Any], under: str) -> str:
    """What a row is, by the fields that Graphiti gives it."""
    labels = value.get("labels")
    for label in ("Community", "Saga"):
        if isinstance(labels, list) and label in labels:
            return label.lower()
    if "source_node_uuid" in value or "target_node_uuid" in value:
        return "edge" if "fact" in value or "name" in value else "mention"
    if "content" in value:
        return "episode"
    if "first_episode_uuid" in value or "saga" in under.lower():
        return "saga"
    if "communit" in under.lower():
        return "community"
    if "name" in value:
        return "node"
    raise Unreadable("neither a node nor an edge nor an episode of Graphiti")


def _nodes(chosen: Sequence[_Found], reading: Reading) -> dict[str, _Node]:
    nodes: dict[str, _Node] = {}
    for one in chosen:
        if one.kind != "node":
            continue
        try:
            uuid = fitting.name_of(one.value.get("uuid"), "uuid")
            node = _node(one)
            before = nodes.get(uuid)
            if before is None:
                nodes[uuid] = node
            elif (before.named, before.summary) == (node.named, node.summary):
                # Pages that overlap: it goes where the first one goes.
                record = Record(one.part.place, "node", rests_on=before.facts, same_as=before.place)
                reading.records.append(record)
            else:
                raise Unreadable("its uuid is that of another node, which was taken")
        except Unreadable as error:
            reading.refuse(one.part.place, "node", str(error))
    return nodes


def _node(found: _Found) -> _Node:
    value = found.value
    name = fitting.name_of(value.get("name"), "name")
    labels = value.get("labels") or []
    if not _is_texts(labels):
        raise Unreadable("`labels` is no list of texts")
    own = [
        fitting.name_of(label, "labels")
        for label in labels
        if label not in _PLAIN_LABELS and not _GROUP_LABEL.fullmatch(label)
    ]
    types = [kind for kind in map(fitting.type_of, own) if kind is not None]
    node = _Node(
        found.part.place,
        Named(name, types[0] if types else entity_pb2.ENTITY_TYPE_UNSPECIFIED),
        _said(found, ("created_at",)),
        fitting.text_of(value.get("summary"), "summary").strip(),
        [label for label in own if fitting.type_of(label) is None],
        _attributes(value, _NODE),
    )
    node.notes += ["embeddings, which are made anew"] if value.get("name_embedding") else []
    return node


def _tell_namesakes(nodes: Iterable[_Node]) -> None:
    """An entity here is its name and type, so that nodes which share both are one from now on."""
    first: dict[tuple[str, int], str] = {}
    for node in nodes:
        key = (unicodedata.normalize("NFKC", node.named.name).casefold(), node.named.type)
        if first.setdefault(key, node.place) != node.place:
            node.notes.append("a node apart from another of the same name and type: they are one entity")


def _take_node(node: _Node, reading: Reading) -> None:
    """What a node says beside its edges: summary, labels that are no type of ours, attributes."""
    given = [("is_a", label) for label in node.labels]
    if node.summary:
        given.append(("summary", fitting.prose(node.summary, node.notes, "a summary")))
    for name, value in node.attributes.items():
        if fitting.literal_of(value) is None or not fitting.spelt(name):
            node.notes += [f"the attribute {name} of a node"] if value not in (None, "", [], {}) else []
        else:
            given.append((name, value))
    facts = []
    record = Record(node.place, "node", notes=node.notes)
    for predicate, value in given:
        try:
            if isinstance(value, str):
                fitting.text_of(value, predicate)
            literal = fitting.literal_of(value)
            assert literal is not None, "looked at above"
            facts.append(
                Fact(
                    node.named,
                    fitting.predicate_of(predicate, "attributes"),
                    literal,
                    node.created,
                    fitting.prose(f"{node.named.name}: {value}", [], ""),
                    SOURCE,
                )
            )
        except Unreadable as error:
            node.notes.append(f"an attribute of a node ({error})")
    rests = list(node.facts)
    # A record of the same node elsewhere reads this list.
    node.facts[:] = [*reading.take(record, facts, rests), *rests]


def _episodes(chosen: Sequence[_Found], reading: Reading, texts: bool) -> dict[str, Said]:
    """Takes episodes in, or leaves them out; when each was said, by uuid."""
    said_in: dict[str, Said] = {}
    for one in chosen:
        if one.kind != "episode":
            continue
        try:
            said = _said(one, ("valid_at", "created_at"))
            uuid = one.value.get("uuid")
            if isinstance(uuid, str) and said.told:
                said_in.setdefault(uuid, said)
            if not texts:
                why = "the text of an episode, whose facts are the edges; --texts takes texts in as well"
                reading.leave_out(one.part.place, "episode", why)
                continue
            words = episodes.words_of(one.value, said, chosen_id(one.group or SOURCE))
            reading.take(Record(one.part.place, "episode"), [words])
        except Unreadable as error:
            reading.refuse(one.part.place, "episode", str(error))
    return said_in


def _edge(found: _Found, nodes: Mapping[str, _Node], said_in: Mapping[str, Said], reading: Reading) -> None:
    value, record = found.value, Record(found.part.place, "edge")
    try:
        ends = []
        for side in ("source", "target"):
            node = nodes.get(fitting.text_of(value.get(f"{side}_node_uuid"), f"{side}_node_uuid"))
            if node is None:
                raise Unreadable(f"its {side} node is not in the files, or was refused")
            ends.append(node)
        start, end = (fitting.time_of(value.get(name), name) for name in ("valid_at", "invalid_at"))
        expired = fitting.time_of(value.get("expired_at"), "expired_at")
        if end is None and expired is not None:
            end = expired
            record.notes.append("an end in the world: without `invalid_at` it ends at `expired_at`")
        fitting.check_period(start, end)
        words = fitting.text_of(value.get("fact"), "fact").strip()
        sentence = fitting.prose(words, record.notes, "a fact")
        fact = Fact(
            ends[0].named,
            fitting.predicate_of(value.get("name"), "name"),
            ends[1].named,
            _edge_said(found, said_in),
            sentence or f"{ends[0].named.name} {value['name']} {ends[1].named.name}",
            SOURCE,
            start=start,
            end=end,
            fact=sentence,
        )
        dropped = sorted(_edge_attributes(value))
    except Unreadable as error:
        reading.refuse(record.place, "edge", str(error))
        return
    if ends[0] is ends[1]:
        record.notes.append("nothing: a fact of an entity about itself is taken as it is")
    if value.get("fact_embedding"):
        record.notes.append("embeddings, which are made anew")
    record.notes += [f"the attribute {name} of an edge" for name in dropped]
    keys = reading.take(record, [fact])
    for node in ends:
        node.facts += keys


def _edge_said(found: _Found, said_in: Mapping[str, Said]) -> Said:
    own = fitting.time_of(found.value.get("reference_time"), "reference_time")
    listed = found.value.get("episodes") or []
    if own is not None:
        return Said(own.at)
    told = [said_in[one] for one in listed if one in said_in] if _is_texts(listed) else []
    return min(told, key=lambda said: said.at) if told else _said(found, ("created_at",))


def _said(found: _Found, names: Sequence[str]) -> Said:
    for name in names:
        at = fitting.time_of(found.value.get(name), name)
        if at is not None:
            return Said(at.at)
    return Said(found.changed, told=False)


_EDGE = frozenset(
    {
        "uuid", "group_id", "source_node_uuid", "target_node_uuid", "name", "fact", "fact_embedding",
        "episodes", "created_at", "expired_at", "valid_at", "invalid_at", "reference_time", "attributes",
        "relationship", "source_uuid", "target_uuid",
    }
)  # fmt: skip


def _edge_attributes(value: Mapping[str, Any]) -> set[str]:
    return {name for name, one in _attributes(value, _EDGE).items() if one not in (None, "", [], {})}


def _attributes(value: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    """What a type of the user's gave it: in `attributes`, as JSON there, or flat beside the fields."""
    given = value.get("attributes")
    if isinstance(given, str) and given:
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:
            raise Unreadable("`attributes` is no JSON") from error
    if given is not None and not isinstance(given, dict | str):
        raise Unreadable("`attributes` is no object")
    nested = given if isinstance(given, dict) else {}
    flat = {name: one for name, one in value.items() if name not in own}
    return {name: one for name, one in {**flat, **nested}.items() if name not in own}


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
