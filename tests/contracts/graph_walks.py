"""The graph suite: walks in both directions, nearest then newest, capped, never through a predicate."""

from collections.abc import Sequence
from dataclasses import replace

from services.domain.graph import EntityType
from services.domain.ids import EntityId, Revision
from services.stores.graph.port import AsOf, Commit, GraphStore, Step
from tests.builders import Maker, closing, on, revoking, text, together
from tests.contracts.graph_base import Capability, GraphSuite

NOW = AsOf(Revision(99))


def shown(steps: Sequence[Step]) -> list[tuple[int, str]]:
    return [(step.hop, step.view.statement.fact) for step in steps]


class GraphWalks(GraphSuite):
    """Breadth first, from the outside as recall uses it."""

    async def chain(self, store: GraphStore, make: Maker) -> list[EntityId]:
        """a → b → c → d, told in that order; the ids of a, b, c and d."""
        links = [
            make.fact(one, "knows", other, on("2020-01-01"), revision=revision)
            for revision, (one, other) in enumerate([("a", "b"), ("b", "c"), ("c", "d")], start=1)
        ]
        for link in links:
            await store.apply(make.scope, link)
        return [make.entity(name).id for name in "abcd"]

    async def test_both_directions_one_hop_at_a_time(self, store: GraphStore, make: Maker) -> None:
        a, b, c, d = await self.chain(store, make)
        assert shown(await store.walk(make.scope, [a], NOW, 3, 10)) == [
            (1, "a knows b"),
            (2, "b knows c"),
            (3, "c knows d"),
        ]
        assert shown(await store.walk(make.scope, [d], NOW, 2, 10)) == [(1, "c knows d"), (2, "b knows c")]
        middle = await store.walk(make.scope, [b], NOW, 1, 10)
        assert [(step.view.statement.fact, step.via) for step in middle] == [
            ("b knows c", b),
            ("a knows b", b),
        ]
        onward = await store.walk(make.scope, [a], NOW, 3, 10)
        assert [step.via for step in onward] == [a, b, c]

    async def test_those_that_read_as_one_are_one_node(self, store: GraphStore, make: Maker) -> None:
        """A walk that meets one of a group goes on from all of it, and never between them."""
        a, b, c, d = await self.chain(store, make)
        group = dict.fromkeys((a, c), (c, a))
        assert shown(await store.walk(make.scope, [a], NOW, 2, 10, group)) == [
            (1, "c knows d"),
            (1, "b knows c"),
            (1, "a knows b"),
        ]
        from_b = await store.walk(make.scope, [b], NOW, 2, 10, dict.fromkeys((c, d), (c, d)))
        assert [(step.hop, step.view.statement.fact, step.via) for step in from_b] == [
            (1, "b knows c", b),
            (1, "a knows b", b),
            (2, "c knows d", c),
        ]
        capped = await store.walk(make.scope, [a], NOW, 3, 1, dict.fromkeys((a, b), (a, b)))
        assert shown(capped) == [(1, "b knows c"), (2, "c knows d")]

    async def test_no_hops_or_no_seeds_find_nothing(self, store: GraphStore, make: Maker) -> None:
        [a, *_] = await self.chain(store, make)
        assert await store.walk(make.scope, [a], NOW, 0, 10) == []
        assert await store.walk(make.scope, [], NOW, 3, 10) == []
        assert await store.walk(make.scope, [a], NOW, 3, 0) == []

    async def test_cycles_and_loops_end(self, store: GraphStore, make: Maker) -> None:
        a, *_, d = await self.chain(store, make)
        back = make.fact("d", "knows", "a", revision=4)
        itself = make.fact("a", "knows", "a", revision=5)
        await store.apply(make.scope, back)
        await store.apply(make.scope, itself)
        assert shown(await store.walk(make.scope, [a], NOW, 9, 10)) == [
            (1, "a knows a"),
            (1, "d knows a"),
            (1, "a knows b"),
            (2, "c knows d"),
            (2, "b knows c"),
        ]
        both = await store.walk(make.scope, [d, a], NOW, 1, 10)
        assert {step.view.statement.fact: step.via for step in both}["d knows a"] == d

    async def test_predicates_are_not_walked_through(self, store: GraphStore, make: Maker) -> None:
        await self.chain(store, make)
        far = make.fact("x", "knows", "y", revision=4)
        inverse = make.statement(make.entity("a"), make.predicate("names"), make.predicate("knows"), 5)
        await store.apply(make.scope, far)
        await store.apply(
            make.scope,
            Commit(
                Revision(5),
                entities=[make.entity("a"), make.predicate("names", 5), make.predicate("knows")],
                statements=[inverse],
                opened=[make.span(inverse, revision=5)],
            ),
        )
        told = make.statement(make.predicate("knows"), make.predicate("names"), text("a verb"), 6)
        await store.apply(
            make.scope, Commit(Revision(6), statements=[told], opened=[make.span(told, revision=6)])
        )
        a = make.entity("a").id
        found = shown(await store.walk(make.scope, [a], NOW, 9, 10))
        assert (1, "a names knows") in found
        assert not {fact for _, fact in found} & {"x knows y", "knows names a verb"}
        from_predicate = await store.walk(make.scope, [make.predicate("knows").id], NOW, 1, 10)
        assert [step.view.statement.fact for step in from_predicate] == [
            "knows names a verb",
            "a names knows",
        ]

    async def test_each_level_keeps_the_newest(self, store: GraphStore, make: Maker) -> None:
        for revision in range(1, 8):
            await store.apply(make.scope, make.fact("hub", "has", f"part {revision}", revision=revision))
        for revision in (8, 9, 10):
            fact = make.fact(f"part {revision - 1}", "has", f"leaf {revision}", revision=revision)
            await store.apply(make.scope, fact)
        hub = make.entity("hub").id
        assert shown(await store.walk(make.scope, [hub], NOW, 2, 2)) == [
            (1, "hub has part 7"),
            (1, "hub has part 6"),
            (2, "part 7 has leaf 8"),
        ]
        # At the second level the hub's other parts are no news: they belong to the first, and it is full.
        assert shown(await store.walk(make.scope, [make.entity("leaf 8").id], NOW, 2, 3)) == [
            (1, "part 7 has leaf 8"),
            (2, "hub has part 7"),
        ]
        assert shown(await store.walk(make.scope, [make.entity("leaf 8").id], NOW, 3, 3))[2:] == [
            (3, "hub has part 6"),
            (3, "hub has part 5"),
            (3, "hub has part 4"),
        ]

    async def test_a_hub_is_capped(self, store: GraphStore, make: Maker) -> None:
        self.needs(Capability.THOUSANDS)
        facts = [make.fact("hub", "has", f"part {n:04}") for n in range(600)]
        reverse = [make.fact(f"owner {n:04}", "owns", "hub") for n in range(600)]
        await store.apply(make.scope, together([*facts, *reverse]))
        hub = make.entity("hub").id
        steps = await store.walk(make.scope, [hub], NOW, 2, 50)
        newest = sorted((s.id for f in (*facts, *reverse) for s in f.statements), reverse=True)
        assert [step.view.statement.id for step in steps if step.hop == 1] == newest[:50]
        assert all(step.hop == 1 for step in steps)

    async def test_as_of_and_known_at_filter_every_hop(self, store: GraphStore, make: Maker) -> None:
        a, *_ = await self.chain(store, make)
        link = make.statement(make.entity("b"), make.predicate("knows"), make.entity("c"), 2)
        was = make.span(link, on("2020-01-01"), revision=2)
        shorter = make.span(link, on("2020-01-01"), on("2021-01-01"), revision=4)
        await store.apply(make.scope, Commit(Revision(4), opened=[shorter], closed=[closing(was)]))

        async def reach(known_at: int, day: str | None) -> int:
            at = AsOf(Revision(known_at), valid_at=on(day) if day else None)
            return len(await store.walk(make.scope, [a], at, 9, 10))

        assert await reach(4, "2020-06-01") == 3
        assert await reach(4, "2022-01-01") == 1
        assert await reach(3, "2022-01-01") == 3
        assert await reach(2, "2022-01-01") == 2
        assert await reach(9, "2019-01-01") == 0
        assert await reach(4, None) == 3
        [_, step, _] = await store.walk(make.scope, [a], AsOf(Revision(4)), 9, 10)
        assert step.view.spans == (shorter,)

    async def test_what_is_no_longer_believed_is_not_walked(self, store: GraphStore, make: Maker) -> None:
        fact = make.fact("a", "knows", "b")
        await store.apply(make.scope, fact)
        gone = Commit(Revision(2), revocations=[revoking(fact.claims[0])], closed=[closing(fact.opened[0])])
        await store.apply(make.scope, gone)
        seeds = [make.entity("a").id]
        assert await store.walk(make.scope, seeds, AsOf(Revision(2)), 3, 10) == []
        assert len(await store.walk(make.scope, seeds, AsOf(Revision(1)), 3, 10)) == 1

    async def test_five_thousand_statements(self, store: GraphStore, make: Maker) -> None:
        """Sane at the size of a busy graph: loads, lists, walks and counts."""
        self.needs(Capability.THOUSANDS)
        people = [make.entity(f"person {n}", EntityType.PERSON) for n in range(250)]
        knows = make.predicate("knows")
        statements = [
            make.statement(people[n], knows, people[(n + step) % 250])
            for n in range(250)
            for step in range(1, 21)
        ]
        whole = Commit(
            Revision(1),
            entities=[*people, knows],
            aliases=[make.alias(node) for node in (*people, knows)],
            statements=statements,
            claims=[make.claim(statement) for statement in statements],
            opened=[make.span(statement, on("2020-01-01")) for statement in statements],
        )
        await store.apply(make.scope, whole)
        counts = await store.counts(make.scope, Revision(1))
        assert (counts.entities, counts.statements, counts.claims) == (250, 5_000, 5_000)
        at = AsOf(Revision(1), valid_at=on("2024-01-01"))
        steps = await store.walk(make.scope, [people[0].id], at, 2, 40)
        assert [step.hop for step in steps] == [1] * 40 + [2] * 40
        assert len({step.view.statement.id for step in steps}) == 80
        await store.apply(make.scope, replace(whole, aliases=()))
        assert await store.counts(make.scope, Revision(1)) == counts
        await store.erase(make.scope)
        assert (await store.counts(make.scope, Revision(1))).claims == 0
