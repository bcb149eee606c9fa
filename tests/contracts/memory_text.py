"""What every store of text and staged payloads must do. A store's test gives the fixture `memory`."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from services.domain.ids import DocumentId, EpisodeId, JobId, PassageId, SessionId
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.errors import UnstorableText, WriteConflict
from services.stores.memory.port import EpisodeFilter
from services.stores.memory.sql import SqlMemory
from services.stores.paging import Page
from tests.contracts.memory_base import (
    DOCUMENT,
    NOW,
    SCOPE,
    SESSION,
    TWINS,
    all_pages,
    episode,
    full_episode,
    hostile,
    passage,
    unstorable,
    version,
    whole_passage,
)


class TextContract:
    """Saving, reading and listing of text."""

    async def test_what_is_saved_comes_back_unchanged(self, memory: SqlMemory) -> None:
        saved, first, second = full_episode(), whole_passage("p", "e"), passage("q", "e", 1)
        await memory.text.save(SCOPE, [saved], [first, second], version(1))
        assert await memory.text.episodes(SCOPE, [EpisodeId("e")]) == [saved]
        assert await memory.text.passages(SCOPE, [PassageId("p")]) == [first]
        assert await memory.text.passages_of(SCOPE, EpisodeId("e")) == [second, first]
        assert await memory.text.version(SCOPE, DOCUMENT, 1) == version(1)

    async def test_saving_again_changes_nothing(self, memory: SqlMemory) -> None:
        await memory.text.save(SCOPE, [episode("e")], [passage("p", "e")], version(1))
        for _ in range(2):
            changed = [episode("e", text="other"), episode("f")]
            passages = [passage("p", "e", text="other"), passage("r", "f")]
            await memory.text.save(SCOPE, changed, passages, version(1, text="other"))
        found = await memory.text.episodes(SCOPE, [EpisodeId("e"), EpisodeId("f")])
        assert [one.text for one in found] == ["text of e", "text of f"]
        assert [one.text for one in await memory.text.passages_of(SCOPE, EpisodeId("e"))] == ["passage p"]
        assert await memory.text.version(SCOPE, DOCUMENT, 1) == version(1)

    async def test_scans_meet_every_episode_and_version(self, memory: SqlMemory) -> None:
        ids = [f"e{number}" for number in range(7)]
        await memory.text.save(SCOPE, [episode(id) for id in ids], [], None)
        await memory.text.save(SCOPE, [full_episode("full")], [passage("p", "full")], version(2))
        await memory.text.save(SCOPE, [], [], version(1))
        await memory.text.save(SCOPE, [], [], version(1, document=DocumentId("another")))
        await memory.text.save(TWINS[0], [episode("twin")], [], version(5))
        await memory.text.delete_episode(SCOPE, EpisodeId("e3"), NOW)
        episodes = await all_pages(lambda page: memory.text.scan_episodes(SCOPE, page), 3)
        assert episodes == await memory.text.episodes(SCOPE, [EpisodeId(id) for id in sorted([*ids, "full"])])
        assert [one.deleted_at for one in episodes].count(NOW) == 1
        versions = await all_pages(lambda page: memory.text.scan_versions(SCOPE, page), 2)
        assert sorted((one.document, one.version) for one in versions) == [
            ("another", 1),
            ("document", 1),
            ("document", 2),
        ]
        assert version(2) in versions

    async def test_reads_by_id_keep_the_order_asked_and_leave_out_what_is_absent(
        self, memory: SqlMemory
    ) -> None:
        ids = [f"e{number}" for number in range(1_200)]
        await memory.text.save(
            SCOPE, [episode(id) for id in ids], [passage(f"p-{id}", id) for id in ids], None
        )
        asked = [EpisodeId(id) for id in [*reversed(ids), "absent", "e1", "\ud800"]]
        assert [one.id for one in await memory.text.episodes(SCOPE, asked)] == list(reversed(ids))
        passages = await memory.text.passages(SCOPE, [PassageId("p-e7"), PassageId("x"), PassageId("p-e2")])
        assert [one.id for one in passages] == ["p-e7", "p-e2"]

    async def test_a_job_gives_its_episodes_in_order(self, memory: SqlMemory) -> None:
        mine = [episode(f"e{9 - position}", position=position) for position in range(5)]
        await memory.text.save(SCOPE, [*mine, episode("x", job=JobId("another"))], [], None)
        assert await memory.text.episodes_of_job(SCOPE, JobId("job")) == mine
        assert await memory.text.episodes_of_job(SCOPE, JobId("absent")) == []

    async def test_recent_gives_the_latest_of_a_session_before_a_time(self, memory: SqlMemory) -> None:
        mine = [episode(f"e{at}", created_at=Instant(at)) for at in (10, 20, 30)]
        chunks = [episode(f"c{at}", created_at=Instant(40), position=at) for at in range(2)]
        other = episode("x", created_at=Instant(25), session=SessionId("other"))
        await memory.text.save(SCOPE, [*mine, *chunks, other], [], None)
        assert await self.recent(memory, 41, 10) == ["c1", "c0", "e30", "e20", "e10"]
        assert await self.recent(memory, 30, 10) == ["e20", "e10"]
        assert await self.recent(memory, 31, 1) == ["e30"]
        await memory.text.delete_episode(SCOPE, EpisodeId("e30"), NOW)
        assert await self.recent(memory, 40, 1) == ["e20"]

    async def recent(self, memory: SqlMemory, before: int, limit: int) -> list[str]:
        found = await memory.text.recent(SCOPE, SESSION, Instant(before), limit)
        return [one.id for one in found]

    async def test_known_hashes_are_those_of_the_session_or_document(self, memory: SqlMemory) -> None:
        document = episode("d", session=None, document=DOCUMENT, version=1)
        passages = [passage("p", "e", hash="one"), passage("q", "d", hash="two")]
        await memory.text.save(SCOPE, [episode("e"), document], passages, None)
        asked = ["one", "two", "three", *(f"many-{number}" for number in range(1_500))]
        known = memory.text.known_hashes
        assert await known(SCOPE, SESSION, None, asked) == {"one"}
        assert await known(SCOPE, None, DOCUMENT, asked) == {"two"}
        assert await known(SCOPE, SESSION, DOCUMENT, asked) == {"one", "two"}
        assert await known(SCOPE, SessionId("document"), DocumentId("session"), asked) == frozenset()
        assert await known(SCOPE, None, None, asked) == frozenset()
        await memory.text.delete_episode(SCOPE, EpisodeId("e"), NOW)
        assert await known(SCOPE, SESSION, None, asked) == frozenset()

    async def test_known_message_ids_are_those_of_the_session(self, memory: SqlMemory) -> None:
        passages = [passage("p", "e", message_id="m-1"), passage("q", "e", 1)]
        await memory.text.save(SCOPE, [episode("e")], passages, None)
        asked = ["m-2", "", "m-1", "\ud800"]
        assert await memory.text.known_message_ids(SCOPE, SESSION, asked) == {"m-1"}
        assert await memory.text.known_message_ids(SCOPE, SessionId("other"), asked) == frozenset()

    async def test_what_could_not_be_understood_is_kept_and_not_known(self, memory: SqlMemory) -> None:
        passages = [passage("p", "e", hash="one", message_id="m-1"), passage("q", "f", hash="two")]
        await memory.text.save(SCOPE, [episode("e"), episode("f")], passages, None)
        await memory.text.mark_unlearned(SCOPE, EpisodeId("e"), NOW)
        await memory.text.mark_unlearned(SCOPE, EpisodeId("absent"), NOW)
        assert await memory.text.known_hashes(SCOPE, SESSION, None, ["one", "two"]) == {"two"}
        assert await memory.text.known_message_ids(SCOPE, SESSION, ["m-1"]) == frozenset()
        (kept,) = await memory.text.episodes(SCOPE, [EpisodeId("e")])
        assert kept == replace(episode("e"), unlearned_at=NOW)
        assert len(await memory.text.passages_of(SCOPE, EpisodeId("e"))) == 1
        for id in ("e", "absent"):
            await memory.text.mark_learned(SCOPE, EpisodeId(id))
        assert await memory.text.episodes(SCOPE, [EpisodeId("e")]) == [episode("e")]
        assert await memory.text.known_hashes(SCOPE, SESSION, None, ["one", "two"]) == {"one", "two"}

    async def test_passages_can_be_added_to_an_episode_that_is_there(self, memory: SqlMemory) -> None:
        await memory.text.save(SCOPE, [episode("e")], [], None)
        await memory.text.save(SCOPE, [], [passage("p", "e", hash="one")], None)
        assert await memory.text.known_hashes(SCOPE, SESSION, None, ["one"]) == {"one"}
        with pytest.raises(ValueError, match="not there"):
            await memory.text.save(SCOPE, [episode("f")], [passage("q", "absent")], None)
        assert await memory.text.episodes(SCOPE, [EpisodeId("f")]) == []

    async def test_versions_are_counted_and_belong_to_one_job(self, memory: SqlMemory) -> None:
        for number in (2, 10, 1):
            await memory.text.save(SCOPE, [], [], version(number))
        assert await memory.text.latest_version(SCOPE, DOCUMENT) == version(10)
        assert await memory.text.version_of_job(SCOPE, JobId("job-2")) == version(2)
        assert await memory.text.version(SCOPE, DOCUMENT, 3) is None
        assert await memory.text.latest_version(SCOPE, DocumentId("other")) is None
        with pytest.raises(WriteConflict):
            await memory.text.save(SCOPE, [episode("e")], [], version(2, job=JobId("another")))
        assert await memory.text.episodes(SCOPE, [EpisodeId("e")]) == []

    async def test_of_jobs_that_save_one_version_at_once_one_wins(self, memory: SqlMemory) -> None:
        async def save(number: int) -> bool:
            job = JobId(f"job-{number}")
            try:
                await memory.text.save(SCOPE, [episode(f"e{number}", job=job)], [], version(1, job=job))
            except WriteConflict:
                return False
            return True

        won = await asyncio.gather(*(save(number) for number in range(8)))
        assert won.count(True) == 1
        saved = await memory.text.version(SCOPE, DOCUMENT, 1)
        assert saved is not None
        assert saved.job == JobId(f"job-{won.index(True)}")
        assert await memory.text.count_episodes(SCOPE) == 1

    async def test_a_documents_passages_of_earlier_versions(self, memory: SqlMemory) -> None:
        episodes = [episode(f"d{n}", session=None, document=DOCUMENT, version=n) for n in (1, 2, 3)]
        passages = [passage(f"p{n}-{part}", f"d{n}", part) for n in (1, 2, 3) for part in range(3)]
        await memory.text.save(SCOPE, episodes, passages, None)

        async def earlier(page: Page) -> Any:
            return await memory.text.document_passages(SCOPE, DOCUMENT, 3, page)

        for size in (1, 2, 6, 100):
            found = await all_pages(earlier, size)
            assert [one.id for one in found] == [one.id for one in passages[:6]]
        await memory.text.delete_episode(SCOPE, EpisodeId("d1"), NOW)
        assert {one.episode for one in (await earlier(Page())).items} == {"d2"}

    async def test_lists_are_paged_in_a_stable_order(self, memory: SqlMemory) -> None:
        said = [5, 3, 3, 9, 1, 3, 7]
        saved = [episode(f"e{n}", reference_time=Instant(at)) for n, at in enumerate(said)]
        document = episode("d", session=None, document=DOCUMENT, reference_time=Instant(4))
        await memory.text.save(SCOPE, [*saved, document], [passage(f"p{n}", f"e{n}") for n in range(7)], None)
        await memory.text.delete_episode(SCOPE, EpisodeId("e2"), NOW)
        expected = ["e4", "e1", "e5", "e0", "e6", "e3"]
        for size in (1, 2, 3, 6, 50):
            in_session = await all_pages(
                lambda page: memory.text.list_episodes(SCOPE, SESSION, None, page), size
            )
            assert [one.id for one in in_session] == expected
            every = await all_pages(lambda page: memory.text.list_episodes(SCOPE, None, None, page), size)
            assert [one.id for one in every] == [*expected[:3], "d", *expected[3:]]
            scanned = await all_pages(lambda page: memory.text.scan_passages(SCOPE, page), size)
            assert sorted(one.id for one in scanned) == ["p0", "p1", "p3", "p4", "p5", "p6"]
        of_document = await memory.text.list_episodes(SCOPE, None, DOCUMENT, Page())
        assert [one.id for one in of_document.items] == ["d"]
        assert await memory.text.count_episodes(SCOPE) == 7

    async def test_latest_episodes_by_every_filter(self, memory: SqlMemory) -> None:
        saved = [
            episode("a", reference_time=Instant(1), source="mail"),
            episode("b", reference_time=Instant(3), source="chat", session=None),
            episode("c", reference_time=Instant(3), source="mail", document=DOCUMENT, version=1),
            episode("d", reference_time=Instant(2), source="mail", session=None),
            episode("gone", reference_time=Instant(3), source="mail"),
        ]
        await memory.text.save(SCOPE, saved, [], None)
        await memory.text.delete_episode(SCOPE, EpisodeId("gone"), NOW)
        expected = {
            EpisodeFilter(): "cbda",
            EpisodeFilter(session=SESSION): "ca",
            EpisodeFilter(document=DOCUMENT): "c",
            EpisodeFilter(source="mail"): "cda",
            EpisodeFilter(source="mail", since=Instant(2), until=Instant(3)): "d",
            EpisodeFilter(since=Instant(3)): "cb",
            EpisodeFilter(until=Instant(2)): "a",
            EpisodeFilter(source="'"): "",
            EpisodeFilter(source="\x00"): "",
            EpisodeFilter(session=SESSION, source="chat"): "",
        }
        for where, ids in expected.items():
            for size in (1, 2, 50):
                found = await all_pages(
                    lambda page, where=where: memory.text.latest_episodes(SCOPE, where, page), size
                )
                assert "".join(one.id for one in found) == ids
        for twin in TWINS:
            assert (await memory.text.latest_episodes(twin, EpisodeFilter(), Page())).items == []
        with pytest.raises(ValueError, match="position"):
            await memory.text.latest_episodes(SCOPE, EpisodeFilter(), Page(2, "[1]"))

    async def test_a_page_goes_on_where_it_ended_whatever_was_added(self, memory: SqlMemory) -> None:
        await memory.text.save(
            SCOPE, [episode(f"e{n}", reference_time=Instant(n)) for n in (1, 3, 5)], [], None
        )
        first = await memory.text.list_episodes(SCOPE, None, None, Page(2))
        await memory.text.save(SCOPE, [episode(f"e{n}", reference_time=Instant(n)) for n in (0, 4)], [], None)
        rest = await memory.text.list_episodes(SCOPE, None, None, Page(2, first.after))
        assert [one.id for one in [*first.items, *rest.items]] == ["e1", "e3", "e4", "e5"]

    @pytest.mark.parametrize(
        "token", ["x", "[1]", '["a", "b"]', '[1, "\\u0000"]', "[1, 2]", "null", f'[{2**70}, "a"]']
    )
    async def test_a_foreign_position_is_refused(self, memory: SqlMemory, token: str) -> None:
        with pytest.raises(ValueError, match="position"):
            await memory.text.list_episodes(SCOPE, None, None, Page(2, token))

    @hostile
    async def test_strange_text_comes_back_unchanged(self, memory: SqlMemory, text: str) -> None:
        saved = episode(
            "e",
            text=text,
            title=text,
            source=text,
            session=SessionId(text),
            document=DocumentId(text),
            version=1,
            heading=(text, "x"),
            metadata=((text, text),),
        )
        said = passage("p", "e", text=text, speaker=text, message_id=text)
        kept = version(1, document=DocumentId(text), text=text, title=text)
        await memory.text.save(SCOPE, [saved], [said], kept)
        assert await memory.text.episodes(SCOPE, [EpisodeId("e")]) == [saved]
        assert await memory.text.passages_of(SCOPE, EpisodeId("e")) == [said]
        assert await memory.text.latest_version(SCOPE, DocumentId(text)) == kept
        assert await memory.text.known_hashes(SCOPE, SessionId(text), None, ["hash-p"]) == {"hash-p"}
        known = await memory.text.known_message_ids(SCOPE, SessionId(text), [text])
        assert known == ({text} if text else frozenset())
        found = await memory.text.list_episodes(SCOPE, SessionId(text), DocumentId(text), Page())
        assert found.items == [saved]

    @unstorable
    async def test_text_that_can_not_be_stored_is_refused_whole(self, memory: SqlMemory, text: str) -> None:
        good = episode("good")
        for bad in (
            {"text": text},
            {"title": text},
            {"source": text},
            {"session": SessionId(text)},
            {"document": DocumentId(text)},
            {"heading": ("x", text)},
            {"metadata": (("x", text),)},
            {"metadata": ((text, "x"),)},
        ):
            with pytest.raises(UnstorableText) as raised:
                await memory.text.save(SCOPE, [good, episode("bad", **bad)], [], version(1))
            assert text not in str(raised.value)
        for column in ("text", "speaker", "message_id"):
            columns: dict[str, Any] = {column: text}
            said = passage("p", "good", **columns)
            with pytest.raises(UnstorableText):
                await memory.text.save(SCOPE, [good], [said], None)
        for bad in ({"text": text}, {"title": text}, {"document": DocumentId(text)}):
            with pytest.raises(UnstorableText):
                await memory.text.save(SCOPE, [good], [], version(1, **bad))
        assert await memory.text.count_episodes(SCOPE) == 0
        assert await memory.text.latest_version(SCOPE, DOCUMENT) is None

    @unstorable
    async def test_what_can_not_be_stored_is_not_found(self, memory: SqlMemory, text: str) -> None:
        store = memory.text
        assert await store.episodes(SCOPE, [EpisodeId(text)]) == []
        assert await store.passages(SCOPE, [PassageId(text)]) == []
        assert await store.passages_of(SCOPE, EpisodeId(text)) == []
        assert await store.episodes_of_job(SCOPE, JobId(text)) == []
        assert await store.recent(SCOPE, SessionId(text), NOW, 5) == []
        assert await store.known_hashes(SCOPE, SessionId(text), DocumentId(text), [text]) == frozenset()
        assert await store.known_message_ids(SCOPE, SessionId(text), [text]) == frozenset()
        assert await store.latest_version(SCOPE, DocumentId(text)) is None
        assert await store.version_of_job(SCOPE, JobId(text)) is None
        assert await store.delete_episode(SCOPE, EpisodeId(text), NOW) is False
        assert await memory.staging.staged(SCOPE, EpisodeId(text)) is None
        await memory.staging.unstage(SCOPE, EpisodeId(text))


async def everything(memory: SqlMemory, scope: Scope) -> list[Any]:
    """What the reads of text and staging show of a scope."""
    text = memory.text
    return [
        await text.episodes(scope, [EpisodeId("e")]),
        await text.passages(scope, [PassageId("p")]),
        await text.passages_of(scope, EpisodeId("e")),
        await text.episodes_of_job(scope, JobId("job")),
        await text.recent(scope, SESSION, Instant(10**15), 9),
        await text.known_hashes(scope, SESSION, DOCUMENT, ["hash-p"]),
        await text.known_message_ids(scope, SESSION, ["m-1"]),
        await text.latest_version(scope, DOCUMENT),
        await text.version(scope, DOCUMENT, 1),
        await text.version_of_job(scope, JobId("job-1")),
        await text.version_heads(scope, DOCUMENT),
        await text.last_version(scope, DOCUMENT),
        await text.of_document(scope, DOCUMENT),
        await text.of_document(scope, DOCUMENT, 1),
        await text.of_source(scope, "source", 10),
        (await text.document_passages(scope, DOCUMENT, 9, Page())).items,
        (await text.list_episodes(scope, None, None, Page())).items,
        (await text.scan_passages(scope, Page())).items,
        (await text.scan_episodes(scope, Page())).items,
        (await text.scan_versions(scope, Page())).items,
        await text.count_episodes(scope),
        await memory.staging.staged(scope, EpisodeId("e")),
    ]


class TextIsolationContract:
    """Twin scopes with the same ids."""

    async def fill(self, memory: SqlMemory, scope: Scope, words: str) -> None:
        saved = episode("e", text=words, document=DOCUMENT, version=1, source="source")
        await memory.text.save(scope, [saved], [whole_passage("p", "e")], version(1, text=words))
        await memory.staging.stage(scope, EpisodeId("e"), words.encode())

    async def test_twins_see_and_change_nothing_of_each_other(self, memory: SqlMemory) -> None:
        await self.fill(memory, SCOPE, "mine")
        mine = await everything(memory, SCOPE)
        assert all(mine)
        for twin in TWINS:
            assert not any(await everything(memory, twin))
            await self.fill(memory, twin, "theirs")
            assert "mine" not in repr(await everything(memory, twin))
            await memory.text.delete_episode(twin, EpisodeId("e"), NOW)
            await memory.staging.unstage(twin, EpisodeId("e"))
            await memory.erase(twin)
        assert await everything(memory, SCOPE) == mine

    async def test_an_erased_scope_has_nothing_left(self, memory: SqlMemory) -> None:
        await self.fill(memory, SCOPE, "mine")
        for _ in range(2):
            await memory.erase(SCOPE)
            assert not any(await everything(memory, SCOPE))
