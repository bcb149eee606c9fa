"""The red-team corpus: tests/data/red_team.yaml, which tells what each of its texts must come to."""

from pathlib import Path
from typing import Any

import yaml

_READ: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "data" / "red_team.yaml").read_text(encoding="utf-8")
)
HOSTILE, HARMLESS = _READ["hostile"], _READ["harmless"]
