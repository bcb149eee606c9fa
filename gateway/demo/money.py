"""Chapter: what it cost. Small talk is refunded; every movement is in the ledger."""

from gateway.demo.stage import Stage, said
from palimpsest.cli.jobs import job_of
from palimpsest.cli.money import balance_of, ledger_of
from palimpsest.v1 import credits_pb2, episode_pb2, errors_pb2

GRAPH = "changes"
SHOWN_ENTRIES = 12


async def play(stage: Stage) -> None:
    """Says something that teaches nothing, then shows the ledger."""
    stage.chapter("Credits")
    before = await _available(stage)
    job = await stage.add(said(GRAPH, "ok thanks!", "2026-03-05"))
    stage.tell('Said: [italic]"ok thanks!"[/]. Nothing to remember, so what was held is given back in full:')
    stage.show(job_of(job))
    chunk = job.chunks[0]
    stage.expect(
        "it taught nothing, as small talk",
        chunk.stage == episode_pb2.CHUNK_STAGE_NOTHING
        and chunk.nothing_reason == errors_pb2.NOTHING_REASON_SMALL_TALK,
    )
    stage.expect(
        "it was refunded in full",
        job.credits.spent_micros == 0 < job.credits.refunded_micros and await _available(stage) == before,
    )
    asked = sum(line.calls for line in job.receipt.stages)
    stage.expect("the receipt says that no language model was asked", asked == 0)
    entries = await stage.connection.call(
        stage.connection.credits.ListLedgerEntries,
        credits_pb2.ListLedgerEntriesRequest(page_size=SHOWN_ENTRIES),
    )
    stage.tell(f"\nThe last {SHOWN_ENTRIES} entries of the ledger:")
    stage.show(ledger_of(entries))
    balance = await stage.connection.call(
        stage.connection.credits.GetBalance, credits_pb2.GetBalanceRequest()
    )
    stage.show(balance_of(balance))
    stage.expect("nothing is held any more", balance.balance.held_micros == 0)


async def _available(stage: Stage) -> int:
    response = await stage.connection.call(
        stage.connection.credits.GetBalance, credits_pb2.GetBalanceRequest()
    )
    return response.balance.available_micros
