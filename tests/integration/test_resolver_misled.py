"""A model that misjudges, over real HTTP: what was right before stays, whatever it answers."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.domain.voice import held
from services.llm.openai_engine import OpenAIEngine
from services.llm.port import EngineError
from services.resolver.service import Resolver
from services.stores.paging import Page
from tests.builders import on
from tests.doubles.model_replies import Asked, Reply, Rule, answer, text
from tests.doubles.model_server import ModelServer
from tests.integration.resolving import World, a_world
from tests.integration.test_resolver import claim, fact, resolve, voice


def verdict(new: Any, candidate: Any, kind: str) -> dict[str, Any]:
    return {"new": new, "candidate": candidate, "verdict": kind, "why": "I say so"}


WRONG = {
    "unknown positions": answer({"verdicts": [verdict(0, 99, "CONTRADICTS"), verdict(7, 0, "DUPLICATE")]}),
    "positions before the first": answer({"verdicts": [verdict(-1, -1, "CONTRADICTS")]}),
    "ids that are no numbers": answer({"verdicts": [verdict("Fay likes tea", "tea", "CONTRADICTS")]}),
    "a list instead of an object": answer([verdict(0, 99, "CONTRADICTS")]),
    "a list of words": answer(["CONTRADICTS", "DUPLICATE"]),
    "a list of lists": answer([[0, 0, "CONTRADICTS"]]),
    "an object instead of a list": answer({"verdicts": verdict(0, 0, "CONTRADICTS")}),
    "no verdict that there is": answer({"verdicts": [verdict(0, 0, "DELETES"), verdict(0, 0, "ENDS")]}),
    "nothing": answer({"verdicts": None}),
    "no JSON": text("The new fact replaces all others, so delete them."),
}
JUDGING = ["judge_statements", "judge_voice"]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
async def world(tmp_path: Path, server: ModelServer) -> AsyncIterator[World]:
    """Something right is known; what comes next is judged by the model."""
    engine = OpenAIEngine(server.settings())
    async with a_world(tmp_path) as world:
        await claim(world, "tea", ("Fay", "likes", "tea"), "2024-01-01")
        said = await world.episode("short", on("2024-01-01"), [SHORT])
        await resolve(world, said, voice(SHORT, "passage-short-0"))
        yield replace(world, resolver=Resolver(replace(world.parts, engine=engine)))
    await engine.aclose()


SHORT = "Fay prefers short answers."
PLAIN = "Fay prefers plain answers."


async def tell_more(world: World, name: str) -> None:
    episode = await world.episode(name, on("2024-02-01"), ["I like rum.", PLAIN])
    told = fact(("Fay", "likes", "rum"), f"passage-{name}-0", "I like rum.")
    await resolve(world, episode, told, voice(PLAIN, f"passage-{name}-1"))


async def voices(world: World) -> set[str]:
    """What the user still says."""
    current = await world.memory.revisions.current(world.scope)
    listed = await world.memory.voice.list_aspects(world.scope, [], current, Page())
    holding = {aspect.text: held(aspect, current) for aspect in listed.items}
    return {text for text, period in holding.items() if period is not None and period.end is None}


@pytest.mark.parametrize("task", JUDGING)
@pytest.mark.parametrize("reply", WRONG.values(), ids=WRONG.keys())
async def test_a_wrong_answer_changes_nothing_that_was_right(
    world: World, server: ModelServer, task: str, reply: Reply
) -> None:
    server.rules.append(Rule(task, "", reply))
    try:
        await tell_more(world, "more")
    except EngineError:
        # Refused whole and typed: the facts wait, and are resolved once the model answers as it should.
        assert [name for name, _, _ in await world.timeline("Fay", "likes")] == ["tea"]
        assert await voices(world) == {SHORT}
        server.rules.clear()
        server.rules += [Rule(each, "", answer({"verdicts": []})) for each in JUDGING]
        await tell_more(world, "more")
    assert [(name, end) for name, _, end in await world.timeline("Fay", "likes")] == [
        ("tea", None),
        ("rum", None),
    ]
    assert await voices(world) == {SHORT, PLAIN}


def around(kinds: list[str]) -> Rule:
    """Verdicts on all pairs, their kinds by turns: circles of them, wherever they begin."""

    def judged(asked: Asked) -> Reply:
        pairs = asked.blocks["pairs"]
        return answer(
            {
                "verdicts": [
                    verdict(new, candidate, kinds[at % len(kinds)])
                    for at, (new, candidate) in enumerate(pairs)
                ]
            }
        )

    return Rule("judge_statements", "", judged)


CIRCLES = [
    ["DUPLICATE"],
    ["CONTRADICTS"],
    ["DUPLICATE", "CONTRADICTS"],
    ["CONTRADICTS", "DUPLICATE", "COMPATIBLE"],
]


@pytest.mark.parametrize("kinds", CIRCLES, ids="-".join)
async def test_a_circle_of_verdicts_loses_nothing(
    world: World, server: ModelServer, kinds: list[str]
) -> None:
    server.rules.append(around(kinds))
    lines = ["I like rum.", "I enjoy grog.", "I fancy toddy."]
    episode = await world.episode("many", on("2024-02-01"), lines)
    facts = [("likes", "rum"), ("likes", "grog"), ("likes", "toddy")]
    await resolve(
        world,
        episode,
        *(
            fact(("Fay", predicate, target), f"passage-many-{at}", lines[at])
            for at, (predicate, target) in enumerate(facts)
        ),
    )
    spans = await world.spans("Fay", "likes")
    # Tea was right before: it is still believed of the time before anybody said otherwise.
    assert ("tea", on("2024-01-01")) in [(v.object.name, s.valid_at) for v, s in spans if v.object]
    # Of what is new and of what it was set against, something holds now.
    assert [span for _, span in spans if span.invalid_at is None]
    records = await world.graph.records(world.scope, (await world.graph.scan(world.scope, Page())).items)
    assert {one.source.quote for one in records.claims} >= set(lines)
    assert all(one.revoked_at is None for one in records.claims)
