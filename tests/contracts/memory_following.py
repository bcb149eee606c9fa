"""What every store of text tells whoever keeps it in memory. A store's test gives the fixture `memory`."""

import asyncio
from dataclasses import replace

from services.domain.ids import EpisodeId, PassageId
from services.domain.memory import Episode
from services.stores.memory.fences import Rewritten
from services.stores.memory.following import passage_of, plain_passage, said_of
from services.stores.memory.sql import SqlMemory
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


class FollowingContract:
    """That texts changed, and what came."""

    async def test_who_follows_texts_reads_passages_with_what_is_told_of_their_episodes(
        self, memory: SqlMemory
    ) -> None:
        whole, first = full_episode(), whole_passage("p", "e")
        plain, second = episode("f"), passage("q", "f")
        await memory.text.save(SCOPE, [whole, plain, episode("bare")], [first, second], version(1))
        await memory.text.save(SCOPE, [episode("gone")], [passage("r", "gone")], None)
        await memory.text.save(TWINS[0], [episode("f")], [passage("twin", "f")], None)
        await memory.text.delete_episode(SCOPE, EpisodeId("gone"), NOW)
        assert await memory.text.kept(SCOPE) == ["bare", "e", "f"]
        asked = [EpisodeId(id) for id in ("f", "gone", "bare", "none", "e")]
        read = await memory.text.passages_in(SCOPE, asked)
        assert read == [
            (plain_passage(second), said_of(second, plain)),
            (plain_passage(first), said_of(first, whole)),
        ]
        assert [passage_of(one) for one, _ in read] == [second, first]
        assert [said.at for _, said in read] == [plain.reference_time, first.said_at]

    async def test_every_change_of_texts_is_told(self, memory: SqlMemory) -> None:
        async def told() -> int:
            return (await memory.revisions.head(SCOPE)).texts

        def of(number: int) -> Episode:
            return episode(f"e{number}", session=None, document=DOCUMENT, version=number)

        seen = [await told()]
        for number in (1, 2):
            said = passage(f"p{number}", f"e{number}")
            await memory.text.save(SCOPE, [of(number)], [said], version(number))
            seen.append(await told())
        await memory.text.save(SCOPE, [episode("bare")], [], None)
        seen.append(await told())
        kept = replace(of(2), id=EpisodeId("kept"))
        moving = ([kept], [passage("p1", "kept")])
        await memory.text.delete_versions(SCOPE, DOCUMENT, 1, [EpisodeId("e1")], moving, NOW)
        seen.append(await told())
        await memory.text.delete_episode(SCOPE, EpisodeId("bare"), NOW)
        seen.append(await told())
        await memory.text.delete_episodes(SCOPE, [EpisodeId("e2")], NOW)
        seen.append(await told())
        await memory.rewrite(SCOPE, Rewritten([], [], [PassageId("p1")]))
        seen.append(await told())
        assert len(set(seen)) == len(seen), "what was kept of any state is void in all others"
        await memory.text.save(TWINS[0], [episode("twin")], [], None)
        assert await memory.text.delete_episode(SCOPE, EpisodeId("absent"), NOW) is False
        await memory.text.save(SCOPE, [kept], [], None)
        assert await told() == seen[-1], "nothing of this graph changed"

    async def test_texts_saved_at_once_are_each_told(self, memory: SqlMemory) -> None:
        ids = [f"e{number}" for number in range(8)]
        await asyncio.gather(*(memory.text.save(SCOPE, [episode(id)], [], None) for id in ids))
        assert (await memory.revisions.head(SCOPE)).texts == len(ids)
        assert await memory.text.kept(SCOPE) == ids
