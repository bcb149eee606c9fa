"""Texts told to a resolver whose predicates nobody declared, and an engine that is asked about these."""

from collections.abc import Sequence
from dataclasses import replace

from palimpsest.internal.v1 import resolver_pb2 as pb
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.identity import Merge
from services.domain.ids import EpisodeId, Revision
from services.llm import tasks
from services.llm.port import Engine
from services.resolver.service import Resolver
from services.stores.memory.lexicons import Lexicons
from tests.builders import on
from tests.doubles.engine import JudgePredicates
from tests.doubles.meanings import MeaningEmbedder
from tests.integration.resolving import World
from tests.integration.test_declaring import Believed

WORKING = ("works at", "toils at", "is on the payroll of", "就职于", "供职于", "效力于")
LIVING = ("lives in", "dwells in", "住在", "定居于")
MEANINGS = (WORKING, LIVING, ("visits", "tours"), ("minds cats of", "sits cats of", "looks after cats of"))


def with_engine(world: World, engine: Engine) -> World:
    parts = replace(world.parts, engine=engine, embedder=MeaningEmbedder(*MEANINGS))
    return replace(world, resolver=Resolver(parts), parts=parts)


async def tell(world: World, name: str, date: str, *triples: tuple[str, str, str]) -> pb.ResolveResponse:
    """An episode that states facts which begin at its own date, as an engine drew them from its text."""
    lines = [" ".join(triple) for triple in triples]
    episode = await world.episode(name, on(date), lines)
    facts = [
        values.WorldFact(
            kind=values.FACT_KIND_CLAIM,
            subject=values.Mention(name=subject),
            predicate=predicate,
            object=values.Target(mention=values.Mention(name=target)),
            fact=f"{subject} {predicate.replace('_', ' ')} {target}",
            quote=line,
            start=values.StatedTime(at=on(date)),
            confidence=1.0,
            passage_id=f"passage-{name}-{at}",
        )
        for at, (line, (subject, predicate, target)) in enumerate(zip(lines, triples, strict=True))
    ]
    setting = values.Setting(kind="conversation", reference_time=on(date))
    request = pb.StoreFactsRequest(episode_id=episode.id, world=facts, setting=setting)
    await world.resolver.store_facts(world.scope, request)
    return await world.resolver.resolve(world.scope, pb.ResolveRequest(episode_id=episode.id))


def opinion(*wanted: tuple[str, str, bool]) -> JudgePredicates:
    """A judge that says so of the pairs that it is offered, by names, and nothing of others."""

    def judge(task: tasks.JudgeStatements) -> list[tasks.PredicateVerdict]:
        told = {(new, other): same for new, other, same in wanted}
        pairs = [
            (pair, (task.new_predicates[pair.new].name, task.candidate_predicates[pair.candidate].name))
            for pair in task.predicate_pairs
        ]
        return [
            tasks.PredicateVerdict(pair.new, pair.candidate, told[names], "as one says")
            for pair, names in pairs
            if names in told
        ]

    return judge


def all_same(task: tasks.JudgeStatements) -> list[tasks.PredicateVerdict]:
    return [tasks.PredicateVerdict(pair.new, pair.candidate, same=True) for pair in task.predicate_pairs]


def questions(world: World) -> list[tasks.JudgeStatements]:
    return [task for task in world.engine.asked if isinstance(task, tasks.JudgeStatements)]


def asked(world: World) -> list[tuple[str, str]]:
    """The pairs of predicates that the engine was asked about."""
    return [
        (task.new_predicates[pair.new].name, task.candidate_predicates[pair.candidate].name)
        for task in questions(world)
        for pair in task.predicate_pairs
    ]


async def merges(world: World) -> Sequence[Merge]:
    return await world.memory.readings.predicate_merges(world.scope)


async def reads(world: World, known_at: int | None = None) -> dict[str, str]:
    """What each of the words that tests use reads as, where that is another."""
    at = await world.memory.revisions.current(world.scope) if known_at is None else Revision(known_at)
    lexicons = Lexicons(world.memory.readings, world.graph, world.parts.vocabulary)
    lexicon = await lexicons.at(world.scope, at)
    names = [name.replace(" ", "_") for group in MEANINGS for name in group]
    return {
        name: canonical
        for name in names
        if (canonical := lexicon.known.canonical(name)) != world.parts.vocabulary.canonical(name)
    }


GLOBEX_ENDED: Believed = {
    ("Ann works at Globex", on("2020-01-01"), on("2022-01-01")),
    ("Ann toils at Initech", on("2022-01-01"), None),
}
BOTH_OPEN: Believed = {
    ("Ann works at Globex", on("2020-01-01"), None),
    ("Ann toils at Initech", on("2022-01-01"), None),
}


async def globex_then_initech(world: World) -> pb.ResolveResponse:
    await tell(world, "a", "2020-01-01", ("Ann", "works_at", "Globex"))
    return await tell(world, "b", "2022-01-01", ("Ann", "toils_at", "Initech"))


async def delete(world: World, name: str) -> None:
    request = pb.RevokeRequest(commit_id=f"delete-{name}", episode_id=EpisodeId(f"episode-{name}"))
    await world.memory.text.delete_episode(world.scope, EpisodeId(f"episode-{name}"), on("2026-01-01"))
    await world.resolver.revoke(world.scope, request)
