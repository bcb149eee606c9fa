"""Upkeep over a world's stores: a graph with something of everything, ways to verify and to harm it."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.ids import Revision
from services.domain.memory import Episode
from services.domain.scope import Scope
from services.domain.voice import held
from services.llm.tasks import VoiceVerdict
from services.preprocessor.index import PassageIndex
from services.stores.graph.port import AsOf, StatementFilter
from services.stores.paging import Page
from services.upkeep.differences import Difference, Report
from services.upkeep.parts import Stores, pages
from services.upkeep.verify import Patience, Verifier
from tests.builders import on
from tests.integration.resolving import World, said
from tests.integration.test_resolver import CLAIM, END, fact, resolve, voice

AT_ONCE = Patience(settled_seconds=60, pause_seconds=0, tries=3)


def stores_of(world: World) -> Stores:
    memory = world.memory
    return Stores(
        graph=world.graph,
        text=memory.text,
        voice=memory.voice,
        revisions=memory.revisions,
        decisions=memory.decisions,
        readings=memory.readings,
        archive=memory.archive,
        summaries=memory.summaries,
        snapshots=memory.snapshots,
        vectors=world.vectors,
        embedder=world.parts.embedder,
        now=world.clock,
    )


def verifier(world: World, patience: Patience = AT_ONCE) -> Verifier:
    return Verifier(stores_of(world), world.parts.vocabulary, world.resolver.mending, patience)


async def verify(world: World, repair: bool = False) -> Report:
    return await verifier(world).verify(world.scope, repair)


def told(differences: Sequence[Difference]) -> list[str]:
    return sorted(f"{one.kind}: {one.done}" for one in differences)


async def episode(world: World, name: str, day: str, *lines: str) -> Episode:
    """Saves an episode with its passages and their vectors."""
    kept = await world.episode(name, on(day), lines or (f"said in {name}",))
    passages = await world.memory.text.passages_of(world.scope, kept.id)
    await PassageIndex(world.vectors, world.parts.embedder).add(world.scope, [kept], passages)
    return kept


async def a_story(world: World) -> None:
    """Facts that replace each other, one that ended, one that was deleted, voice, and text without facts."""
    one = await episode(world, "one", "2020-01-01", "Ivo lives in Graz.", "I prefer short answers.")
    await resolve(
        world,
        one,
        fact(("Ivo", "lives_in", "Graz"), "passage-one-0", "Ivo lives in Graz."),
        fact(("Ivo", "likes", "tea"), "passage-one-0", "Ivo lives in Graz."),
        voice("I prefer short answers.", "passage-one-1"),
    )
    two = await episode(world, "two", "2023-01-01", "He moved to Linz.", "Long answers, please.")
    world.engine.judge_of_voice = lambda task: [VoiceVerdict(0, 0, False)]
    await resolve(
        world,
        two,
        fact(("Ivo", "lives_in", "Linz"), "passage-two-0", "He moved to Linz."),
        voice("Long answers, please.", "passage-two-1"),
    )
    three = await episode(world, "three", "2024-01-01", "Ivo knows Mara. He gave up tea.")
    known = said(CLAIM, ("Ivo", "knows", "Mara"), on("2024-01-01"), three, start=on("2021-01-01"))
    over = said(END, ("Ivo", "likes", "tea"), on("2024-01-01"), three, end=on("2023-06-01"))
    await world.tell("three", known, over)
    four = await episode(world, "four", "2025-01-01", "Ivo knows Gus.")
    await world.tell("four", said(CLAIM, ("Ivo", "knows", "Gus"), on("2025-01-01"), four))
    await episode(world, "five", "2025-02-01", "Nothing to remember.")
    await delete(world, four)


async def delete(world: World, gone: Episode, name: str = "delete") -> None:
    passages = await world.memory.text.passages_of(world.scope, gone.id)
    await PassageIndex(world.vectors, world.parts.embedder).remove(world.scope, passages)
    await world.memory.text.delete_episode(world.scope, gone.id, world.clock())
    await world.resolver.revoke(world.scope, pb.RevokeRequest(commit_id=name, episode_id=gone.id))


def harm(file: Path, statement: str, *values: object) -> None:
    """Runs one statement on a SQLite file, its foreign keys unheeded; it must change something."""
    connection = sqlite3.connect(file)
    try:
        with connection:
            changed = connection.execute(statement, values).rowcount
        assert changed > 0, f"nothing was harmed by {statement}"
    finally:
        connection.close()


async def answers(stores: Stores, scope: Scope) -> list[object]:
    """What every published revision believed, and all text: what two sets of stores must have alike."""
    told: list[object] = []
    for revision in range(await stores.revisions.current(scope) + 1):
        at, where = AsOf(Revision(revision)), StatementFilter(include_ended=True)
        views = (await stores.graph.list_statements(scope, where, at, Page(1000))).items
        told += [replace(view, spans=tuple(view.spans), episodes=tuple(view.episodes)) for view in views]
        told += await stores.graph.aliases(scope, at.known_at)
        told += [await stores.graph.counts(scope, at.known_at)]
        aspects = await stores.voice.list_aspects(scope, [], at.known_at, Page(1000))
        told += [(aspect, held(aspect, at.known_at)) for aspect in aspects.items]
    async for merges in pages(lambda page: stores.readings.list_merges(scope, page)):
        told += merges
    told += await stores.readings.declared(scope)
    async for episodes in pages(lambda page: stores.text.scan_episodes(scope, page)):
        told += episodes
    async for passages in pages(lambda page: stores.text.scan_passages(scope, page)):
        told += passages
    async for versions in pages(lambda page: stores.text.scan_versions(scope, page)):
        told += versions
    async for decisions in pages(lambda page: stores.decisions.list_decisions(scope, None, page)):
        told += decisions
    async for entries in pages(lambda page: stores.revisions.scan(scope, page)):
        told += [entry for entry in entries if entry.published]
    return told


def memory_files(folder: Path) -> tuple[Path, Path]:
    return folder / "graph.db", folder / "memory.db"
