"""Laws of upkeep: a healthy graph has no differences, whatever was told, read anew, deleted, told again."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.domain.memory import VoiceKind
from services.llm.tasks import JudgeVoice, VoiceVerdict
from services.stores.paging import Page
from services.stores.vectors.lite import LiteServer
from services.stores.vectors.milvus import MilvusOptions, MilvusVectorStore
from services.stores.vectors.port import Collection
from services.upkeep.differences import Kind
from services.upkeep.verify import Verifier
from tests.builders import a_scope, on
from tests.examples import one_in
from tests.integration.resolving import World, a_world
from tests.integration.test_resolver import END, fact, resolve, voice
from tests.integration.test_resolver_laws import Telling, judged, tellings
from tests.integration.test_resolver_rereading import read_anew
from tests.integration.upkeeping import AT_ONCE, a_story, delete, episode, stores_of, told, verify

_graphs = count()
_ALL = Page(1000)

SENTENCES = ("I prefer tea.", "I prefer rum.", "Answer briefly.")


@dataclass(frozen=True)
class Saying:
    """A telling with a sentence of the user's voice; once it is told, the episode before is read `anew`, or
    `deletes` deletes it, or both."""

    telling: Telling
    sentence: str | None
    deletes: bool
    anew: Telling | None = None


sayings = st.builds(
    Saying,
    telling=tellings,
    sentence=st.none() | st.sampled_from(SENTENCES),
    deletes=st.booleans(),
    anew=st.none() | tellings,
)


def judged_voice(task: JudgeVoice) -> list[VoiceVerdict]:
    """Other sentences of the same kind replace what was said before."""
    return [VoiceVerdict(pair.new, pair.candidate, False) for pair in task.pairs]


async def generated(world: World, said: list[Saying]) -> World:
    """A graph of its own in which all of this was told."""
    made = replace(world, scope=a_scope(f"generated {next(_graphs)}"))
    made.engine.judge, made.engine.judge_of_voice = judged, judged_voice
    before = None
    for at, one in enumerate(said):
        kept = await episode(made, str(at), f"{one.telling.said}-06-01", "as it was said", "and how")
        first = fact(("Fay", one.telling.predicate, one.telling.target), f"passage-{at}-0", "as it was said")
        if one.telling.ends:
            first.kind = END
            first.end.at = on(f"{one.telling.said}-03-01")
        elif one.telling.start is not None:
            first.start.at = on(f"{one.telling.start}-01-01")
        spoken = [voice(one.sentence, f"passage-{at}-1", VoiceKind.PREFERENCE)] if one.sentence else []
        await resolve(made, kept, first, *spoken)
        if one.anew is not None and before is not None:
            mine = f"passage-{at - 1}"
            again = [voice(one.sentence, f"{mine}-1", VoiceKind.PREFERENCE)] if one.sentence else []
            await read_anew(made, before, one.anew.fact(f"{mine}-0"), *again, commit=f"anew {at}")
        if one.deletes and before is not None:
            await delete(made, before, f"delete {at}")
        before = kept
    return made


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=one_in(25), deadline=None)
@given(said=st.lists(sayings, min_size=1, max_size=6))
async def test_a_healthy_graph_has_no_differences(world: World, said: list[Saying]) -> None:
    report = await verify(await generated(world, said))
    assert report.differences == ()
    assert report.looked_at >= len(said)


@pytest.mark.milvus
async def test_vectors_of_milvus_lite_are_verified_and_mended(
    tmp_path: Path, milvus_lite: LiteServer
) -> None:
    async with a_world(tmp_path) as world:
        embedder = world.parts.embedder
        options = MilvusOptions(milvus_lite.uri, embedder.name, embedder.dimension, prefix="upkeep")
        vectors = MilvusVectorStore(options)
        try:
            await a_story(world)
            # The same rows, on the real server.
            for collection in Collection:
                ids = list((await world.vectors.scan(world.scope, collection, _ALL)).items)
                rows = await world.vectors.fetch(world.scope, collection, ids)
                await vectors.upsert(world.scope, collection, list(rows.values()))
            stores = replace(stores_of(world), vectors=vectors)
            verifier = Verifier(stores, world.parts.vocabulary, world.resolver.mending, AT_ONCE)
            assert (await verifier.verify(world.scope)).differences == ()
            [one, *_] = (await vectors.scan(world.scope, Collection.STATEMENTS, _ALL)).items
            row = (await vectors.fetch(world.scope, Collection.STATEMENTS, [one]))[one]
            left = replace(row, id="left-behind")
            await vectors.upsert(world.scope, Collection.STATEMENTS, [left, replace(row, subject="x")])
            mended = await verifier.verify(world.scope, repair=True)
            assert {found.kind for found in mended.differences} == {
                Kind.VECTOR_WITHOUT_STATEMENT,
                Kind.VECTOR_DIFFERS,
            }
            assert told((await verifier.verify(world.scope)).differences) == []
        finally:
            await vectors.erase(world.scope)
            await vectors.close()
