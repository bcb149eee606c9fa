"""The graph suite: filters, stable paging, look-ups by alias, slot and node."""

import asyncio
from dataclasses import replace

import pytest

from services.domain.graph import EntityType, GraphAspect
from services.domain.ids import EntityId, Revision, StatementId
from services.stores.graph.plain import scan_plain
from services.stores.graph.port import AsOf, Commit, GraphStore, StatementFilter, StatementView
from services.stores.paging import Page
from tests.builders import Maker, closing, on, revoking, text, together
from tests.contracts.graph_base import Capability, GraphSuite
from tests.contracts.graph_model import all_plain
from tests.contracts.graph_time import listed

NOW = AsOf(Revision(9))


def facts(views: list[StatementView]) -> set[str]:
    return {view.statement.fact for view in views}


class GraphLists(GraphSuite):
    """What is found, and in which order."""

    async def found(self, store: GraphStore, make: Maker, where: StatementFilter) -> set[str]:
        return facts(await listed(store, make, NOW, where))

    async def test_each_filter_alone_and_together(self, store: GraphStore, make: Maker) -> None:
        commit = together(
            [
                make.fact("Mara", "lives in", "Paris", episode="e1", aspect=GraphAspect.IDENTITY),
                make.fact("Mara", "likes", "tea", episode="e2"),
                make.fact("Ana", "likes", "tea", episode="e2", aspect=GraphAspect.KNOWLEDGE),
                make.fact("Ana", "age", text("41"), episode="e3", aspect=GraphAspect.IDENTITY),
            ]
        )
        await store.apply(make.scope, commit)
        id = {node.name: node.id for node in commit.entities}
        e1, e2 = make.episode("e1"), make.episode("e2")

        def where(**chosen: object) -> StatementFilter:
            return replace(StatementFilter(), **chosen)  # type: ignore[arg-type] # fields by name

        expected = {
            where(): {"Mara lives in Paris", "Mara likes tea", "Ana likes tea", "Ana age 41"},
            where(subjects=(id["Mara"],)): {"Mara lives in Paris", "Mara likes tea"},
            where(predicates=(id["likes"], id["age"])): {"Mara likes tea", "Ana likes tea", "Ana age 41"},
            where(objects=(id["tea"],)): {"Mara likes tea", "Ana likes tea"},
            where(objects=(id["Mara"],)): set(),
            where(aspects=(GraphAspect.IDENTITY,)): {"Mara lives in Paris", "Ana age 41"},
            where(aspects=(GraphAspect.IDENTITY, GraphAspect.KNOWLEDGE)): {
                "Mara lives in Paris",
                "Ana age 41",
                "Ana likes tea",
            },
            where(episodes=(e1,)): {"Mara lives in Paris"},
            where(episodes=(e1, e2)): {"Mara lives in Paris", "Mara likes tea", "Ana likes tea"},
            where(subjects=(id["Ana"],), objects=(id["tea"],)): {"Ana likes tea"},
            where(subjects=(id["Ana"],), episodes=(e1,)): set(),
            where(
                subjects=(id["Ana"], id["Mara"]),
                predicates=(id["likes"],),
                aspects=(GraphAspect.KNOWLEDGE,),
                episodes=(e2,),
            ): {"Ana likes tea"},
        }
        assert {asked: await self.found(store, make, asked) for asked in expected} == expected

    async def test_ended_ones_are_listed_when_asked_for(self, store: GraphStore, make: Maker) -> None:
        await store.apply(
            make.scope,
            together(
                [
                    make.fact("Mara", "lives in", "Paris", on("2020-01-01"), on("2022-01-01")),
                    make.fact("Mara", "lives in", "Rome", on("2022-01-01")),
                ]
            ),
        )
        assert await self.found(store, make, StatementFilter()) == {"Mara lives in Rome"}
        assert len(await self.found(store, make, StatementFilter(include_ended=True))) == 2
        past = AsOf(Revision(9), valid_at=on("2021-01-01"))
        for where in (StatementFilter(), StatementFilter(include_ended=True)):
            assert facts(await listed(store, make, past, where)) == {"Mara lives in Paris"}

    async def test_contested_is_said_by_the_spans_as_asked(self, store: GraphStore, make: Maker) -> None:
        calm, hot = make.fact("Mara", "likes", "tea"), make.fact("Mara", "lives in", "Rome")
        span = replace(hot.opened[0], contested=True)
        await store.apply(make.scope, together([calm, replace(hot, opened=[span])]))
        assert await self.found(store, make, StatementFilter(contested=True)) == {"Mara lives in Rome"}
        assert await self.found(store, make, StatementFilter(contested=False)) == {"Mara likes tea"}
        earlier = make.span(hot.statements[0], on("1990-01-01"), on("1991-01-01"))
        await store.apply(make.scope, Commit(Revision(1), opened=[earlier]))
        then = AsOf(Revision(9), valid_at=on("1990-06-01"))
        assert facts(await listed(store, make, then, StatementFilter(contested=False))) == {"Mara likes tea"}

    @pytest.mark.parametrize("cause", ["claim", "end", "denial"])
    async def test_what_an_episode_ended(self, store: GraphStore, make: Maker, cause: str) -> None:
        paris = make.fact("Mara", "lives in", "Paris", on("2020-01-01"))
        rome = make.fact("Mara", "lives in", "Rome", on("2022-01-01"), episode="e2")
        at = on("2022-01-01")
        end = make.end(paris.statements[0], at, "e2")
        denial = make.denial(paris.statements[0], at, episode="e2")
        causes = {"claim": rome.claims[0].id, "end": end.id, "denial": denial.id}
        span = make.span(paris.statements[0], on("2020-01-01"), at, ended_by=causes[cause])
        await store.apply(make.scope, replace(paris, opened=[span]))
        await store.apply(make.scope, replace(rome, ends=[end], denials=[denial]))
        asked = StatementFilter(invalidated_by=make.episode("e2"))
        assert await self.found(store, make, asked) == {"Mara lives in Paris"}
        assert await self.found(store, make, StatementFilter(invalidated_by=make.episode("e1"))) == set()
        # Struck out no longer: the span of that belief is closed.
        reopened = Commit(
            Revision(2),
            opened=[make.span(paris.statements[0], on("2020-01-01"), revision=2)],
            closed=[closing(span)],
        )
        await store.apply(make.scope, reopened)
        assert await self.found(store, make, asked) == set()
        assert facts(await listed(store, make, AsOf(Revision(1)), asked)) == {"Mara lives in Paris"}

    async def test_revoked_claims_list_nothing_under_their_episode(
        self, store: GraphStore, make: Maker
    ) -> None:
        fact = make.fact("Mara", "likes", "tea")
        await store.apply(make.scope, fact)
        await store.apply(make.scope, Commit(Revision(2), revocations=[revoking(fact.claims[0])]))
        asked = StatementFilter(episodes=[make.episode("e1")])
        assert await self.found(store, make, asked) == set()
        assert facts(await listed(store, make, AsOf(Revision(1)), asked)) == {"Mara likes tea"}
        assert len((await store.of_episode(make.scope, make.episode("e1"))).claims) == 1

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
    async def test_pages_join_to_the_whole_in_one_order(
        self, store: GraphStore, make: Maker, size: int
    ) -> None:
        for revision in (1, 2, 3):
            await store.apply(make.scope, _some(make, revision, 4))
        ids: list[StatementId] = []
        views: list[StatementView] = []
        after_ids = after_views = ""
        while True:
            scanned = await store.scan(make.scope, Page(size, after_ids))
            page = await store.list_statements(make.scope, StatementFilter(), NOW, Page(size, after_views))
            assert len(scanned.items) == len(page.items) <= size
            ids += scanned.items
            views += page.items
            after_ids, after_views = scanned.after, page.after
            assert bool(after_ids) == bool(after_views)
            if not after_ids:
                break
        assert ids == [view.statement.id for view in views]
        assert [row.split("'")[1] for row in (await all_plain(store, make.scope, size))["statements"]] == ids
        places = [(view.statement.created_at, view.statement.id) for view in views]
        assert len(places) == 12
        assert places == sorted(set(places))

    async def test_paging_is_steady_while_others_write(self, store: GraphStore, make: Maker) -> None:
        await store.apply(make.scope, _some(make, 1, 30))
        at = AsOf(Revision(1))
        expected = [view.statement.id for view in await listed(store, make, at)]

        async def write() -> None:
            for revision in range(2, 12):
                await store.apply(make.scope, _some(make, revision, 5))

        async def read() -> list[StatementId]:
            ids: list[StatementId] = []
            after = ""
            while True:
                page = await store.list_statements(make.scope, StatementFilter(), at, Page(4, after))
                ids += [view.statement.id for view in page.items]
                if not (after := page.after):
                    return ids

        ids, _ = await asyncio.gather(read(), write())
        assert ids == expected

    @pytest.mark.parametrize(
        "position", ["x", "1", ".", "-1.a", "1.\x00", "one.two", "99999999999999999999.a"]
    )
    async def test_a_position_of_nobodys_is_refused(
        self, store: GraphStore, make: Maker, position: str
    ) -> None:
        with pytest.raises(ValueError, match="position"):
            await store.scan(make.scope, Page(10, position))
        with pytest.raises(ValueError, match="position"):
            await scan_plain(store, make.scope, Page(10, position))
        with pytest.raises(ValueError, match="position"):
            await store.list_statements(make.scope, StatementFilter(), NOW, Page(10, position))

    async def test_views_come_in_the_order_asked_each_once(self, store: GraphStore, make: Maker) -> None:
        commit = _some(make, 1, 5)
        await store.apply(make.scope, commit)
        ids = [statement.id for statement in commit.statements]
        asked = [ids[3], StatementId("none"), ids[0], ids[3], ids[4]]
        views = await store.views(make.scope, asked, NOW)
        assert [view.statement.id for view in views] == [ids[3], ids[0], ids[4]]
        rome = make.fact("Mara", "lives in", "Rome", on("2020-01-01"))
        await store.apply(make.scope, rome)
        then = AsOf(Revision(1), valid_at=on("1066-01-01"))
        [unheld] = await store.views(make.scope, [rome.statements[0].id], then)
        assert unheld.spans == ()
        nodes = [node.id for node in commit.entities]
        found = await store.entities(make.scope, [nodes[2], EntityId("none"), nodes[0], nodes[2]])
        assert [node.id for node in found] == [nodes[2], nodes[0]]

    async def test_slots_and_pairs(self, store: GraphStore, make: Maker) -> None:
        rome, paris = (
            make.fact("Mara", "lives in", "Rome"),
            make.fact("Mara", "lives in", "Paris", revision=2),
        )
        likes, age = make.fact("Mara", "likes", "Rome", revision=3), make.fact("Mara", "age", text("41"))
        for commit in (paris, rome, likes, age):
            await store.apply(make.scope, commit)
        mara, lives_in, to_rome = rome.entities
        assert await store.slot(make.scope, mara.id, lives_in.id) == [
            rome.statements[0].id,
            paris.statements[0].id,
        ]
        pairs = [(mara.id, lives_in.id), (mara.id, age.entities[1].id), (to_rome.id, lives_in.id)]
        assert await store.slots(make.scope, pairs) == {
            pairs[0]: [rome.statements[0].id, paris.statements[0].id],
            pairs[1]: [age.statements[0].id],
        }
        assert await store.between(make.scope, [(mara.id, to_rome.id), (to_rome.id, mara.id)]) == {
            (mara.id, to_rome.id): [rome.statements[0].id, likes.statements[0].id]
        }
        assert await store.slots(make.scope, []) == await store.between(make.scope, []) == {}

    async def test_statements_of_a_predicate(self, store: GraphStore, make: Maker) -> None:
        rome = make.fact("Mara", "lives in", "Rome")
        others = [
            make.fact("Omar", "lives in", "Rome", revision=2),
            make.fact("Mara", "lives in", "Paris", revision=3),
            make.fact("Mara", "likes", "Rome", revision=4),
            make.fact("Mara", "lives in", text("a boat"), revision=5),
        ]
        for commit in (*reversed(others), rome):
            await store.apply(make.scope, commit)
        # One without a span is of its predicate too.
        unheld = replace(make.fact("Ugo", "lives in", "Rome", revision=6), opened=())
        await store.apply(make.scope, unheld)
        _, lives_in, to_rome = rome.entities
        ids = [commit.statements[0].id for commit in (rome, *others, unheld)]
        every = [ids[0], ids[1], ids[2], ids[4], ids[5]]
        listed = await store.of_predicate(make.scope, lives_in.id, None, Page(10))
        assert (listed.items, listed.after) == (every, "")
        paged: list[StatementId] = []
        after = ""
        for _ in range(3):
            listed = await store.of_predicate(make.scope, lives_in.id, None, Page(2, after))
            paged, after = [*paged, *listed.items], listed.after
        assert (paged, after) == (every, "")
        of_rome = await store.of_predicate(make.scope, lives_in.id, to_rome.id, Page(10))
        assert of_rome.items == [ids[0], ids[1], ids[5]]
        first = await store.of_predicate(make.scope, lives_in.id, to_rome.id, Page(2))
        rest = await store.of_predicate(make.scope, lives_in.id, to_rome.id, Page(2, first.after))
        assert (first.items, rest.items, rest.after) == ([ids[0], ids[1]], [ids[5]], "")
        assert (await store.of_predicate(make.scope, to_rome.id, None, Page(10))).items == []

    async def test_what_names_an_entity_in_any_place(self, store: GraphStore, make: Maker) -> None:
        """Believed or not, whenever recorded; each once, also when an entity is named twice."""
        commits = [
            make.fact("Mara", "knows", "Ana", revision=2),
            make.fact("Ana", "likes", "tea", revision=1),
            make.fact("Ana", "knows", "Ana", revision=4),
            make.fact("Ben", "likes", "Mara", revision=3),
            make.fact("Ben", "age", text("41"), revision=3),
        ]
        for commit in commits:
            await store.apply(make.scope, commit)
        (first,) = commits[1].statements
        await store.apply(make.scope, Commit(Revision(5), revocations=[revoking(commits[1].claims[0])]))
        id = {node.name: node.id for commit in commits for node in commit.entities}

        async def naming(*names: str, size: int = 50) -> list[StatementId]:
            found: list[StatementId] = []
            after = ""
            while True:
                asked = [id.get(name, EntityId(name)) for name in names]
                listed = await store.naming(make.scope, asked, Page(size, after))
                assert len(listed.items) <= size
                found += listed.items
                if not listed.after:
                    return found
                assert len(listed.items) == size
                after = listed.after

        one, two, three, four, five = [commit.statements[0].id for commit in commits]
        many = [f"other-{number}" for number in range(12)]
        for size in (1, 2, 50):
            assert await naming("Ana", size=size) == [first.id, one, three]
            assert await naming("likes", size=size) == [two, four]
            expected = [two, *sorted((one,)), *sorted((four,)), three]
            assert await naming("Mara", "Ana", "Mara", *many, size=size) == expected
            assert set(await naming("Ben", size=size)) == {four, five}
        assert await naming() == await naming("nobody") == []
        with pytest.raises(ValueError, match="position"):
            await store.naming(make.scope, [id["Ana"]], Page(1, "elsewhere"))

    async def test_entities_are_found_by_every_alias_of_every_type(
        self, store: GraphStore, make: Maker
    ) -> None:
        person = make.entity("Paris", EntityType.PERSON, revision=2)
        city = make.entity("Paris", EntityType.PLACE)
        plain = make.alias(city)
        aliases = [
            make.alias(person),
            plain,
            make.alias(city, "city of light"),
            replace(plain, type=city.type),
        ]
        await store.apply(make.scope, Commit(Revision(2), entities=[person, city], aliases=aliases))
        await store.apply(make.scope, Commit(Revision(3), aliases=[make.alias(person, "hilton")]))
        asked = ["paris", "city of light", "hilton", "paris", "nothing", "PARIS"]
        assert await store.find_entities(make.scope, asked, Revision(2)) == {
            "paris": [city, person],
            "city of light": [city],
        }
        assert await store.find_entities(make.scope, ["hilton"], Revision(3)) == {"hilton": [person]}
        assert len(await store.aliases(make.scope, Revision(2))) == 3
        assert await store.find_entities(make.scope, [], Revision(3)) == {}

    async def test_long_lists_of_ids(self, store: GraphStore, make: Maker) -> None:
        """Longer than one query may be: whoever cuts them must put the answer together again."""
        self.needs(Capability.THOUSANDS)
        commit = _some(make, 1, 700)
        await store.apply(make.scope, commit)
        ids = [statement.id for statement in commit.statements]
        nodes = [node.id for node in commit.entities]
        unknown = [EntityId(f"none-{n}") for n in range(700)]
        assert len(await store.views(make.scope, ids, NOW)) == 700
        assert len((await store.records(make.scope, ids)).claims) == 700
        assert [node.id for node in await store.entities(make.scope, [*unknown, *nodes])] == nodes
        keys = [node.key for node in commit.entities]
        assert len(await store.find_entities(make.scope, keys, Revision(1))) == len(nodes)
        where = StatementFilter(objects=[*nodes, *unknown], subjects=[*unknown, *nodes])
        first = await store.list_statements(make.scope, where, NOW, Page(600))
        rest = await store.list_statements(make.scope, where, NOW, Page(600, first.after))
        assert len({view.statement.id for view in (*first.items, *rest.items)}) == 700
        assert len(await store.walk(make.scope, [*unknown, *nodes], NOW, 1, 650)) == 650
        assert await store.orphans(make.scope, [*nodes, *unknown], Revision(1)) == []
        named = await store.naming(make.scope, [*unknown, *nodes[2:]], Page(650))
        others = await store.naming(make.scope, [*unknown, *nodes[2:]], Page(650, named.after))
        assert [*named.items, *others.items] == sorted(ids)


def _some(make: Maker, revision: int, count: int) -> Commit:
    return together(
        [make.fact("Mara", "likes", f"thing {revision}.{n}", revision=revision) for n in range(count)]
    )
