"""The command line: `palimpsest`. A client like any other: it speaks to a server through the public API."""

import sys

from palimpsest.cli.imports import lasting


def main() -> None:
    """Entry point of `palimpsest`."""
    with lasting():
        from palimpsest.cli.app import app

    app(prog_name="palimpsest")
    sys.exit(0)
