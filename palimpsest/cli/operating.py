"""Operators' commands: `tenant create`, `key create`, `grant`."""

from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import RenderableType

from palimpsest.cli import words
from palimpsest.cli.dates import FORMS, Dated, read_date, shown
from palimpsest.cli.shell import Shell, command
from palimpsest.connection import new_request_id
from palimpsest.v1 import admin_pb2

RequestId = Annotated[
    str,
    typer.Option(help="Names this call: repeated with it, it takes effect once. (default: a fresh one)"),
]


MAX_MICROS = 10**15
"""What one call may move at most."""


class Scope(StrEnum):
    """What a key may do; each holds those above it, OPERATOR stands alone."""

    READ = "read"
    WRITE = "write"
    ERASE = "erase"
    OPERATOR = "operator"


def read_credits(text: str) -> int:
    """Credits as micro-credits: `1`, `0.25`. Raises typer.BadParameter."""
    try:
        micros = Decimal(text) * words.MICROS
    except InvalidOperation as error:
        raise typer.BadParameter(f"{text!r} is no amount of credits") from error
    if not micros.is_finite() or abs(micros) > MAX_MICROS:
        raise typer.BadParameter(f"{text}: at most {words.amount(MAX_MICROS)} credits at once")
    if micros != int(micros):
        raise typer.BadParameter(f"{text}: a credit has a million parts, no smaller ones")
    return int(micros)


def tenants() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True, help="Tenants (operator's key).")
    command(app, "create", operator=True)(create_tenant)
    return app


def keys() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True, help="API keys (operator's key).")
    command(app, "create", operator=True)(create_key)
    return app


def add_to(app: typer.Typer) -> None:
    command(app, "grant", operator=True, panel="Operator")(grant)


async def create_tenant(
    shell: Shell,
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="The new tenant's id.")],
    name: Annotated[str, typer.Option(help="Name for people. (default: the id)")] = "",
) -> None:
    """Makes a tenant with an empty credit account; the same again changes nothing."""
    request = admin_pb2.CreateTenantRequest(tenant_id=tenant, display_name=name)
    response = await shell.connection.call(shell.connection.admin.CreateTenant, request)
    shell.show(response, _tenant)


def _tenant(response: admin_pb2.CreateTenantResponse) -> RenderableType:
    tenant = response.tenant
    return words.pairs(
        [
            ("tenant", tenant.tenant_id),
            ("name", tenant.display_name),
            ("state", words.word(admin_pb2.TenantState.Name, tenant.state, "TENANT_STATE_")),
            ("created", shown(tenant.created_at) + ("" if response.created else " (was there already)")),
        ]
    )


async def create_key(
    shell: Shell,
    tenant: Annotated[
        str, typer.Argument(metavar="TENANT", help="The tenant; none for an operator's key.")
    ] = "",
    scope: Annotated[
        list[Scope] | None, typer.Option(help="What it may do; repeatable. (default: read and write)")
    ] = None,
    name: Annotated[str, typer.Option(help="Name for people.")] = "",
    expires: Annotated[
        Dated | None, typer.Option(parser=read_date, metavar="DATE", help=f"When it stops working: {FORMS}.")
    ] = None,
) -> None:
    """Makes an API key and prints it alone on standard output: it is shown this once."""
    request = admin_pb2.CreateApiKeyRequest(
        tenant_id=tenant,
        display_name=name,
        scopes=[admin_pb2.ApiKeyScope.Value(f"API_KEY_SCOPE_{each.name}") for each in scope or ()],
        expires_at=expires.timestamp if expires else None,
    )
    response = await shell.connection.call(shell.connection.admin.CreateApiKey, request)
    if not shell.json:
        scopes = [
            words.word(admin_pb2.ApiKeyScope.Name, each, "API_KEY_SCOPE_") for each in response.api_key.scopes
        ]
        shell.note(f"key {response.api_key.key_id} ({', '.join(scopes)}); it is not shown again:")
    shell.show(response, lambda answer: answer.secret)


async def grant(
    shell: Shell,
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="The tenant.")],
    amount: Annotated[int, typer.Argument(parser=read_credits, metavar="CREDITS", help="Such as 10 or 0.5.")],
    reason: Annotated[str, typer.Option(help="Shown in the ledger.")] = "",
    request_id: RequestId = "",
) -> None:
    """Adds credits to a tenant's account."""
    request = admin_pb2.GrantCreditsRequest(
        tenant_id=tenant, amount_micros=amount, reason=reason, request_id=request_id or new_request_id()
    )
    response = await shell.connection.call(shell.connection.admin.GrantCredits, request)
    shell.show(response, _granted)


def _granted(response: admin_pb2.GrantCreditsResponse) -> RenderableType:
    return words.pairs(
        [
            ("granted", words.amount(response.entry.amount_micros)),
            ("available", words.amount(response.balance.available_micros)),
            ("replayed", "yes: this request id was known, nothing was added" if response.replayed else ""),
        ]
    )
