"""What relied on a statement: facts of episodes that were understood with it, told with the statement."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palimpsest.internal.v1 import recall_pb2 as pb
from palimpsest.internal.v1 import resolver_pb2
from palimpsest.internal.v1 import values_pb2 as values
from services.recall.service import Recall
from tests.integration.recalling import Memory, Triple, a_memory, twin


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with a_memory(tmp_path) as memory:
        yield memory


def fact(triple: Triple, name: str) -> values.WorldFact:
    subject, predicate, target = triple
    return values.WorldFact(
        kind=values.FACT_KIND_CLAIM,
        subject=values.Mention(name=subject),
        predicate=predicate,
        object=values.Target(mention=values.Mention(name=target)),
        fact=" ".join(triple),
        quote=" ".join(triple),
        passage_id=f"passage-{name}-0",
        confidence=1.0,
    )


async def learn(memory: Memory, name: str, text: str, *triples: Triple) -> list[str]:
    """Understands a text with its surroundings, and answers the known facts that these offered."""
    scope, world = memory.world.scope, memory.world
    episode = await memory.say(name, "2024-02-01", ("Ana", text))
    asked = pb.GatherContextRequest(episode_id=episode.id)
    setting = (await memory.recall.gather_context(scope, asked)).setting
    staged = resolver_pb2.StoreFactsRequest(
        episode_id=episode.id, world=[fact(triple, name) for triple in triples], setting=setting
    )
    await world.resolver.store_facts(scope, staged)
    await world.resolver.resolve(scope, resolver_pb2.ResolveRequest(episode_id=episode.id))
    return [known.statement_id for known in setting.known_facts]


async def relying(memory: Memory, id: str, known_at: int | None = None) -> list[str]:
    request = pb.ReadStatementRequest(statement_id=id)
    if known_at is not None:
        request.known_at.revision = known_at
    answer = await memory.recall.read_statement(memory.world.scope, request)
    facts = []
    for other in answer.dependent_ids:
        read = pb.ReadStatementRequest(statement_id=other)
        facts.append((await memory.recall.read_statement(memory.world.scope, read)).statement.fact)
    return facts


async def test_facts_of_an_episode_that_was_understood_with_it(memory: Memory) -> None:
    told = await memory.tell("tea", "2024-01-01", ("Ana", "drinks", "green tea"))
    [tea] = told.statement_ids
    assert await relying(memory, tea) == []
    offered = await learn(
        memory, "new", "Ana drinks green tea", ("Ana", "likes", "green tea"), ("Zoe", "knows", "Kim")
    )
    assert offered == [tea]
    assert await relying(memory, tea) == ["Ana likes green tea"]
    assert await relying(memory, tea, known_at=1) == []
    memory.recall = Recall(memory.parts)
    assert await relying(memory, tea) == ["Ana likes green tea"], "whatever process is asked"
    await memory.tell("other", "2024-02-02", ("Ana", "owns", "a kettle"))
    assert await relying(memory, tea) == ["Ana likes green tea"], "others were told without it"
    revoke = resolver_pb2.RevokeRequest(commit_id="gone", episode_id="episode-new")
    await memory.world.resolver.revoke(memory.world.scope, revoke)
    assert await relying(memory, tea) == []
    assert await relying(memory, tea, known_at=2) == [""], "its text went, its id stays in the log of beliefs"


async def test_nothing_of_another_tenants(memory: Memory) -> None:
    await memory.tell("tea", "2024-01-01", ("Ana", "drinks", "green tea"), scope=twin())
    assert await learn(memory, "new", "Ana drinks green tea", ("Ana", "likes", "green tea")) == []
