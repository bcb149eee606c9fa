"""Dates as models write them: what is none is kept as text, what is coarse stays so; reads bear both."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from palimpsest.v1 import common_pb2, job_pb2, memory_graph_pb2
from services.domain.facts import FactKind, Mention, StatedTime, WorldFact
from services.domain.instants import Precision
from services.llm import tasks
from tests.builders import on
from tests.doubles.engine import ScriptedEngine
from tests.doubles.product import a_product
from tests.e2e.talking import Memory, day

SAID = "Ann leads the harbour project."
QUARTER = StatedTime("Q3 2025", on("2025-07-01"), Precision.QUARTER)
ODD = ["next week", "soon", "来周", "2025-02-30", "'; --", "9" * 300]
UNREADABLE = {"soon", "2025-02-30", "'; --"}


@pytest_asyncio.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    engine = ScriptedEngine()
    engine.world = tasks.WorldFacts(
        tuple(
            WorldFact(
                FactKind.CLAIM, Mention("Ann"), f"leads {number}", Mention("Harbour"), SAID, 0, SAID,
                start=start, end=StatedTime(text),
            )
            for number, text in enumerate(ODD)
            for start in (QUARTER if number % 2 else None,)
        )
    )  # fmt: skip
    async with a_product(tmp_path, engine) as product:
        yield Memory(await product.tenant("acme"), "notes")


@pytest.mark.case("a non-ISO date")
async def test_what_is_no_date_is_text_and_breaks_no_query(memory: Memory) -> None:
    job = await memory.say(SAID, "2026-01-05")
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
    found = {one.predicate.name: one for one in await memory.statements()}
    assert len(found) == len(ODD), "none is lost for its date"
    for number, text in enumerate(ODD):
        read = await memory.read(found[f"leads_{number}"].statement_id)
        (claim,) = read.claims
        (span,) = read.statement.spans
        # Words that we can read, as seen from when they were said, are a date; the rest is text.
        assert claim.HasField("end") == span.HasField("invalid_at") == (not claim.time_text)
        assert text.startswith(claim.time_text)
        assert claim.time_text or text not in UNREADABLE
        if number % 2:
            assert span.valid_at == day("2025-07-01")
            assert span.valid_at_precision == common_pb2.PRECISION_QUARTER
    for at in ("2025-06-30", "2025-08-01", "2026-02-01"):
        assert await memory.facts(valid_at=day(at)) <= await memory.facts()
        assert not (await memory.recall("What does Ann lead?", as_of=day(at))).degraded
    assert await memory.timeline("Ann", "leads_1") == [("Harbour", "2025-07-01", "")]
    asked = memory_graph_pb2.DiffGraphRequest(
        graph_id="notes", system=memory_graph_pb2.SystemTimes(before=common_pb2.KnownAt(revision=0))
    )
    assert await memory.tenant.call(memory.tenant.memory.DiffGraph, asked)
