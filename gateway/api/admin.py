"""AdminService: tenants, keys and grants, for operators."""

from dataclasses import fields
from typing import Any

import grpc.aio

from gateway.api.credits import balance_message, entry_message
from gateway.convert.times import instant_of
from gateway.credits.ledger import Ledger
from gateway.credits.money import MicroCredits, PriceItem, PriceTable
from gateway.credits.prices import Prices
from gateway.credits.usage import Period, Usages
from gateway.errors import ValidationFailed, Violation
from gateway.keys import ApiKey, KeyId, KeyScope
from gateway.paging import page_of, token_of
from gateway.store.job_view import timestamp
from gateway.store.jobs import Jobs
from gateway.store.keys import ApiKeys
from gateway.store.stores import Stores
from gateway.store.tenants import Limits, Tenant, Tenants, TenantState
from palimpsest.v1 import admin_pb2
from services.domain.instants import Instant
from services.domain.scope import TenantId

Context = grpc.aio.ServicerContext[Any, Any]

_SCOPE, _ITEM = "API_KEY_SCOPE_", "PRICE_ITEM_"
_DEFAULT_SCOPES = (KeyScope.READ, KeyScope.WRITE)


class AdminServicer:
    """Tenants, their keys, limits and credits."""

    def __init__(
        self,
        tenants: Tenants,
        keys: ApiKeys,
        ledger: Ledger,
        jobs: Jobs,
        prices: Prices,
        usages: Usages,
    ) -> None:
        self._tenants = tenants
        self._keys = keys
        self._ledger = ledger
        self._jobs = jobs
        self._prices = prices
        self._usages = usages

    @classmethod
    def over(cls, stores: Stores) -> "AdminServicer":
        """On the gateway's stores."""
        return cls(stores.tenants, stores.keys, stores.ledger, stores.jobs, stores.prices, stores.usages)

    async def CreateTenant(
        self, request: admin_pb2.CreateTenantRequest, context: Context
    ) -> admin_pb2.CreateTenantResponse:
        tenant, created = await self._tenants.create(TenantId(request.tenant_id), request.display_name)
        return admin_pb2.CreateTenantResponse(tenant=tenant_message(tenant), created=created)

    async def CreateApiKey(
        self, request: admin_pb2.CreateApiKeyRequest, context: Context
    ) -> admin_pb2.CreateApiKeyResponse:
        scopes = [
            KeyScope(admin_pb2.ApiKeyScope.Name(scope).removeprefix(_SCOPE)) for scope in request.scopes
        ]
        expires_at = Instant(request.expires_at.ToMicroseconds()) if request.HasField("expires_at") else None
        key, text = await self._keys.create(
            TenantId(request.tenant_id) if request.tenant_id else None,
            request.display_name,
            scopes or _DEFAULT_SCOPES,
            expires_at,
        )
        return admin_pb2.CreateApiKeyResponse(api_key=key_message(key), secret=text)

    async def SuspendTenant(
        self, request: admin_pb2.SuspendTenantRequest, context: Context
    ) -> admin_pb2.SuspendTenantResponse:
        state = TenantState.ACTIVE if request.lift else TenantState.SUSPENDED
        tenant = await self._tenants.set_state(TenantId(request.tenant_id), state)
        if tenant.state is TenantState.SUSPENDED:
            await self._jobs.cancel_all(tenant.id)
        return admin_pb2.SuspendTenantResponse(tenant=tenant_message(tenant))

    async def SetLimits(
        self, request: admin_pb2.SetLimitsRequest, context: Context
    ) -> admin_pb2.SetLimitsResponse:
        chosen = {field.name: getattr(request.limits, field.name) for field in fields(Limits)}
        tenant = await self._tenants.set_limits(TenantId(request.tenant_id), Limits(**chosen))
        return admin_pb2.SetLimitsResponse(tenant=tenant_message(tenant))

    async def ListApiKeys(
        self, request: admin_pb2.ListApiKeysRequest, context: Context
    ) -> admin_pb2.ListApiKeysResponse:
        tenant = TenantId(request.tenant_id)
        listed = await self._keys.list(tenant or None, page_of(tenant, request))
        return admin_pb2.ListApiKeysResponse(
            api_keys=[key_message(key) for key in listed.items],
            next_page_token=token_of(tenant, request, listed.after),
        )

    async def RevokeApiKey(
        self, request: admin_pb2.RevokeApiKeyRequest, context: Context
    ) -> admin_pb2.RevokeApiKeyResponse:
        key = await self._keys.revoke(KeyId(request.key_id))
        return admin_pb2.RevokeApiKeyResponse(api_key=key_message(key))

    async def RefundCharge(
        self, request: admin_pb2.RefundChargeRequest, context: Context
    ) -> admin_pb2.RefundChargeResponse:
        tenant = (await self._tenants.get(TenantId(request.tenant_id))).id
        async with self._ledger.books(tenant) as books:
            group, _ = await books.refund(
                tenant,
                request.job_id,
                request.request_id,
                MicroCredits(request.amount_micros),
                request.reason,
            )
        entries = await self._ledger.entries_of(tenant, group)
        return admin_pb2.RefundChargeResponse(
            balance=balance_message(await self._ledger.balance(tenant)), entry=entry_message(entries[0])
        )

    async def SetPrices(
        self, request: admin_pb2.SetPricesRequest, context: Context
    ) -> admin_pb2.SetPricesResponse:
        table = await self._prices.publish(price_table_in(request.table))
        return admin_pb2.SetPricesResponse(table=price_table_out(table))

    async def GrantCredits(
        self, request: admin_pb2.GrantCreditsRequest, context: Context
    ) -> admin_pb2.GrantCreditsResponse:
        tenant = TenantId(request.tenant_id)
        async with self._ledger.books(tenant) as books:
            group, fresh = await books.grant(
                tenant, request.request_id, MicroCredits(request.amount_micros), request.reason
            )
        entries = await self._ledger.entries_of(tenant, group)
        return admin_pb2.GrantCreditsResponse(
            balance=balance_message(await self._ledger.balance(tenant)),
            entry=entry_message(entries[0]),
            replayed=not fresh,
        )

    async def GetUsage(
        self, request: admin_pb2.GetUsageRequest, context: Context
    ) -> admin_pb2.GetUsageResponse:
        since = instant_of(request.used_from) if request.HasField("used_from") else None
        until = instant_of(request.used_until) if request.HasField("used_until") else None
        usage = await self._usages.of(TenantId(request.tenant_id), Period(since, until))
        return admin_pb2.GetUsageResponse(
            balance=balance_message(usage.balance),
            spent_micros=usage.spent,
            goodwill_micros=usage.goodwill,
            jobs=usage.jobs,
            calls=usage.calls,
            tokens=usage.tokens,
            graphs=usage.graphs,
        )


def price_table_in(table: admin_pb2.PriceTable) -> PriceTable:
    """Raises ValidationFailed for an item that has two prices."""
    items = [PriceItem(admin_pb2.PriceItem.Name(one.item).removeprefix(_ITEM)) for one in table.prices]
    if len(set(items)) < len(items):
        raise ValidationFailed(Violation("table.prices", "one price for an item", "prices.one_for_an_item"))
    amounts = [MicroCredits(one.micros) for one in table.prices]
    return PriceTable(table.version, dict(zip(items, amounts, strict=True)))


def price_table_out(table: PriceTable) -> admin_pb2.PriceTable:
    return admin_pb2.PriceTable(
        version=table.version,
        prices=[
            admin_pb2.Price(item=admin_pb2.PriceItem.Value(f"{_ITEM}{item}"), micros=micros)
            for item, micros in sorted(table.prices.items())
        ],
    )


def tenant_message(tenant: Tenant) -> admin_pb2.Tenant:
    return admin_pb2.Tenant(
        tenant_id=tenant.id,
        display_name=tenant.display_name,
        state=admin_pb2.TenantState.Value(f"TENANT_STATE_{tenant.state}"),
        created_at=timestamp(tenant.created_at),
        limits=limits_message(tenant.limits),
    )


def limits_message(limits: Limits) -> admin_pb2.TenantLimits:
    return admin_pb2.TenantLimits(
        requests_per_second=limits.requests_per_second,
        request_burst=limits.request_burst,
        max_in_flight=limits.max_in_flight,
        max_jobs=limits.max_jobs,
        max_bytes_per_day=limits.max_bytes_per_day,
        max_graphs=limits.max_graphs,
        goodwill_micros_per_day=limits.goodwill_micros_per_day,
    )


def key_message(key: ApiKey) -> admin_pb2.ApiKey:
    message = admin_pb2.ApiKey(
        key_id=key.id,
        tenant_id="" if key.tenant is None else key.tenant.id,
        display_name=key.display_name,
        scopes=[admin_pb2.ApiKeyScope.Value(f"{_SCOPE}{scope}") for scope in sorted(key.scopes)],
        created_at=timestamp(key.created_at),
    )
    if key.expires_at is not None:
        message.expires_at.CopyFrom(timestamp(key.expires_at))
    if key.revoked_at is not None:
        message.revoked_at.CopyFrom(timestamp(key.revoked_at))
    return message
