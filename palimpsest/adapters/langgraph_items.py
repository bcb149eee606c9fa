"""Items of a LangGraph store as documents, and what its searches ask of them; knows no server.

A document reads as what is said in it: the words under `text` (or `content`, …) first, then a paragraph with
the rest of the value, from which it is made again exactly.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.store.base import MatchCondition

FIELDS = ("text", "content", "memory")
"""Where a value has its words, first found first; a value without them is all of it read as JSON."""
_REST = "item: "
_AFTER = f"\n\n{_REST}"
"""Before the rest, which is JSON of one line: so the last of these begins it."""


def text_of(value: Mapping[str, Any]) -> str:
    """The document. Raises TypeError or ValueError for a value that JSON can't hold."""
    field = next((name for name in FIELDS if _is_words(value.get(name))), None)
    words = value[field] if field else ""
    if field == FIELDS[0] and len(value) == 1 and _AFTER not in words and not words.startswith(_REST):
        return str(words)
    # The words stand in front, and null where they were.
    rest = {"words": field, "value": dict(value) | ({field: None} if field else {})}
    told = json.dumps(rest, ensure_ascii=False, allow_nan=False)
    return f"{words}{_AFTER}{told}" if field else f"{_REST}{told}"


def value_of(text: str) -> dict[str, Any]:
    """The value of a document. Text that no store has written is its words."""
    words, after, told = text.rpartition(_AFTER)
    if not after:
        told = text.removeprefix(_REST)
    try:
        rest = json.loads(told)
        value, field = dict(rest["value"]), rest["words"]
    except (ValueError, TypeError, KeyError):
        return {FIELDS[0]: text}
    if field is not None:
        value[field] = words
    return value


def _is_words(found: object) -> bool:
    return isinstance(found, str) and bool(found.strip())


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda found, wanted: found == wanted,
    "$ne": lambda found, wanted: found != wanted,
    "$gt": lambda found, wanted: found is not None and found > wanted,
    "$gte": lambda found, wanted: found is not None and found >= wanted,
    "$lt": lambda found, wanted: found is not None and found < wanted,
    "$lte": lambda found, wanted: found is not None and found <= wanted,
}


def passes(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a value passes a filter. Raises ValueError for an operator that is none."""
    return all(_equal(value.get(name), condition) for name, condition in wanted.items())


def _equal(found: Any, wanted: Any) -> bool:
    if not isinstance(wanted, Mapping):
        return bool(found == wanted)
    if not any(name.startswith("$") for name in wanted):
        return isinstance(found, Mapping) and passes(found, wanted)
    unknown = wanted.keys() - _OPERATORS.keys()
    if unknown:
        raise ValueError(f"no such operators: {sorted(unknown)}")
    return all(_OPERATORS[name](found, operand) for name, operand in wanted.items())


def matches(namespace: Sequence[str], condition: MatchCondition) -> bool:
    """Whether a namespace begins, or ends, as the condition says; `*` is any one label."""
    count = len(condition.path)
    if count > len(namespace):
        return False
    part = namespace[:count] if condition.match_type == "prefix" else namespace[len(namespace) - count :]
    return all(wanted in ("*", label) for label, wanted in zip(part, condition.path, strict=True))
