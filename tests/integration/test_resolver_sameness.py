"""Names that may be one entity's: found, judged once with context, merged as records; doubt keeps both."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.beliefs import in_force
from services.domain.graph import EntityType
from services.domain.identity import Merge, MergeKind
from services.domain.ids import EntityId, RecordId, Revision, derive_id
from services.domain.names import name_key
from services.domain.records import Judge
from services.domain.scope import Scope
from services.llm import tasks
from services.llm.offline import OfflineEngine
from services.llm.openai_engine import OpenAIEngine
from services.llm.port import Answer, Engine, ModelOutputInvalid, ModelRefused, ModelUnavailable
from services.resolver.service import Resolver
from services.stores.paging import Page
from tests import yaml_files
from tests.doubles.engine import ScriptedEngine
from tests.doubles.model_server import ModelServer
from tests.examples import sampled
from tests.integration.naming import SAID, Fact, all_same, asked, facts, merges, names, read_as, tell, unknown
from tests.integration.resolving import World, a_world
from tests.machine import ROOT

CASES: dict[str, Any] = yaml_files.read(ROOT / "tests/cases/entities.yaml")
PERSON, UNKNOWN, PLACE = EntityType.PERSON, EntityType.UNKNOWN, EntityType.PLACE


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


@asynccontextmanager
async def engine_of(kind: str) -> AsyncIterator[Engine]:
    if kind == "offline":
        yield OfflineEngine()
        return
    with ModelServer() as server:
        engine = OpenAIEngine(server.settings())
        yield engine
        await engine.aclose()


SPELLINGS = [
    ("Maya Kapoor leads Atlas. Maya K. lives in Graz.", "Maya K.", "Maya Kapoor"),
    ("Ravi S. called. Later Ravi Sharma wrote.", "Ravi S.", "Ravi Sharma"),
    ("张伟来了。張偉住在台北。", "张伟", "張偉"),
    ("Ana joined International Business Machines (IBM).", "IBM", "International Business Machines"),
]


@pytest.mark.parametrize("kind", ["offline", "model"])
@pytest.mark.parametrize(("text", "short", "full"), SPELLINGS, ids=lambda value: value[:12])
async def test_two_spellings_in_one_episode_become_one_and_no_fact_is_lost(
    world: World, kind: str, text: str, short: str, full: str
) -> None:
    async with engine_of(kind) as engine:
        there = replace(world, resolver=Resolver(replace(world.parts, engine=engine)))
        response = await tell(there, "a", text, [((short, UNKNOWN), "kite"), ((full, UNKNOWN), "boat")])
    reads = await read_as(world)
    assert set(reads.items()) <= {(short, full), (full, short)}
    assert len(reads) == 1
    assert await facts(world) == {f"{short} owns a kite.", f"{full} owns a boat."}
    (merge,) = await merges(world)
    assert (merge.kind, merge.episode) == (MergeKind.SAME, "episode-a")
    listed = await world.memory.decisions.list_decisions(world.scope, merge.entity, Page(10))
    assert [(one.action, one.revision, one.actor) for one in listed.items] == [
        ("merge_entities", response.revision, merge.judge.name.lower())
    ]
    if merge.judge is Judge.MODEL:
        stages = [receipt.stage for receipt in response.receipts]
        assert len({"judge_entities", "resolve"} & set(stages)) == len(stages) == 1
        assert merge.model
        assert merge.prompt_version


LIKELY = [tuple(pair) for pair in CASES["likely_same_needs_context"]]
LIKELY += [
    ("FBI", "Federal Bureau of Investigation"),
    ("陈丽", "陳麗"),
    ("北大", "北京大学"),
    ("J. Ortiz", "Juan Ortiz"),
]


@pytest.mark.parametrize(("one", "other"), sampled([*LIKELY, *((b, a) for a, b in LIKELY)], 3))
async def test_a_likely_one_is_asked_about_and_doubt_keeps_both(world: World, one: str, other: str) -> None:
    await tell(world, "a", f"{one} was there.", unknown(one))
    await tell(world, "b", f"{other} came.", unknown(other))
    assert asked(world) == [(other, one)]
    assert await merges(world) == []
    assert set((await names(world)).values()) == {one, other}


@pytest.mark.parametrize(("one", "other"), sampled(LIKELY))
async def test_judged_the_same_with_context_whichever_came_first(
    tmp_path: Path, one: str, other: str
) -> None:
    found = []
    for order in ((one, other), (other, one)):
        (tmp_path / order[0]).mkdir()
        async with a_world(tmp_path / order[0]) as world:
            world.engine.judge_of_entities = all_same
            for at, name in enumerate(order):
                await tell(world, f"e{at}", f"{name} was there.", [((name, UNKNOWN), f"thing {name}")])
            (task,) = [each for each in world.engine.asked if isinstance(each, tasks.JudgeEntities)]
            assert [fact.fact for fact in task.candidates[0].facts] == [
                f"{order[0]} owns e0 thing {order[0]}."
            ]
            assert [fact.fact for fact in task.new[0].facts] == [f"{order[1]} owns e1 thing {order[1]}."]
            assert (task.new[0].here, task.candidates[0].here) == (True, False)
            assert task.said == [f"{order[1]} was there."]
            found.append(await read_as(world))
    assert found[0] == found[1]
    assert len(found[0]) == 1


APART = [
    tuple((one, "Unknown") if isinstance(one, str) else (one["name"], one["type"]) for one in pair)
    for pair in CASES["stay_apart"]
    if "Predicate" not in str(pair)
]
APART += [
    (("Python 2", "Technology"), ("Python 3", "Technology")),
    (("北京大学", "Organization"), ("南京大学", "Organization")),
    (("Jansen", "Person"), ("Janssen", "Person")),
    (("Maya Kapoor", "Person"), ("Ravi Kapoor", "Person")),
    (("Jordan", "Person"), ("Jordan", "Place")),
]


@pytest.mark.parametrize(("one", "other"), APART)
@pytest.mark.parametrize("together", sampled([True, False]))
async def test_what_stays_apart_does_whatever_a_model_says(
    world: World, one: tuple[str, str], other: tuple[str, str], together: bool
) -> None:
    world.engine.judge_of_entities = all_same
    both: list[Fact] = [
        ((name, EntityType(type)), f"thing {at}") for at, (name, type) in enumerate((one, other))
    ]
    if together:
        await tell(world, "a", f"{one[0]} and {other[0]} were there.", both)
    else:
        await tell(world, "a", f"{one[0]} was there.", both[:1])
        await tell(world, "b", f"{other[0]} was there.", both[1:])
    assert await merges(world) == []
    assert sorted((await names(world)).values()) == sorted([one[0], other[0]])


@pytest.mark.parametrize(
    ("one", "other"), [*CASES["merge"], ("ＩＢＭ", "ibm"), ("don’t panic", "don't  panic")]
)
async def test_one_name_in_two_forms_is_one_node_and_nobody_is_asked(
    world: World, one: str, other: str
) -> None:
    await tell(world, "a", f"{one} was there.", unknown(one))
    await tell(world, "b", f"{other} was there.", unknown(other))
    assert len(await names(world)) == 1
    assert asked(world) == []


def verdict(new: int, candidate: int, same: bool = True) -> tasks.EntityVerdict:
    return tasks.EntityVerdict(new, candidate, same)


WRONG: list[tuple[str, Callable[[tasks.JudgeEntities], Sequence[tasks.EntityVerdict]]]] = [
    ("unknown positions", lambda task: [verdict(0, 99), verdict(7, 0), verdict(-1, 0)]),
    ("turned round", lambda task: [verdict(pair.candidate + 9, pair.new) for pair in task.pairs]),
    ("everything is one", all_same),
]


@pytest.mark.parametrize(("what", "judge"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
async def test_a_wrong_answer_changes_nothing_that_was_right(world: World, what: str, judge: Any) -> None:
    await tell(world, "a", "Maya Kapoor met Maya Kumar.", unknown("Maya Kapoor", "Maya Kumar"))
    world.engine.judge_of_entities = judge
    await tell(world, "b", "Maya K. called.", unknown("Maya K."))
    assert len(asked(world)) == 2
    assert await read_as(world) == {}
    assert len(await facts(world)) == 3


async def test_the_engine_knows_whom_a_short_known_name_may_mean_besides(world: World) -> None:
    await tell(world, "a", "Maya Kapoor called.", unknown("Maya Kapoor"))
    await tell(world, "b", "Maya K. wrote.", unknown("Maya K."))
    world.engine.asked.clear()
    await tell(world, "c", "Maya Kumar called.", unknown("Maya Kumar"))
    (task,) = [each for each in world.engine.asked if isinstance(each, tasks.JudgeEntities)]
    assert asked(world) == [("Maya Kumar", "Maya K.")]
    assert [one.name for one in task.candidates] == ["Maya K.", "Maya Kapoor"]


async def test_a_name_of_a_merged_one_may_mean_nobody_else(world: World) -> None:
    world.engine.judge_of_entities = all_same
    await tell(world, "a", "Maya K. is Maya Kapoor.", unknown("Maya K.", "Maya Kapoor"))
    world.engine.asked.clear()
    await tell(world, "b", "Maya Kumar called.", unknown("Maya Kumar"))
    assert asked(world) == []
    assert await read_as(world) == {"Maya K.": "Maya Kapoor"}


async def test_one_of_two_bearers_can_be_told_by_a_model(world: World) -> None:
    await tell(world, "a", "Maya Kapoor met Maya Kumar.", unknown("Maya Kapoor", "Maya Kumar"))

    def judge(task: tasks.JudgeEntities) -> list[tasks.EntityVerdict]:
        names = [one.name for one in task.candidates]
        return [verdict(0, names.index("Maya Kumar")), verdict(0, names.index("Maya Kapoor"), same=False)]

    world.engine.judge_of_entities = judge
    await tell(world, "b", "Maya K. called.", unknown("Maya K."))
    assert await read_as(world) == {"Maya K.": "Maya Kumar"}
    kinds = {(merge.kind, merge.judge) for merge in await merges(world)}
    assert kinds == {(MergeKind.SAME, Judge.MODEL), (MergeKind.APART, Judge.MODEL)}


@pytest.mark.parametrize("type", [UNKNOWN, PERSON])
async def test_three_spellings_in_a_circle_are_one(world: World, type: EntityType) -> None:
    world.engine.judge_of_entities = all_same
    spellings = ("Maya K.", "Maya Kapoor", "M. Kapoor")
    await tell(world, "a", "Some names.", [((name, type), f"thing of {name}") for name in spellings])
    assert await read_as(world) == {"Maya K.": "Maya Kapoor", "M. Kapoor": "Maya Kapoor"}


async def test_a_name_of_a_merged_one_is_compared_with_what_it_reads_as(world: World) -> None:
    world.engine.judge_of_entities = all_same
    await tell(world, "a", "Maya K. called.", unknown("Maya K."))
    await tell(world, "b", "Maya Kapoor called.", unknown("Maya Kapoor"))
    await tell(world, "c", "M. Kapoor called.", unknown("M. Kapoor"))
    assert await read_as(world) == {"Maya K.": "Maya Kapoor", "M. Kapoor": "Maya Kapoor"}


async def test_a_name_of_no_known_type_is_no_bridge_between_two_types(world: World) -> None:
    world.engine.judge_of_entities = all_same
    await tell(world, "a", "Paris B. is old.", [(("Paris B.", UNKNOWN), "kite")])
    await tell(world, "b", "Paris Bercy is a hall.", [(("P. Bercy", PLACE), "roof")])
    by_name = {name: id for id, name in (await names(world)).items()}
    by_hand = Merge(
        RecordId("by-hand"), by_name["Paris B."], by_name["P. Bercy"], MergeKind.SAME, Judge.USER, SAID
    )
    revision = await world.memory.revisions.current(world.scope)
    await world.memory.readings.apply(world.scope, revision, [replace(by_hand, recorded_at=revision)], [], [])
    world.engine.asked.clear()
    await tell(world, "c", "Paris Bernard called.", [(("Paris Bernard", PERSON), "boat")])
    assert asked(world) == []
    assert await read_as(world) == {"Paris B.": "P. Bercy"}


@pytest.mark.parametrize("kind", [MergeKind.SAME, MergeKind.APART])
async def test_what_a_user_said_is_neither_asked_nor_overridden(world: World, kind: MergeKind) -> None:
    await tell(world, "a", "Maya Kapoor called.", unknown("Maya Kapoor"))
    short, full = (
        EntityId(derive_id(world.scope, "entity", UNKNOWN, name_key(name)))
        for name in ("Maya K.", "Maya Kapoor")
    )
    by_hand = Merge(RecordId("by-hand"), short, full, kind, Judge.USER, SAID, recorded_at=Revision(1))
    await world.memory.readings.apply(world.scope, Revision(1), [by_hand], [], [])
    world.engine.judge_of_entities = all_same
    await tell(world, "b", "Maya K. called. Maya Kapoor (Maya K.) called.", unknown("Maya K."))
    assert asked(world) == []
    assert await merges(world) == [by_hand]


async def test_two_that_a_model_told_apart_are_not_asked_again(world: World) -> None:
    world.engine.judge_of_entities = lambda task: [verdict(0, 0, same=False)]
    await tell(world, "a", "Maya Kapoor called.", unknown("Maya Kapoor"))
    await tell(world, "b", "Maya K. called.", unknown("Maya K."))
    await world.resolver.revoke(world.scope, pb.RevokeRequest(commit_id="d", episode_id="episode-a"))
    world.engine.asked.clear()
    await tell(world, "c", "Maya Kapoor called.", unknown("Maya Kapoor"))
    apart = [merge for merge in in_force(await merges(world)) if merge.kind is MergeKind.APART]
    # Deleting what named one of them may take the record along; then they are asked about anew.
    assert asked(world) == ([] if apart and apart[0].episode == "episode-b" else [("Maya Kapoor", "Maya K.")])


async def test_a_text_that_spells_it_out_joins_two_known_ones(world: World) -> None:
    await tell(world, "a", "IBM called.", unknown("IBM"))
    await tell(
        world, "b", "International Business Machines called.", unknown("International Business Machines")
    )
    assert await merges(world) == []
    said = "International Business Machines (IBM) called again."
    await tell(world, "c", said, unknown("IBM", "International Business Machines"))
    assert await read_as(world) == {"IBM": "International Business Machines"}
    assert [merge.judge for merge in await merges(world)] == [Judge.RULE]


async def test_a_common_initial_tells_nobody(world: World) -> None:
    surnames = [f"K{chr(97 + at)}{chr(98 + at)}or" for at in range(21)]
    await tell(world, "a", "Many people.", unknown(*(f"Maya {name}" for name in surnames)))
    world.engine.asked.clear()
    await tell(world, "b", "Maya K. called.", unknown("Maya K."))
    assert [pair for pair in asked(world) if pair[0] == "Maya K."] == []


class Failing(ScriptedEngine):
    """Can't judge entities."""

    error: Exception = ModelUnavailable("away")

    async def judge_entities(self, _scope: Scope, _task: tasks.JudgeEntities) -> Answer[tasks.JudgedEntities]:
        raise self.error


@pytest.mark.parametrize("error", [ModelOutputInvalid("a list"), ModelRefused("no")])
async def test_no_usable_answer_is_doubt(world: World, error: Exception) -> None:
    engine = Failing()
    engine.error = error
    there = replace(world, resolver=Resolver(replace(world.parts, engine=engine)))
    await tell(there, "a", "Maya K. called Maya Kapoor.", unknown("Maya K.", "Maya Kapoor"))
    assert await merges(world) == []
    assert len(await facts(world)) == 2


async def test_a_model_that_is_away_is_waited_for(world: World) -> None:
    there = replace(world, resolver=Resolver(replace(world.parts, engine=Failing())))
    with pytest.raises(ModelUnavailable):
        await tell(there, "a", "Maya K. called Maya Kapoor.", unknown("Maya K.", "Maya Kapoor"))
    assert await facts(world) == set()
    await world.resolver.resolve(world.scope, pb.ResolveRequest(episode_id="episode-a"))
    assert len(await facts(world)) == 2


async def test_a_deleted_name_leaves_no_near_key(world: World) -> None:
    await tell(world, "a", "Maya Kapoor called.", unknown("Maya Kapoor"))
    await world.resolver.revoke(world.scope, pb.RevokeRequest(commit_id="d", episode_id="episode-a"))
    known = await world.memory.revisions.current(world.scope)
    assert await world.graph.aliases(world.scope, known) == []
