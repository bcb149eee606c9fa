"""The product's parts over NebulaGraph: how the services open it, and a resolver that stands on it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import ValidationError

from services.runtime.resources import open_resources
from services.runtime.settings import ServiceSettings
from services.stores.graph.nebula.bootstrap import SpaceMissing, bootstrap, drop
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.store import NebulaGraphStore
from tests.examples import sampled
from tests.integration import test_resolver, test_resolver_forgets
from tests.integration.resolving import World, a_world

STORIES: list[Callable[[World], Awaitable[None]]] = [
    test_resolver.test_a_deleted_episode_gives_back_what_it_struck_out,
    test_resolver.test_a_deleted_fact_that_is_told_again_is_whole_again,
    test_resolver.test_deleting_twice_changes_nothing_more,
    test_resolver.test_fifty_writers_of_one_new_entity_leave_one_node,
    test_resolver.test_the_same_assertion_under_the_same_id_is_recorded_once,
    test_resolver.test_types_keep_namesakes_apart,
    test_resolver.test_contradictions_both_ways_cannot_leave_both_without_spans,
    test_resolver.test_a_later_contradiction_ends_the_earlier_and_deleting_it_undoes_that,
    test_resolver.test_what_a_document_no_longer_says_ends_unless_something_else_says_it,
    test_resolver.test_reads_as_of_a_past_revision_do_not_change_as_more_arrives,
    test_resolver_forgets.test_words_of_a_deleted_episode_go_where_others_support_the_fact,
    test_resolver_forgets.test_a_sentence_that_another_episode_wrote_stays,
    test_resolver_forgets.test_reasons_that_quote_a_deleted_fact_go,
    test_resolver_forgets.test_what_was_over_already_expires_with_its_episode,
    test_resolver_forgets.test_a_verdict_outlives_its_episode_where_others_say_the_same,
]
"""Of the resolver on the SQL graph."""
NOWHERE = "http://127.0.0.1:1"
"""Vectors are not asked for anything here."""


@pytest.fixture
async def nebula(graphd: str) -> AsyncIterator[NebulaSettings]:
    settings = NebulaSettings(addresses=graphd, space=f"test_{uuid4().hex[:12]}", partitions=2, sessions=2)
    yield settings
    await drop(settings)


@pytest.fixture
async def world(tmp_path: Path, nebula: NebulaSettings) -> AsyncIterator[World]:
    await bootstrap(nebula)
    async with a_world(tmp_path, graph=NebulaGraphStore(nebula)) as opened:
        yield opened


@pytest.mark.parametrize("story", sampled(STORIES), ids=lambda story: story.__name__.removeprefix("test_"))
async def test_the_resolver_stands_on_it(world: World, story: Callable[[World], Awaitable[None]]) -> None:
    await story(world)


def services_on(folder: Path, nebula: NebulaSettings | None) -> ServiceSettings:
    return ServiceSettings(data_dir=folder, graph="nebula", nebula=nebula, vectors_uri=NOWHERE)


async def test_the_services_open_a_space_that_is_ready(tmp_path: Path, nebula: NebulaSettings) -> None:
    async with AsyncExitStack() as stack:
        with pytest.raises(SpaceMissing, match="palimpsest-admin bootstrap"):
            await open_resources(services_on(tmp_path, nebula), stack)
    await bootstrap(nebula)
    async with AsyncExitStack() as stack:
        resources = await open_resources(services_on(tmp_path, nebula), stack)
        assert isinstance(resources.graph, NebulaGraphStore)
    assert not (tmp_path / "graph.db").exists()


def test_the_cluster_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="PALIMPSEST_NEBULA__ADDRESSES"):
        services_on(tmp_path, None)


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PALIMPSEST_GRAPH", "nebula")
    monkeypatch.setenv("PALIMPSEST_NEBULA__ADDRESSES", "graphd-0:9669,graphd-1:9669")
    monkeypatch.setenv("PALIMPSEST_NEBULA__PASSWORD", "a secret")
    settings = ServiceSettings()
    assert settings.nebula is not None
    assert settings.nebula.addresses == "graphd-0:9669,graphd-1:9669"
    assert "a secret" not in repr(settings)
