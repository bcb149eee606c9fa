"""What every store of text must do on deletion, and with staged payloads. A store's test gives `memory`."""

import asyncio
from dataclasses import replace

import pytest

from services.domain.ids import DocumentId, EpisodeId, PassageId
from services.domain.memory import Episode
from services.stores.errors import WriteConflict
from services.stores.memory.documents import TextGone
from services.stores.memory.sql import SqlMemory
from services.stores.paging import Page
from tests.contracts.memory_base import (
    DOCUMENT,
    NOW,
    SCOPE,
    TWINS,
    episode,
    full_episode,
    passage,
    version,
    whole_passage,
)

EVERY = [EpisodeId(f"e{number}") for number in (1, 2, 3)]


class DeletionContract:
    """What deleting an episode removes, and what can't bring it back."""

    async def test_a_deleted_episode_leaves_ids_and_dates_only(self, memory: SqlMemory) -> None:
        await memory.text.save(SCOPE, [full_episode(), episode("f")], [whole_passage("p", "e")], None)
        await memory.staging.stage(SCOPE, EpisodeId("e"), b"staged")
        assert await memory.text.delete_episode(SCOPE, EpisodeId("e"), NOW) is True
        assert await memory.text.episodes(SCOPE, [EpisodeId("e")]) == [
            replace(full_episode(), text="", heading=(), title="", source="", metadata=(), deleted_at=NOW)
        ]
        assert await memory.text.passages_of(SCOPE, EpisodeId("e")) == []
        assert await memory.text.passages(SCOPE, [PassageId("p")]) == []
        assert (await memory.text.scan_passages(SCOPE, Page())).items == []
        assert await memory.staging.staged(SCOPE, EpisodeId("e")) is None
        assert [one.id for one in (await memory.text.list_episodes(SCOPE, None, None, Page())).items] == ["f"]
        assert await memory.text.count_episodes(SCOPE) == 1

    async def test_deleting_twice_or_what_is_absent_says_so(self, memory: SqlMemory) -> None:
        await memory.text.save(SCOPE, [episode("e")], [], None)
        deleted = [await memory.text.delete_episode(SCOPE, EpisodeId("e"), NOW) for _ in range(2)]
        assert deleted == [True, False]
        assert await memory.text.delete_episode(SCOPE, EpisodeId("absent"), NOW) is False
        [found] = await memory.text.episodes(SCOPE, [EpisodeId("e")])
        assert found.deleted_at == NOW

    async def test_a_repeated_save_or_stage_brings_nothing_back(self, memory: SqlMemory) -> None:
        save = [episode("e")], [passage("p", "e")]
        await memory.text.save(SCOPE, *save, None)
        await memory.text.delete_episode(SCOPE, EpisodeId("e"), NOW)
        await memory.text.save(SCOPE, *save, None)
        await memory.staging.stage(SCOPE, EpisodeId("e"), b"again")
        [found] = await memory.text.episodes(SCOPE, [EpisodeId("e")])
        assert found.text == ""
        assert await memory.text.passages_of(SCOPE, EpisodeId("e")) == []
        assert await memory.staging.staged(SCOPE, EpisodeId("e")) is None

    async def test_a_save_at_the_same_time_brings_nothing_back(self, memory: SqlMemory) -> None:
        for turn in range(10):
            id = EpisodeId(f"e{turn}")
            await memory.text.save(SCOPE, [episode(id)], [], None)
            await asyncio.gather(
                memory.text.save(SCOPE, [episode(id)], [passage(f"p{turn}", id)], None),
                memory.text.delete_episode(SCOPE, id, NOW),
                memory.staging.stage(SCOPE, id, b"staged"),
            )
            assert await memory.text.passages_of(SCOPE, id) == []
            assert await memory.staging.staged(SCOPE, id) is None

    async def test_its_text_leaves_every_version_of_its_document(self, memory: SqlMemory) -> None:
        secret = "Maya's passport number is 4711, and she keeps it in the blue drawer."
        kept = "OK\n\nThe office opens at nine. OK is what she said."
        whole = f"{kept}\n\n{secret}\n\nOK"
        of_document = {"session": None, "document": DOCUMENT}
        for number in (1, 2):
            await memory.text.save(SCOPE, [], [], version(number, text=whole))
        episodes = [
            episode("kept", text=kept, version=1, **of_document),
            episode("secret", text=f"{secret}\n\nOK", version=1, **of_document),
        ]
        passages = [passage("p", "secret", text=secret), passage("q", "secret", 1, text="OK")]
        await memory.text.save(SCOPE, episodes, passages, None)
        await memory.text.save(SCOPE, [], [], version(1, document=DocumentId("another"), text=secret))
        await memory.text.delete_episode(SCOPE, EpisodeId("secret"), NOW)
        for number in (1, 2):
            found = await memory.text.version(SCOPE, DOCUMENT, number)
            assert found is not None
            assert "passport" not in found.text
            assert "The office opens at nine. OK is what she said." in found.text
            assert found.hash == f"hash-{number}"
        other = await memory.text.version(SCOPE, DocumentId("another"), 1)
        assert other is not None
        assert other.text == secret


class DocumentsContract:
    """Documents and sources as wholes."""

    async def test_a_source_lists_what_is_there(self, memory: SqlMemory) -> None:
        saved = [episode(f"e{number}", source="gossip") for number in range(3)]
        await memory.text.save(SCOPE, [*saved, episode("other", source="wiki")], [], None)
        assert [one.id for one in await memory.text.of_source(SCOPE, "gossip", 2)] == ["e0", "e1"]
        ids = [EpisodeId(id) for id in ("e0", "absent", "e1", "e0")]
        assert await memory.text.delete_episodes(SCOPE, ids, NOW) == TextGone(2, 0)
        assert await memory.text.delete_episodes(SCOPE, ids, NOW) == TextGone(0, 0)
        assert [one.id for one in await memory.text.of_source(SCOPE, "gossip", 9)] == ["e2"]
        for nobody in ("", "no such", "a\x00b"):
            assert await memory.text.of_source(SCOPE, nobody, 9) == []
        assert await memory.text.of_source(TWINS[0], "gossip", 9) == []

    async def test_versions_are_told_without_their_text(self, memory: SqlMemory) -> None:
        text = "Zürich 你好"
        for number in (1, 2):
            await memory.text.save(SCOPE, [], [], version(number, text=text * number, tokens=number))
        heads = await memory.text.version_heads(SCOPE, DOCUMENT)
        assert [(one.version, one.size, one.tokens) for one in heads] == [
            (2, len(text.encode()) * 2, 2),
            (1, len(text.encode()), 1),
        ]
        assert await memory.text.version_heads(TWINS[1], DOCUMENT) == []

    async def test_a_deleted_version_leaves_the_others_whole(self, memory: SqlMemory) -> None:
        await _three_versions(memory)
        kept = replace(await _read(memory, "e1"), id=EpisodeId("kept"), version=2, text="said 1")
        moved = passage("p1", "kept", text="said 1")
        gone = await memory.text.delete_versions(SCOPE, DOCUMENT, 1, EVERY, ([kept], [moved]), NOW)
        assert gone == TextGone(1, 1)
        assert await memory.text.passages(SCOPE, [PassageId("p1"), PassageId("q1")]) == [moved]
        assert [one.id for one in await memory.text.of_document(SCOPE, DOCUMENT, 2)] == ["e2", "kept"]
        assert (await _read(memory, "e1")).deleted_at == NOW
        assert [one.version for one in await memory.text.version_heads(SCOPE, DOCUMENT)] == [3, 2]
        second = await memory.text.version(SCOPE, DOCUMENT, 2)
        assert second is not None
        assert second.text == version(2).text
        assert await memory.text.last_version(SCOPE, DOCUMENT) == 3
        again = await memory.text.delete_versions(SCOPE, DOCUMENT, 1, EVERY, ([], []), NOW)
        assert again == TextGone(0, 0)
        assert [one.id for one in await memory.text.of_document(SCOPE, DOCUMENT, 1)] == ["e1"]

    async def test_nothing_is_kept_by_a_version_that_is_gone(self, memory: SqlMemory) -> None:
        await _three_versions(memory)
        await memory.text.delete_versions(SCOPE, DOCUMENT, 2, EVERY, ([], []), NOW)
        kept = replace(await _read(memory, "e1"), id=EpisodeId("kept"), version=2)
        with pytest.raises(WriteConflict):
            await memory.text.delete_versions(
                SCOPE, DOCUMENT, 1, EVERY, ([kept], [passage("p1", "kept", text="said 1")]), NOW
            )
        assert len(await memory.text.passages_of(SCOPE, EpisodeId("e1"))) == 2

    @pytest.mark.parametrize("version", [2, None])
    async def test_nothing_goes_that_who_deletes_has_not_seen(
        self, memory: SqlMemory, version: int | None
    ) -> None:
        await _three_versions(memory)
        late = replace(await _read(memory, "e1"), id=EpisodeId("late"), version=2)
        await memory.text.save(SCOPE, [late], [], None)
        with pytest.raises(WriteConflict):
            await memory.text.delete_versions(SCOPE, DOCUMENT, version, EVERY, ([], []), NOW)
        left = await memory.text.of_document(SCOPE, DOCUMENT)
        assert [one.deleted_at for one in left] == [None] * 4
        assert len(await memory.text.version_heads(SCOPE, DOCUMENT)) == 3

    async def test_a_deleted_document_leaves_ids_and_no_text(self, memory: SqlMemory) -> None:
        await _three_versions(memory)
        assert await memory.text.delete_versions(SCOPE, DOCUMENT, None, EVERY, ([], []), NOW) == TextGone(
            3, 6
        )
        assert await memory.text.latest_version(SCOPE, DOCUMENT) is None
        left = await memory.text.of_document(SCOPE, DOCUMENT)
        assert [(one.id, one.text, one.deleted_at) for one in left] == [
            (f"e{number}", "", NOW) for number in (1, 2, 3)
        ]
        assert await memory.text.last_version(SCOPE, DOCUMENT) == 3, "no number is given twice"
        assert await memory.text.last_version(SCOPE, DocumentId("other")) == 0


async def _three_versions(memory: SqlMemory) -> None:
    for number in (1, 2, 3):
        one = episode(f"e{number}", session=None, document=DOCUMENT, version=number)
        lines = [passage(f"{name}{number}", one.id, at) for at, name in enumerate("pq")]
        await memory.text.save(SCOPE, [one], lines, version(number))


async def _read(memory: SqlMemory, id: str) -> Episode:
    [found] = await memory.text.episodes(SCOPE, [EpisodeId(id)])
    return found


class StagingContract:
    """Payloads between storing and resolving."""

    async def test_the_newer_payload_stands_until_it_is_unstaged(self, memory: SqlMemory) -> None:
        first, second = bytes(range(256)) * 4_000, b"less"
        assert await memory.staging.staged(SCOPE, EpisodeId("e")) is None
        await memory.staging.stage(SCOPE, EpisodeId("e"), first)
        assert await memory.staging.staged(SCOPE, EpisodeId("e")) == first
        await memory.staging.stage(SCOPE, EpisodeId("e"), second)
        assert await memory.staging.staged(SCOPE, EpisodeId("e")) == second
        for _ in range(2):
            await memory.staging.unstage(SCOPE, EpisodeId("e"))
            assert await memory.staging.staged(SCOPE, EpisodeId("e")) is None

    async def test_what_is_closed_is_gone_and_is_never_staged_again(self, memory: SqlMemory) -> None:
        await memory.text.save(SCOPE, [episode("e")], [passage("p", "e", hash="one")], None)
        await memory.staging.stage(SCOPE, EpisodeId("e"), b"facts")
        for _ in range(2):
            await memory.staging.close(SCOPE, EpisodeId("e"))
            assert await memory.staging.staged(SCOPE, EpisodeId("e")) is None
            await memory.staging.stage(SCOPE, EpisodeId("e"), b"of a run that comes late")
        assert await memory.staging.staged(SCOPE, EpisodeId("e")) is None
        await memory.text.mark_unlearned(SCOPE, EpisodeId("e"), NOW)
        (known,) = await memory.text.episodes(SCOPE, [EpisodeId("e")])
        assert known.unlearned_at is None, "it was understood"

    async def test_an_episode_that_is_there_can_be_staged(self, memory: SqlMemory) -> None:
        await memory.text.save(SCOPE, [episode("e")], [], None)
        await memory.staging.stage(SCOPE, EpisodeId("e"), b"payload")
        assert await memory.staging.staged(SCOPE, EpisodeId("e")) == b"payload"
