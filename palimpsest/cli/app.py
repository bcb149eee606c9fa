"""The app: all commands in the order in which help lists them."""

import typer

from palimpsest.cli import (
    adding,
    asserting,
    auditing,
    diffing,
    documents,
    entities,
    episodes,
    erasing,
    facts,
    graphs,
    importing,
    jobs,
    judging,
    money,
    operating,
    predicates,
    recalling,
    status,
    summaries,
    voices,
)
from palimpsest.cli.exits import Exit
from palimpsest.cli.lines import OneLine
from palimpsest.cli.plugins import add_plugins

_EXITS = "  ".join(f"{code.value} {code.name.lower().replace('_', ' ')}" for code in Exit)

app = typer.Typer(
    help="Palimpsest: a memory that strikes facts through, dated and attributed, and never erases them.",
    cls=OneLine,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=f"Exit codes: {_EXITS}  130 interrupted",
)


@app.callback()
def options() -> None:
    """Room for the help of the app; each command has options of its own."""


for module in (adding, asserting, recalling, facts, diffing, judging, auditing, erasing):
    module.add_to(app)
app.add_typer(importing.app(), name="import", rich_help_panel="Memory")
app.add_typer(episodes.app(), name="episode", rich_help_panel="Memory")
app.add_typer(documents.app(), name="document", rich_help_panel="Memory")
app.add_typer(documents.sources(), name="source", rich_help_panel="Memory")
app.add_typer(entities.app(), name="entity", rich_help_panel="Memory")
app.add_typer(voices.app(), name="voice", rich_help_panel="Memory")
app.add_typer(summaries.sessions(), name="session", rich_help_panel="Memory")
app.add_typer(summaries.labels(), name="label", rich_help_panel="Memory")
app.add_typer(summaries.personas(), name="persona", rich_help_panel="Memory")
app.add_typer(graphs.app(), name="graph", rich_help_panel="Memory")
app.add_typer(predicates.app(), name="predicate", rich_help_panel="Memory")
app.add_typer(jobs.app(), name="job", rich_help_panel="Credits and jobs")
money.add_to(app)
status.add_to(app)
tenants = operating.tenants()
erasing.add_to_tenants(tenants)
app.add_typer(tenants, name="tenant", rich_help_panel="Operator")
app.add_typer(operating.keys(), name="key", rich_help_panel="Operator")
operating.add_to(app)
add_plugins(app)
