"""The graph suite: the two axes of time, and what a revocation takes away."""

from dataclasses import replace

import pytest

from services.domain.graph import Span
from services.domain.ids import Revision
from services.domain.instants import BEGINNING, FOREVER, Instant
from services.domain.records import Record
from services.stores.graph.port import AsOf, Commit, GraphStore, StatementFilter, StatementView
from services.stores.paging import Page
from tests.builders import Maker, closing, on, revoking
from tests.contracts.graph_base import GraphSuite

ALL = StatementFilter(include_ended=True)


async def listed(
    store: GraphStore, make: Maker, at: AsOf, where: StatementFilter = ALL
) -> list[StatementView]:
    return list((await store.list_statements(make.scope, where, at, Page())).items)


class GraphTime(GraphSuite):
    """As of, as known at, and both."""

    async def test_nothing_of_a_commit_is_seen_before_its_revision(
        self, store: GraphStore, make: Maker
    ) -> None:
        commit = make.fact("Mara", "lives in", "Paris", on("2024-01-01"), revision=3)
        await store.apply(make.scope, commit)
        ids = [commit.statements[0].id]
        seeds = [commit.entities[0].id]

        before = AsOf(Revision(2))
        assert await listed(store, make, before) == []
        assert await store.views(make.scope, ids, before) == []
        assert await store.walk(make.scope, seeds, before, 2, 10) == []
        assert await store.find_entities(make.scope, ["mara"], Revision(2)) == {}
        assert await store.aliases(make.scope, Revision(2)) == []
        counts = await store.counts(make.scope, Revision(2))
        assert (counts.entities, counts.statements, counts.claims) == (0, 0, 0)

        at = AsOf(Revision(3))
        [view] = await listed(store, make, at)
        assert view == StatementView(
            statement=commit.statements[0],
            subject=commit.entities[0],
            predicate=commit.entities[1],
            object=commit.entities[2],
            spans=(commit.opened[0],),
            episodes=(make.episode("e1"),),
        )
        assert await store.views(make.scope, ids, at) == [view]
        assert [step.view for step in await store.walk(make.scope, seeds, at, 2, 10)] == [view]
        assert await store.find_entities(make.scope, ["mara"], Revision(3)) == {"mara": [commit.entities[0]]}
        assert {alias.key for alias in await store.aliases(make.scope, Revision(3))} == {
            "mara",
            "lives in",
            "paris",
        }
        counts = await store.counts(make.scope, Revision(3))
        assert (counts.entities, counts.statements, counts.claims) == (2, 1, 1)

    async def test_an_ended_fact_is_still_true_before_its_end(self, store: GraphStore, make: Maker) -> None:
        commit = make.fact("Mara", "lives in", "Paris", on("2020-01-01"), on("2022-01-01"))
        await store.apply(make.scope, commit)

        async def holds(day: str) -> bool:
            return bool(await listed(store, make, AsOf(Revision(1), valid_at=on(day))))

        assert [await holds(day) for day in ("2019-12-31", "2020-01-01", "2021-12-31", "2022-01-01")] == [
            False,
            True,
            True,
            False,
        ]
        assert await listed(store, make, AsOf(Revision(1)), StatementFilter()) == []
        [view] = await listed(store, make, AsOf(Revision(1)))
        assert view.spans[0].invalid_at == on("2022-01-01")

    @pytest.mark.parametrize("at", [BEGINNING, Instant(-1), Instant(0), on("2024-01-01"), FOREVER])
    async def test_a_span_open_on_both_sides_holds_always(
        self, store: GraphStore, make: Maker, at: Instant
    ) -> None:
        await store.apply(make.scope, make.fact("Mara", "likes", "tea"))
        [view] = await listed(store, make, AsOf(Revision(1), valid_at=at))
        assert (view.spans[0].valid_at, view.spans[0].invalid_at) == (None, None)

    async def test_the_earliest_instant_is_no_unknown_start(self, store: GraphStore, make: Maker) -> None:
        await store.apply(make.scope, make.fact("Rome", "is", "a city", BEGINNING, FOREVER))
        [view] = await listed(store, make, AsOf(Revision(1)))
        assert (view.spans[0].valid_at, view.spans[0].invalid_at) == (BEGINNING, FOREVER)

    async def test_a_period_meets_the_spans_that_share_an_instant_with_it(
        self, store: GraphStore, make: Maker
    ) -> None:
        await store.apply(
            make.scope, make.fact("Mara", "lives in", "Paris", on("2020-01-01"), on("2022-01-01"))
        )

        async def meets(since: str | None, until: str | None) -> bool:
            period = AsOf(Revision(1), since=on(since) if since else None, until=on(until) if until else None)
            return bool(await listed(store, make, period, StatementFilter()))

        assert await meets("2021-01-01", "2021-02-01")
        assert await meets("2019-01-01", "2020-01-02")
        assert await meets(None, "2020-01-02")
        assert await meets("2021-12-31", None)
        assert not await meets("2019-01-01", "2020-01-01")
        assert not await meets("2022-01-01", "2023-01-01")
        assert not await meets(None, "2020-01-01")

    async def test_both_axes_combine(self, store: GraphStore, make: Maker) -> None:
        """Revision 1 believes Paris since 2020; revision 2 learns that it ended in 2022."""
        first = make.fact("Mara", "lives in", "Paris", on("2020-01-01"))
        await store.apply(make.scope, first)
        statement = first.statements[0]
        end = make.end(statement, on("2022-01-01"), episode="e2", revision=2)
        shorter = make.span(
            statement,
            on("2020-01-01"),
            on("2022-01-01"),
            revision=2,
            started_by=first.claims[0].id,
            ended_by=end.id,
        )
        await store.apply(
            make.scope,
            Commit(Revision(2), ends=[end], opened=[shorter], closed=[closing(first.opened[0])]),
        )

        async def spans(known_at: int, day: str | None = None) -> list[Span]:
            at = AsOf(Revision(known_at), valid_at=on(day) if day else None)
            views = await store.views(make.scope, [statement.id], at)
            return list(views[0].spans)

        was = replace(first.opened[0], known_to=Revision(2))
        assert await spans(1) == [was]
        assert await spans(2) == [shorter]
        assert await spans(1, "2023-01-01") == [was]
        assert await spans(2, "2023-01-01") == []
        assert await spans(2, "2021-01-01") == [shorter]
        assert (await store.records(make.scope, [statement.id])).spans == [was, shorter]

    async def test_a_revocation_counts_from_its_revision_on(self, store: GraphStore, make: Maker) -> None:
        first = make.fact("Mara", "lives in", "Paris", on("2020-01-01"), episode="e1")
        statement = first.statements[0]
        again = make.claim(statement, "e2", revision=2)
        await store.apply(make.scope, first)
        await store.apply(make.scope, Commit(Revision(2), claims=[again]))
        await store.apply(make.scope, Commit(Revision(3), revocations=[revoking(first.claims[0])]))

        async def episodes(known_at: int) -> list[str]:
            [view] = await store.views(make.scope, [statement.id], AsOf(Revision(known_at)))
            return list(view.episodes)

        one, two = make.episode("e1"), make.episode("e2")
        assert [sorted(await episodes(known_at)) for known_at in (1, 2, 3)] == [
            [one],
            sorted([one, two]),
            [two],
        ]
        assert [(await store.counts(make.scope, Revision(r))).claims for r in (1, 2, 3)] == [1, 2, 1]
        records = await store.records(make.scope, [statement.id])
        assert [claim.revoked_at for claim in records.claims] == [3, None]

    async def test_every_kind_of_record_can_be_revoked(self, store: GraphStore, make: Maker) -> None:
        first = make.fact("Mara", "likes", "tea")
        other = make.fact("Mara", "likes", "coffee")
        statement = first.statements[0]
        end = make.end(statement, on("2024-01-01"))
        denial = make.denial(statement, on("2020-01-01"))
        verdict = make.verdict(statement, other.statements[0])
        await store.apply(make.scope, first)
        await store.apply(make.scope, other)
        await store.apply(make.scope, Commit(Revision(1), ends=[end], denials=[denial], verdicts=[verdict]))
        every: list[Record] = [end, denial, verdict]
        await store.apply(make.scope, Commit(Revision(2), revocations=[revoking(record) for record in every]))
        # The first revocation of a record stands.
        await store.apply(make.scope, Commit(Revision(3), revocations=[revoking(record) for record in every]))
        records = await store.records(make.scope, [statement.id])
        assert [*records.ends, *records.denials, *records.verdicts] == [
            replace(record, revoked_at=Revision(2)) for record in every
        ]
        # Records that come revoked already, as in an import.
        late = replace(make.claim(statement, "e9"), revoked_at=Revision(2))
        await store.apply(make.scope, Commit(Revision(4), claims=[late]))
        assert late in (await store.records(make.scope, [statement.id])).claims

    async def test_episodes_are_cited_earliest_attested_first(self, store: GraphStore, make: Maker) -> None:
        fact = make.fact("Mara", "likes", "tea", episode="middle")
        statement = fact.statements[0]
        early = make.claim(statement, "early", said=on("2020-01-01"))
        late = make.claim(statement, "late", said=on("2030-01-01"))
        repeated = make.claim(statement, "early", said=on("2031-01-01"))
        by_hand = replace(make.claim(statement, "none", said=on("2019-01-01")), source=late.source)
        by_hand = replace(by_hand, source=replace(by_hand.source, episode=None))
        await store.apply(make.scope, fact)
        await store.apply(make.scope, Commit(Revision(1), claims=[late, repeated, by_hand, early]))
        [view] = await store.views(make.scope, [statement.id], AsOf(Revision(1)))
        assert list(view.episodes) == [make.episode(name) for name in ("early", "middle", "late")]
