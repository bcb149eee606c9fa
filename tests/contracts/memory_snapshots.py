"""What every store promises of snapshots: kept whole, and gone with any text. Gives `memory` and `url`."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from sqlalchemy import select

from services.domain.ids import EpisodeId, JobId, PassageId, Revision, StatementId, VoiceId
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.memory.archive import Moved
from services.stores.memory.fences import Purged, Rewritten
from services.stores.memory.port import VoiceForgetting
from services.stores.memory.snapshots import Mark, Snapshot, SnapshotKind
from services.stores.memory.sql import SqlMemory, schema
from services.stores.sql.database import Database
from services.stores.sql.engine import engine_for
from tests.contracts.memory_base import (
    DOCUMENT,
    NOW,
    SCOPE,
    TWINS,
    aspect,
    claim,
    episode,
    passage,
    version,
)

FACTS, TEXTS = SnapshotKind.FACTS, SnapshotKind.TEXTS
MEGABYTE = 1024 * 1024
WORDS = b"words of Maya"


def taken(*parts: bytes, layout: str = "1", at: int = 5) -> Snapshot:
    return Snapshot(layout, Instant(at), list(parts))


async def keep(memory: SqlMemory, *parts: bytes, scope: Scope = SCOPE, kind: SnapshotKind = TEXTS) -> Mark:
    mark = await memory.snapshots.mark(scope)
    assert await memory.snapshots.keep(scope, kind, mark, taken(*parts))
    return mark


async def parts_of(memory: SqlMemory, scope: Scope = SCOPE, kind: SnapshotKind = TEXTS) -> list[bytes] | None:
    kept = await memory.snapshots.kept(scope, kind, "1")
    taken_at = await memory.snapshots.taken_at(scope, kind, "1")
    assert taken_at == (None if kept is None else kept.taken_at)
    return None if kept is None else list(kept.parts)


async def payloads(url: str, scope: Scope = SCOPE) -> list[bytes]:
    """Of all parts that are there, whoever's they are."""
    engine = engine_for(url)
    try:
        async with Database(engine, "test").read(scope) as connection:
            parts = schema.snapshot_parts.c
            query = select(parts.payload).where(parts.scope == scope.key).order_by(parts.number)
            return [bytes(payload) for payload in await connection.scalars(query)]
    finally:
        await engine.dispose()


async def begin(memory: SqlMemory) -> Revision:
    begun = await memory.revisions.begin(SCOPE, Revision(0), "c", Instant(1), b"payload", "{}")
    return begun.revision


async def publish(memory: SqlMemory) -> None:
    assert await memory.revisions.publish(SCOPE, await begin(memory), forgets=True)


async def publish_late(memory: SqlMemory) -> None:
    revision = await begin(memory)
    await memory.revisions.publish(SCOPE, revision)
    assert not await memory.revisions.publish(SCOPE, revision, forgets=True)


async def delete_versions(memory: SqlMemory) -> None:
    await memory.text.delete_versions(SCOPE, DOCUMENT, 1, [EpisodeId("told")], ([], []), NOW)


Does = Callable[[SqlMemory], Awaitable[object]]

FORGETS: dict[str, Does] = {
    "delete_episode": lambda memory: memory.text.delete_episode(SCOPE, EpisodeId("e"), NOW),
    "delete_episodes": lambda memory: memory.text.delete_episodes(SCOPE, [EpisodeId("e")], NOW),
    "delete_versions": delete_versions,
    "rewrite": lambda memory: memory.rewrite(SCOPE, Rewritten([], [], [PassageId("p")])),
    "purge": lambda memory: memory.purge(SCOPE, Purged(voice=[VoiceId("v")])),
    "words of the voice": lambda memory: memory.voice.forget_text(
        SCOPE, VoiceForgetting(Revision(2), [VoiceId("v")])
    ),
    "publish": publish,
    "publish what another had published": publish_late,
    "put_up": lambda memory: memory.fences.put_up(SCOPE),
    "renew": lambda memory: memory.fences.renew(SCOPE),
    "drop": lambda memory: memory.snapshots.drop(SCOPE),
    "erase": lambda memory: memory.erase(SCOPE),
}


async def archive(memory: SqlMemory) -> None:
    await memory.archive.apply(SCOPE, [Moved(StatementId("s"), archived_at=Revision(1))])


async def publish_more(memory: SqlMemory) -> None:
    assert await memory.revisions.publish(SCOPE, await begin(memory))


KEEPS: dict[str, Does] = {
    "save": lambda memory: memory.text.save(SCOPE, [episode("f")], [passage("q", "f")], None),
    "publish": publish_more,
    "voice": lambda memory: memory.voice.apply(SCOPE, Revision(2), [aspect("w")], [claim("d", "w")], [], []),
    "archive": archive,
    "stage": lambda memory: memory.staging.stage(SCOPE, EpisodeId("e"), b"x"),
    "mark_unlearned": lambda memory: memory.text.mark_unlearned(SCOPE, EpisodeId("e"), NOW),
    "mark_learned": lambda memory: memory.text.mark_learned(SCOPE, EpisodeId("e")),
    "delete what is not there": lambda memory: memory.text.delete_episode(SCOPE, EpisodeId("none"), NOW),
    "a twin's deletion": lambda memory: memory.text.delete_episode(TWINS[0], EpisodeId("e"), NOW),
    "a twin's fence": lambda memory: memory.fences.put_up(TWINS[0]),
}


async def fill(memory: SqlMemory) -> None:
    """Something of all that can go, in two graphs."""
    for scope in (SCOPE, TWINS[0]):
        told = episode("told", session=None, document=DOCUMENT, version=1)
        await memory.text.save(scope, [episode("e"), told], [passage("p", "e")], version(1))
        await memory.voice.apply(scope, Revision(1), [aspect("v")], [claim("c", "v")], [], [])


@dataclass
class Race:
    """Keepers and droppers of one graph: what a keeper read is the count of drops that it saw."""

    memory: SqlMemory
    chance: random.Random

    async def keep(self) -> None:
        mark = await self.memory.snapshots.mark(SCOPE)
        await asyncio.sleep(self.chance.random() / 100)
        read = str(mark.dropped).encode()
        await self.memory.snapshots.keep(SCOPE, self.chance.choice([FACTS, TEXTS]), mark, taken(read, read))

    async def drop(self) -> None:
        await asyncio.sleep(self.chance.random() / 100)
        await self.memory.snapshots.drop(SCOPE)

    async def delete(self, id: str) -> None:
        await asyncio.sleep(self.chance.random() / 100)
        await self.memory.text.delete_episode(SCOPE, EpisodeId(id), NOW)


class SnapshotsContract:
    """What is kept, and when it goes."""

    async def test_what_is_kept_comes_back_whole_and_in_order(self, memory: SqlMemory, url: str) -> None:
        assert await parts_of(memory) is None
        assert await memory.snapshots.mark(SCOPE) == Mark(0, 0)
        parts = [f"part {number}".encode() for number in range(12)]
        mark = await keep(memory, *parts)
        assert await memory.snapshots.mark(SCOPE) == mark, "keeping voids nothing"
        assert await memory.snapshots.kept(SCOPE, TEXTS, "1") == taken(*parts)
        assert await memory.snapshots.kept(SCOPE, TEXTS, "2") is None, "of another layout"
        again = taken(b"\x00\xff", b"", layout="2", at=9)
        assert await memory.snapshots.keep(SCOPE, TEXTS, mark, again)
        assert await memory.snapshots.kept(SCOPE, TEXTS, "2") == again
        assert await memory.snapshots.taken_at(SCOPE, TEXTS, "2") == 9
        assert await parts_of(memory) is None, "there is one of a kind"
        assert await payloads(url) == [b"\x00\xff", b""]

    async def test_kinds_and_twins_are_apart(self, memory: SqlMemory) -> None:
        for kind in SnapshotKind:
            for scope in (SCOPE, *TWINS):
                await keep(memory, f"{kind} of {scope.key}".encode(), scope=scope, kind=kind)
        await keep(memory, b"anew", kind=FACTS)
        await memory.snapshots.drop(TWINS[0])
        for kind in SnapshotKind:
            mine = b"anew" if kind is FACTS else f"{kind} of {SCOPE.key}".encode()
            assert await parts_of(memory, kind=kind) == [mine]
            assert await parts_of(memory, TWINS[0], kind) is None
            assert await parts_of(memory, TWINS[1], kind) == [f"{kind} of {TWINS[1].key}".encode()]

    async def test_nothing_and_megabytes_are_kept_alike(self, memory: SqlMemory, url: str) -> None:
        await keep(memory)
        assert await parts_of(memory) == []
        parts = [random.Random(number).randbytes(3 * MEGABYTE + number) for number in range(3)]
        await keep(memory, *parts, b"")
        assert await parts_of(memory) == [*parts, b""]
        await keep(memory)
        assert await parts_of(memory) == []
        assert await payloads(url) == []

    @pytest.mark.parametrize("does", FORGETS.values(), ids=FORGETS)
    async def test_what_is_kept_goes_with_the_text(self, memory: SqlMemory, url: str, does: Does) -> None:
        await fill(memory)
        for kind in SnapshotKind:
            await keep(memory, WORDS, WORDS, kind=kind)
        await keep(memory, WORDS, scope=TWINS[0])
        mark = await memory.snapshots.mark(SCOPE)
        await does(memory)
        assert [await parts_of(memory, kind=kind) for kind in SnapshotKind] == [None] * len(SnapshotKind)
        assert "snapshots" not in await memory.rows(SCOPE)
        assert await payloads(url) == []
        assert await memory.snapshots.mark(SCOPE) != mark
        assert not await memory.snapshots.keep(SCOPE, TEXTS, mark, taken(WORDS)), "the mark is over"
        assert await payloads(url) == []
        assert await parts_of(memory, TWINS[0]) == [WORDS]

    @pytest.mark.parametrize("does", KEEPS.values(), ids=KEEPS)
    async def test_what_forgets_nothing_leaves_what_is_kept(self, memory: SqlMemory, does: Does) -> None:
        await fill(memory)
        mark = await keep(memory, WORDS)
        await does(memory)
        assert await parts_of(memory) == [WORDS]
        assert await memory.snapshots.keep(SCOPE, TEXTS, mark, taken(b"other"))

    async def test_nothing_is_kept_of_a_graph_that_is_being_erased(self, memory: SqlMemory, url: str) -> None:
        before = await memory.snapshots.mark(SCOPE)
        await memory.fences.put_up(SCOPE)
        during = await memory.snapshots.mark(SCOPE)
        for mark in (before, during):
            assert not await memory.snapshots.keep(SCOPE, TEXTS, mark, taken(WORDS))
        await memory.fences.take_down(SCOPE)
        for mark in (before, during):
            assert not await memory.snapshots.keep(SCOPE, TEXTS, mark, taken(WORDS))
        assert await payloads(url) == []
        await keep(memory, WORDS)
        assert await parts_of(memory) == [WORDS]

    async def test_a_mark_of_before_an_erasure_never_comes_true_again(self, memory: SqlMemory) -> None:
        """Also where memory is erased without a fence: as what a late writer has left, or an import."""
        await memory.snapshots.drop(SCOPE)
        mark = await memory.snapshots.mark(SCOPE)
        await memory.erase(SCOPE)
        assert await memory.rows(SCOPE) == {}
        for _ in range(3):
            assert not await memory.snapshots.keep(SCOPE, TEXTS, mark, taken(WORDS))
            await memory.snapshots.drop(SCOPE)

    async def test_a_mark_that_is_over_changes_nothing_of_what_is_there(
        self, memory: SqlMemory, url: str
    ) -> None:
        old = await memory.snapshots.mark(SCOPE)
        await memory.snapshots.drop(SCOPE)
        mark = await keep(memory, b"newer")
        ahead = (Mark(mark.generation, mark.dropped + 1), Mark(mark.generation + 2, mark.dropped))
        for over in (old, *ahead):
            assert not await memory.snapshots.keep(SCOPE, TEXTS, over, taken(WORDS, WORDS))
        assert await parts_of(memory) == await payloads(url) == [b"newer"]

    async def test_a_snapshot_counts_once_among_the_rows(self, memory: SqlMemory) -> None:
        await keep(memory, *[b"x"] * 9)
        await keep(memory, kind=FACTS)
        await memory.text.save(SCOPE, [episode("e")], [], None)
        assert await memory.rows(SCOPE) == {"episodes": 1, "snapshots": 2, "text_changes": 1}
        await memory.snapshots.drop(SCOPE)
        assert await memory.rows(SCOPE) == {"episodes": 1, "text_changes": 1}

    @pytest.mark.parametrize("seed", range(6))
    async def test_whoever_keeps_and_drops_at_once_leaves_no_mark_that_is_over(
        self, memory: SqlMemory, url: str, seed: int
    ) -> None:
        race = Race(memory, random.Random(seed))
        ids = [f"e{number}" for number in range(4)]
        await memory.text.save(SCOPE, [episode(id, job=JobId(id)) for id in ids], [], None)
        at_once = [
            *(race.keep() for _ in range(8)),
            *(race.drop() for _ in range(4)),
            *(race.delete(id) for id in ids),
        ]
        race.chance.shuffle(at_once)
        await asyncio.gather(*at_once)
        now = str((await memory.snapshots.mark(SCOPE)).dropped).encode()
        assert now == b"8"
        kept = [await parts_of(memory, kind=kind) for kind in (FACTS, TEXTS)]
        assert all(parts in (None, [now, now]) for parts in kept)
        assert len(await payloads(url)) == 2 * (len(kept) - kept.count(None)), "and no parts of nobody"

    async def test_who_reads_while_another_keeps_sees_one_of_them(self, memory: SqlMemory, url: str) -> None:
        mark = await keep(memory, *[b"0"] * 20)

        async def keeping(number: int) -> None:
            parts = [str(number).encode()] * (20 + number)
            assert await memory.snapshots.keep(SCOPE, TEXTS, mark, taken(*parts))

        async def reading() -> None:
            for _ in range(5):
                parts = await parts_of(memory)
                assert parts is not None
                assert parts == [parts[0]] * (20 + int(parts[0]))

        numbers = range(1, 9)
        await asyncio.gather(*map(keeping, numbers), *(reading() for _ in numbers))
        assert await payloads(url) == await parts_of(memory)
