"""Every way in which credits move can be listed, and asked for by its kind."""

from pathlib import Path

import pytest

from gateway.credits.money import MicroCredits
from gateway.credits.values import EntryKind, HoldId
from palimpsest.v1 import credits_pb2, credits_pb2_grpc
from tests.doubles.gateway import ACME, RunningGateway, running_gateway

Kind = credits_pb2.LedgerEntryKind


async def listed(running: RunningGateway, *kinds: int) -> credits_pb2.ListLedgerEntriesResponse:
    stub = credits_pb2_grpc.CreditServiceStub(running.channel)
    request = credits_pb2.ListLedgerEntriesRequest()
    request.kinds.extend(Kind.ValueType(kind) for kind in kinds)
    response: credits_pb2.ListLedgerEntriesResponse = await running.call(stub.ListLedgerEntries, request)
    return response


async def move_in_every_way(running: RunningGateway) -> None:
    """After the grant that is there: a hold that is charged in part, one voided, one that ran out."""
    partly, nothing, late = HoldId("partly"), HoldId("nothing"), HoldId("late")
    async with running.stores.ledger.books(ACME) as books:
        for hold in (partly, nothing, late):
            await books.hold(ACME, hold, MicroCredits(100), 3600, price_version="v1", job=f"job-{hold}")
        await books.spend(ACME, partly, "step", MicroCredits(60))
        await books.settle(ACME, partly, MicroCredits(60))
        await books.refund(ACME, f"job-{partly}", "sorry", MicroCredits(20), "a mistake of ours")
        await books.void(ACME, nothing, "SMALL_TALK")
        await books.expire(ACME, late)
        await books.charge(ACME, "question", MicroCredits(5), "recall", "v1")


async def test_every_movement_is_listed_with_its_kind(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as running:
        await move_in_every_way(running)
        entries = (await listed(running)).entries
        assert {Kind.Name(entry.kind).removeprefix("LEDGER_ENTRY_KIND_") for entry in entries} == {
            *("GRANT", "HOLD", "SETTLE", "RELEASE", "REFUND", "VOID", "EXPIRE", "CHARGE"),
        }
        assert sum(entry.amount_micros for entry in entries) == 1000 - 60 + 20 - 5


@pytest.mark.parametrize(
    "name", [name for name in Kind.DESCRIPTOR.values_by_name if not name.endswith("UNSPECIFIED")]
)
async def test_every_kind_can_be_asked_for(tmp_path: Path, name: str) -> None:
    async with running_gateway(tmp_path) as running:
        await move_in_every_way(running)
        whole, asked = await listed(running), await listed(running, Kind.Value(name))
        assert list(asked.entries) == [entry for entry in whole.entries if entry.kind == Kind.Value(name)]


def test_every_kind_of_a_tenants_entry_has_a_name_in_the_api() -> None:
    named = {name.removeprefix("LEDGER_ENTRY_KIND_") for name in Kind.DESCRIPTOR.values_by_name}
    assert {kind.value for kind in EntryKind} - named == {"GOODWILL"}
