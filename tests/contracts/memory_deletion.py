"""What every store of text must do on deletion, and with staged payloads. A store's test gives `memory`."""

import asyncio
from dataclasses import replace

from services.domain.ids import DocumentId, EpisodeId, PassageId
from services.stores.memory.sql import SqlMemory
from services.stores.paging import Page
from tests.contracts.memory_base import (
    DOCUMENT,
    NOW,
    SCOPE,
    episode,
    full_episode,
    passage,
    version,
    whole_passage,
)


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


class StagingContract:
    """Payloads between storing and resolving."""

    async def test_the_newer_payload_stands_until_it_is_unstaged(self, memory: SqlMemory) -> None:
        first, second = bytes(range(256)) * 4_000, b""
        assert await memory.staging.staged(SCOPE, EpisodeId("e")) is None
        await memory.staging.stage(SCOPE, EpisodeId("e"), first)
        assert await memory.staging.staged(SCOPE, EpisodeId("e")) == first
        await memory.staging.stage(SCOPE, EpisodeId("e"), second)
        assert await memory.staging.staged(SCOPE, EpisodeId("e")) == second
        for _ in range(2):
            await memory.staging.unstage(SCOPE, EpisodeId("e"))
            assert await memory.staging.staged(SCOPE, EpisodeId("e")) is None

    async def test_an_episode_that_is_there_can_be_staged(self, memory: SqlMemory) -> None:
        await memory.text.save(SCOPE, [episode("e")], [], None)
        await memory.staging.stage(SCOPE, EpisodeId("e"), b"payload")
        assert await memory.staging.staged(SCOPE, EpisodeId("e")) == b"payload"
