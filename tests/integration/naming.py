"""Names told to a resolver: episodes with their facts, and what is then read as one, asked and believed."""

from collections.abc import Sequence

from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.beliefs import in_force
from services.domain.graph import EntityType
from services.domain.identity import Merge, merged
from services.domain.ids import EntityId
from services.llm import tasks
from services.stores.graph.port import AsOf, StatementFilter
from services.stores.memory.groups import all_merges
from services.stores.paging import Page
from tests.builders import on
from tests.integration.resolving import World

SAID = on("2026-01-05")

Named = tuple[str, EntityType]
Fact = tuple[Named, str]
"""A subject, and a thing of its own that it owns."""


def unknown(*names: str) -> list[Fact]:
    return [((name, EntityType.UNKNOWN), f"thing {at}") for at, name in enumerate(names)]


async def tell(world: World, name: str, text: str, facts: Sequence[Fact]) -> pb.ResolveResponse:
    """An episode that says `text`, of which an engine drew the facts, resolved."""
    episode = await world.episode(name, SAID, [text])
    world_facts = [
        values.WorldFact(
            kind=values.FACT_KIND_CLAIM,
            subject=values.Mention(name=subject, type=type),
            predicate="owns",
            object=values.Target(literal=values.Literal(kind="string", text=f"{name} {target}")),
            fact=f"{subject} owns {name} {target}.",
            quote=text,
            confidence=0.9,
            passage_id=f"passage-{name}-0",
        )
        for (subject, type), target in facts
    ]
    setting = values.Setting(kind="conversation", reference_time=SAID)
    request = pb.StoreFactsRequest(episode_id=episode.id, world=world_facts, setting=setting)
    await world.resolver.store_facts(world.scope, request)
    return await world.resolver.resolve(world.scope, pb.ResolveRequest(episode_id=episode.id))


async def merges(world: World) -> list[Merge]:
    return await all_merges(world.memory.readings, world.scope)


async def names(world: World) -> dict[EntityId, str]:
    """Of all entities but predicates."""
    known = await world.memory.revisions.current(world.scope)
    aliases = await world.graph.aliases(world.scope, known)
    ids = sorted({one.entity for one in aliases if one.type is not EntityType.PREDICATE})
    return {one.id: one.name for one in await world.graph.entities(world.scope, ids)}


async def read_as(world: World) -> dict[str, str]:
    """What each merged entity reads as, by names."""
    by_id = await names(world)
    reads = merged(in_force(await merges(world)))
    return {by_id[one]: by_id[other] for one, other in reads.items()}


async def facts(world: World) -> set[str]:
    """Sentences that are believed."""
    known = await world.memory.revisions.current(world.scope)
    listed = await world.graph.list_statements(world.scope, StatementFilter(), AsOf(known), Page(1000))
    return {view.statement.fact for view in listed.items if view.spans}


def all_same(task: tasks.JudgeEntities) -> list[tasks.EntityVerdict]:
    return [tasks.EntityVerdict(pair.new, pair.candidate, same=True) for pair in task.pairs]


def asked(world: World) -> list[tuple[str, str]]:
    """The pairs of names that the engine was asked about."""
    return [
        (task.new[pair.new].name, task.candidates[pair.candidate].name)
        for task in world.engine.asked
        if isinstance(task, tasks.JudgeEntities)
        for pair in task.pairs
    ]
