"""CreditService: what a tenant has, and what became of it."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc.aio
from google.protobuf.timestamp_pb2 import Timestamp

from gateway.credits.ledger import Ledger
from gateway.credits.money import MicroCredits
from gateway.credits.values import Balance, Entry, EntryFilter, EntryKind
from gateway.credits.watching import BalanceWatch, Told
from gateway.errors import ValidationFailed, Violation
from gateway.interceptors.call import current_caller
from gateway.paging import opened, page_of, sealed, token_of
from gateway.store.job_view import timestamp
from palimpsest.v1 import credits_pb2
from services.domain.instants import Instant

Context = grpc.aio.ServicerContext[Any, Any]

_NUMBERS: Mapping[EntryKind, credits_pb2.LedgerEntryKind.ValueType] = {
    kind: credits_pb2.LedgerEntryKind.Value(f"LEDGER_ENTRY_KIND_{kind}")
    for kind in EntryKind
    if kind is not EntryKind.GOODWILL  # moves accounts of the platform alone
}
_KINDS = {number: kind for kind, number in _NUMBERS.items()}
"""SPEND is absent: it moves nothing between accounts, so no entry has it."""


class CreditServicer:
    """GetBalance, ListLedgerEntries and WatchBalance."""

    def __init__(self, ledger: Ledger, watch: BalanceWatch) -> None:
        self._ledger = ledger
        self._watch = watch

    async def GetBalance(
        self, request: credits_pb2.GetBalanceRequest, context: Context
    ) -> credits_pb2.GetBalanceResponse:
        balance = await self._ledger.balance(current_caller().tenant)
        return credits_pb2.GetBalanceResponse(balance=balance_message(balance))

    async def ListLedgerEntries(
        self, request: credits_pb2.ListLedgerEntriesRequest, context: Context
    ) -> credits_pb2.ListLedgerEntriesResponse:
        tenant = current_caller().tenant
        kinds = tuple(_KINDS[kind] for kind in request.kinds if kind in _KINDS)
        if request.kinds and not kinds:
            return credits_pb2.ListLedgerEntriesResponse()
        where = EntryFilter(
            job=request.job_id,
            kinds=kinds,
            since=_instant(request.created_from) if request.HasField("created_from") else None,
            until=_instant(request.created_until) if request.HasField("created_until") else None,
        )
        listed = await self._ledger.entries(tenant, where, page_of(tenant, request))
        return credits_pb2.ListLedgerEntriesResponse(
            entries=[entry_message(entry) for entry in listed.items],
            next_page_token=token_of(tenant, request, listed.after),
        )

    async def WatchBalance(
        self, request: credits_pb2.WatchBalanceRequest, context: Context
    ) -> AsyncIterator[credits_pb2.WatchBalanceResponse]:
        tenant = current_caller().tenant
        before = _told(opened(tenant, request, request.cursor, "cursor")) if request.cursor else None
        threshold = MicroCredits(request.threshold_micros) if request.HasField("threshold_micros") else None
        async for balance, told in self._watch.watch(tenant, threshold, before):
            cursor = sealed(tenant, request, f"{told.entry}.{told.available}")
            yield credits_pb2.WatchBalanceResponse(balance=balance_message(balance), cursor=cursor)


def _told(position: str) -> Told:
    entry, _, available = position.partition(".")
    if not (entry.isdecimal() and available.isdecimal()):
        raise ValidationFailed(Violation("cursor", "is not of this balance", "token.bound"))
    return Told(int(entry), MicroCredits(int(available)))


def balance_message(balance: Balance) -> credits_pb2.Balance:
    return credits_pb2.Balance(
        available_micros=balance.available, held_micros=balance.held, as_of=timestamp(balance.as_of)
    )


def entry_message(entry: Entry) -> credits_pb2.LedgerEntry:
    return credits_pb2.LedgerEntry(
        entry_id=str(entry.id),
        group_id=str(entry.group),
        created_at=timestamp(entry.created_at),
        kind=_NUMBERS[entry.kind],
        account=credits_pb2.LedgerAccount.Value(f"LEDGER_ACCOUNT_{entry.account.name}"),
        amount_micros=entry.amount,
        balance_after_micros=entry.balance_after,
        job_id=entry.job,
        request_id=entry.request_key,
        reason=entry.reason,
        price_version=entry.price_version,
    )


def _instant(at: Timestamp) -> Instant:
    return Instant(at.ToMicroseconds())
