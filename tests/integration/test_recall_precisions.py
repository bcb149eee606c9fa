"""How fine the borders of what is read are known, through recall over real stores."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from palimpsest.internal.v1 import recall_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from tests.builders import on
from tests.integration.recalling import Memory, a_memory
from tests.integration.resolving import TODAY
from tests.integration.upkeeping import harm

LIVES = "lives_in"
DAY, YEAR = values.PRECISION_DAY, values.PRECISION_YEAR
MARA_LINZ, MARA_VIENNA = ("Mara", LIVES, "Linz"), ("Mara", LIVES, "Vienna")


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with a_memory(tmp_path, [LIVES]) as memory:
        yield memory


async def timeline(memory: Memory, **fields: Any) -> pb.ReadTimelineResponse:
    asked: dict[str, Any] = {"subject": "mara", "predicate": "lives in", "now": TODAY} | fields
    return await memory.recall.read_timeline(memory.world.scope, pb.ReadTimelineRequest(**asked))


async def coarse(memory: Memory) -> None:
    """Seen in Linz in June 2023, said to live in Vienna in September, "since 2023" a year later."""
    await memory.tell("linz", "2023-06-02", MARA_LINZ, since="2020-05-01", start_precision=DAY)
    await memory.tell("vienna", "2023-09-01", MARA_VIENNA)
    await memory.tell("since", "2024-02-01", MARA_VIENNA, since="2023-01-01", start_precision=YEAR)


async def test_a_coarse_start_that_moved_shows_as_coarse_as_it_was_said(memory: Memory) -> None:
    await coarse(memory)
    linz, vienna = [entry.statement.spans[0] for entry in (await timeline(memory)).entries]
    moved = on("2023-06-02") + 1  # the instant after she was seen in Linz
    assert (linz.invalid_at, vienna.valid_at) == (moved, moved)
    assert (linz.invalid_at_precision, vienna.valid_at_precision) == (YEAR, YEAR)
    assert (linz.valid_at_precision, vienna.start_assumed) == (DAY, False)
    block = (await memory.ask("Where does Mara live?", include_passages=False)).context
    assert "(Vienna)  since 2023 [" in block
    assert "(Linz)  since 2020-05-01 until 2023 [" in block
    # As it was known before the year was told: since it was first said.
    [_, early] = (await timeline(memory, known_at=values.KnownAt(revision=2))).entries
    [span] = early.statement.spans
    assert (span.valid_at, span.valid_at_precision) == (on("2023-09-01"), values.PRECISION_UNSPECIFIED)
    assert span.start_assumed


async def test_what_goes_on_again_begins_as_fine_as_the_other_ended(memory: Memory) -> None:
    await memory.tell("linz", "2023-12-01", MARA_LINZ, since="2020-01-01", start_precision=YEAR)
    times: dict[str, Any] = {"start": on("2021-03-01"), "end": on("2021-05-01"), "seen": on("2021-05-01")}
    times |= {"start_precision": values.PRECISION_MONTH, "end_precision": values.PRECISION_MONTH}
    await memory.tell("vienna", "2022-01-01", MARA_VIENNA, **times)
    spans = [entry.statement.spans[0] for entry in (await timeline(memory)).entries]
    assert [span.valid_at_precision for span in spans] == [
        YEAR,
        values.PRECISION_MONTH,
        values.PRECISION_MONTH,
    ]


async def test_spans_of_before_precisions_show_as_their_causes(memory: Memory, tmp_path: Path) -> None:
    await memory.tell("linz", "2023-06-02", MARA_LINZ, since="2020-01-01", start_precision=YEAR)
    await memory.tell("vienna", "2023-07-02", MARA_VIENNA, since="2023-07-01", start_precision=DAY)
    await memory.tell("rome", "2023-09-01", ("Mara", LIVES, "Rome"))
    before = await timeline(memory)
    harm(tmp_path / "graph.db", "UPDATE graph_spans SET start_precision = NULL, end_precision = NULL")
    harm(tmp_path / "graph.db", "UPDATE graph_spans SET assumed = NULL")
    after = await timeline(memory)
    assert after == before
    spans = [entry.statement.spans[0] for entry in after.entries]
    assert [span.valid_at_precision for span in spans] == [YEAR, DAY, values.PRECISION_UNSPECIFIED]
    assert [span.invalid_at_precision for span in spans[:2]] == [DAY, values.PRECISION_UNSPECIFIED]
    assert [span.start_assumed for span in spans] == [False, False, True]
