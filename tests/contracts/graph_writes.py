"""The graph suite: commits are idempotent, complete after a crash, and keep text as it is or refuse it."""

import asyncio
from dataclasses import replace

import pytest

from services.domain.graph import EntityType, GraphAspect, Literal, LiteralKind
from services.domain.ids import EntityId, EpisodeId, PassageId, RecordId, Revision, StatementId
from services.domain.instants import Precision
from services.domain.records import EndReason, Judge, Source, VerdictKind
from services.stores.errors import UnstorableText
from services.stores.graph.plain import plain
from services.stores.graph.port import AsOf, Commit, Forgetting, GraphStore, Records, Revocation
from services.stores.paging import Page
from tests.builders import Maker, a_scope, closing, on, revoking, text, together, without_precisions
from tests.contracts.graph_base import Capability, GraphSuite
from tests.contracts.graph_model import all_plain, told
from tests.contracts.graph_time import listed

HOSTILE = [
    "'; DROP TABLE statements; --",
    '") or true or ("',
    "back\\slash \\n \\u0000 %s :name ${x} {y} ?",
    "line\nfeed\r\ntab\t /* comment */ # hash",
    "天气很好，“引号”，我住在东京。",
    "👩‍👩‍👧 naïve e\u0301 \u202eright to left\u202c \ufeff\uffff",
    "x" * 10_000,
    " leading and trailing ",
    "",
]


class GraphWrites(GraphSuite):
    """What apply, forget and erase promise."""

    async def test_every_field_comes_back(self, store: GraphStore, make: Maker) -> None:
        fact = make.fact("Mara", "works at", "Initech", aspect=GraphAspect.RELATIONSHIP)
        old = make.fact("Mara", "age", Literal(LiteralKind.NUMBER, "41"))
        statement, other = (
            replace(fact.statements[0], event_at=on("1969-07-20")),
            replace(old.statements[0], aspect=None),
        )
        source = Source(make.episode("e1"), PassageId("p1"), "she works there")
        claim = replace(
            make.claim(statement, "e1", on("2020-01-01"), on("2021-01-01")),
            seen=on("2020-06-01"),
            source=source,
            start_precision=Precision.YEAR,
            end_precision=Precision.WEEK,
            confidence=0.7,
            time_text="around the turn of the year",
        )
        by_hand = replace(make.claim(statement, "e2"), source=Source(None))
        end = replace(
            make.end(statement, on("2021-01-01")),
            source=source,
            precision=Precision.QUARTER,
            reason=EndReason.SOURCE_REMOVED,
            confidence=0.1,
        )
        denial = replace(make.denial(other, None, on("2000-01-01")), source=source, confidence=0.25)
        verdict = replace(
            make.verdict(statement, other, VerdictKind.COMPATIBLE, "e1"),
            judge=Judge.MODEL,
            why="different slots",
            model="m-1",
            prompt_version="p7",
        )
        span = make.span(statement, on("2020-01-01"), on("2021-01-01"), ended_by=end.id, contested=True)
        await store.apply(
            make.scope,
            Commit(
                revision=Revision(1),
                entities=together([fact, old]).entities,
                statements=[statement, other],
                claims=[claim, by_hand],
                ends=[end],
                denials=[denial],
                verdicts=[verdict],
                opened=[span],
            ),
        )
        found = await store.records(make.scope, [statement.id, other.id])
        assert sorted(found.statements, key=lambda s: s.id) == sorted([statement, other], key=lambda s: s.id)
        assert sorted(found.claims, key=lambda c: c.id) == sorted([claim, by_hand], key=lambda c: c.id)
        assert (found.ends, found.denials, found.verdicts) == ([end], [denial], [verdict])
        assert found.spans == [span]
        assert await all_plain(store, make.scope, 10) == told(plain(found))
        nodes = together([fact, old]).entities
        assert await store.entities(make.scope, [node.id for node in nodes]) == list(nodes)
        [cited] = [await store.of_episode(make.scope, make.episode("e1"))]
        assert cited == Records((), [claim], [end], [denial], [verdict], ())

    async def test_how_fine_a_span_is_comes_back(self, store: GraphStore, make: Maker) -> None:
        fact = make.fact("Mara", "lives in", "Paris")
        fine = make.span(
            fact.statements[0],
            on("2020-01-01"),
            on("2021-01-01"),
            precisions=(Precision.YEAR, Precision.WEEK),
            assumed=True,
        )
        before = without_precisions(make.span(fact.statements[0], None, on("1990-01-01")))
        await store.apply(make.scope, replace(fact, opened=[fine, before]))
        found = (await store.records(make.scope, [fact.statements[0].id])).spans
        assert sorted(found, key=lambda one: one.valid_at or 0) == [before, fine]
        for one in found:
            kinds = [type(each) for each in (one.start_precision, one.end_precision, one.assumed)]
            assert kinds in ([Precision, Precision, bool], [type(None)] * 3)

    async def test_applied_twice_changes_nothing(self, store: GraphStore, make: Maker) -> None:
        fact = make.fact("Mara", "lives in", "Paris", on("2020-01-01"))
        statement = fact.statements[0]
        ended = make.span(statement, on("2020-01-01"), on("2022-01-01"), revision=2)
        second = Commit(
            Revision(2),
            claims=[make.claim(statement, "e2", revision=2)],
            opened=[ended],
            closed=[closing(fact.opened[0])],
        )
        for commit in (fact, second):
            await store.apply(make.scope, commit)
        before = await store.records(make.scope, [statement.id])
        counts = await store.counts(make.scope, Revision(2))
        for commit in (second, fact, second):
            await store.apply(make.scope, commit)
        assert await store.records(make.scope, [statement.id]) == before
        assert await store.counts(make.scope, Revision(2)) == counts
        assert (counts.entities, counts.statements, counts.claims) == (2, 1, 2)

    async def test_what_is_there_stays_as_it_is(self, store: GraphStore, make: Maker) -> None:
        fact = make.fact("Mara", "lives in", "Paris", on("2020-01-01"))
        await store.apply(make.scope, fact)
        closed = Commit(Revision(2), closed=[closing(fact.opened[0])])
        await store.apply(make.scope, closed)
        changed = replace(
            fact,
            revision=Revision(3),
            entities=[replace(node, name="other", created_at=Revision(3)) for node in fact.entities],
            aliases=[replace(alias, name="other") for alias in fact.aliases],
            statements=[replace(fact.statements[0], fact="other", created_at=Revision(3))],
            claims=[replace(fact.claims[0], confidence=0.0, recorded_at=Revision(3))],
            opened=[replace(fact.opened[0], contested=True)],
            closed=[closing(fact.opened[0])],
        )
        await store.apply(make.scope, changed)
        found = await store.records(make.scope, [fact.statements[0].id])
        assert (found.statements, found.claims) == (list(fact.statements), list(fact.claims))
        assert found.spans == [replace(fact.opened[0], known_to=Revision(2))]
        assert await store.find_entities(make.scope, ["mara"], Revision(1)) == {"mara": [fact.entities[0]]}
        assert {alias.name for alias in await store.aliases(make.scope, Revision(9))} == {
            "Mara",
            "lives in",
            "Paris",
        }

    async def test_a_verdict_given_again_stays_its_first_episodes(
        self, store: GraphStore, make: Maker
    ) -> None:
        fact = make.fact("Mara", "lives in", "Paris")
        verdict = make.verdict(fact.statements[0], fact.statements[0], episode="e1")
        await store.apply(make.scope, replace(fact, verdicts=[verdict]))
        again = replace(verdict, episode=make.episode("e2"), recorded_at=Revision(2))
        await store.apply(make.scope, Commit(Revision(2), verdicts=[again]))
        assert (await store.of_episode(make.scope, make.episode("e1"))).verdicts == [verdict]
        assert (await store.of_episode(make.scope, make.episode("e2"))).verdicts == []

    async def test_a_torn_commit_is_completed_by_applying_it_again(
        self, store: GraphStore, make: Maker
    ) -> None:
        fact = make.fact("Mara", "lives in", "Paris", on("2020-01-01"))
        torn = replace(fact, aliases=fact.aliases[:1], claims=(), opened=())
        await store.apply(make.scope, torn)
        assert await listed(store, make, AsOf(Revision(1))) == []
        await store.apply(make.scope, fact)
        [view] = await listed(store, make, AsOf(Revision(1), valid_at=on("2021-01-01")))
        assert (view.spans, view.episodes) == ((fact.opened[0],), (make.episode("e1"),))
        assert len(await store.aliases(make.scope, Revision(1))) == 3

    async def test_an_empty_commit_is_none(self, store: GraphStore, make: Maker) -> None:
        await store.apply(make.scope, Commit(Revision(1)))
        assert (await store.scan(make.scope, Page())).items == []

    async def test_the_same_commit_from_two_at_once(self, store: GraphStore, place: str, make: Maker) -> None:
        self.needs(Capability.TWO_OPENERS)
        other = await self.make_store(place)
        facts = [make.fact("Mara", "likes", f"thing {n}") for n in range(20)]
        commit = together(facts)
        await asyncio.gather(*(each.apply(make.scope, commit) for each in (store, other) * 3))
        counts = await other.counts(make.scope, Revision(1))
        assert (counts.entities, counts.statements, counts.claims) == (21, 20, 20)
        await other.close()

    async def test_many_graphs_at_once(self, store: GraphStore, place: str) -> None:
        self.needs(Capability.TWO_OPENERS)
        other = await self.make_store(place)
        makers = [Maker(a_scope(f"graph {n}")) for n in range(6)]

        async def fill(maker: Maker, into: GraphStore) -> None:
            for revision in range(1, 6):
                fact = maker.fact("Mara", "likes", f"thing {revision}", revision=revision)
                await into.apply(maker.scope, fact)

        await asyncio.gather(*(fill(m, (store, other)[n % 2]) for n, m in enumerate(makers)))
        counts = [await store.counts(maker.scope, Revision(5)) for maker in makers]
        assert [(count.entities, count.statements) for count in counts] == [(6, 5)] * 6
        await other.close()

    async def test_a_reader_sees_a_whole_commit_or_nothing(self, store: GraphStore, make: Maker) -> None:
        self.needs(Capability.WHOLE_COMMITS)
        facts = [make.fact(f"person {n}", "likes", "tea") for n in range(150)]
        commit = together(facts)
        writing = asyncio.create_task(store.apply(make.scope, commit))
        seen = set()
        while not writing.done():
            seen.add(await store.counts(make.scope, Revision(1)))
            await asyncio.sleep(0)  # lets the writer go on where a read never waits
        await writing
        seen.add(await store.counts(make.scope, Revision(1)))
        assert {count.statements for count in seen} <= {0, 150}
        assert {count.entities for count in seen} <= {0, 151}
        assert 150 in {count.claims for count in seen}

    @pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
    async def test_text_comes_back_unchanged(self, store: GraphStore, make: Maker, hostile: str) -> None:
        fact = make.fact("Mara", "says", text(hostile))
        name = replace(fact.entities[0], name=hostile, key=hostile, aliases=(hostile, "x"))
        claim = replace(
            fact.claims[0], source=replace(fact.claims[0].source, quote=hostile), time_text=hostile
        )
        commit = replace(
            fact,
            entities=[name, *fact.entities[1:]],
            aliases=[make.alias(name, hostile or "empty")],
            claims=[claim],
        )
        await store.apply(make.scope, commit)
        [view] = await listed(store, make, AsOf(Revision(1)))
        assert (view.subject, view.statement.object) == (name, text(hostile))
        assert (await store.records(make.scope, [view.statement.id])).claims == [claim]
        key = hostile or "empty"
        assert await store.find_entities(make.scope, [key, "y"], Revision(1)) == {key: [name]}
        assert await store.aliases(make.scope, Revision(1)) == list(commit.aliases)

    @pytest.mark.parametrize("bad", ["nul \x00", "lone \ud800", "\udfff"], ids=["nul", "high", "low"])
    async def test_what_cannot_be_stored_is_refused_whole(
        self, store: GraphStore, make: Maker, bad: str
    ) -> None:
        fact = make.fact("Mara", "says", text("hello"))
        node, statement, claim = fact.entities[0], fact.statements[0], fact.claims[0]
        quoted = replace(claim, source=replace(claim.source, quote=bad))
        for commit in (
            replace(fact, claims=[quoted]),
            replace(fact, claims=[replace(claim, time_text=bad)]),
            replace(fact, entities=[replace(node, name=bad), *fact.entities[1:]]),
            replace(fact, entities=[replace(node, aliases=("x", bad)), *fact.entities[1:]]),
            replace(fact, aliases=[replace(fact.aliases[0], key=bad)]),
            replace(fact, statements=[replace(statement, fact=bad)]),
            replace(fact, statements=[replace(statement, object=text(bad))]),
        ):
            with pytest.raises(UnstorableText):
                await store.apply(make.scope, commit)
        assert await store.entities(make.scope, [node.id for node in fact.entities]) == []
        assert (await store.scan(make.scope, Page())).items == []
        assert await store.find_entities(make.scope, [bad], Revision(1)) == {}

    async def test_ids_of_nothing_find_nothing(self, store: GraphStore, make: Maker) -> None:
        fact = make.fact("Mara", "likes", "tea")
        await store.apply(make.scope, fact)
        at = AsOf(Revision(1))
        for name in ("", "nobody", "nul \x00", "lone \ud800", "') or ('1'='1"):
            entity, statement, episode = EntityId(name), StatementId(name), EpisodeId(name)
            assert await store.entities(make.scope, [entity]) == []
            assert await store.views(make.scope, [statement], at) == []
            assert await store.slot(make.scope, entity, entity) == []
            assert await store.slots(make.scope, [(entity, entity)]) == {}
            assert await store.between(make.scope, [(entity, entity)]) == {}
            assert (await store.naming(make.scope, [entity], Page())).items == []
            assert await store.walk(make.scope, [entity], at, 2, 10) == []
            assert await store.orphans(make.scope, [entity], Revision(1)) == []
            assert (await store.of_episode(make.scope, episode)).claims == []
            record = Revocation(RecordId(name), statement)
            await store.forget(
                make.scope, Forgetting(Revision(9), [statement], [entity], [record], [(statement, "anew")])
            )
        assert len(await listed(store, make, at)) == 1

    async def test_orphans_are_named_by_nothing_that_counts(self, store: GraphStore, make: Maker) -> None:
        fact = make.fact("Mara", "lives in", "Paris")
        other = make.fact("Mara", "likes", "tea", revision=2)
        mara, lives_in, paris = fact.entities
        lonely = make.entity("Nobody", EntityType.PERSON)
        await store.apply(make.scope, replace(fact, entities=[*fact.entities, lonely]))
        await store.apply(make.scope, other)
        claim = fact.claims[0]
        verdict = make.verdict(fact.statements[0], other.statements[0], revision=2)
        revoked = Commit(Revision(3), verdicts=[verdict], revocations=[revoking(claim)])
        await store.apply(make.scope, revoked)
        ids = [lonely.id, mara.id, lives_in.id, paris.id, mara.id]
        assert await store.orphans(make.scope, ids, Revision(2)) == [lonely.id]
        assert await store.orphans(make.scope, ids, Revision(3)) == [lonely.id, lives_in.id, paris.id]
        await store.apply(
            make.scope, Commit(Revision(4), ends=[make.end(fact.statements[0], on("2024-01-01"), revision=4)])
        )
        assert await store.orphans(make.scope, ids, Revision(4)) == [lonely.id]

    async def test_forgotten_text_is_gone_until_it_comes_again(self, store: GraphStore, make: Maker) -> None:
        fact, kept = make.fact("Mara", "says", text("hello")), make.fact("Ana", "says", text("hello"))
        statement, node = fact.statements[0], fact.entities[0]
        end = replace(make.end(statement, on("2024-01-01")), source=fact.claims[0].source)
        verdict = replace(make.verdict(statement, kept.statements[0]), why="Mara says hello")
        for commit in (fact, kept, Commit(Revision(1), ends=[end], verdicts=[verdict])):
            await store.apply(make.scope, commit)
        for _ in range(2):
            await store.forget(make.scope, Forgetting(Revision(1), [statement.id], [node.id]))

        [view] = await store.views(make.scope, [statement.id], AsOf(Revision(1)))
        assert view.statement == replace(statement, fact="", object=text(""))
        assert view.subject == replace(node, name="", key="", aliases=())
        assert (view.predicate, view.spans) == (fact.entities[1], (fact.opened[0],))
        records = await store.records(make.scope, [statement.id])
        texts = [claim.source.quote + claim.time_text for claim in records.claims]
        assert [*texts, records.ends[0].source.quote, records.verdicts[0].why] == ["", "", ""]
        assert await store.find_entities(make.scope, ["mara"], Revision(9)) == {}
        assert {alias.key for alias in await store.aliases(make.scope, Revision(9))} == {"says", "ana"}
        [other] = await store.views(make.scope, [kept.statements[0].id], AsOf(Revision(1)))
        assert (other.statement, other.subject) == (kept.statements[0], kept.entities[0])

        # A commit that comes late brings nothing back.
        await store.apply(make.scope, fact)
        [view] = await store.views(make.scope, [statement.id], AsOf(Revision(1)))
        assert (view.statement.fact, view.subject.name) == ("", "")
        assert {alias.key for alias in await store.aliases(make.scope, Revision(9))} == {"says", "ana"}

        again = make.fact("Mara", "says", text("hello"), episode="e2", revision=2)
        await store.apply(make.scope, again)
        [view] = await store.views(make.scope, [statement.id], AsOf(Revision(2)))
        assert (view.statement, view.subject) == (statement, node)
        assert await store.find_entities(make.scope, ["mara"], Revision(1)) == {}
        assert await store.find_entities(make.scope, ["mara"], Revision(2)) == {"mara": [node]}

    async def test_what_a_deleted_episode_said_of_a_fact_that_stays_is_forgotten(
        self, store: GraphStore, make: Maker
    ) -> None:
        fact = make.fact("Mara", "lives in", "Paris")
        other = make.fact("Mara", "lives in", "Paris", episode="e2", revision=2)
        rival = make.fact("Mara", "lives in", "Rome", episode="e3", revision=3)
        statement = fact.statements[0]
        end = replace(make.end(statement, on("2024-01-01")), source=fact.claims[0].source)
        denial = replace(make.denial(statement), source=fact.claims[0].source)
        verdict = replace(make.verdict(statement, rival.statements[0]), why="as was said")
        more = Commit(Revision(4), ends=[end], denials=[denial], verdicts=[verdict])
        for commit in (fact, other, rival, more):
            await store.apply(make.scope, commit)
        gone = [revoking(record) for record in (fact.claims[0], end, denial)]
        for retold in ([], [(statement.id, "Mara lives in Paris, she said.")]):
            await store.forget(make.scope, Forgetting(Revision(5), records=gone, retold=retold))
            records = await store.records(make.scope, [statement.id])
            assert [claim.source.quote for claim in records.claims] == ["", other.claims[0].source.quote]
            assert [records.ends[0].source.quote, records.denials[0].source.quote] == ["", ""]
            assert [records.statements[0].fact, records.verdicts[0].why] == (
                [retold[0][1], ""] if retold else [statement.fact, "as was said"]
            )
        await store.forget(make.scope, Forgetting(Revision(5), records=[revoking(verdict)]))
        assert (await store.records(make.scope, [rival.statements[0].id])).verdicts[0].why == ""
        with pytest.raises(UnstorableText):
            await store.forget(make.scope, Forgetting(Revision(5), retold=[(statement.id, "nul \x00")]))
