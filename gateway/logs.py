"""The gateway's log: a file in the data folder."""

from pathlib import Path

from services.runtime import logs

FOLDER = logs.LOGS
FILE = "palimpsest.log"


def log_to(folder: Path) -> Path:
    """Sends all logs of this process to a file in `folder`; returns the file."""
    logs.log_to(folder, FILE)
    return folder / FILE
