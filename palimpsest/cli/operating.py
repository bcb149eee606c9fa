"""Operators' commands: `tenant …`, `key …`, `grant`."""

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.markup import escape

from palimpsest.cli import words
from palimpsest.cli.dates import FORMS, Dated, read_date, shown
from palimpsest.cli.pages import Limit, whole
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


Price = Annotated[int, typer.Option(parser=read_credits, metavar="CREDITS", help="Of one.")]
Most = Annotated[int, typer.Option(min=0, help="0: the service's default.")]


def tenants() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True, help="Tenants (operator's key).")
    command(app, "create", operator=True)(create_tenant)
    command(app, "suspend", operator=True)(suspend_tenant)
    command(app, "limits", operator=True)(set_limits)
    command(app, "usage", operator=True)(show_usage)
    return app


def keys() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True, help="API keys (operator's key).")
    command(app, "create", operator=True)(create_key)
    command(app, "list", operator=True)(list_keys)
    command(app, "revoke", operator=True)(revoke_key)
    return app


def add_to(app: typer.Typer) -> None:
    command(app, "grant", operator=True, panel="Operator")(grant)
    command(app, "refund", operator=True, panel="Operator")(refund)
    command(app, "prices", operator=True, panel="Operator")(set_prices)


async def create_tenant(
    shell: Shell,
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="The new tenant's id.")],
    name: Annotated[str, typer.Option(help="Name for people. (default: the id)")] = "",
) -> None:
    """Makes a tenant with an empty credit account; the same again changes nothing."""
    request = admin_pb2.CreateTenantRequest(tenant_id=tenant, display_name=name)
    response = await shell.connection.call(shell.connection.admin.CreateTenant, request)
    shell.show(
        response, lambda answer: _tenant(answer.tenant, "" if answer.created else " (was there already)")
    )


def _tenant(tenant: admin_pb2.Tenant, note: str = "") -> RenderableType:
    limits = [(field.name.replace("_", " "), f"{limit:,}") for field, limit in tenant.limits.ListFields()]
    return words.pairs(
        [
            ("tenant", tenant.tenant_id),
            ("name", tenant.display_name),
            ("state", words.word(admin_pb2.TenantState.Name, tenant.state, "TENANT_STATE_")),
            ("created", shown(tenant.created_at) + note),
            *limits,
        ]
    )


async def suspend_tenant(
    shell: Shell,
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="The tenant.")],
    lift: Annotated[bool, typer.Option("--lift", help="Lift the suspension instead.")] = False,
    reason: Annotated[str, typer.Option(help="Why.")] = "",
) -> None:
    """Suspends a tenant: its calls are refused within 15 seconds."""
    request = admin_pb2.SuspendTenantRequest(tenant_id=tenant, lift=lift, reason=reason)
    response = await shell.connection.call(shell.connection.admin.SuspendTenant, request)
    shell.show(response, lambda answer: _tenant(answer.tenant))


async def set_limits(
    shell: Shell,
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="The tenant.")],
    requests_per_second: Most = 0,
    request_burst: Most = 0,
    max_in_flight: Most = 0,
    max_jobs: Most = 0,
    max_graphs: Most = 0,
    max_bytes_per_day: Most = 0,
    goodwill: Annotated[
        int, typer.Option(parser=read_credits, metavar="CREDITS", help="Refunded small talk in a day.")
    ] = 0,
) -> None:
    """Sets all limits of a tenant; what is not given is the service's default."""
    limits = admin_pb2.TenantLimits(
        requests_per_second=requests_per_second,
        request_burst=request_burst,
        max_in_flight=max_in_flight,
        max_jobs=max_jobs,
        max_graphs=max_graphs,
        max_bytes_per_day=max_bytes_per_day,
        goodwill_micros_per_day=goodwill,
    )
    request = admin_pb2.SetLimitsRequest(tenant_id=tenant, limits=limits)
    response = await shell.connection.call(shell.connection.admin.SetLimits, request)
    shell.show(response, lambda answer: _tenant(answer.tenant))


Bound = Annotated[
    Dated | None, typer.Option(parser=read_date, metavar="DATE", help=f"{FORMS}. (default: no bound)")
]


async def show_usage(
    shell: Shell,
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="The tenant.")],
    since: Bound = None,
    until: Bound = None,
) -> None:
    """Sums up what a tenant did and paid from `--since` on, before `--until`."""
    request = admin_pb2.GetUsageRequest(
        tenant_id=tenant,
        used_from=since.timestamp if since else None,
        used_until=until.timestamp if until else None,
    )
    shell.show(await shell.connection.call(shell.connection.admin.GetUsage, request), _usage)


def _usage(usage: admin_pb2.GetUsageResponse) -> RenderableType:
    return words.pairs(
        [
            ("available", words.amount(usage.balance.available_micros)),
            ("held", words.amount(usage.balance.held_micros)),
            ("spent", words.amount(usage.spent_micros)),
            ("goodwill", words.amount(usage.goodwill_micros)),
            ("jobs", f"{usage.jobs:,}"),
            ("tokens", f"{usage.tokens:,}"),
            ("graphs", f"{usage.graphs:,}"),
            *((name, f"{times:,}") for name, times in sorted(usage.calls.items())),
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


async def list_keys(
    shell: Shell,
    tenant: Annotated[
        str, typer.Argument(metavar="TENANT", help="The tenant; none for operators' keys.")
    ] = "",
    limit: Limit = 50,
) -> None:
    """Lists API keys without their secrets, newest first, revoked ones included."""
    request = admin_pb2.ListApiKeysRequest(tenant_id=tenant)
    listed = await whole(shell, shell.connection.admin.ListApiKeys, request, "api_keys", limit)
    shell.show(listed, lambda answer: _keys(answer.api_keys))


async def revoke_key(
    shell: Shell, key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="The key's id.")]
) -> None:
    """Revokes an API key, everywhere within 30 seconds; the same again changes nothing."""
    request = admin_pb2.RevokeApiKeyRequest(key_id=key_id)
    response = await shell.connection.call(shell.connection.admin.RevokeApiKey, request)
    shell.show(response, lambda answer: _keys([answer.api_key]))


def _keys(keys: Sequence[admin_pb2.ApiKey]) -> RenderableType:
    if not keys:
        return "no keys"
    table = words.listing("key", "name", "may", "created", "expires", "revoked")
    for key in keys:
        scopes = [words.word(admin_pb2.ApiKeyScope.Name, each, "API_KEY_SCOPE_") for each in key.scopes]
        table.add_row(
            key.key_id,
            escape(key.display_name),
            ", ".join(scopes),
            shown(key.created_at),
            shown(key.expires_at) if key.HasField("expires_at") else "",
            shown(key.revoked_at) if key.HasField("revoked_at") else "",
        )
    return table


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


async def refund(
    shell: Shell,
    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="The tenant.")],
    job: Annotated[str, typer.Argument(metavar="JOB", help="The job that was charged.")],
    amount: Annotated[int, typer.Argument(parser=read_credits, metavar="CREDITS", help="Such as 10 or 0.5.")],
    reason: Annotated[str, typer.Option(help="Shown in the ledger.")] = "",
    request_id: RequestId = "",
) -> None:
    """Gives back of what a job was charged; never more than that in all."""
    request = admin_pb2.RefundChargeRequest(
        tenant_id=tenant,
        job_id=job,
        amount_micros=amount,
        reason=reason,
        request_id=request_id or new_request_id(),
    )
    response = await shell.connection.call(shell.connection.admin.RefundCharge, request)
    shell.show(response, _refunded)


def _refunded(response: admin_pb2.RefundChargeResponse) -> RenderableType:
    return words.pairs(
        [
            ("refunded", words.amount(response.entry.amount_micros)),
            ("available", words.amount(response.balance.available_micros)),
        ]
    )


async def set_prices(
    shell: Shell,
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Name of the new version.")],
    thousand_tokens: Price = 0,
    minimum: Price = 0,
    record: Price = 0,
    recall: Price = 0,
) -> None:
    """Publishes a price table for new holds; what is not given costs nothing."""
    micros = {
        admin_pb2.PRICE_ITEM_INGEST_THOUSAND_TOKENS: thousand_tokens,
        admin_pb2.PRICE_ITEM_INGEST_MINIMUM: minimum,
        admin_pb2.PRICE_ITEM_ASSERTED_RECORD: record,
        admin_pb2.PRICE_ITEM_RECALL: recall,
    }
    prices = [admin_pb2.Price(item=item, micros=amount) for item, amount in micros.items()]
    request = admin_pb2.SetPricesRequest(table=admin_pb2.PriceTable(version=version, prices=prices))
    response = await shell.connection.call(shell.connection.admin.SetPrices, request)
    shell.show(response, _prices)


def _prices(response: admin_pb2.SetPricesResponse) -> RenderableType:
    named = [
        (words.word(admin_pb2.PriceItem.Name, one.item, "PRICE_ITEM_").replace("_", " "), one.micros)
        for one in response.table.prices
    ]
    return words.pairs(
        [("version", response.table.version), *((name, words.amount(micros)) for name, micros in named)]
    )


def _granted(response: admin_pb2.GrantCreditsResponse) -> RenderableType:
    return words.pairs(
        [
            ("granted", words.amount(response.entry.amount_micros)),
            ("available", words.amount(response.balance.available_micros)),
            ("replayed", "yes: this request id was known, nothing was added" if response.replayed else ""),
        ]
    )
