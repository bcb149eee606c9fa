"""YAML files, read by libyaml: in Python it takes ten times as long, a second of each process."""

from pathlib import Path
from typing import Any

import yaml


def read(file: Path) -> Any:
    """What a file holds, made anew at each call."""
    return yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
