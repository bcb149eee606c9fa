"""What every revision log and log of decisions must do. A store's test gives `memory` and `url`."""

import asyncio
import sys
from dataclasses import replace
from typing import Any

import pytest

from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.errors import UnstorableText, WriteConflict
from services.stores.memory.port import Decision, DecisionFilter, LogState, RevisionEntry
from services.stores.memory.sql import SqlMemory
from services.stores.paging import Page
from services.stores.sql.engine import engine_for
from tests.contracts.memory_base import SCOPE, TWINS, all_pages, hostile, unstorable
from tests.doubles.revision_writer import publish_one
from tests.machine import ROOT


async def publish(memory: SqlMemory, number: int, at: int = 0, scope: Scope = SCOPE) -> None:
    begun = await begin(memory, number, at, scope)
    await memory.revisions.publish(scope, begun.revision)


async def begin(memory: SqlMemory, number: int, at: int = 0, scope: Scope = SCOPE) -> RevisionEntry:
    after, commit = Revision(number - 1), f"commit-{number}"
    return await memory.revisions.begin(scope, after, commit, Instant(at), b"payload \x00\xff", "{}")


class RevisionContract:
    """The counter and its intent log."""

    async def test_a_new_graph_is_at_zero(self, memory: SqlMemory) -> None:
        log = memory.revisions
        assert await log.current(SCOPE) == 0
        assert await log.pending(SCOPE) is None
        assert await log.entry(SCOPE, "commit-1") is None
        assert await log.state(SCOPE, "commit-1") == LogState(Revision(0))
        assert await log.at(SCOPE, Instant(10**15)) == 0
        assert await log.clocks(SCOPE, [Revision(0), Revision(1)]) == {}

    async def test_a_begun_revision_is_pending_until_it_is_published(self, memory: SqlMemory) -> None:
        begun = await begin(memory, 1, 70)
        assert begun == RevisionEntry(Revision(1), "commit-1", Instant(70), False, b"payload \x00\xff", "{}")
        assert await memory.revisions.current(SCOPE) == 0
        assert await memory.revisions.pending(SCOPE) == begun
        assert await memory.revisions.entry(SCOPE, "commit-1") == begun
        assert await memory.revisions.state(SCOPE, "commit-1") == LogState(Revision(0), begun, begun)
        assert await memory.revisions.state(SCOPE, "other") == LogState(Revision(0), begun)
        for first in (True, False):
            assert await memory.revisions.publish(SCOPE, Revision(1)) is first
            assert await memory.revisions.current(SCOPE) == 1
            assert await memory.revisions.pending(SCOPE) is None
            published = replace(begun, published=True, payload=b"")
            assert await memory.revisions.entry(SCOPE, "commit-1") == published
            assert await memory.revisions.state(SCOPE, "commit-1") == LogState(Revision(1), None, published)

    async def test_a_scan_meets_every_revision_oldest_first(self, memory: SqlMemory) -> None:
        for number in range(1, 6):
            await publish(memory, number, at=10 * number)
        begun = await begin(memory, 6, 60)
        await publish(memory, 1, scope=TWINS[0])
        found = await all_pages(lambda page: memory.revisions.scan(SCOPE, page), 2)
        assert [(one.revision, one.at, one.published) for one in found] == [
            (number, 10 * number, number < 6) for number in range(1, 7)
        ]
        assert found[-1] == begun

    async def test_a_crash_before_publishing_leaves_what_the_next_needs(
        self, memory: SqlMemory, url: str
    ) -> None:
        begun = await begin(memory, 1)
        await memory.close()
        later = SqlMemory(engine_for(url))
        try:
            for after in (0, 1):
                with pytest.raises(WriteConflict):
                    await later.revisions.begin(SCOPE, Revision(after), "next", Instant(0), b"", "")
            assert await later.revisions.pending(SCOPE) == begun
            await later.revisions.publish(SCOPE, begun.revision)
            following = await later.revisions.begin(SCOPE, Revision(1), "next", Instant(0), b"", "")
            assert following.revision == 2
        finally:
            await later.close()

    @pytest.mark.parametrize("after", [0, 1, 3, 7])
    async def test_another_revision_than_the_latest_conflicts(self, memory: SqlMemory, after: int) -> None:
        await publish(memory, 1)
        await publish(memory, 2)
        with pytest.raises(WriteConflict):
            await memory.revisions.begin(SCOPE, Revision(after), "late", Instant(0), b"", "")
        assert await memory.revisions.entry(SCOPE, "late") is None
        assert await memory.revisions.current(SCOPE) == 2

    async def test_a_commit_begun_again_gets_its_first_entry(self, memory: SqlMemory) -> None:
        first = await begin(memory, 1, 5)
        again = await memory.revisions.begin(SCOPE, Revision(0), "commit-1", Instant(9), b"other", "other")
        assert again == first
        await memory.revisions.publish(SCOPE, Revision(1))
        done = await memory.revisions.begin(SCOPE, Revision(0), "commit-1", Instant(9), b"other", "other")
        assert (done.revision, done.published, done.summary) == (1, True, "{}")

    async def test_a_commit_of_another_revision_conflicts(self, memory: SqlMemory) -> None:
        await publish(memory, 1)
        with pytest.raises(WriteConflict):
            await memory.revisions.begin(SCOPE, Revision(1), "commit-1", Instant(9), b"", "")
        assert await memory.revisions.current(SCOPE) == 1
        assert await memory.revisions.pending(SCOPE) is None

    async def test_of_fifty_that_begin_at_once_one_wins(self, memory: SqlMemory) -> None:
        async def attempt(number: int) -> RevisionEntry | None:
            try:
                return await memory.revisions.begin(
                    SCOPE, Revision(0), f"writer-{number}", Instant(number), b"%d" % number, ""
                )
            except WriteConflict:
                return None

        entries = await asyncio.gather(*(attempt(number) for number in range(50)))
        [winner] = [entry for entry in entries if entry is not None]
        assert await memory.revisions.pending(SCOPE) == winner
        assert winner.payload == b"%d" % entries.index(winner)

    async def test_fifty_writers_in_three_processes_publish_one_revision_each(
        self, memory: SqlMemory, url: str
    ) -> None:
        programs = [
            await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "tests.doubles.revision_writer", url, SCOPE.tenant, SCOPE.graph, name, "20"),
                cwd=ROOT,
            )
            for name in ("a", "b")
        ]
        here = [f"here-{number}" for number in range(10)]
        await asyncio.gather(*(publish_one(memory.revisions, SCOPE, commit) for commit in here))
        assert [await program.wait() for program in programs] == [0, 0]
        commits = [*here, *(f"{name}-{number}" for name in "ab" for number in range(20))]
        entries = [await memory.revisions.entry(SCOPE, commit) for commit in commits]
        assert sorted(entry.revision for entry in entries if entry) == list(range(1, 51))
        assert all(entry and entry.published and entry.summary == entry.commit_id for entry in entries)
        assert await memory.revisions.current(SCOPE) == 50

    async def test_clock_times_map_to_published_revisions(self, memory: SqlMemory) -> None:
        for number, at in enumerate([-50, 100, 100, 300], start=1):
            await publish(memory, number, at)
        await begin(memory, 5, 400)
        asked = [-51, -50, 99, 100, 299, 300, 10**15]
        assert [await memory.revisions.at(SCOPE, Instant(clock)) for clock in asked] == [0, 1, 1, 3, 3, 4, 4]
        clocks = await memory.revisions.clocks(SCOPE, [Revision(n) for n in (4, 1, 9, 5, 1)])
        assert clocks == {4: 300, 1: -50, 5: 400}

    async def test_twins_have_counters_of_their_own(self, memory: SqlMemory) -> None:
        await publish(memory, 1, 10)
        begun = await begin(memory, 2, 20)
        for twin in TWINS:
            assert await memory.revisions.current(twin) == 0
            assert await memory.revisions.pending(twin) is None
            assert await memory.revisions.entry(twin, "commit-1") is None
            assert await memory.revisions.state(twin, "commit-1") == LogState(Revision(0))
            assert await memory.revisions.at(twin, Instant(10**15)) == 0
            assert await memory.revisions.clocks(twin, [Revision(1)]) == {}
            await memory.revisions.publish(twin, Revision(2))
            await publish(memory, 1, 99, twin)
            await memory.erase(twin)
            assert await memory.revisions.current(twin) == 0
        assert await memory.revisions.pending(SCOPE) == begun
        assert await memory.revisions.clocks(SCOPE, [Revision(1)]) == {1: 10}

    @hostile
    async def test_a_strange_summary_comes_back_unchanged(self, memory: SqlMemory, text: str) -> None:
        begun = await memory.revisions.begin(SCOPE, Revision(0), "commit", Instant(0), b"", text)
        assert begun.summary == text
        assert await memory.revisions.entry(SCOPE, "commit") == begun

    @unstorable
    async def test_text_that_can_not_be_stored_begins_nothing(self, memory: SqlMemory, text: str) -> None:
        for commit, summary in ((text, "x"), ("x", text)):
            with pytest.raises(UnstorableText):
                await memory.revisions.begin(SCOPE, Revision(0), commit, Instant(0), b"", summary)
        assert await memory.revisions.pending(SCOPE) is None
        assert await memory.revisions.entry(SCOPE, text) is None
        assert await memory.revisions.state(SCOPE, text) == LogState(Revision(0))


def decision(id: str, revision: int, target: str = "target", at: int = 0, **columns: Any) -> Decision:
    return Decision(id, Revision(revision), Instant(at), "merge", target, "resolver", **columns)


class DecisionContract:
    """The audit of what was decided."""

    async def test_the_newest_come_first_in_pages(self, memory: SqlMemory) -> None:
        made = [
            decision("c", 1, at=5),
            decision("a", 2, at=1),
            decision("b", 2, at=1),
            decision("d", 2, at=9, target="other", why="why", model="model", prompt_version="v1"),
        ]
        await memory.decisions.record(SCOPE, made)
        expected = [made[3], made[2], made[1], made[0]]
        for size in (1, 2, 4, 50):
            listed = await all_pages(lambda page: memory.decisions.list_decisions(SCOPE, None, page), size)
            assert listed == expected
            of_target = await all_pages(
                lambda page: memory.decisions.list_decisions(SCOPE, "target", page), size
            )
            assert of_target == expected[1:]

    async def test_recording_again_changes_nothing(self, memory: SqlMemory) -> None:
        await memory.decisions.record(SCOPE, [decision("a", 1)])
        await memory.decisions.record(SCOPE, [decision("a", 7, why="other"), decision("b", 1)])
        await memory.decisions.record(SCOPE, [])
        listed = await memory.decisions.list_decisions(SCOPE, None, Page())
        assert listed.items == [decision("b", 1), decision("a", 1)]

    async def test_twins_see_nothing_of_each_other(self, memory: SqlMemory) -> None:
        await memory.decisions.record(SCOPE, [decision("a", 1)])
        for twin in TWINS:
            assert (await memory.decisions.list_decisions(twin, None, Page())).items == []
            await memory.decisions.record(twin, [decision("a", 5)])
            await memory.erase(twin)
            assert (await memory.decisions.list_decisions(twin, "target", Page())).items == []
        assert (await memory.decisions.list_decisions(SCOPE, None, Page())).items == [decision("a", 1)]

    @hostile
    async def test_strange_text_comes_back_unchanged(self, memory: SqlMemory, text: str) -> None:
        made = replace(decision("a", 1), actor=text, why=text, model=text, prompt_version=text)
        await memory.decisions.record(SCOPE, [made])
        assert (await memory.decisions.list_decisions(SCOPE, "target", Page())).items == [made]

    @unstorable
    async def test_text_that_can_not_be_stored_is_refused_whole(self, memory: SqlMemory, text: str) -> None:
        with pytest.raises(UnstorableText):
            await memory.decisions.record(SCOPE, [decision("a", 1), decision("b", 1, why=text)])
        assert (await memory.decisions.list_decisions(SCOPE, None, Page())).items == []
        assert (await memory.decisions.list_decisions(SCOPE, text, Page())).items == []

    async def test_decisions_are_found_by_time_action_and_either_side(self, memory: SqlMemory) -> None:
        made = [
            decision("a", 1, at=5, other="right", why="word", request="r1"),
            decision("b", 2, at=5),
            replace(decision("c", 3, "right", at=7), action="end_statement"),
        ]
        await memory.decisions.record(SCOPE, made)
        a, b, c = made

        async def found(limit: int = 10, **where: Any) -> list[Decision]:
            return list(await memory.decisions.find(SCOPE, DecisionFilter(**where), limit))

        assert await found() == [c, b, a]
        assert await found(2) == [c, b]
        assert await found(after=(Instant(5), "b")) == [a]
        assert await found(target="right") == [c, a]
        assert await found(action="end_statement") == [c]
        assert await found(since=Instant(6)) == [c]
        assert await found(until=Instant(7)) == [b, a]
        assert await found(target="nul\x00") == []
        for twin in TWINS:
            assert await memory.decisions.find(twin, DecisionFilter(), 10) == []

    async def test_reasons_go_with_what_they_are_about(self, memory: SqlMemory) -> None:
        made = [
            decision("a", 1, why="one"),
            decision("b", 1, "left", other="right", why="two"),
            decision("c", 1, "third", why="three"),
        ]
        await memory.decisions.record(SCOPE, made)
        for twin in TWINS:
            await memory.decisions.forget_text(twin, ["target", "right", "third"])
        for _ in range(2):
            await memory.decisions.forget_text(SCOPE, ["target", "right", "nul\x00"])
        await memory.decisions.record(SCOPE, made)
        left = await memory.decisions.find(SCOPE, DecisionFilter(), 10)
        assert [one.why for one in left] == ["three", "", ""]
