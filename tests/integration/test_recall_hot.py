"""Hot scopes: what is read from memory is what the stores read, as of any time, as known at any."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palimpsest.internal.v1 import recall_pb2 as pb
from palimpsest.internal.v1 import resolver_entities_pb2 as entities_pb
from palimpsest.internal.v1 import resolver_pb2
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.graph import Entity, GraphAspect
from services.domain.ids import EntityId, EpisodeId, Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.recall.facts_index import FactsIndex
from services.recall.parts import Options
from services.recall.revisions import Known
from services.recall.service import Recall
from services.stores.graph.plain import PlainPage, scan_plain
from services.stores.graph.port import AsOf, GraphStore, StatementFilter
from services.stores.memory.lexicons import Lexicons
from services.stores.paging import Page
from services.stores.vectors.port import Collection
from tests.builders import a_scope, on
from tests.examples import one_in
from tests.integration.recalling import KEEPING, Memory, Triple, a_memory, triples, twin
from tests.integration.test_resolver import fact
from tests.integration.test_resolver_rereading import read_anew

SINGLE = "lives_in"
PEOPLE, THINGS = ("Ann", "Ben", "Cy"), ("Graz", "Linz", "Ann")
ALL = Page(1_000)
_graphs = count()


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with a_memory(tmp_path, [SINGLE], KEEPING) as memory:
        yield memory


@dataclass(frozen=True)
class Act:
    """What happens to a graph: a triple is told or ended, an earlier telling deleted or read anew (to say
    another triple, or nothing), two people merged; and the process that recalls starts anew."""

    kind: str
    triple: Triple = ("", "", "")
    said: int = 2020
    start: int | None = None
    which: int = 0


triple_of = st.tuples(st.sampled_from(PEOPLE), st.sampled_from((SINGLE, "likes")), st.sampled_from(THINGS))
tellings = st.builds(
    Act,
    kind=st.sampled_from(("claim", "claim", "end")),
    triple=triple_of,
    said=st.integers(2015, 2024),
    start=st.none() | st.integers(2012, 2020),
)
readings = st.builds(
    Act, kind=st.just("anew"), triple=st.just(("", "", "")) | triple_of, which=st.integers(0, 9)
)
others = st.builds(Act, kind=st.sampled_from(("delete", "merge", "ask", "restart")), which=st.integers(0, 9))
acts = tellings | readings | others
QUESTIONS: Sequence[dict[str, Any]] = (
    {},
    {"include_ended": True, "max_facts": 3},
    {"as_of": on("2017-03-01")},
    {"range_start": on("2016-01-01"), "range_end": on("2019-01-01")},
    {"range_end": on("2018-01-01"), "include_ended": True},
    {"known_at": values.KnownAt(revision=1)},
    {"known_at": values.KnownAt(revision=2), "as_of": on("2018-01-01")},
    {"entity_hints": ["Ann"], "max_hops": 1},
    {"graph_aspects": [GraphAspect.RELATIONSHIP.value]},
)


async def act(memory: Memory, number: int, one: Act) -> None:
    world = memory.world
    match one.kind:
        case "claim" | "end":
            kind = values.FACT_KIND_CLAIM if one.kind == "claim" else values.FACT_KIND_END
            times: dict[str, Any] = {} if kind == values.FACT_KIND_CLAIM else {"end": on(f"{one.said}-01-01")}
            since = "" if one.start is None or one.kind == "end" else f"{one.start}-01-01"
            said = f"{one.said}-06-01"
            await memory.tell(str(number), said, one.triple, since=since, kind=kind, **times)
        case "delete":
            id = EpisodeId(f"episode-{one.which % (number + 1)}")
            if await world.memory.text.delete_episode(world.scope, id, Instant(1)):
                passage = id.replace("episode", "passage", 1)
                await world.vectors.delete(world.scope, Collection.PASSAGES, [f"{passage}-0"])
                request = resolver_pb2.RevokeRequest(commit_id=f"d{number}", episode_id=id, actor="user")
                await world.resolver.revoke(world.scope, request)
        case "anew":
            id = EpisodeId(f"episode-{one.which % (number + 1)}")
            for episode in await world.memory.text.episodes(world.scope, [id]):
                passage = f"{id.replace('episode', 'passage', 1)}-0"
                facts = [fact(one.triple, passage, "as it was said")] if one.triple[0] else []
                if episode.deleted_at is None:
                    await read_anew(world, episode, *facts, commit=f"anew {number}")
        case "merge":
            current = await world.memory.revisions.current(world.scope)
            found = await world.graph.find_entities(world.scope, [p.casefold() for p in PEOPLE], current)
            people = [entity.id for each in found.values() for entity in each]
            if len(people) > 1:
                asked = entities_pb.MergeRequest(
                    commit_id=f"m{number}", into_id=people[0], entity_ids=people[1:2], actor="key:k", why=""
                )
                await world.resolver.merge(world.scope, asked)
        case "ask":
            await memory.ask("Where does Ann live?")
        case "restart":
            await memory.restart()


def told(answer: pb.RecallResponse) -> pb.RecallResponse:
    """An answer with scores to four decimals: sums of floats depend on who sums them."""
    items: list[Any] = [*answer.facts, *answer.passages, *answer.voice]
    for found in items:
        found.score = round(found.score, 4)
        for leg in found.legs:
            leg.score = round(leg.score, 4)
    answer.answerable = round(answer.answerable, 4)
    return answer


def cold_of(memory: Memory) -> Recall:
    return Recall(replace(memory.parts, options=replace(memory.parts.options, hot=False)))


@pytest.mark.timeout(600)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=one_in(40), deadline=None)
@given(happens=st.lists(acts, min_size=1, max_size=9))
async def test_answers_from_memory_are_those_of_the_stores(memory: Memory, happens: list[Act]) -> None:
    """Whatever was told, ended, deleted, read anew, merged; whenever between it the graph was loaded, from
    its stores or from what was kept of it."""
    scope = a_scope(f"graph {next(_graphs)}")
    fresh = Memory(replace(memory.world, scope=scope), memory.recall, memory.embedder, memory.parts)
    for number, one in enumerate(happens):
        await act(fresh, number, one)
    cold = cold_of(fresh)
    current = await fresh.world.memory.revisions.current(scope)
    for fields in QUESTIONS:
        if "known_at" in fields and fields["known_at"].revision > current:
            continue
        hot_answer = told(await fresh.ask("Where does Ann live, and what does she like?", **fields))
        fresh.recall, kept = cold, fresh.recall
        cold_answer = told(await fresh.ask("Where does Ann live, and what does she like?", **fields))
        fresh.recall = kept
        assert hot_answer == cold_answer, fields
    await _check_reads(fresh, scope, current)


async def _check_reads(memory: Memory, scope: Scope, current: Revision) -> None:
    """Every read of the graph, at every revision, from an index that was followed, loaded and restored."""
    world, held = memory.world, memory.recall._recalling.facts_shelf.held(scope)
    assert held is not None
    ids = list((await world.graph.scan(scope, ALL)).items)
    loaded = await _loaded(memory, scope, current)
    await memory.recall.settled()
    for index in (held, loaded, await _loaded(memory, scope, current)):
        hot = index.hot
        nodes = sorted(hot.nodes.ids)
        assert [*hot.records(ids).claims] == list((await world.graph.records(scope, ids)).claims)
        assert hot.records(ids) == _lists(await world.graph.records(scope, ids))
        pairs = [(one, other) for one in nodes for other in nodes]
        assert hot.slots(pairs) == dict(await world.graph.slots(scope, pairs))
        for known in range(current + 1):
            for at in (
                AsOf(Revision(known)),
                AsOf(Revision(known), on("2018-01-01")),
                AsOf(Revision(known), None, on("2016-01-01"), on("2019-01-01")),
            ):
                assert _told(hot.views(ids, at)) == _told(await world.graph.views(scope, ids, at))
                for seeds in (nodes[:1], nodes):
                    steps = await world.graph.walk(scope, [EntityId(id) for id in seeds], at, 2, 3)
                    found = hot.walk([EntityId(id) for id in seeds], at, 2, 3, {})
                    assert [(one.hop, one.view.statement.id) for one in found] == [
                        (one.hop, one.view.statement.id) for one in steps
                    ]
                for where in (
                    StatementFilter(include_ended=True),
                    StatementFilter(),
                    StatementFilter(subjects=nodes[:2], include_ended=True),
                    StatementFilter(predicates=nodes[-2:], objects=nodes[:3]),
                ):
                    listed = await world.graph.list_statements(scope, where, at, Page(3))
                    assert _told(hot.statements(where, at, 3)) == _told(listed.items)


async def _loaded(memory: Memory, scope: Scope, current: Revision) -> FactsIndex:
    parts = memory.parts
    lexicons = Lexicons(parts.readings, parts.graph, parts.vocabulary)
    return await parts.facts_shelf(lexicons, whole=True).get(scope, Known(current, current))


def _lists(records: Any) -> Any:
    return replace(records, **{name: list(getattr(records, name)) for name in type(records).__slots__})


def _told(views: Sequence[Any]) -> list[Any]:
    return [replace(view, spans=tuple(view.spans), episodes=tuple(view.episodes)) for view in views]


async def test_a_graph_is_followed_and_not_loaded_again(memory: Memory) -> None:
    await memory.tell("a", "2025-01-01", *[("Ana", "likes", f"tea {n}") for n in range(30)])
    await memory.ask("what tea does Ana like")
    held = memory.recall._recalling.facts_shelf.held(memory.world.scope)
    assert held is not None
    hot = held.hot
    told = await memory.tell("b", "2025-02-01", ("Ana", "likes", "coffee"))
    answer = await memory.ask("does Ana like coffee", min_revision=told.revision, max_facts=1)
    assert triples(answer) == [("Ana", "likes", "coffee")]
    assert held.hot is hot
    assert len(hot) == 31


async def test_what_is_deleted_is_not_in_memory_any_more(memory: Memory) -> None:
    await memory.tell("a", "2025-01-01", ("Ana", "likes", "tea"))
    await memory.tell("b", "2025-01-02", ("Ana", "likes", "quinoa"))
    assert len((await memory.ask("quinoa")).facts) == 2
    scope = memory.world.scope
    assert "quinoa" in memory.recall.words_held(scope)
    await act(memory, 0, Act("delete"))  # of no episode: nothing happens
    await memory.world.memory.text.delete_episode(scope, EpisodeId("episode-b"), Instant(1))
    request = resolver_pb2.RevokeRequest(commit_id="d", episode_id="episode-b", actor="user")
    await memory.world.resolver.revoke(scope, request)
    answer = await memory.ask("quinoa")
    assert triples(answer) == [("Ana", "likes", "tea")]
    assert "quinoa" not in memory.recall.words_held(scope)
    held = memory.recall._recalling
    graph, texts = held.facts_shelf.held(scope), held.texts_shelf.held(scope)
    assert graph is not None
    assert texts is not None
    every = graph.hot.records(graph.hot.ids)
    assert "quinoa" not in f"{every} {graph.hot.nodes.among(graph.hot.nodes.ids)}"
    assert "quinoa" not in f"{texts.texts.passages(texts.texts.ids)}"


async def test_graphs_of_two_tenants_are_two(memory: Memory) -> None:
    await memory.tell("mine", "2025-01-01", ("Ana", "drinks", "tea"))
    await memory.tell("theirs", "2025-01-01", ("Ana", "drinks", "mate"), scope=twin())
    for _ in range(2):
        assert triples(await memory.ask("what does Ana drink")) == [("Ana", "drinks", "tea")]
        assert triples(await memory.ask("what does Ana drink", scope=twin())) == [("Ana", "drinks", "mate")]


async def test_questions_at_once_load_a_graph_once(memory: Memory) -> None:
    await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
    scans = Counting(memory.world.graph)
    recall = Recall(replace(memory.parts, graph=scans))  # type: ignore[arg-type]  # passes everything on
    memory.recall = recall
    answers = await asyncio.gather(*(memory.ask("what does Ana drink") for _ in range(8)))
    assert {tuple(triples(answer)) for answer in answers} == {(("Ana", "drinks", "tea"),)}
    assert scans.calls == 1


class Counting:
    """A graph store that counts how often it is scanned."""

    def __init__(self, graph: GraphStore) -> None:
        self._graph = graph
        self.calls = 0

    async def scan_plain(self, scope: Scope, page: Page) -> PlainPage:
        self.calls += 1
        return await scan_plain(self._graph, scope, page)

    def __getattr__(self, name: str) -> object:
        return getattr(self._graph, name)


async def test_without_room_for_vectors_the_vector_store_is_searched(tmp_path: Path) -> None:
    roomy, tight = Options(wait_seconds=0.2), Options(facts_bytes=1, texts_bytes=1)
    async with a_memory(tmp_path, options=roomy) as memory:
        await memory.tell("a", "2025-01-01", *[("Ana", "likes", f"tea number {n}") for n in range(40)])
        searched = memory.world.vectors.searched
        hot = await memory.ask("tea number 7")
        assert not searched
        memory.recall = Recall(replace(memory.parts, options=tight))
        spilt = await memory.ask("tea number 7")
        assert searched
        top = [{fact.statement.id for fact in answer.facts[:10]} for answer in (hot, spilt)]
        assert len(top[0] & top[1]) >= 9.5
        assert hot.context == spilt.context


async def test_vectors_that_come_late_are_searched_for_until_they_are_there(memory: Memory) -> None:
    await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"))
    world, scope = memory.world, memory.world.scope
    [id] = (await world.graph.scan(scope, ALL)).items
    rows = await world.vectors.fetch(scope, Collection.STATEMENTS, [id])
    await world.vectors.delete(scope, Collection.STATEMENTS, [id])
    assert triples(await memory.ask("what does Ana drink"))
    assert world.vectors.searched, "not all vectors were there"
    await world.vectors.upsert(scope, Collection.STATEMENTS, list(rows.values()))
    answer = await memory.ask("what does Ana drink")
    assert "statements_dense" in {leg.leg for fact in answer.facts for leg in fact.legs}


@pytest.mark.slow
async def test_one_fact_beside_a_large_graph_is_found_by_each_leg(memory: Memory) -> None:
    crowd = [(f"Person {n}", "feeds", f"cat number {n}") for n in range(2_000)]
    for at in range(0, len(crowd), 500):
        await memory.tell(f"crowd{at}", "2025-01-01", *crowd[at : at + 500], scope=twin())
    await memory.tell("mine", "2025-01-01", ("Ana", "feeds", "Miso the cat"))
    await memory.ask("who feeds the cat", scope=twin())
    for recall in (memory.recall, cold_of(memory)):
        memory.recall = recall
        answer = await memory.ask("who feeds the cat in 2025", entity_hints=["Ana"])
        assert triples(answer) == [("Ana", "feeds", "Miso the cat")]
        legs = {leg.leg for leg in answer.facts[0].legs}
        assert legs == {"statements_dense", "statements_lexical", "walk", "time"}


async def test_a_walk_tells_nothing_of_what_was_deleted_since_its_graph_was_asked(memory: Memory) -> None:
    for name in ("a", "b"):
        await memory.tell(name, "2025-01-01", ("Ana", "drinks", "tea"))
    await memory.ask("what does Ana drink")
    world, scope = memory.world, memory.world.scope
    await world.memory.text.delete_episode(scope, EpisodeId("episode-b"), Instant(1))
    request = resolver_pb2.RevokeRequest(commit_id="d", episode_id="episode-b", actor="user")
    await world.resolver.revoke(scope, request)
    walk = pb.WalkRequest(seeds=["Ana"], max_hops=1, include_ended=True)
    for recall in (memory.recall, cold_of(memory)):
        [step] = (await recall.walk(scope, walk)).steps
        assert list(step.statement.episode_ids) == ["episode-a"]


class Purging:
    """A graph store of which a node goes after the statements that name it were read."""

    def __init__(self, graph: GraphStore, gone: str) -> None:
        self._graph = graph
        self._gone = gone

    async def entities(self, scope: Scope, ids: Sequence[EntityId]) -> Sequence[Entity]:
        return [one for one in await self._graph.entities(scope, ids) if one.name != self._gone]

    def __getattr__(self, name: str) -> object:
        return getattr(self._graph, name)


async def test_a_graph_is_loaded_while_an_entity_goes_from_it(memory: Memory) -> None:
    await memory.tell("a", "2025-01-01", ("Ana", "drinks", "tea"), ("Ana", "knows", "Bob"))
    graph: Any = Purging(memory.world.graph, "Bob")
    memory.recall = Recall(replace(memory.parts, graph=graph))
    answer = await memory.ask("what does Ana drink", include_passages=False)
    assert triples(answer) == [("Ana", "drinks", "tea")]
