"""Bootstrap: makes what is missing, once; waits until all know of it; refuses what it did not make."""

import asyncio
import socket

import pytest

from services.domain.ids import Revision
from services.stores.errors import SchemaDiffers, StoreUnavailable
from services.stores.graph.nebula import layout, statements
from services.stores.graph.nebula.bootstrap import ClusterRefuses, SpaceMissing, bootstrap, check, drop
from services.stores.graph.nebula.layout import Column, Edge, Tag
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.statements import Sentence
from services.stores.graph.nebula.store import NebulaGraphStore
from tests.builders import Maker, a_scope
from tests.doubles.graphd import Fault, FaultKind, Graphd


def settings_for(graphd: Graphd, **chosen: object) -> NebulaSettings:
    given = {"addresses": graphd.address, "partitions": 3, "sessions": 2, "retry_longest_wait_seconds": 0}
    return NebulaSettings.model_validate(given | chosen)


async def test_it_says_what_it_made_and_makes_it_once(graphd_double: Graphd) -> None:
    settings = settings_for(graphd_double)
    done = await bootstrap(settings)
    made = [f"tag {tag.name}" for tag in layout.TAGS] + [f"edge {edge.name}" for edge in layout.EDGES]
    assert done[0] == "space palimpsest: 3 partitions, 1 replicas"
    assert done[1:-1] == made
    again = await bootstrap(settings)
    assert again == done[-1:]
    assert graphd_double.engine.remains("palimpsest") == []
    await check(settings)


async def test_it_waits_for_heartbeats() -> None:
    with Graphd(heartbeat_seconds=0.4) as graphd:
        settings = settings_for(graphd)
        await bootstrap(settings)
        store = await NebulaGraphStore.open(settings)
        make = Maker(a_scope())
        await store.apply(make.scope, make.fact("Mara", "likes", "tea"))
        assert (await store.counts(make.scope, Revision(1))).statements == 1
        await store.close()


async def test_several_at_once(graphd_double: Graphd) -> None:
    settings = settings_for(graphd_double)
    await asyncio.gather(*(bootstrap(settings) for _ in range(3)))
    await check(settings)


async def test_faults_are_waited_out(graphd_double: Graphd) -> None:
    settings = settings_for(graphd_double, max_attempts=1)
    graphd_double.faults.arm(
        *(
            Fault(kind, statement=statement)
            for statement in ("CREATE SPACE", "CREATE TAG", "CREATE EDGE", "INSERT VERTEX", "DELETE EDGE")
            for kind in (FaultKind.LEADER_CHANGED,)
        )
    )
    await bootstrap(settings)
    assert graphd_double.faults.struck == 5
    await check(settings)


async def test_a_host_is_added_where_it_is_missing(graphd_double: Graphd) -> None:
    settings = settings_for(graphd_double, storage_hosts="127.0.0.1:9779,127.0.0.1:9780")
    assert (await bootstrap(settings))[0] == "host 127.0.0.1:9780"
    assert not [line for line in await bootstrap(settings) if line.startswith("host")]


async def test_what_is_missing_is_named_with_the_way_out(graphd_double: Graphd) -> None:
    settings = settings_for(graphd_double)
    with pytest.raises(SpaceMissing, match=r"lacks the space palimpsest: run `palimpsest-admin bootstrap`"):
        await NebulaGraphStore.open(settings)
    await _send(settings, statements.create_space("palimpsest", 1, 1), in_space=False)
    await _send(settings, statements.create("TAG", layout.ENTITY))
    with pytest.raises(SpaceMissing, match="lacks the tag or edge type statement"):
        await check(settings)
    await bootstrap(settings)
    await check(settings)


@pytest.mark.parametrize(
    "made",
    [
        statements.create("TAG", Tag("statement", (Column("body", "string"), Column("hull_from", "string")))),
        statements.create("EDGE", Edge("claim")),
    ],
    ids=["tag", "edge"],
)
async def test_another_version_is_refused(graphd_double: Graphd, made: Sentence) -> None:
    settings = settings_for(graphd_double)
    await _send(settings, statements.create_space("palimpsest", 1, 1), in_space=False)
    await _send(settings, made)
    with pytest.raises(SchemaDiffers, match="graph store"):
        await bootstrap(settings)
    for tag in layout.TAGS:
        await _send(settings, statements.create("TAG", tag))
    with pytest.raises(SchemaDiffers):
        await check(settings)


async def test_nobody_there_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    settings = NebulaSettings(addresses=f"127.0.0.1:{port}", max_attempts=1)
    for work in (bootstrap, check, drop):
        with pytest.raises(StoreUnavailable):
            await work(settings)


async def test_what_the_cluster_refuses_is_told_in_its_words(graphd_double: Graphd) -> None:
    settings = settings_for(graphd_double, bootstrap_timeout_seconds=0.01, max_attempts=1)
    graphd_double.faults.arm(Fault(FaultKind.CONFLICT, statement="CREATE SPACE", times=1_000))
    with pytest.raises(ClusterRefuses, match="can't be made ready: Storage Error: More than one request"):
        await bootstrap(settings)
    graphd_double.faults.arm(Fault(FaultKind.DROPPED_BEFORE, statement="CREATE SPACE", times=1_000))
    with pytest.raises(StoreUnavailable):
        await bootstrap(settings)


async def test_a_dropped_space_is_gone(graphd_double: Graphd) -> None:
    settings = settings_for(graphd_double)
    await bootstrap(settings)
    await drop(settings)
    await drop(settings)
    with pytest.raises(SpaceMissing):
        await check(settings)


async def _send(settings: NebulaSettings, sentence: Sentence, *, in_space: bool = True) -> None:
    sessions = Sessions(settings, in_space=in_space)
    try:
        await sessions.send(sentence)
    finally:
        await sessions.close()
