"""`balance` and `ledger`: the tenant's credits."""

from typing import Annotated

import typer
from rich.console import RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.dates import shown
from palimpsest.cli.pages import Limit, whole
from palimpsest.cli.shell import Shell, command
from palimpsest.v1 import credits_pb2


def add_to(app: typer.Typer) -> None:
    command(app, "balance", panel="Credits and jobs")(balance)
    command(app, "ledger", panel="Credits and jobs")(ledger)


async def balance(shell: Shell) -> None:
    """Shows what the tenant has, and what is set aside for running jobs."""
    response = await shell.connection.call(
        shell.connection.credits.GetBalance, credits_pb2.GetBalanceRequest()
    )
    shell.show(response, balance_of)


def balance_of(response: credits_pb2.GetBalanceResponse) -> RenderableType:
    found = response.balance
    return words.pairs(
        [
            ("available", words.amount(found.available_micros)),
            ("held", words.amount(found.held_micros)),
            ("as of", shown(found.as_of)),
        ]
    )


async def ledger(
    shell: Shell,
    job: Annotated[str, typer.Option(help="Only of this job.")] = "",
    limit: Limit = 50,
) -> None:
    """Lists what moved the tenant's credits, newest first."""
    request = credits_pb2.ListLedgerEntriesRequest(job_id=job)
    listed = await whole(shell, shell.connection.credits.ListLedgerEntries, request, "entries", limit)
    shell.show(listed, ledger_of)


def ledger_of(response: credits_pb2.ListLedgerEntriesResponse) -> RenderableType:
    """Entries as a table: amounts in credits, signed as the account sees them."""
    if not response.entries:
        return "no entries"
    table = words.listing("when", "what", "account", "credits", "balance", "why", "job")
    for column in (3, 4):
        table.columns[column].justify = "right"
    for entry in response.entries:
        table.add_row(
            shown(entry.created_at),
            words.word(credits_pb2.LedgerEntryKind.Name, entry.kind, "LEDGER_ENTRY_KIND_"),
            words.word(credits_pb2.LedgerAccount.Name, entry.account, "LEDGER_ACCOUNT_"),
            ("+" if entry.amount_micros > 0 else "") + words.amount(entry.amount_micros),
            words.amount(entry.balance_after_micros),
            escape(entry.reason or entry.step),
            escape(entry.job_id),
        )
    return table
