"""Settings of a process from the environment; what is wrong with them is told by the names users set."""

from typing import TypeVar

from pydantic import ValidationError
from pydantic_settings import BaseSettings

Settings = TypeVar("Settings", bound=BaseSettings)


class BadSettings(Exception):
    """Settings that can't be used; `str` has a line for each, `PALIMPSEST_…: what is wrong`."""


def read_settings(kind: type[Settings], **changed: object) -> Settings:
    """Settings from the environment, with some of them given. Raises BadSettings; never shows a value."""
    try:
        return kind(**changed)  # type: ignore[arg-type]  # checked by pydantic
    except ValidationError as error:
        prefix = kind.model_config.get("env_prefix", "")
        lines = []
        for wrong in error.errors(include_url=False, include_input=False, include_context=False):
            name = prefix + "__".join(str(part) for part in wrong["loc"]).upper() if wrong["loc"] else ""
            text = wrong["msg"].removeprefix("Value error, ")
            lines.append(f"{name}: {text}" if name else text)
        raise BadSettings("\n".join(lines)) from error
