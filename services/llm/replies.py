"""Replies of models: finds the answer in messy text, checks it element by element, says what is wrong.

Nothing here guesses. JSON that was cut off stays broken, and an element that misses a key is a problem to
be told to the model, not a value to be made up.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

T = TypeVar("T")
ModelT = TypeVar("ModelT", bound=BaseModel)

MAX_REPLY_CHARACTERS = 400_000
"""Beyond it a reply is noise; no answer of ours comes near."""
MAX_PROBLEMS = 12
"""Problems told to the model at once."""
_MAX_STARTS = 400
"""Brackets tried as the beginning of a value, so that noise costs little."""

_THOUGHT = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """What was read from a reply. `value` is None when nothing in it can be used."""

    value: T | None
    problems: tuple[str, ...] = ()


def without_thoughts(text: str) -> str:
    """What follows the reasoning, or precedes it when nothing follows. Its tags may be closed or not."""
    tags = list(_THOUGHT.finditer(text))
    closing = [tag for tag in tags if tag[1]]
    after = text[closing[-1].end() :] if closing else text  # some servers strip the opening tag alone
    opening = [tag.start() for tag in _THOUGHT.finditer(after) if not tag[1]]
    answer = after[: opening[0]] if opening else after
    return answer.strip() or text[: tags[0].start() if tags else 0].strip()


def json_values(text: str) -> Iterator[Any]:
    """The JSON objects and lists in a reply, likeliest first. Yields nothing for prose."""
    text = without_thoughts(text.lstrip("\ufeff"))[:MAX_REPLY_CHARACTERS]
    if (whole := _decode(text)) is not None:
        yield whole
        return
    # Models think aloud first and answer last.
    for fenced in reversed(_FENCE.findall(text)):
        if (value := _decode(fenced)) is not None:
            yield value
    yield from reversed(_scan(text))


def read_model(model: type[ModelT], text: str) -> Reading[ModelT]:
    """The reply as `model`: elements of its lists that do not fit are left out and named as problems.

    A bare list is read as the model's only list.
    """
    first: Reading[ModelT] | None = None
    for value in json_values(text):
        reading = validate(model, value)
        if not reading.problems:
            return reading
        if first is None or (first.value is None and reading.value is not None):
            first = reading
    return first or Reading(None, ("There is no complete JSON object in the answer.",))


def validate(model: type[ModelT], value: Any) -> Reading[ModelT]:
    """Checks a JSON value against `model`; see `read_model`."""
    lists = [name for name, field in model.model_fields.items() if field.is_required()]
    if isinstance(value, list) and len(lists) == 1:
        value = {lists[0]: value}
    try:
        return Reading(model.model_validate(value))
    except ValidationError as error:
        problems = tuple(_problem(line["loc"], line["msg"]) for line in error.errors(include_url=False))
        bad = {line["loc"][:2] for line in error.errors(include_url=False)}
    if not isinstance(value, dict) or not all(_is_element(place) for place in bad):
        return Reading(None, problems)
    kept = {
        name: [item for index, item in enumerate(part) if (name, index) not in bad]
        if isinstance(part, list)
        else part
        for name, part in value.items()
    }
    try:
        return Reading(model.model_validate(kept), problems)
    except ValidationError:
        return Reading(None, problems)


def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of `model` as strict servers want it: every key required, no others, no defaults."""
    schema = model.model_json_schema()
    definitions = {name: _strict(part) for name, part in schema.get("$defs", {}).items()}
    strict: dict[str, Any] = _strict(schema)
    return strict | ({"$defs": definitions} if definitions else {})


def _strict(part: Any) -> Any:
    if isinstance(part, list):
        return [_strict(item) for item in part]
    if not isinstance(part, dict):
        return part
    if "properties" in part:
        properties = {name: _strict(value) for name, value in part["properties"].items()}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    if "$ref" in part:
        return {"$ref": part["$ref"]}
    dropped = {"title", "default", "description", "maxLength", "minLength", "maxItems", "minimum", "maximum"}
    return {key: _strict(value) for key, value in part.items() if key not in dropped}


def _is_element(place: tuple[int | str, ...]) -> bool:
    return len(place) == 2 and isinstance(place[1], int)


def _problem(place: tuple[int | str, ...], message: str) -> str:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")
    return f"{path or 'the answer'}: {message}"


def _decode(text: str) -> Any:
    """The JSON object or list that `text` is, or None."""
    for candidate in (text, _TRAILING_COMMA.sub(lambda match: match.group(1) or "", text)):
        try:
            value = _DECODER.decode(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list):
            return value
    return None


def _scan(text: str) -> list[Any]:
    """Complete values that begin at some bracket of the text, in order, none inside another."""
    found: list[Any] = []
    position = 0
    for _ in range(_MAX_STARTS):
        starts = [at for at in (text.find("{", position), text.find("[", position)) if at >= 0]
        if not starts:
            break
        position = min(starts)
        try:
            value, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        # In prose an empty list, or one of words, says nothing: "cast(Arion, [])".
        if isinstance(value, dict) or (value and all(isinstance(item, dict) for item in value)):
            found.append(value)
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
