"""Commands of other parts, by entry point: `palimpsest up` is the server's, and needs the server extra."""

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points

import typer
from rich.console import Console

from palimpsest.cli.exits import Exit, complain
from palimpsest.cli.imports import lasting

GROUP = "palimpsest.commands"
SERVER_EXTRA = "palimpsest-memory[server]"

_HELP: Mapping[str, str] = {
    "up": "Starts stores, services and gateway on this machine; Ctrl-C stops them.",
    "gateway": "Starts a gateway before services that run elsewhere.",
    "mcp": "Serves one graph to assistants that speak the Model Context Protocol.",
    "console": "Serves a web page that shows what a memory holds.",
}
"""What our own say of themselves, so that listing commands need not import a server."""


def add_plugins(app: typer.Typer) -> None:
    """Adds a command for each entry point; what is behind it is loaded when the command runs."""
    names = sorted({point.name for point in entry_points(group=GROUP)} | _HELP.keys())
    for name in names:
        app.command(
            name,
            help=_HELP.get(name, "A command of another distribution."),
            add_help_option=False,
            context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
            rich_help_panel="Server",
        )(_deferred(name))


def _deferred(name: str) -> Callable[[typer.Context], None]:
    def run(context: typer.Context) -> None:
        with Console(stderr=True).status("loading …"):  # a server takes seconds to import
            loaded = load(name, entry_points(group=GROUP))
        command = typer.main.get_command(loaded)
        # Its usage errors are told by the program; what it returns is the code of its exit.
        code = command.main(list(context.args), f"palimpsest {name}", standalone_mode=False)
        raise typer.Exit(code if isinstance(code, int) else 0)

    return run


def extra_of(name: str) -> str:
    """What to install for a command."""
    return f"palimpsest-memory[{name}]" if name in ("mcp", "console") else SERVER_EXTRA


def load(name: str, points: Iterable[EntryPoint]) -> typer.Typer:
    """The command behind an entry point, as an app of its own. Exits when it can't be had."""
    found = [point for point in points if point.name == name]
    if not found:
        raise complain(f"`palimpsest {name}` is not installed: pip install '{extra_of(name)}'", Exit.USAGE)
    try:
        with lasting():
            loaded = found[0].load()
    except ModuleNotFoundError as error:
        text = (
            f"`palimpsest {name}` needs {error.name}, which is not installed: pip install '{extra_of(name)}'"
        )
        raise complain(text, Exit.USAGE) from error
    if isinstance(loaded, typer.Typer):
        return loaded
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command()(loaded)
    return alone
