"""The app: all commands in the order in which help lists them."""

import typer

from palimpsest.cli.plugins import add_plugins

app = typer.Typer(
    help="Palimpsest: a memory that strikes facts through, dated and attributed, and never erases them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback()
def options() -> None:
    """Room for the help of the app; each command has options of its own."""


add_plugins(app)
