"""What purge and erase promise: nothing is left, and nothing else goes."""

from services.domain.ids import Revision
from services.stores.graph.port import AsOf, Commit, GraphStore, Records
from services.stores.paging import Page
from tests.builders import Maker, a_scope, closing, on, revoking
from tests.contracts.graph_base import GraphSuite
from tests.contracts.graph_time import listed


class GraphErasing(GraphSuite):
    """What purge and erase promise."""

    async def test_what_is_purged_was_never_there_and_nothing_else_goes(
        self, store: GraphStore, make: Maker
    ) -> None:
        paris, rome = make.fact("Mara", "lives in", "Paris"), make.fact("Otto", "lives in", "Rome")
        gone, kept = paris.statements[0], rome.statements[0]
        for fact in (paris, rome):
            await store.apply(make.scope, fact)
        end = make.end(gone, on("2024-01-01"))
        pair = make.verdict(gone, kept)
        await store.apply(
            make.scope,
            Commit(Revision(2), ends=[end], verdicts=[pair], revocations=[revoking(end), revoking(pair)]),
        )
        before = await store.rows(make.scope)
        mara = gone.subject
        for _ in range(2):
            await store.purge(make.scope, [gone.id], [mara])
        assert await store.entities(make.scope, [mara]) == []
        assert not [one for one in await store.aliases(make.scope, Revision(9)) if one.entity == mara]
        assert await store.records(make.scope, [gone.id]) == Records([], [], [], [], [], [])
        assert (await store.naming(make.scope, [mara], Page())).items == []
        assert await store.views(make.scope, [gone.id], AsOf(Revision(1))) == []
        left = await store.records(make.scope, [kept.id])
        assert (left.statements, left.verdicts) == ([kept], [])
        [view] = await listed(store, make, AsOf(Revision(1)))
        assert (view.statement, view.spans) == (kept, (rome.opened[0],))
        after = await store.rows(make.scope)
        assert after["statements"] == before["statements"] - 1
        assert after["entities"] == before["entities"] - 1

    async def test_erase_leaves_nothing_and_touches_no_other(self, store: GraphStore, make: Maker) -> None:
        twin = Maker(a_scope("other"))
        for maker in (make, twin):
            fact = maker.fact("Mara", "lives in", "Paris")
            statement = fact.statements[0]
            await store.apply(maker.scope, fact)
            end = maker.end(statement, on("2024-01-01"))
            more = Commit(
                Revision(2), ends=[end], revocations=[revoking(end)], closed=[closing(fact.opened[0])]
            )
            await store.apply(maker.scope, more)
        assert await store.rows(make.scope) == await store.rows(twin.scope) != {}
        for _ in range(2):
            await store.erase(make.scope)
        assert await store.rows(make.scope) == {} != await store.rows(twin.scope)
        fact = make.fact("Mara", "lives in", "Paris")
        assert await store.entities(make.scope, [node.id for node in fact.entities]) == []
        assert await store.records(make.scope, [fact.statements[0].id]) == Records([], [], [], [], [], [])
        assert await store.aliases(make.scope, Revision(9)) == []
        assert (await store.scan(make.scope, Page())).items == []
        assert len((await store.scan(twin.scope, Page())).items) == 1
        # What comes after an erasure is new: no old revocation or closed span falls on it.
        await store.apply(make.scope, fact)
        [view] = await listed(store, make, AsOf(Revision(9)))
        assert view.spans == (fact.opened[0],)
