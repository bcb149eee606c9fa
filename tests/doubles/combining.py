"""What a model answers to combined tasks: what it answers to their parts, put together.

So a script that is written for the parts holds for both profiles. A part whose answer is not of its form is
the whole answer: a model that misbehaves does so whatever it is asked.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.doubles.model_replies import Asked, Reply, answer

Answering = Callable[[Asked], Reply]

_NOTHING = "NOTHING_TO_REMEMBER"
_LISTS = {
    "extract_world": "facts",
    "extract_voice": "sentences",
    "reflect": "noise_world",
    "classify": "world",
}
"""What the answer to a part holds; the others hold verdicts."""


class Odd(Exception):
    """An answer of a part that is not of its form."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self.reply = reply


def combined(asked: Asked, answering: Answering) -> Reply | None:
    """The answer to a combined task by what `answering` makes of its parts; None for any other task."""
    tasks: Mapping[str, Callable[[Asked, Answering], Reply]] = {
        "understand": _understood,
        "resolve": _resolved,
    }
    if asked.task not in tasks:
        return None
    try:
        return tasks[asked.task](asked, answering)
    except Odd as odd:
        return odd.reply


def _understood(asked: Asked, answering: Answering) -> Reply:
    told = answering(replace(asked, task="normalise"))
    if told.status != 200 or told.body is not None or told.drop or "<output>" not in told.content:
        return told
    if _NOTHING in told.content:
        reason = told.content.split(_NOTHING)[1].split("<")[0].strip()
        return answer({"facts": [], "sentences": [], "nothing": reason})
    facts = _part(asked, "extract_world", {}, answering, "facts")
    sentences = _part(asked, "extract_voice", {}, answering, "sentences")
    blocks = {
        "world_facts": [
            {"number": at, "triple": [one.get("subject"), one.get("predicate"), one.get("object")]}
            for at, one in enumerate(facts)
        ],
        "voice_facts": [{"number": at, "sentence": one.get("text", "")} for at, one in enumerate(sentences)],
    }
    classes = _whole(asked, "classify", blocks, answering) if facts or sentences else {}
    worlds = {one["number"]: one for one in classes.get("world", ())}
    voices = {one["number"]: one for one in classes.get("voice", ())}
    return answer(
        {
            "facts": [
                {"aspect": None, "event_at": None, **one, **_class_of(worlds.get(at, {}))}
                for at, one in enumerate(facts)
            ],
            "sentences": [
                {"aspect": None, **one, **_class_of(voices.get(at, {}))} for at, one in enumerate(sentences)
            ],
            "nothing": None,
        }
    )


def _resolved(asked: Asked, answering: Answering) -> Reply:
    blocks = asked.blocks
    whole: dict[str, list[Any]] = {
        name: [] for name in ("entities", "statements", "predicates", "voice", "noise_world", "noise_voice")
    }
    if "world_facts" in blocks or "voice_facts" in blocks:
        noise = _whole(asked, "reflect", blocks, answering)
        whole["noise_world"], whole["noise_voice"] = noise["noise_world"], noise["noise_voice"]
    if "entity_pairs" in blocks:
        told = {
            "new": blocks["new_entities"],
            "candidates": blocks["candidate_entities"],
            "pairs": blocks["entity_pairs"],
        }
        whole["entities"] = _part(asked, "judge_entities", told, answering, "verdicts")
    if "statement_pairs" in blocks or "predicate_pairs" in blocks:
        told = {
            "new": blocks.get("new_statements", ()),
            "candidates": blocks.get("candidate_statements", ()),
            "pairs": blocks.get("statement_pairs", ()),
        }
        judged = _whole(asked, "judge_statements", {**blocks, **told}, answering)
        whole["statements"] = judged["verdicts"]
        whole["predicates"] = judged.get("predicates", [])
    if "voice_pairs" in blocks:
        told = {
            "new": blocks["new_voice"],
            "candidates": blocks["candidate_voice"],
            "pairs": blocks["voice_pairs"],
        }
        whole["voice"] = _part(asked, "judge_voice", told, answering, "verdicts")
    return answer(whole)


def _class_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "number"}


def _part(
    asked: Asked, task: str, blocks: Mapping[str, Sequence[Any]], answering: Answering, name: str
) -> list[Any]:
    """A list of a part's answer."""
    found: list[Any] = _whole(asked, task, blocks, answering)[name]
    return found


def _whole(
    asked: Asked, task: str, blocks: Mapping[str, Sequence[Any]], answering: Answering
) -> Mapping[str, Any]:
    reply = answering(replace(asked, task=task, blocks={**asked.blocks, **blocks}))
    plain = reply.status == 200 and reply.body is None and not reply.drop and reply.refusal is None
    try:
        value = json.loads(reply.content) if plain and reply.finish == "stop" else None
    except ValueError:
        value = None
    if not isinstance(value, dict) or _LISTS.get(task, "verdicts") not in value:
        raise Odd(reply)
    return value
