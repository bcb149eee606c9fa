"""The red-team corpus: tests/data/red_team.yaml, which tells what each of its texts must come to."""

from pathlib import Path
from typing import Any

from tests import yaml_files

_READ: dict[str, list[dict[str, Any]]] = yaml_files.read(Path(__file__).parent / "data" / "red_team.yaml")
HOSTILE, HARMLESS = _READ["hostile"], _READ["harmless"]
