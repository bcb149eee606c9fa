"""Joining: several episodes as one chunk for the models, and what they said of it taken apart again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from palimpsest.internal.v1 import extractor_pb2, recall_pb2, values_pb2
from palimpsest.v1 import episode_pb2
from palimpsest.v1.memory_ingest_pb2 import AddEpisodeRequest

SHORT_TOKENS = 150
"""Of a message that is understood with others: a longer one fills a prompt by itself."""
_KNOWN_FACTS = 20
_NO_FACT, _RECALLED = "NO_DURABLE_FACT", "RECALLED_TEXT"


@dataclass(frozen=True, slots=True)
class Joined:
    """One request for several episodes; `begins` is where the turns of each begin, and where the last end."""

    request: extractor_pb2.ExtractRequest
    begins: Sequence[int]


def companions(asked: AddEpisodeRequest, tokens: Sequence[int]) -> str:
    """Equal for requests whose texts may be understood together; "" for one that goes alone.

    Together go short messages of one session and source, read in one time zone.
    """
    alone = asked.kind != episode_pb2.EPISODE_KIND_CONVERSATION or not asked.session_id or asked.document_id
    if alone or len(tokens) != 1 or tokens[0] > SHORT_TOKENS:
        return ""
    named = f"{asked.session_id}\0{asked.source}\0{asked.time_zone}"
    return sha256(named.encode()).hexdigest()[:16]


def joined(contexts: Sequence[recall_pb2.GatherContextResponse]) -> Joined:
    """The turns of all, one after the other, in what surrounds them. Settings have been completed."""
    begins = [0]
    turns: list[values_pb2.Turn] = []
    for context in contexts:
        for place, turn in enumerate(context.turns):
            moved = values_pb2.Turn()
            moved.CopyFrom(turn)
            moved.position = begins[-1] + place
            turns.append(moved)
        begins.append(len(turns))
    setting = values_pb2.Setting()
    setting.CopyFrom(contexts[-1].setting)
    said = {turn.text for turn in turns}
    settings = [context.setting for context in contexts]
    setting.ClearField("recent")
    setting.recent.extend(text for text in settings[0].recent if text not in said)
    for name in ("similar", "known_entities", "known_predicates"):
        texts = dict.fromkeys(text for one in settings for text in getattr(one, name))
        setting.ClearField(name)
        getattr(setting, name).extend(text for text in texts if text not in said)
    facts = {fact.statement_id: fact for one in settings for fact in one.known_facts}
    setting.ClearField("known_facts")
    setting.known_facts.extend(list(facts.values())[:_KNOWN_FACTS])
    names = {(one.also, one.name): one for setting_ in settings for one in setting_.known_names}
    setting.ClearField("known_names")
    setting.known_names.extend(names.values())
    request = extractor_pb2.ExtractRequest(turns=turns, setting=setting, begins=begins[1:-1])
    return Joined(request, begins)


def parted(
    joint: Joined,
    contexts: Sequence[recall_pb2.GatherContextResponse],
    understood: values_pb2.Understood,
) -> list[values_pb2.Understood]:
    """What is of each episode, its turns numbered as its own. A fact of no turn is counted with the first."""
    parts: list[values_pb2.Understood] = []
    for at, context in enumerate(contexts):
        begin, end = joint.begins[at], joint.begins[at + 1]
        positions = [turn.position for turn in context.turns]

        def mine(turn: int, begin: int = begin, end: int = end) -> bool:
            return begin <= turn < end

        part = values_pb2.Understood(setting=context.setting, classified=understood.classified)
        part.world.extend(fact for fact in understood.world if mine(fact.turn))
        part.voice.extend(fact for fact in understood.voice if mine(fact.turn))
        part.dropped.extend(
            one
            for one in understood.dropped
            if mine(one.turn) or (at == 0 and not 0 <= one.turn < joint.begins[-1])
        )
        _renumber([*part.world, *part.voice], begin, positions)
        for one in part.dropped:
            if mine(one.turn):
                one.turn = positions[one.turn - begin]
        if not part.world and not part.voice:
            recalled = bool(part.dropped) and all(one.reason == _RECALLED for one in part.dropped)
            part.nothing = understood.nothing or (_RECALLED if recalled else _NO_FACT)
        parts.append(part)
    return parts


def _renumber(
    facts: Iterable[values_pb2.WorldFact | values_pb2.VoiceFact], begin: int, positions: Sequence[int]
) -> None:
    for fact in facts:
        fact.turn = positions[fact.turn - begin]
        if isinstance(fact, values_pb2.WorldFact) and fact.HasField("confirmed_by"):
            fact.confirmed_by = positions[fact.confirmed_by - begin]
