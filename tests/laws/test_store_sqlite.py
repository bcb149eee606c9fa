"""The laws of time over the whole store, on SQLite."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.resolving import World, a_world
from tests.laws import store_laws as laws


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


test_a_story_is_as_the_oracle_says = laws.law(laws.a_story_as_the_oracle, 4)
test_any_order_of_arrival_gives_the_same_spans = laws.law(laws.any_order_of_arrival, 8)
test_told_and_deleted_is_never_told = laws.law(laws.told_and_deleted, 8)
test_judged_and_undone_is_never_judged = laws.law(laws.judged_and_undone, 8)
test_merged_and_split_restores = laws.law(laws.merged_and_split, 8)
