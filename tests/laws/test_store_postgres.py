"""The laws of time over the whole store, on PostgreSQL."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.resolving import World, a_world
from tests.laws import store_laws as laws

pytestmark = pytest.mark.postgres


@pytest.fixture
async def world(tmp_path: Path, postgres_url: str) -> AsyncIterator[World]:
    async with a_world(tmp_path, engine_url=postgres_url) as world:
        yield world


test_a_story_is_as_the_oracle_says = laws.law(laws.a_story_as_the_oracle, 20)
test_any_order_of_arrival_gives_the_same_spans = laws.law(laws.any_order_of_arrival, 40)
test_told_and_deleted_is_never_told = laws.law(laws.told_and_deleted, 40)
test_judged_and_undone_is_never_judged = laws.law(laws.judged_and_undone, 40)
test_merged_and_split_restores = laws.law(laws.merged_and_split, 40)
