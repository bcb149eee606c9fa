"""The SQL graph tells the hulls it keeps, and by which revision an alias came."""

from services.domain.ids import Revision, StatementId
from services.domain.instants import Interval
from services.stores.graph.port import Commit, KeepsHulls
from services.stores.graph.sql import SqlGraphStore
from services.stores.sql.engine import engine_for
from tests.builders import Maker, a_scope, on

MAKE = Maker(a_scope())


async def test_hulls_cover_every_span_and_open_ends_are_open(sql_url: str) -> None:
    store = await SqlGraphStore.open(engine_for(sql_url))
    try:
        bounded = MAKE.fact("Mara", "likes", "tea", on("2020-01-01"), on("2021-01-01"))
        await store.apply(MAKE.scope, bounded)
        open_one = MAKE.fact("Mara", "likes", "rum")
        await store.apply(MAKE.scope, open_one)
        bare = MAKE.fact("Mara", "likes", "jam")
        await store.apply(MAKE.scope, Commit(Revision(1), bare.entities, (), bare.statements))
        ids = [one.statements[0].id for one in (bounded, open_one, bare)]
        assert isinstance(store, KeepsHulls)
        assert await store.hulls(MAKE.scope, [*ids, StatementId("absent")]) == {
            ids[0]: Interval(on("2020-01-01"), on("2021-01-01")),
            ids[1]: Interval(None, None),
        }
        later = MAKE.span(bounded.statements[0], on("2022-01-01"), on("2023-01-01"), revision=2)
        await store.apply(MAKE.scope, Commit(Revision(2), opened=[later]))
        hulls = await store.hulls(MAKE.scope, ids[:1])
        assert hulls == {ids[0]: Interval(on("2020-01-01"), on("2023-01-01"))}
    finally:
        await store.close()


async def test_an_alias_tells_the_revision_that_brought_it(sql_url: str) -> None:
    store = await SqlGraphStore.open(engine_for(sql_url))
    try:
        await store.apply(MAKE.scope, MAKE.fact("Mara", "likes", "tea", revision=3))
        more = MAKE.alias(MAKE.entity("Mara", revision=3), "mara of graz")
        await store.apply(MAKE.scope, Commit(Revision(5), aliases=[more]))
        found = {alias.key: alias.recorded_at for alias in await store.aliases(MAKE.scope, Revision(9))}
        assert found == {"mara": 3, "likes": 3, "tea": 3, "mara of graz": 5}
    finally:
        await store.close()
