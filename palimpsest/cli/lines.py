"""One line for a command line that is wrong, as for every other error."""

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from palimpsest.cli.exits import Exit, complain

WRONG: type[Any] = typer.BadParameter.__mro__[1]
"""What the parser raises, of which a bad parameter is one kind; Typer has no public name for it."""


class OneLine(TyperGroup):
    """The commands of a program. Wrong usage is told in one line, with where its help is."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        def run() -> Any:
            return super(OneLine, self).main(
                args, prog_name, complete_var, False, windows_expand_args, **extra
            )

        if not standalone_mode:
            return run()
        try:
            code = run()
        except WRONG as error:
            sys.exit(_told(error, prog_name or "palimpsest").exit_code)
        except typer.Abort:
            sys.exit(complain("nothing was done", Exit.FAILED, prog_name or "palimpsest").exit_code)
        sys.exit(code if isinstance(code, int) else Exit.OK)


def _told(error: Any, program: str) -> typer.Exit:
    where, message = error.ctx, " ".join(str(error.format_message()).split()).rstrip(".")
    if where is None:
        return complain(message, Exit.USAGE, program)
    if type(error).__name__ == "NoArgsIsHelpError":  # it has printed the help
        return typer.Exit(Exit.USAGE)
    return complain(f"{message} (`{where.command_path} --help` tells more)", Exit.USAGE, program)
