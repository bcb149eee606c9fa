"""What changed between two dates and between two beliefs, over real stores."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palimpsest.internal.v1 import recall_diff_pb2 as pb
from palimpsest.internal.v1 import resolver_pb2
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import RevisionNotReady, ValidationFailed
from services.domain.ids import EpisodeId, RecordId, Revision, VoiceId
from services.domain.memory import VoiceAspect, VoiceClaim, VoiceEnd, VoiceKind
from services.recall.service import Recall
from tests.builders import on
from tests.integration.recalling import Memory, a_memory, triple, twin

LIVES = "lives_in"


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    """Paris, Rome, Paris again, and tea: four revisions."""
    async with a_memory(tmp_path, [LIVES]) as memory:
        await memory.tell("paris", "2020-01-05", ("Mara", LIVES, "Paris"), since="2020-01-01")
        await memory.tell("rome", "2022-01-05", ("Mara", LIVES, "Rome"), since="2022-01-01")
        await memory.tell("back", "2024-01-05", ("Mara", LIVES, "Paris"), since="2024-01-01")
        await memory.tell("tea", "2024-02-01", ("Ben", "drinks", "tea"))
        yield memory


def dates(before: str, after: str, revision: int = 0) -> pb.DiffRequest:
    known = values.KnownAt(revision=revision) if revision else None
    return pb.DiffRequest(world=pb.WorldPoints(before=on(before), after=on(after)), known_at=known)


def beliefs(before: int, after: int) -> pb.DiffRequest:
    points = pb.SystemPoints(before=values.KnownAt(revision=before), after=values.KnownAt(revision=after))
    return pb.DiffRequest(system=points)


async def told(memory: Memory, request: pb.DiffRequest) -> set[tuple[str, str]]:
    answer = await memory.recall.diff(memory.world.scope, request)
    return {
        (change.kind, triple(change.statement)[2] if change.HasField("statement") else change.voice.text)
        for change in answer.changes
    }


class TestDates:
    async def test_what_began_ended_and_came_back(self, memory: Memory) -> None:
        assert await told(memory, dates("2019-01-01", "2021-01-01")) == {("added", "Paris")}
        assert await told(memory, dates("2021-01-01", "2023-01-01")) == {
            ("ended", "Paris"),
            ("added", "Rome"),
        }
        assert await told(memory, dates("2023-01-01", "2025-01-01")) == {
            ("ended", "Rome"),
            ("restored", "Paris"),
            ("added", "tea"),
        }
        assert await told(memory, dates("2021-01-01", "2025-01-01")) == {("added", "tea")}
        assert await told(memory, dates("2021-01-01", "2021-01-01")) == set()

    async def test_as_believed_then_and_with_spans(self, memory: Memory) -> None:
        assert await told(memory, dates("2021-01-01", "2025-01-01", revision=1)) == set()
        answer = await memory.recall.diff(memory.world.scope, dates("2021-01-01", "2025-01-01", revision=2))
        assert answer.revision == 2
        by_kind = {change.kind: change for change in answer.changes}
        assert by_kind.keys() == {"ended", "added"}
        ended, added = by_kind["ended"], by_kind["added"]
        assert (ended.before.invalid_at, ended.HasField("after")) == (on("2022-01-01"), False)
        assert (added.after.valid_at, added.HasField("before")) == (on("2022-01-01"), False)
        assert ended.before.ended_by_episode == "episode-rome"

    async def test_the_later_date_comes_second(self, memory: Memory) -> None:
        with pytest.raises(ValidationFailed):
            await told(memory, dates("2023-01-01", "2021-01-01"))


class TestBeliefs:
    async def test_added_and_redated(self, memory: Memory) -> None:
        assert await told(memory, beliefs(0, 1)) == {("added", "Paris")}
        assert await told(memory, beliefs(1, 2)) == {("redated", "Paris"), ("added", "Rome")}
        assert await told(memory, beliefs(0, 4)) == {("added", "Paris"), ("added", "Rome"), ("added", "tea")}
        assert await told(memory, beliefs(3, 3)) == set()
        [paris] = [
            change
            for change in (await memory.recall.diff(memory.world.scope, beliefs(1, 2))).changes
            if change.kind == "redated"
        ]
        assert not paris.before.HasField("invalid_at")
        assert paris.before.known_to == 2
        assert paris.after.invalid_at == on("2022-01-01")
        assert [span.invalid_at for span in paris.statement.spans] == [on("2022-01-01")]

    async def test_expired_and_restored_by_a_deletion_and_a_new_claim(self, memory: Memory) -> None:
        revoke = resolver_pb2.RevokeRequest(commit_id="gone", episode_id="episode-tea")
        await memory.world.resolver.revoke(memory.world.scope, revoke)
        [gone] = (await memory.recall.diff(memory.world.scope, beliefs(4, 5))).changes
        assert (gone.kind, gone.HasField("after"), gone.before.known_to) == ("expired", False, 5)
        assert [span.HasField("known_to") for span in gone.statement.spans] == [False]
        await memory.tell("again", "2024-03-01", ("Ben", "drinks", "tea"))
        assert await told(memory, beliefs(5, 6)) == {("restored", "tea")}
        assert ("added", "tea") in await told(memory, beliefs(1, 6))

    async def test_points_in_order_and_published(self, memory: Memory) -> None:
        with pytest.raises(ValidationFailed):
            await told(memory, beliefs(2, 1))
        with pytest.raises(RevisionNotReady):
            await told(memory, beliefs(1, 99))


async def test_pages_meet_each_once_whatever_replica_answers(memory: Memory) -> None:
    whole = list((await memory.recall.diff(memory.world.scope, beliefs(0, 4))).changes)
    seen: list[pb.Change] = []
    request = beliefs(0, 4)
    request.page_size = 1
    while True:
        page = await Recall(memory.parts).diff(memory.world.scope, request)
        seen += page.changes
        if not page.after:
            break
        request.after = page.after
    assert seen == whole
    assert len(seen) == 3
    for token in ("nonsense", "[]", '[1, "a", "b", 2, "c"]'):
        request.after = token
        with pytest.raises(ValidationFailed):
            await memory.recall.diff(memory.world.scope, request)


async def test_nothing_of_another_tenants(memory: Memory) -> None:
    for request in (dates("2019-01-01", "2025-01-01"), beliefs(0, 0)):
        assert not (await memory.recall.diff(twin(), request)).changes


async def test_sentences_of_the_voice(memory: Memory) -> None:
    scope, voice, log = memory.world.scope, memory.world.memory.voice, memory.world.memory.revisions
    run, at = VoiceId("run"), on("2024-03-01")
    for revision in (4, 5):
        await log.begin(scope, Revision(revision), f"v{revision}", on("2024-03-01"), b"", "")
        await log.publish(scope, Revision(revision + 1))
    said = VoiceClaim(RecordId("c"), run, EpisodeId("episode-tea"), None, "", on("2024-02-01"), Revision(5))
    aspect = VoiceAspect(run, VoiceKind.HABIT, "I run.", created_at=Revision(5))
    await voice.apply(scope, Revision(5), [aspect], [said], [], [])
    end = VoiceEnd(RecordId("e"), run, at, None, None, recorded_at=Revision(6))
    await voice.apply(scope, Revision(6), [], [], [end], [])
    assert ("added", "I run.") in await told(memory, beliefs(4, 5))
    assert await told(memory, beliefs(5, 6)) == {("redated", "I run.")}
    assert await told(memory, dates("2024-02-15", "2024-04-01")) == {("ended", "I run.")}
    [change] = (await memory.recall.diff(scope, dates("2024-02-15", "2024-04-01"))).changes
    assert (change.before.valid_at, change.before.invalid_at) == (on("2024-02-01"), at)
