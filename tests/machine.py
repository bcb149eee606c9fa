"""What the machine that runs the tests has beside this repository."""

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


def in_ci() -> bool:
    """In CI nothing may be missing: what elsewhere is a named skip fails there."""
    return os.environ.get("CI") == "true"


def postgres_programs() -> Path | None:
    """The folder with PostgreSQL's `initdb` and `postgres`, the newest where there are several."""

    def version(folder: Path) -> tuple[int, ...]:
        return tuple(int(part) for part in folder.parent.name.split(".") if part.isdigit())

    debian = Path("/usr/lib/postgresql").glob("*/bin")
    folders = sorted((folder for folder in debian if (folder / "postgres").exists()), key=version)
    if folders:
        return folders[-1]
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def chromium_program() -> Path | None:
    """Debian's Chromium, or what else is one."""
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next((Path(one) for one in found if one), None)
