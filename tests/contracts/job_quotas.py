"""How tenants are held to what they may keep and send, on every database, however many callers there are."""

import asyncio
from dataclasses import replace

import pytest

from gateway.errors import DailyBytesExceeded, TooManyGraphs, TooManyJobs
from gateway.store.clock import SkewedClock
from gateway.store.imports import Making
from gateway.store.job_values import Order
from gateway.store.stores import Stores
from gateway.store.tenants import Limits
from palimpsest.v1.graph_pb2 import GraphSettings
from services.domain.instants import Instant
from services.stores.paging import Page
from tests.doubles.gateway import ACME, GLOBEX, graph, order

SCOPE = graph(ACME)


class QuotasContract:
    """Part of JobsContract, whose fixtures it uses."""

    async def test_graphs_are_counted_whoever_makes_them(self, ready: Stores) -> None:
        await ready.tenants.set_limits(ACME, Limits(max_graphs=3))

        async def made(number: int) -> bool:
            """By a first write, or by itself."""
            scope = graph(ACME, f"g{number}")
            try:
                if number % 2:
                    await ready.jobs.accept(order(scope, f"r{number}", ceiling=number % 3))
                else:
                    await ready.graphs.create(scope, GraphSettings())
            except TooManyGraphs:
                return False
            return True

        assert sum(await asyncio.gather(*map(made, range(10)))) == 3
        with pytest.raises(TooManyGraphs) as refused:
            await ready.graphs.create(graph(ACME, "more"), GraphSettings())
        assert (refused.value.metadata, refused.value.retry_after_seconds) == ({"limit": "3"}, None)
        kept = await ready.graphs.list(ACME, Page(100))
        assert len(kept.items) == 3
        assert len(await ready.jobs.unfinished()) == sum(int(one.scope.graph[1:]) % 2 for one in kept.items)
        known = kept.items[0].scope
        await ready.jobs.accept(order(known, "again"))
        assert (await ready.graphs.create(known, GraphSettings()))[1] is False
        await ready.graphs.create(graph(GLOBEX), GraphSettings())
        await ready.tenants.set_limits(ACME, Limits(max_graphs=4))
        await ready.graphs.create(graph(ACME, "one more"), GraphSettings())

    async def test_text_of_a_day_is_counted_to_the_byte(self, ready: Stores, clock: SkewedClock) -> None:
        await ready.tenants.set_limits(ACME, Limits(max_bytes_per_day=100))

        def sent(name: str, size: int) -> Order:
            return replace(order(SCOPE, name, ceiling=0), text_bytes=size)

        async def taken(number: int) -> bool:
            try:
                await ready.jobs.accept(sent(f"r{number}", 30))
            except DailyBytesExceeded:
                return False
            return True

        assert sum(await asyncio.gather(*map(taken, range(8)))) == 3
        await ready.jobs.accept(sent("rest", 10))
        assert not (await ready.jobs.accept(sent("rest", 10))).fresh, "a repeated call counts nothing"
        with pytest.raises(DailyBytesExceeded) as refused:
            await ready.jobs.accept(sent("more", 1))
        assert refused.value.metadata == {"limit": "100", "size": "1"}
        assert 0 < (refused.value.retry_after_seconds or 0) <= 86_400
        await ready.jobs.accept(replace(order(graph(GLOBEX), "theirs"), text_bytes=1000))
        with pytest.raises(DailyBytesExceeded) as never:
            await ready.jobs.accept(sent("too large for any day", 101))
        assert never.value.retry_after_seconds is None
        clock.skew_seconds = 86_400
        await ready.jobs.accept(sent("tomorrow", 100))

    async def test_an_import_counts_its_bytes_and_its_graph(self, ready: Stores) -> None:
        await ready.tenants.set_limits(ACME, Limits(max_bytes_per_day=100, max_graphs=1))
        large = Making(SCOPE, "h", GraphSettings(), Instant(1), Instant(1), bytes=101)
        with pytest.raises(DailyBytesExceeded):
            await ready.imports.begin(large)
        owner, _ = await ready.imports.begin(replace(large, bytes=60))
        assert await ready.imports.finish(SCOPE, owner)
        with pytest.raises(TooManyGraphs):
            await ready.imports.begin(replace(large, scope=graph(ACME, "second"), bytes=1))
        with pytest.raises(DailyBytesExceeded):
            await ready.jobs.accept(replace(order(SCOPE, "text", ceiling=0), text_bytes=41))

    async def test_unfinished_jobs_are_counted_though_they_cost_nothing(self, ready: Stores) -> None:
        async def accepted(number: int) -> bool:
            try:
                await ready.jobs.accept(order(SCOPE, f"r{number}", ceiling=0), max_jobs=2)
            except TooManyJobs:
                return False
            return True

        assert sum(await asyncio.gather(*map(accepted, range(6)))) == 2
