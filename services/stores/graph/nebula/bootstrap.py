"""Bootstrap: makes a cluster ready for graphs, and tells whether it is. Safe to repeat, from several places.

A new space or schema reaches the daemons by heartbeats (10 s each, two of them): what was made is waited for
by trying what a store will do, until it succeeds.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Literal

from services.domain.scope import GraphId, Scope, TenantId
from services.stores.errors import SchemaDiffers, SchemaUnusable, StoreUnavailable
from services.stores.graph.nebula import layout, statements
from services.stores.graph.nebula.failures import NebulaFailure, Trouble
from services.stores.graph.nebula.layout import Edge, Tag
from services.stores.graph.nebula.sessions import COMPONENT, Sessions
from services.stores.graph.nebula.settings import NebulaSettings, hosts_and_ports
from services.stores.graph.nebula.statements import EdgeKey, Row
from services.stores.graph.nebula.vids import Kind, root, vid

_PAUSE_SECONDS = 0.5
_PROBE = Scope(TenantId(""), GraphId("bootstrap"))
"""No tenant's: a tenant has a name."""


class SpaceMissing(SchemaUnusable):
    """The cluster has no such space, or not all of its tags and edge types."""

    def __init__(self, missing: str) -> None:
        super().__init__(
            COMPONENT, f"the {COMPONENT} store lacks {missing}: run `palimpsest-admin bootstrap`"
        )


class ClusterRefuses(SchemaUnusable):
    """The cluster answers, and does not do what bootstrap asks; `why` is its own word."""

    def __init__(self, why: str) -> None:
        super().__init__(COMPONENT, f"the NebulaGraph cluster can't be made ready: {why}")


async def bootstrap(settings: NebulaSettings) -> list[str]:
    """Makes what is missing, waits until it can be used; answers what was done, a line each.

    Raises SchemaDiffers where a tag or an edge type is there with other columns; ClusterRefuses when the
    cluster says no, or still does when time is up; StoreUnavailable when it can't be reached.
    """
    deadline = time.monotonic() + settings.bootstrap_timeout_seconds
    done: list[str] = []
    anywhere = Sessions(settings.model_copy(update={"sessions": 1}), in_space=False)
    try:
        done += await _hosts(anywhere, settings, deadline)
        if settings.space not in await _names(anywhere, "SPACES"):
            await _until(deadline, lambda: anywhere.send(_space(settings)))
            done.append(
                f"space {settings.space}: {settings.partitions} partitions, {settings.replicas} replicas"
            )
    finally:
        await anywhere.close()
    inside = Sessions(settings.model_copy(update={"sessions": 1}))
    try:
        await _until(deadline, lambda: inside.send(statements.use(settings.space)))
        done += await _schema(inside, deadline)
        if differing := await _differing(inside):
            raise SchemaDiffers(COMPONENT, differing)
        await _until(deadline, lambda: _probe(inside))
        return [*done, "usable: a write to each kind of vertex and edge was tried"]
    finally:
        await inside.close()


async def check(settings: NebulaSettings) -> None:
    """Raises SpaceMissing or SchemaDiffers unless the space is as this version needs it."""
    anywhere = Sessions(settings.model_copy(update={"sessions": 1}), in_space=False)
    try:
        if settings.space not in await _names(anywhere, "SPACES"):
            raise SpaceMissing(f"the space {settings.space}")
    finally:
        await anywhere.close()
    inside = Sessions(settings.model_copy(update={"sessions": 1}))
    try:
        there = await _names(inside, "TAGS") | await _names(inside, "EDGES")
        for one in (*layout.TAGS, *layout.EDGES):
            if one.name not in there:
                raise SpaceMissing(f"the tag or edge type {one.name}")
        if differing := await _differing(inside):
            raise SchemaDiffers(COMPONENT, differing)
    finally:
        await inside.close()


async def drop(settings: NebulaSettings) -> None:
    """Removes the space with every graph in it: for tests, which make their own."""
    anywhere = Sessions(settings.model_copy(update={"sessions": 1}), in_space=False)
    try:
        await anywhere.send(statements.drop_space(settings.space))
    finally:
        await anywhere.close()


async def _hosts(sessions: Sessions, settings: NebulaSettings, deadline: float) -> list[str]:
    """Adds storage hosts that are missing, and waits until one that can hold data is online."""
    wanted = hosts_and_ports(settings.storage_hosts)
    known = await _storages(sessions)
    missing = [one for one in wanted if one not in known]
    if missing:
        await sessions.send(statements.add_hosts(missing))

    async def online() -> None:
        found = await _storages(sessions)
        if not found or any(found.get(one) != "ONLINE" for one in wanted):
            raise StoreUnavailable(COMPONENT)

    await _until(deadline, online)
    return [f"host {host}:{port}" for host, port in missing]


async def _storages(sessions: Sessions) -> dict[tuple[str, int], str]:
    """Status of each storage host by host and port."""
    answer = await sessions.send(statements.show("HOSTS"))
    # The last row is a sum, without a port.
    return {(host, port): status for host, port, status, *_ in answer.rows if port is not None}


async def _names(sessions: Sessions, what: Literal["SPACES", "TAGS", "EDGES"]) -> set[str]:
    return {row[0] for row in (await sessions.send(statements.show(what))).rows}


def _space(settings: NebulaSettings) -> statements.Sentence:
    return statements.create_space(settings.space, settings.partitions, settings.replicas)


async def _schema(sessions: Sessions, deadline: float) -> list[str]:
    there = {"TAG": await _names(sessions, "TAGS"), "EDGE": await _names(sessions, "EDGES")}
    made: list[str] = []

    async def make(kind: Literal["TAG", "EDGE"], one: Tag | Edge) -> None:
        if one.name not in there[kind]:
            await _until(deadline, lambda: sessions.send(statements.create(kind, one)))
            made.append(f"{kind.lower()} {one.name}")

    for tag in layout.TAGS:
        await make("TAG", tag)
    for edge in layout.EDGES:
        await make("EDGE", edge)
    return made


async def _differing(sessions: Sessions) -> list[str]:
    """Columns, as `tag.column`, that only the space or only the layout has, or that have another type."""
    wanted: list[Tag | Edge] = [*layout.TAGS, *layout.EDGES]
    answers = await sessions.send_all(
        statements.describe("TAG" if isinstance(one, Tag) else "EDGE", one.name) for one in wanted
    )
    return sorted(
        f"{one.name}.{name}"
        for one, answer in zip(wanted, answers, strict=True)
        for name, _type in {(row[0], row[1]) for row in answer.rows}
        ^ {(column.name, column.type) for column in one.columns}
    )


async def _probe(sessions: Sessions) -> None:
    """Writes one of everything in a scope of nobody's, reads it, and deletes it."""
    place = vid(_PROBE, Kind.STATEMENT, "probe")
    key = EdgeKey(place, place)
    for tag in layout.TAGS:
        await sessions.send(statements.insert_vertices(tag, [(place, _nothing(tag))]))
        if not (await sessions.send(statements.fetch(tag, [place]))).rows:
            raise StoreUnavailable(COMPONENT)
    for edge in layout.EDGES:
        await sessions.send(statements.insert_edges(edge, [(key, _nothing(edge))], anew=True))
    found = await sessions.send(statements.edge_keys([place], layout.EDGES))
    if len(found.rows) != len(layout.EDGES):
        raise StoreUnavailable(COMPONENT)
    for edge in layout.EDGES:
        await sessions.send(statements.delete_edges(edge, [key]))
    await sessions.send(statements.delete_vertices([place, root(_PROBE)]))


def _nothing(one: Tag | Edge) -> Row:
    return {column.name: "" if column.type == "string" else 0 for column in one.columns}


async def _until(deadline: float, work: Callable[[], Awaitable[object]]) -> None:
    """Tries until it succeeds. A new schema that a daemon does not know yet is said in many ways."""
    while True:
        try:
            await work()
            return
        except (StoreUnavailable, NebulaFailure) as failure:
            cause = failure if isinstance(failure, NebulaFailure) else failure.__cause__
            told = isinstance(cause, NebulaFailure) and cause.trouble is not Trouble.LOST
            mistaken = isinstance(failure, NebulaFailure) and failure.trouble is Trouble.MISTAKE
            if (mistaken or time.monotonic() > deadline) and isinstance(cause, NebulaFailure) and told:
                raise ClusterRefuses(cause.told) from failure
            if time.monotonic() > deadline:
                raise StoreUnavailable(COMPONENT) from failure
        await asyncio.sleep(_PAUSE_SECONDS)
