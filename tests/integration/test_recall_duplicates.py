"""Two ways to say one thing: one statement is shown, and what was said either way speaks for it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palimpsest.internal.v1 import recall_pb2 as pb
from palimpsest.internal.v1 import resolver_pb2
from services.domain.records import VerdictKind
from services.llm.tasks import PairVerdict
from tests.builders import on
from tests.integration.recalling import Memory, a_memory, triples
from tests.integration.test_resolver import fact, resolve

LINES = ["I can't start a day without tea.", "Tea is what I live on."]


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with a_memory(tmp_path) as memory:
        memory.world.engine.judge = lambda task: [
            PairVerdict(pair.new, pair.candidate, VerdictKind.DUPLICATE) for pair in task.pairs
        ]
        yield memory


async def test_two_paraphrases_in_one_episode_are_one_fact_with_both_quotes(memory: Memory) -> None:
    world = memory.world
    episode = await world.episode("a", on("2024-01-01"), LINES)
    await resolve(
        world,
        episode,
        fact(("Ada", "craves", "tea"), "passage-a-0", LINES[0]),
        fact(("Ada", "lives_on", "tea"), "passage-a-1", LINES[1]),
    )
    answer = await memory.ask("What about Ada and tea?")
    assert len(triples(answer)) == 1
    (told,) = answer.facts
    named = {one.name: one.quote for one in answer.evidence}
    assert {named[name] for name in told.evidence} == set(LINES)
    asked = pb.ReadStatementRequest(statement_id=told.statement.id)
    read = await memory.recall.read_statement(world.scope, asked)
    assert {record.quote for record in read.statement.records} == set(LINES)


async def test_what_a_later_episode_says_in_other_words_speaks_for_it_too(memory: Memory) -> None:
    world = memory.world
    for at, predicate in enumerate(("craves", "lives_on")):
        episode = await world.episode(f"{at}", on(f"2024-0{at + 1}-01"), [LINES[at]])
        await resolve(world, episode, fact(("Ada", predicate, "tea"), f"passage-{at}-0", LINES[at]))
    (told,) = (await memory.ask("What about Ada and tea?")).facts
    assert told.statement.predicate.name == "craves"
    assert list(told.statement.episode_ids) == ["episode-0", "episode-1"]
    await world.resolver.revoke(
        world.scope, resolver_pb2.RevokeRequest(commit_id="d", episode_id="episode-1", actor="user")
    )
    (left,) = (await memory.ask("What about Ada and tea?")).facts
    assert list(left.statement.episode_ids) == ["episode-0"]
