"""DeclarePredicate: beliefs follow a declaration from then on, past ones stay, and it can be taken back."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.errors import ValidationFailed
from services.domain.graph import EntityType, Literal
from services.domain.ids import Revision
from services.domain.lexicon import predicate_id
from services.domain.scope import Scope
from services.resolver import declaring
from services.stores.graph.port import AsOf, StatementView
from services.stores.memory.lexicons import Lexicons
from services.stores.paging import Page
from tests.builders import on
from tests.examples import one_in
from tests.integration.resolving import World, a_world, said
from tests.integration.test_resolver import CLAIM, claim

_calls = count()
Believed = set[tuple[str, int | None, int | None]]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


async def declare(
    world: World, name: str, cardinality: str = "multi", aliases: Sequence[str] = (), inverse: str = ""
) -> pb.DeclarePredicateResponse:
    return await world.resolver.declare_predicate(
        world.scope,
        pb.DeclarePredicateRequest(
            commit_id=f"declare-{next(_calls)}",
            name=name,
            cardinality=cardinality,
            aliases=aliases,
            inverse=inverse,
            actor="key:1",
            why="we say so",
        ),
    )


async def believed(world: World, known_at: int | None = None) -> Believed:
    """Every believed span of the graph, with the sentence of its statement."""
    at = await world.memory.revisions.current(world.scope) if known_at is None else Revision(known_at)
    listed = await world.graph.scan(world.scope, Page(1000))
    views = await world.graph.views(world.scope, listed.items, AsOf(at))
    return {(v.statement.fact, span.valid_at, span.invalid_at) for v in views for span in v.spans}


async def test_single_closes_what_it_must_and_multi_restores_it(world: World) -> None:
    await claim(world, "a", ("Ann", "mascot", "Otter"), "2020-01-01")
    await claim(world, "b", ("Ann", "mascot", "Heron"), "2022-01-01")
    both: Believed = {
        ("Ann mascot Otter", on("2020-01-01"), None),
        ("Ann mascot Heron", on("2022-01-01"), None),
    }
    assert await believed(world) == both
    done = await declare(world, "Mascot", "single")
    closed: Believed = {
        ("Ann mascot Otter", on("2020-01-01"), on("2022-01-01")),
        ("Ann mascot Heron", on("2022-01-01"), None),
    }
    assert (done.revision, len(done.outcome.statements_ended)) == (3, 1)
    assert await believed(world) == closed
    assert await believed(world, 2) == both, "past beliefs stay"
    again = await declare(world, "mascot", "single")
    assert again.revision == 3, "what is so already publishes nothing"
    restored = await declare(world, "mascot", "multi")
    assert (restored.revision, len(restored.outcome.statements_restored)) == (4, 1)
    assert await believed(world) == both
    assert await believed(world, 3) == closed
    decisions = await world.memory.decisions.list_decisions(
        world.scope, predicate_id(world.scope, "mascot"), Page(10)
    )
    assert [(one.action, one.actor, one.revision) for one in decisions.items] == [
        ("declare_predicate", "key:1", 4),
        ("declare_predicate", "key:1", 3),
    ]


async def test_what_predicates_mean_is_worked_out_anew_only_where_it_changes(world: World) -> None:
    await declare(world, "mascot", "single")
    await claim(world, "a", ("Ann", "mascot", "Otter"), "2020-01-01")
    await declare(world, "mascot", "multi")
    lexicons = Lexicons(world.memory.readings, world.graph, world.parts.vocabulary)
    by_revision = [await lexicons.at(world.scope, Revision(known_at)) for known_at in (3, 2, 1, 0)]
    assert [lexicon.cardinality("mascot") for lexicon in by_revision] == [
        "multi",
        "single",
        "single",
        "multi",
    ]
    assert by_revision[1] is by_revision[2]
    assert len(set(map(id, by_revision))) == 3


async def test_a_revision_that_declared_nothing_is_known_as_the_one_before_it(world: World) -> None:
    def lexicons() -> Lexicons:
        return Lexicons(world.memory.readings, world.graph, world.parts.vocabulary)

    await declare(world, "mascot", "single")
    kept = lexicons()
    before = await kept.at(world.scope, Revision(1))
    await claim(world, "a", ("Ann", "mascot", "Otter"), "2020-01-01")
    kept.follow(world.scope, Revision(2))
    assert await kept.at(world.scope, Revision(2)) is before
    anew = await lexicons().at(world.scope, Revision(2))
    assert (anew.known, anew.merged, anew.inverses) == (before.known, before.merged, before.inverses)
    await declare(world, "mascot", "multi")
    assert (await kept.at(world.scope, Revision(3))).known != before.known


async def test_a_statement_without_a_span_gets_one_when_many_may_hold(world: World) -> None:
    await declare(world, "mascot", "single")
    await claim(world, "a", ("Ann", "mascot", "Otter"), "2020-01-01")
    await claim(world, "b", ("Ann", "mascot", "Heron"), "2020-01-01", "2021-01-01")
    assert await believed(world) == {("Ann mascot Heron", on("2020-01-01"), None)}
    await declare(world, "mascot", "multi")
    assert await believed(world) == {
        ("Ann mascot Otter", on("2020-01-01"), None),
        ("Ann mascot Heron", on("2020-01-01"), None),
    }


async def test_an_alias_reads_as_the_predicate_whenever_it_was_said(world: World) -> None:
    await claim(world, "a", ("Ann", "works_at", "Globex"), "2020-01-01")
    await claim(world, "b", ("Ann", "toils_at", "Initech"), "2022-01-01")
    await claim(world, "c", ("Ann", "toils_at", "Globex"), "2019-01-01")
    await declare(world, "works_at", "single", ["toils at"])
    assert await believed(world) == {
        ("Ann toils at Globex", on("2019-01-01"), on("2022-01-01")),
        ("Ann toils at Initech", on("2022-01-01"), None),
    }
    await claim(world, "d", ("Ann", "toiled at", "Hooli"), "2023-01-01")
    assert ("Ann toils at Initech", on("2022-01-01"), on("2023-01-01")) in await believed(world)
    await declare(world, "works_at", "single")
    now = await believed(world)
    assert ("Ann works at Globex", on("2020-01-01"), None) in now
    assert ("Ann toils at Globex", on("2019-01-01"), None) in now


async def test_both_ways_of_what_ships_are_one_statement(world: World) -> None:
    await claim(world, "a", ("Bob", "reports_to", "Alice"), "2020-01-01")
    await claim(world, "b", ("Alice", "manages", "Bob"), "2021-01-01")
    await claim(world, "c", ("Carl", "managed", "Bob"), "2022-01-01")
    counts = await world.graph.counts(world.scope, Revision(3))
    assert (counts.statements, counts.claims) == (2, 3)
    assert await world.timeline("Bob", "reports_to") == [
        ("Alice", on("2020-01-01"), on("2022-01-01")),
        ("Carl", on("2022-01-01"), None),
    ]


async def test_a_slot_competes_from_both_ends(world: World) -> None:
    await claim(world, "a", ("Bonn", "capital_of", "Germany"), "1949-05-23")
    await claim(world, "b", ("Germany", "capital", "Berlin"), "1990-10-03")
    assert await world.timeline("Bonn", "capital_of") == [("Germany", on("1949-05-23"), on("1990-10-03"))]
    assert await world.timeline("Berlin", "capital_of") == [("Germany", on("1990-10-03"), None)]


async def test_a_symmetric_predicate_is_one_from_either_end(world: World) -> None:
    await claim(world, "a", ("Ann", "married_to", "Tom"), "2010-01-01")
    await claim(world, "b", ("Tom", "spouse", "Ann"), "2011-01-01")
    assert await believed(world) == {("Ann married to Tom", on("2010-01-01"), None)}
    await claim(world, "c", ("Eve", "married_to", "Tom"), "2015-01-01")
    assert await believed(world) == {
        ("Ann married to Tom", on("2010-01-01"), on("2015-01-01")),
        ("Eve married to Tom", on("2015-01-01"), None),
    }


async def test_an_inverse_declared_later_makes_one_of_both_ways(world: World) -> None:
    await claim(world, "a", ("Bob", "mentored_by", "Alice"), "2020-01-01")
    await claim(world, "b", ("Alice", "mentors", "Bob"), "2019-01-01")
    await claim(world, "c", ("Carl", "mentors", "Bob"), "2022-01-01")
    before = await believed(world)
    assert len(before) == 3
    await declare(world, "mentored_by", "single", inverse="mentors")
    assert await believed(world) == {
        ("Alice mentors Bob", on("2019-01-01"), on("2022-01-01")),
        ("Carl mentors Bob", on("2022-01-01"), None),
    }
    # What is said next, from either end, competes too.
    await claim(world, "d", ("Bob", "mentored_by", "Dora"), "2024-01-01")
    assert ("Carl mentors Bob", on("2022-01-01"), on("2024-01-01")) in await believed(world)
    await declare(world, "mentored_by", "multi")
    assert before < await believed(world)


async def test_a_predicate_that_nothing_said_yet_is_made(world: World) -> None:
    await declare(world, "Call sign", "single", ["radio name"])
    (entity,) = await world.graph.entities(world.scope, [predicate_id(world.scope, "call_sign")])
    assert (entity.name, entity.type, entity.created_at) == ("call_sign", EntityType.PREDICATE, 1)


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        (("a b", "multi", ["A-B"]), ["aliases[0]"]),
        (("fresh", "multi", ["x", "mentors"]), ["aliases[1]"]),
        (("guides", "multi"), ["name"]),
        (("fresh", "multi", ["guides"]), ["aliases[0]"]),
        (("fresh", "multi", (), "mentored_by"), ["inverse"]),
        (("fresh", "multi", (), "guides"), ["inverse"]),
        (("mentored_by", "multi", (), "fresh"), ["inverse"]),
        (("fresh", "multi", ["mentored_by"]), ["aliases"]),
        (("fresh", "multi", ["x"], "x"), ["inverse"]),
        (("...", "multi", ["--"], "!"), ["name", "aliases[0]", "inverse"]),
        (("fresh", "several"), ["cardinality"]),
        (("reports_to", "single", (), "fresh"), ["inverse"]),
        (("fresh", "multi", (), "line manager"), ["inverse"]),
    ],
)
async def test_contradictory_declarations_are_refused(
    world: World, call: tuple[str, str], fields: list[str]
) -> None:
    await declare(world, "mentors", "multi", ["guides"], "mentored_by")
    with pytest.raises(ValidationFailed) as refused:
        await declare(world, *call)
    assert [one.field for one in refused.value.violations] == fields
    assert await world.memory.revisions.current(world.scope) == 1


async def test_either_of_a_pair_may_be_declared(world: World) -> None:
    await declare(world, "mentors", inverse="mentored_by")
    await declare(world, "mentored_by", "single", inverse="mentors")
    await declare(world, "mentored_by", "multi")
    assert await world.memory.revisions.current(world.scope) == 3


async def test_one_that_changes_too_much_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declaring, "MAX_DERIVED_AGAIN", 1)
    await claim(world, "a", ("Ann", "mascot", "Otter"), "2020-01-01")
    await claim(world, "b", ("Bob", "mascot", "Otter"), "2020-01-01")
    with pytest.raises(ValidationFailed):
        await declare(world, "mascot", "single")
    await declare(world, "unmet", "single")


async def test_other_graphs_read_as_they_did(world: World) -> None:
    await declare(world, "mascot", "single")
    world.scope = Scope(world.scope.tenant, type(world.scope.graph)("another"))
    await claim(world, "a", ("Ann", "mascot", "Otter"), "2020-01-01")
    await claim(world, "b", ("Ann", "mascot", "Heron"), "2022-01-01")
    assert len([end for _, _, end in await believed(world) if end is None]) == 2


@dataclass(frozen=True)
class Step:
    """A claim, or a declaration."""

    claim: tuple[str, str, str, int] | None = None
    declaration: tuple[str, str, tuple[str, ...], str] | None = None


NAMES = ("mascot", "emblem", "heralds")
claims = st.builds(
    lambda s, p, o, y: Step((s, p, o, y)),
    st.sampled_from(("Ann", "Bob")),
    st.sampled_from((*NAMES, "married_to", "manages", "reports_to")),
    st.sampled_from(("Ann", "Bob", "Otter")),
    st.integers(2010, 2016),
)
declarations = st.builds(
    lambda name, cardinality, alias, inverse: Step(
        declaration=(name, cardinality, tuple(a for a in alias if a != name), inverse)
    ),
    st.sampled_from((*NAMES, "manages")),
    st.sampled_from(("single", "multi")),
    st.sets(st.sampled_from((*NAMES, "reports_to")), max_size=1),
    st.sampled_from(("", "heralds", "mascot")),
)


async def play(world: World, steps: Sequence[Step]) -> None:
    for at, step in enumerate(steps):
        if step.claim is not None:
            subject, predicate, target, year = step.claim
            # Named by what it says, so that every order gives the same evidence.
            name = f"{subject}-{predicate}-{target}-{year}"
            episode = await world.episode(name, on(f"{year}-01-01"))
            start = on(f"{year}-01-01")
            await world.tell(
                f"{name}-{at}", said(CLAIM, (subject, predicate, target), start, episode, start=start)
            )
        elif step.declaration is not None:
            with suppress(ValidationFailed):  # it contradicts one before: then it isn't one
                await declare(world, *step.declaration)


async def declared_now(world: World) -> list[Step]:
    records = await world.memory.readings.declared(world.scope)
    return [
        Step(declaration=(d.name, d.cardinality, d.aliases, d.inverse or ""))
        for d in (one.declaration for one in records if one.revoked_at is None)
    ]


async def objects(world: World) -> set[tuple[str, str, str, int | None, int | None, bool]]:
    """Believed spans by the names of the triple that says them."""
    at = await world.memory.revisions.current(world.scope)
    listed = await world.graph.scan(world.scope, Page(1000))
    views = await world.graph.views(world.scope, listed.items, AsOf(at))
    return {(*_triple(v), s.valid_at, s.invalid_at, s.contested) for v in views for s in v.spans}


def _triple(view: StatementView) -> tuple[str, str, str]:
    """Its names. Which of a couple's two ways of saying it stands for both is by ids: one graph's own."""
    subject, predicate, target = view.subject.name, view.predicate.name, view.statement.object
    named = target.text if isinstance(target, Literal) else view.object.name if view.object else ""
    first, second = sorted((subject, named)) if predicate == "married_to" else (subject, named)
    return first, predicate, second


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(
    # An example is a dozen whole stores: a part of what other laws get.
    max_examples=one_in(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(steps=st.lists(claims | declarations, min_size=3, max_size=9))
async def test_declarations_commute_with_texts_and_leave_nothing_once_undone(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    async with a_world(tmp_path_factory.mktemp("declaring")) as world:
        await play(world, steps)
        mixed, kept = await objects(world), await declared_now(world)
        told = [step for step in steps if step.claim is not None]
        at = await world.memory.revisions.current(world.scope)
        listed = await world.graph.scan(world.scope, Page(1000))
        past = {n: await believed(world, n) for n in range(at + 1)}

        for step in kept:
            assert step.declaration is not None
            await declare(world, step.declaration[0], "multi")
        undone = await objects(world)
        assert {n: await believed(world, n) for n in range(at + 1)} == past, "past beliefs stay"
        assert listed.items == (await world.graph.scan(world.scope, Page(1000))).items

        plain = world.scope
        world.scope = Scope(plain.tenant, type(plain.graph)("never"))
        await play(world, told)
        assert await objects(world) == undone, "declared and undone is never declared"

        world.scope = Scope(plain.tenant, type(plain.graph)("later"))
        await play(world, [*told, *kept])
        assert await objects(world) == mixed, "a text told before a declaration reads as one told after"
