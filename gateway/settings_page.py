"""Every setting as text: the values in use, redacted, and the page docs/configuration.md."""

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from gateway.settings import GatewaySettings
from services.runtime.ray_settings import RaySettings
from services.runtime.settings import ServiceSettings

PROCESSES: Sequence[tuple[str, type[BaseSettings]]] = (
    ("Gateway", GatewaySettings),
    ("Services", ServiceSettings),
    ("Ray", RaySettings),
)
"""`palimpsest up` reads them all; a setting that two have is the same variable."""

HEAD = """# Configuration

Every setting is an environment variable; none is read from anywhere else. `palimpsest up` writes them into
its log when it starts, without secrets; `palimpsest-admin settings` shows those in use.

`PALIMPSEST_MODEL__…` counts with `PALIMPSEST_ENGINE=openai`, `PALIMPSEST_EMBEDDING__…` with
`PALIMPSEST_EMBEDDER=openai`, `PALIMPSEST_NEBULA__…` with `PALIMPSEST_GRAPH=nebula`; what is *needed* is
needed then.

The command line reads `PALIMPSEST_TARGET`, `PALIMPSEST_KEY` and, for operators' commands,
`PALIMPSEST_OPERATOR_KEY`; without a target it looks into `gateway.json` in the data folder.

This page is generated: `palimpsest-admin settings --markdown > docs/configuration.md`.
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable: its name, what it may be, its default as text (None: it must be set), what it is for."""

    name: str
    kind: str
    default: str | None
    description: str


def settings_of(model: type[BaseSettings]) -> list[Setting]:
    """All settings of a process, parts of nested ones included, in the order of the source."""
    prefix = model.model_config.get("env_prefix", "")
    delimiter = model.model_config.get("env_nested_delimiter") or "__"
    return list(_walk(model, prefix, delimiter))


def _walk(model: type[BaseModel], prefix: str, delimiter: str) -> Iterator[Setting]:
    for field, info in model.model_fields.items():
        name = f"{prefix}{field}".upper()
        nested = _nested(info.annotation)
        if nested is not None:
            yield from _walk(nested, f"{name}{delimiter}", delimiter)
        else:
            description = " ".join((info.description or "").split())
            yield Setting(name, _kind(info), _default(info), description)


def _nested(annotation: Any) -> type[BaseModel] | None:
    options = get_args(annotation) if get_origin(annotation) in {Union, types.UnionType} else (annotation,)
    for option in options:
        if isinstance(option, type) and issubclass(option, BaseModel):
            return option
    return None


def _kind(info: FieldInfo) -> str:
    """What a value may be: choices, or the type with its limits."""
    annotation = info.annotation
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{choice}`" for choice in get_args(annotation))
    words = {bool: "true or false", int: "integer", float: "number", SecretStr: "secret"}
    kind = words.get(annotation, "text") if isinstance(annotation, type) else "text"
    bounds = {
        "ge": "at least",
        "gt": "more than",
        "le": "at most",
        "lt": "less than",
    }
    limits = [
        f"{word} {getattr(limit, attribute):,}"
        for limit in info.metadata
        for attribute, word in bounds.items()
        if getattr(limit, attribute, None) is not None and kind in {"integer", "number"}
    ]
    return ", ".join([kind, *limits])


def _default(info: FieldInfo) -> str | None:
    value = info.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return None
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return str(value).lower() if isinstance(value, bool) else str(value)


def page() -> str:
    """docs/configuration.md as it should read."""
    parts = [HEAD]
    known: set[str] = set()
    for title, model in PROCESSES:
        rows = [setting for setting in settings_of(model) if setting.name not in known]
        known |= {setting.name for setting in rows}
        parts.append(f"## {title}\n\n| variable | default | may be | what it is |\n|---|---|---|---|")
        parts.append("\n".join(_row(setting) for setting in rows) + "\n")
    return "\n".join(parts)


def _row(setting: Setting) -> str:
    default = "*needed*" if setting.default is None else f"`{setting.default}`" if setting.default else ""
    cells = [f"`{setting.name}`", default, setting.kind, setting.description]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def in_use(processes: Sequence[BaseSettings]) -> Mapping[str, str]:
    """The variables with their present values; secrets and passwords of URLs as stars."""
    shown: dict[str, str] = {}
    for settings in processes:
        prefix = settings.model_config.get("env_prefix", "")
        delimiter = settings.model_config.get("env_nested_delimiter") or "__"
        shown |= dict(_values(settings, prefix, delimiter))
    return shown


def _values(settings: BaseModel, prefix: str, delimiter: str) -> Iterator[tuple[str, str]]:
    for field in type(settings).model_fields:
        name, value = f"{prefix}{field}".upper(), getattr(settings, field)
        if isinstance(value, BaseModel):
            yield from _values(value, f"{name}{delimiter}", delimiter)
        elif value is not None:
            yield name, _redacted(value)


def _redacted(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    if "://" in text and "@" in text:
        try:
            return make_url(text).render_as_string(hide_password=True)
        except ArgumentError:
            return "***"
    return text
