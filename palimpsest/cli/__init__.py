"""The command line: `palimpsest`. A client like any other: it speaks to a server through the public API."""

import sys


def main() -> None:
    """Entry point of `palimpsest`."""
    from palimpsest.cli.app import app

    app(prog_name="palimpsest")
    sys.exit(0)
