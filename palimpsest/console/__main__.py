"""`python -m palimpsest.console`: the same as `palimpsest console`."""

import typer

from palimpsest.console.command import command

if __name__ == "__main__":
    typer.run(command)
