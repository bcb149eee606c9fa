"""The graph suite: two scopes with the same ids see nothing of each other, whatever they are called."""

from dataclasses import replace

import pytest

from services.domain.ids import Revision
from services.domain.scope import Scope
from services.stores.graph.port import AsOf, Commit, Counts, Forgetting, GraphStore, StatementFilter
from services.stores.paging import Page
from tests.builders import Maker, a_scope, closing, on, revoking
from tests.contracts.graph_base import GraphSuite
from tests.contracts.graph_time import listed

PAIRS = [
    (a_scope("notes", "acme"), a_scope("notes", "globex")),
    (a_scope("notes", "acme"), a_scope("other", "acme")),
    (a_scope('") or true or ("', "acme"), a_scope("", "acme")),
    (a_scope("'; --", "acme"), a_scope("'; -- ", "acme")),
    (a_scope("日本|記憶", "顧客"), a_scope("記憶", "顧客|日本")),
    (a_scope("b:c", "a"), a_scope("c", "a:b")),
    (a_scope("1:x", "t"), a_scope("x", "t1:")),
    (a_scope("Notes", "acme"), a_scope("notes", "acme")),
    (a_scope("a%", "t_"), a_scope("ab", "tx")),
    (a_scope("a\x00b", "t"), a_scope("a", "t")),
]


class GraphIsolation(GraphSuite):
    """The same values, ids included, under two scopes."""

    @pytest.mark.parametrize(("mine", "theirs"), PAIRS, ids=range(len(PAIRS)))
    async def test_twins_are_apart(self, store: GraphStore, mine: Scope, theirs: Scope) -> None:
        # Ids from one maker: equal in both scopes, as no real ids ever are.
        make = Maker(mine)
        fact = make.fact("Mara", "lives in", "Paris", on("2020-01-01"))
        statement, span, node = fact.statements[0], fact.opened[0], fact.entities[0]
        secret = replace(statement, fact="a secret of theirs")
        named = replace(node, name="their Mara")
        verdict = make.verdict(statement, statement)
        await store.apply(mine, fact)
        await store.apply(
            theirs,
            replace(
                fact,
                entities=[named, *fact.entities[1:]],
                statements=[secret],
                verdicts=[verdict],
                ends=[make.end(statement, on("2021-01-01"))],
            ),
        )
        await store.apply(
            theirs,
            Commit(Revision(2), revocations=[revoking(fact.claims[0])], closed=[closing(span)]),
        )
        at = AsOf(Revision(9))

        [view] = await listed(store, make, at)
        assert (view.statement, view.subject, view.spans) == (statement, node, (span,))
        assert view.episodes == (make.episode("e1"),)
        assert await store.views(mine, [statement.id], at) == [view]
        assert [step.view for step in await store.walk(mine, [node.id], at, 3, 10)] == [view]
        records = await store.records(mine, [statement.id])
        assert (records.claims, records.spans) == (list(fact.claims), [span])
        assert (records.ends, records.verdicts) == ([], [])
        assert (await store.of_episode(mine, make.episode("e1"))).ends == []
        assert await store.find_entities(mine, ["mara"], Revision(9)) == {"mara": [node]}
        assert await store.orphans(mine, [node.id], Revision(9)) == []
        assert await store.counts(mine, Revision(9)) == Counts(2, 1, 1)
        # Theirs is closed by their own commit.
        everything = StatementFilter(include_ended=True)
        assert (await store.list_statements(theirs, everything, at, Page())).items == []
        assert (await store.counts(theirs, Revision(9))).claims == 0

        for some in (fact.statements, []):
            retold = [(statement.id, "anew")]
            revoked = [revoking(fact.claims[0])]
            await store.forget(
                theirs, Forgetting(Revision(9), [one.id for one in some], [node.id], revoked, retold)
            )
        await store.erase(theirs)
        assert await store.views(mine, [statement.id], at) == [view]
        assert await store.find_entities(mine, ["mara"], Revision(9)) == {"mara": [node]}
        assert (await store.scan(theirs, Page())).items == []

    async def test_a_scope_without_anything_answers_emptily(self, store: GraphStore, make: Maker) -> None:
        fact = make.fact("Mara", "lives in", "Paris")
        await store.apply(make.scope, fact)
        stranger = a_scope("nobody's")
        ids, nodes = [fact.statements[0].id], [node.id for node in fact.entities]
        at = AsOf(Revision(9))
        assert await store.views(stranger, ids, at) == []
        assert await store.entities(stranger, nodes) == []
        assert await store.walk(stranger, nodes, at, 3, 10) == []
        assert (await store.records(stranger, ids)).claims == []
        assert await store.slot(stranger, nodes[0], nodes[1]) == []
        assert await store.slots(stranger, [(nodes[0], nodes[1])]) == {}
        assert await store.between(stranger, [(nodes[0], nodes[2])]) == {}
        assert (await store.naming(stranger, nodes, Page())).items == []
        assert await store.orphans(stranger, nodes, Revision(9)) == []
        assert await store.counts(stranger, Revision(9)) == Counts(0, 0, 0)
