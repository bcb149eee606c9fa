"""The handover: settings of the launcher that its replicas read, in a file that its user alone may read.

Secrets so stay out of Ray's control plane, of its logs and of environments.
"""

import json
import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from services.runtime.settings import ServiceSettings

FILE = "replicas.json"


def hand_over(settings: ServiceSettings, folder: Path) -> Path:
    """Writes the settings, secrets in clear, into `folder`; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / FILE
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        json.dump(_plain(settings), opened)
    return file


def taken_over(file: str) -> ServiceSettings:
    """The settings of a handover; with no file, those of this process's environment."""
    if not file:
        return ServiceSettings()
    return ServiceSettings(**json.loads(Path(file).read_text(encoding="utf-8")))


def _plain(value: object) -> Any:
    match value:
        case BaseModel():
            return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
        case SecretStr():
            return value.get_secret_value()
        case Path():
            return str(value)
        case _:
            return value
