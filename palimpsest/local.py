"""Where a gateway of this machine listens: a file in its data folder, for clients that are told no target."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

DATA_DIR = Path(".palimpsest")
DEFAULT_TARGET = "127.0.0.1:7233"
FILE = "gateway.json"


def announce(folder: Path, target: str) -> None:
    """Writes the target into `folder`, at once for readers. No secret is in it."""
    partial = folder / f"{FILE}.{os.getpid()}"
    partial.write_text(json.dumps({"target": target}) + "\n", encoding="utf-8")
    partial.replace(folder / FILE)


def withdraw(folder: Path, target: str) -> None:
    """Removes what `announce` wrote, unless another gateway has announced itself since. Idempotent."""
    if announced(folder) == target:
        (folder / FILE).unlink(missing_ok=True)


def find(given: str, environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """The server's address, and where it comes from: what is given, else what runs here, else the default."""
    if given:
        return given, "--target or PALIMPSEST_TARGET"
    folder = Path(environment.get("PALIMPSEST_DATA_DIR") or DATA_DIR)
    found = announced(folder)
    if found is not None:
        return found, str(folder / FILE)
    return DEFAULT_TARGET, "the default"


def announced(folder: Path) -> str | None:
    """The target that a gateway wrote into `folder`; None when there is none to be read."""
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    target = found.get("target") if isinstance(found, dict) else None
    return target if isinstance(target, str) else None
