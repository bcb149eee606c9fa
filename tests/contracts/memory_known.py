"""What is known in a session, on every store of text. A store's test gives the fixture `memory`."""

import asyncio
from typing import Any

import pytest

from services.domain.ids import EpisodeId, JobId, SessionId
from services.stores.errors import WriteConflict
from services.stores.memory.sql import SqlMemory
from services.stores.paging import Page
from tests.contracts.memory_base import NOW, SCOPE, SESSION, episode, passage


class KnownContract:
    """Of what is said twice at once, one is kept."""

    async def test_of_two_jobs_that_say_the_same_at_once_one_is_told(self, memory: SqlMemory) -> None:
        async def say(number: int, **columns: Any) -> None:
            job = JobId(f"job-{number}")
            said = [passage(f"p{number}", f"e{number}", hash="one")]
            await memory.text.save(
                SCOPE, [episode(f"e{number}", job=job, **columns)], said, None, unknown=True
            )

        told = await asyncio.gather(*(say(number) for number in range(5)), return_exceptions=True)
        assert sorted(map(repr, told), key=len)[0] == "None"
        assert sum(isinstance(one, WriteConflict) for one in told) == 4
        assert len((await memory.text.list_episodes(SCOPE, SESSION, None, Page(10))).items) == 1
        (winner,) = [number for number, one in enumerate(told) if one is None]
        await say(winner)  # again, as a step that is repeated
        await say(7, session=SessionId("another"))
        await memory.text.mark_unlearned(SCOPE, EpisodeId(f"e{winner}"), NOW)
        await say(8)
        by_id = [
            passage("p9", "e9", hash="nine", message_id="m"),
            passage("p10", "e10", hash="ten", message_id="m"),
        ]
        await memory.text.save(SCOPE, [episode("e9", job=JobId("9"))], by_id[:1], None, unknown=True)
        with pytest.raises(WriteConflict):
            await memory.text.save(SCOPE, [episode("e10", job=JobId("10"))], by_id[1:], None, unknown=True)
