"""Exit codes, and the one line on stderr that goes with them."""

import sys
from enum import IntEnum

import typer


class Exit(IntEnum):
    """Exit codes of `palimpsest`: stable, so that scripts can branch on them. 130 is Ctrl-C."""

    OK = 0
    """Done."""
    FAILED = 1
    """The server refused or failed the call for a reason that has no code of its own."""
    USAGE = 2
    """The command line is wrong, or a part is not installed."""
    NOT_FOUND = 3
    """What the command names isn't there."""
    FORBIDDEN = 4
    """The key is missing, invalid, or may not do this."""
    CREDITS = 5
    """Not enough credits."""
    TRY_AGAIN = 6
    """The server can't be reached or is busy, or time ran out: the same command may succeed later."""
    JOB_FAILED = 7
    """The job that was waited for ended as PARTIAL, FAILED or CANCELLED."""


def complain(line: str, code: Exit, program: str = "palimpsest") -> typer.Exit:
    """Prints one line on stderr; returns what to raise."""
    print(f"{program}: {line}", file=sys.stderr)
    return typer.Exit(code)
