"""What memory promises of erasing: fences that late writers don't pass, and what goes for good."""

from dataclasses import replace

import pytest

from services.domain.identity import Merge, MergeKind
from services.domain.ids import EntityId, EpisodeId, PassageId, RecordId, Revision, VoiceId
from services.domain.instants import Instant
from services.domain.records import Judge
from services.stores.errors import ScopeErased, WriteConflict
from services.stores.memory.fences import Purged, Rewritten, check_generation
from services.stores.memory.port import Decision
from services.stores.memory.sql import SqlMemory
from services.stores.paging import Page
from tests.contracts.memory_base import DOCUMENT, SCOPE, TWINS, aspect, claim, end, episode, passage, version
from tests.contracts.memory_text import everything


class ErasingContract:
    """Fences, `rows`, `purge` and `rewrite`. `memory` is a fixture of the subclass."""

    async def test_nothing_is_written_while_the_fence_is_up(self, memory: SqlMemory) -> None:
        before = await memory.fences.fence(SCOPE)
        up = await memory.fences.put_up(SCOPE)
        assert (up.generation, up.up) == (before.generation + 1, True)
        assert await memory.fences.put_up(SCOPE) == up
        writes = (
            memory.text.save(SCOPE, [episode("e")], [], None),
            memory.staging.stage(SCOPE, EpisodeId("e"), b"x"),
            memory.revisions.begin(SCOPE, Revision(0), "c", Instant(1), b"", "{}"),
        )
        for writing in writes:
            with pytest.raises(ScopeErased):
                await writing
        assert await memory.rows(SCOPE) == {}
        for twin in TWINS:
            await memory.text.save(twin, [episode("e")], [], None)
        down = await memory.fences.take_down(SCOPE)
        assert (down.generation, down.up) == (before.generation + 2, False)
        assert await memory.fences.take_down(SCOPE) == down
        await memory.text.save(SCOPE, [episode("e")], [], None)

    async def test_who_read_before_an_erasure_writes_nothing_after_it(self, memory: SqlMemory) -> None:
        known = (await memory.revisions.state(SCOPE, "c")).generation
        text = (await memory.fences.fence(SCOPE)).generation
        assert (await memory.revisions.head(SCOPE)).generation == known == text
        await memory.fences.put_up(SCOPE)
        await memory.fences.take_down(SCOPE)
        with pytest.raises(ScopeErased):
            await memory.revisions.begin(SCOPE, Revision(0), "c", Instant(1), b"", "{}", known)
        with pytest.raises(ScopeErased):
            await memory.text.save(SCOPE, [episode("e")], [], None, text)
        now = (await memory.revisions.state(SCOPE, "c")).generation
        await memory.revisions.begin(SCOPE, Revision(0), "c", Instant(1), b"", "{}", now)

    async def test_who_slept_through_an_erasure_neither_begins_nor_ends_another(
        self, memory: SqlMemory
    ) -> None:
        fences = memory.fences
        read = (await fences.fence(SCOPE)).generation
        up = await fences.put_up(SCOPE, read)
        assert await fences.put_up(SCOPE, read) == up, "whose answer was lost"
        assert await fences.put_up(SCOPE, up.generation) == up
        with pytest.raises(WriteConflict):
            await fences.renew(SCOPE, up.generation)
        down = await fences.take_down(SCOPE, up.generation)
        assert await fences.take_down(SCOPE, up.generation) == down
        late = (fences.put_up(SCOPE, read), fences.put_up(SCOPE, up.generation), fences.renew(SCOPE, read))
        for turning in late:
            with pytest.raises(WriteConflict):
                await turning
        assert await fences.fence(SCOPE) == down
        await check_generation(fences, SCOPE, down.generation)
        renewed = await fences.renew(SCOPE, down.generation)
        assert (renewed.generation > down.generation, renewed.up) == (True, False)
        for slept in (down.generation, read):
            with pytest.raises(WriteConflict):
                await check_generation(fences, SCOPE, slept)
        with pytest.raises(WriteConflict):
            await fences.take_down(SCOPE, up.generation)

    async def test_an_erased_scope_has_no_rows_and_keeps_its_fence(self, memory: SqlMemory) -> None:
        await everything(memory, SCOPE)
        await everything(memory, TWINS[0])
        before = await memory.rows(TWINS[0])
        assert await memory.rows(SCOPE) == before
        up = await memory.fences.put_up(SCOPE)
        for _ in range(2):
            await memory.erase(SCOPE)
        assert await memory.rows(SCOPE) == {}
        assert await memory.fences.fence(SCOPE) == up
        assert await memory.rows(TWINS[0]) == before
        await memory.compact()
        assert await memory.rows(TWINS[0]) == before
        await memory.fences.take_down(SCOPE)

    async def test_what_is_purged_is_gone_for_every_revision(self, memory: SqlMemory) -> None:
        for scope in (SCOPE, TWINS[0]):
            spoken = [claim("c1", "gone"), claim("c2", "kept"), claim("c3", "kept", "e2")]
            ended = [end("x", "kept", 1, episode="e2")]
            aspects = [aspect("gone"), aspect("kept")]
            await memory.voice.apply(scope, Revision(1), aspects, spoken, ended, [RecordId("c2")])
            merges = [
                Merge(
                    RecordId(id),
                    EntityId(id),
                    EntityId("other"),
                    MergeKind.SAME,
                    Judge.MODEL,
                    Instant(1),
                    "as it says",
                    recorded_at=Revision(1),
                )
                for id in ("m1", "m2")
            ]
            await memory.readings.apply(scope, Revision(1), merges, [], [RecordId("m1")])
            decisions = [
                Decision(id, Revision(1), Instant(1), "merge", target, "model", "why", other=other)
                for id, target, other in (("d1", "t1", ""), ("d2", "t2", "t1"), ("d3", "t3", ""))
            ]
            await memory.decisions.record(scope, decisions)
        purged = Purged(
            voice=[VoiceId("gone")],
            records=[RecordId("c2")],
            ends=[RecordId("x")],
            targets=["t1"],
            reasons=["t3"],
            merges=[RecordId("m1")],
            merge_reasons=[RecordId("m2")],
        )
        for _ in range(2):
            await memory.purge(SCOPE, purged)
        [left] = (await memory.voice.scan(SCOPE, Page())).items
        assert (left.id, [one.id for one in left.claims]) == ("kept", ["c3"])
        assert [one.why for one in left.ends] == [""]
        listed = (await memory.decisions.list_decisions(SCOPE, None, Page())).items
        assert [(one.id, one.why) for one in listed] == [("d3", "")]
        [merge] = (await memory.readings.list_merges(SCOPE, Page())).items
        assert (merge.id, merge.why, merge.revoked_at) == ("m2", "", None)
        assert (await memory.rows(SCOPE)).get("voice_revocations") is None
        assert len((await memory.decisions.list_decisions(TWINS[0], None, Page())).items) == 3
        assert len((await memory.voice.scan(TWINS[0], Page())).items) == 2

    async def test_texts_are_written_anew_and_passages_go(self, memory: SqlMemory) -> None:
        told = episode("e", document=DOCUMENT, version=1, title="Of Maya", metadata=(("who", "Maya"),))
        for scope in (SCOPE, TWINS[0]):
            await memory.text.save(scope, [told], [passage("p", "e"), passage("q", "e", 1)], version(1))
            await memory.staging.stage(scope, EpisodeId("e"), b"Maya")
        anew = replace(told, text="text", title="Of", metadata=())
        rewritten = Rewritten([anew], [replace(version(1), text="cut", title="T")], [PassageId("p")])
        for _ in range(2):
            await memory.rewrite(SCOPE, rewritten)
        assert await memory.text.episodes(SCOPE, [told.id]) == [anew]
        assert [one.id for one in await memory.text.passages_of(SCOPE, told.id)] == ["q"]
        kept = await memory.text.version(SCOPE, DOCUMENT, 1)
        assert kept is not None
        assert (kept.text, kept.title, kept.hash) == ("cut", "T", version(1).hash)
        assert not await memory.staging.staged(SCOPE, told.id)
        assert await memory.text.episodes(TWINS[0], [told.id]) == [told]
        assert await memory.staging.staged(TWINS[0], told.id) == b"Maya"
