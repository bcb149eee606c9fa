"""What every voice store must do. A store's test gives the fixture `memory`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from services.domain.ids import EpisodeId, RecordId, Revision, VoiceId
from services.domain.instants import Instant
from services.domain.memory import VoiceAspect, VoiceClaim, VoiceEnd, VoiceKind
from services.domain.scope import Scope
from services.domain.voice import claims_at, held
from services.stores.errors import UnstorableText
from services.stores.memory.port import VoiceFilter, VoiceForgetting
from services.stores.memory.sql import SqlMemory
from services.stores.paging import Page
from tests.contracts.memory_base import (
    SCOPE,
    TWINS,
    all_pages,
    aspect,
    claim,
    end,
    episode,
    hostile,
    unstorable,
)


async def apply(
    memory: SqlMemory,
    revision: int,
    aspects: Sequence[VoiceAspect] = (),
    claims: Sequence[VoiceClaim] = (),
    ends: Sequence[VoiceEnd] = (),
    revoked: Sequence[str] = (),
    scope: Scope = SCOPE,
) -> None:
    records = [RecordId(record) for record in revoked]
    await memory.voice.apply(scope, Revision(revision), aspects, claims, ends, records)


def forgetting(revision: int, *aspects: str) -> VoiceForgetting:
    return VoiceForgetting(Revision(revision), [VoiceId(id) for id in aspects])


async def get(memory: SqlMemory, id: str, scope: Scope = SCOPE) -> VoiceAspect:
    [found] = await memory.voice.aspects(scope, [VoiceId(id)])
    return found


async def listed(memory: SqlMemory, known_at: int, kinds: Sequence[VoiceKind] = ()) -> list[VoiceAspect]:
    page = await memory.voice.list_aspects(SCOPE, kinds, Revision(known_at), Page())
    return list(page.items)


class VoiceContract:
    """Aspects, their claims and ends, as known at revisions."""

    async def test_what_is_applied_comes_back_unchanged(self, memory: SqlMemory) -> None:
        kept = aspect("a", 3, "I drink my coffee black.", VoiceKind.HABIT)
        claims = claim("c1", "a", recorded=3), replace(claim("c2", "a", recorded=3), passage=None)
        ends = end("e1", "a", 3, by="b", episode="e"), end("e2", "a", 3)
        ignored = replace(kept, claims=(claim("other", "a"),), ends=(end("other", "a", 1),))
        for _ in range(2):
            await apply(memory, 3, [ignored], claims, ends)
            assert await get(memory, "a") == replace(kept, claims=claims, ends=ends)

    async def test_applying_again_changes_nothing_that_is_there(self, memory: SqlMemory) -> None:
        await apply(memory, 1, [aspect("a")], [claim("c", "a")], [end("e", "a", 1)])
        before = await get(memory, "a")
        other = replace(claim("c", "a", quote="other"), recorded_at=Revision(9))
        await apply(memory, 1, [aspect("a", text="other", kind=VoiceKind.TASK)], [other], [end("e", "a", 9)])
        assert await get(memory, "a") == before

    async def test_reads_by_id_keep_the_order_asked(self, memory: SqlMemory) -> None:
        ids = [f"a{number}" for number in range(700)]
        await apply(memory, 1, [aspect(id) for id in ids], [claim(f"c-{id}", id) for id in ids])
        asked = [VoiceId(id) for id in [*reversed(ids), "absent", "a1", "\ud800"]]
        found = await memory.voice.aspects(SCOPE, asked)
        assert [one.id for one in found] == list(reversed(ids))
        assert all([record.voice for record in one.claims] == [one.id] for one in found)

    async def test_an_aspect_is_listed_while_a_claim_of_it_counts(self, memory: SqlMemory) -> None:
        await apply(memory, 2, [aspect("a", 2)], [claim("c1", "a", recorded=2)])
        await apply(memory, 4, [], [claim("c2", "a", recorded=4)], revoked=["c1"])
        await apply(memory, 6, revoked=["c2"])
        await apply(memory, 8, [], [claim("c3", "a", recorded=8)])
        known = [bool(await listed(memory, revision)) for revision in range(1, 10)]
        assert known == [False, True, True, True, True, False, False, True, True]

    async def test_what_is_held_is_listed_latest_start_first(self, memory: SqlMemory) -> None:
        """Whatever is filtered and wherever pages end, as the rule of when an aspect holds has it."""
        aspects = [aspect(id, kind=kind) for id, kind in zip("abcd", VoiceKind, strict=False)]
        claims = [claim(f"c-{id}", id, at=at) for id, at in (("a", 100), ("b", 300), ("c", 300), ("d", 200))]
        again = [
            claim("c-a2", "a", episode="later", recorded=3, at=600),
            claim("c-d2", "d", recorded=2, at=50),
        ]
        over = [end("e-a", "a", 2), end("e-b", "b", 2), end("e-c", "c", 2)]
        await apply(memory, 1, aspects, claims)
        await apply(memory, 2, [], again[1:], over)
        await apply(memory, 3, [], again[:1], revoked=["e-c", "c-d"])
        await apply(memory, 4, revoked=["c-b"])
        for known_at in map(Revision, range(6)):
            every = await listed(memory, known_at)
            for kinds in ((), (VoiceKind.DIRECTIVE, VoiceKind.TASK, VoiceKind.HABIT)):
                for cited in (None, EpisodeId("e"), EpisodeId("later"), EpisodeId("\ud800")):
                    for at in (None, *map(Instant, (49, 50, 150, 300, 499, 500, 600))):
                        expected = []
                        for one in every:
                            interval = held(one, known_at)
                            assert interval is not None
                            if kinds and one.kind not in kinds:
                                continue
                            if at is not None and not interval.contains(at):
                                continue
                            if cited and cited not in {c.episode for c in claims_at(one, known_at)}:
                                continue
                            expected.append((interval.start or 0, one.id))
                        where = VoiceFilter(kinds, cited, at)
                        found = await all_pages(
                            lambda page, where=where, known_at=known_at: memory.voice.list_held(
                                SCOPE, where, known_at, page
                            ),
                            2,
                        )
                        assert [one.id for one in found] == [id for _, id in sorted(expected, reverse=True)]
                        assert [one for one in every if one in found] == sorted(
                            found, key=lambda one: (one.created_at, one.id)
                        )
        assert (await memory.voice.list_held(TWINS[0], VoiceFilter(), Revision(5), Page())).items == []
        for token in ("x", '["a", 1]'):
            with pytest.raises(ValueError, match="position"):
                await memory.voice.list_held(SCOPE, VoiceFilter(), Revision(5), Page(2, token))

    async def test_a_scan_meets_every_aspect_with_all_its_records(self, memory: SqlMemory) -> None:
        await apply(memory, 1, [aspect("a"), aspect("b")], [claim("c1", "a"), claim("c2", "b")])
        await apply(memory, 2, [aspect("c", 2)], [claim("c3", "c", recorded=2)], [end("e", "a", 2)], ["c2"])
        await memory.voice.forget_text(SCOPE, forgetting(2, "b"))
        await apply(memory, 1, [aspect("a")], [claim("c9", "a")], scope=TWINS[0])
        found = await all_pages(lambda page: memory.voice.scan(SCOPE, page), 2)
        assert found == [await get(memory, id) for id in ("a", "b", "c")]
        assert (found[1].text, found[1].claims[0].revoked_at) == ("", 2)

    async def test_a_past_revision_is_read_as_it_was_known(self, memory: SqlMemory) -> None:
        await apply(memory, 1, [aspect("a")], [claim("c", "a", recorded=1)])
        await apply(memory, 2, [], [], [end("e", "a", 2)])
        await apply(memory, 3, [], [], [], ["e"])
        then = {revision: await listed(memory, revision) for revision in (1, 2, 3)}
        await apply(memory, 4, [], [claim("later", "a", recorded=4)], [], ["c"])
        for revision, aspects in then.items():
            assert await listed(memory, revision) == aspects
        [[first], [second], [third]] = then.values()
        assert first.ends == ()
        assert [record.revoked_at for record in second.ends] == [None]
        assert [record.revoked_at for record in third.ends] == [3]
        until = [held(one, Revision(at)) for at, [one] in then.items()]
        assert [interval and interval.end for interval in until] == [None, 500, None]

    async def test_an_ended_aspect_is_still_listed(self, memory: SqlMemory) -> None:
        await apply(memory, 1, [aspect("a"), aspect("b")], [claim("c1", "a"), claim("c2", "b")])
        await apply(memory, 2, [], [], [end("e", "a", 2, by="b")])
        assert [one.id for one in await listed(memory, 2)] == ["a", "b"]

    async def test_the_first_revocation_of_a_record_stands(self, memory: SqlMemory) -> None:
        await apply(memory, 1, [aspect("a")], [claim("c", "a")])
        await apply(memory, 2, revoked=["c"])
        await apply(memory, 5, revoked=["c", "c", "absent"])
        assert [record.revoked_at for record in (await get(memory, "a")).claims] == [2]

    async def test_lists_are_in_order_of_creation_by_kind_and_page(self, memory: SqlMemory) -> None:
        kinds = [VoiceKind.GOAL, VoiceKind.HABIT, VoiceKind.GOAL, VoiceKind.TASK, VoiceKind.HABIT]
        made = [aspect(f"a{9 - n}", created=n // 2 + 1, kind=kind) for n, kind in enumerate(kinds)]
        await apply(memory, 1, made, [claim(f"c{n}", one.id) for n, one in enumerate(made)])
        await apply(memory, 1, [aspect("unclaimed")])
        expected = ["a8", "a9", "a6", "a7", "a5"]
        for size in (1, 2, 5, 50):

            async def page_of(page: Page) -> Any:
                return await memory.voice.list_aspects(SCOPE, [], Revision(9), page)

            assert [one.id for one in await all_pages(page_of, size)] == expected
        habits = await listed(memory, 9, [VoiceKind.HABIT])
        assert [one.id for one in habits] == ["a8", "a5"]
        both = await listed(memory, 9, [VoiceKind.HABIT, VoiceKind.TASK])
        assert [one.id for one in both] == ["a8", "a6", "a5"]

    async def test_an_episode_gives_the_aspects_it_claims_or_ends(self, memory: SqlMemory) -> None:
        made = [aspect("claimed", 2), aspect("ended", 1), aspect("other", 1)]
        claims = [claim("c1", "claimed", "e"), claim("c2", "ended", "f"), claim("c3", "other", "f")]
        await apply(memory, 2, made, claims, [end("x", "ended", 2, episode="e")], ["c1"])
        found = await memory.voice.of_episode(SCOPE, EpisodeId("e"))
        assert [one.id for one in found] == ["ended", "claimed"]
        assert found == [await get(memory, "ended"), await get(memory, "claimed")]
        assert await memory.voice.of_episode(SCOPE, EpisodeId("absent")) == []

    async def test_forgetting_leaves_nothing_readable_of_what_no_claim_supports(
        self, memory: SqlMemory
    ) -> None:
        made = [aspect("gone", text="secret"), aspect("kept", text="kept"), aspect("half", text="half")]
        claims = [
            claim("c1", "gone", quote="secret"),
            claim("c2", "kept", quote="kept"),
            claim("c3", "half", quote="half"),
            claim("c4", "half", "f", quote="half"),
        ]
        await apply(memory, 1, made, claims, [replace(end("e", "gone", 1), why="secret")])
        await apply(memory, 2, revoked=["c1", "c3"])
        before = [await get(memory, id) for id in ("kept", "half")]
        for _ in range(2):
            await memory.voice.forget_text(SCOPE, forgetting(2, *(one.id for one in made)))
            assert "secret" not in repr(await get(memory, "gone"))
            assert [await get(memory, id) for id in ("kept", "half")] == before

    async def test_an_aspect_said_again_after_it_was_forgotten_is_whole_again(
        self, memory: SqlMemory
    ) -> None:
        await apply(memory, 1, [aspect("a", text="I like tea.")], [claim("c1", "a")])
        await apply(memory, 2, revoked=["c1"])
        await memory.voice.forget_text(SCOPE, forgetting(2, "a"))
        # What comes late brings nothing back.
        await apply(memory, 1, [aspect("a", text="I like tea.")], [claim("c1", "a")])
        assert (await get(memory, "a")).text == ""
        said = [aspect("a", 3, text="I like tea.")], [claim("c2", "a", recorded=3, quote="I like tea.")]
        await apply(memory, 3, *said)
        again = await get(memory, "a")
        assert (again.text, again.created_at) == ("I like tea.", 1)
        assert [record.quote for record in again.claims] == ["", "I like tea."]
        assert [one.id for one in await listed(memory, 3)] == ["a"]

    async def test_a_deleted_episode_leaves_no_quote_where_others_support_the_aspect(
        self, memory: SqlMemory
    ) -> None:
        await memory.text.save(SCOPE, [episode("e"), episode("f")], [], None)
        claims = [claim("c1", "a", "e", quote="secret"), claim("c2", "a", "f", quote="kept")]
        await apply(memory, 1, [aspect("a", text="kept")], claims)
        await memory.text.delete_episode(SCOPE, EpisodeId("e"), Instant(9))
        found = await get(memory, "a")
        assert (found.text, [record.quote for record in found.claims]) == ("kept", ["", "kept"])

    async def test_a_sentence_that_a_deleted_episode_spoke_is_told_as_another_says_it(
        self, memory: SqlMemory
    ) -> None:
        claims = [claim("c1", "a", "e", quote="secret"), claim("c2", "a", "f", quote="kept")]
        over = replace(end("x", "a", 1), why="secret")
        await apply(memory, 1, [aspect("a", text="secret"), aspect("b", text="b")], claims, [over])
        gone = VoiceForgetting(
            Revision(2), records=[(VoiceId("a"), RecordId("c1"))], retold=[(VoiceId("a"), "kept")]
        )
        for _ in range(2):
            await memory.voice.forget_text(SCOPE, gone)
            found = await get(memory, "a")
            assert (found.text, [record.quote for record in found.claims]) == ("kept", ["", "kept"])
            assert found.ends[0].why == ""
        assert (await get(memory, "b")).text == "b"

    async def test_twins_see_and_change_nothing_of_each_other(self, memory: SqlMemory) -> None:
        await apply(memory, 1, [aspect("a")], [claim("c", "a")], [end("e", "a", 1)])
        mine = await get(memory, "a")
        for twin in TWINS:
            assert await memory.voice.aspects(twin, [VoiceId("a")]) == []
            assert await memory.voice.of_episode(twin, EpisodeId("e")) == []
            assert (await memory.voice.list_aspects(twin, [], Revision(9), Page())).items == []
            await apply(memory, 1, [aspect("a", text="theirs")], [claim("c", "a")], [], ["c", "e"], twin)
            await memory.voice.forget_text(twin, forgetting(1, "a"))
            more = VoiceForgetting(Revision(1), [], [(VoiceId("a"), RecordId("c"))], [(VoiceId("a"), "x")])
            await memory.voice.forget_text(twin, more)
            assert (await get(memory, "a", twin)).text == ""
            await memory.erase(twin)
            assert await memory.voice.aspects(twin, [VoiceId("a")]) == []
        assert await get(memory, "a") == mine

    @hostile
    async def test_strange_text_comes_back_unchanged(self, memory: SqlMemory, text: str) -> None:
        made = VoiceAspect(VoiceId("a"), VoiceKind.TASK, text, created_at=Revision(1))
        said, over = claim("c", "a", quote=text), replace(end("e", "a", 1), why=text)
        await apply(memory, 1, [made], [said], [over])
        assert await get(memory, "a") == replace(made, claims=(said,), ends=(over,))

    @unstorable
    async def test_text_that_can_not_be_stored_is_refused_whole(self, memory: SqlMemory, text: str) -> None:
        good, said = aspect("a"), claim("c", "a")
        with pytest.raises(UnstorableText):
            await apply(memory, 1, [good, aspect("b", text=text)], [said])
        with pytest.raises(UnstorableText):
            await apply(memory, 1, [good], [claim("c", "a", quote=text)])
        with pytest.raises(UnstorableText):
            await apply(memory, 1, [good], [said], [replace(end("e", "a", 1), why=text)])
        assert await memory.voice.aspects(SCOPE, [VoiceId("a"), VoiceId(text)]) == []
        assert await memory.voice.of_episode(SCOPE, EpisodeId(text)) == []
        await memory.voice.forget_text(SCOPE, forgetting(1, text))
        with pytest.raises(UnstorableText):
            await memory.voice.forget_text(SCOPE, VoiceForgetting(Revision(1), retold=[(good.id, text)]))
