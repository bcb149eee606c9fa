"""The preprocessor's calls on a real store in SQLite."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from palimpsest.internal.v1 import preprocessor_pb2 as pb
from services.domain.errors import DocumentNotFound, EpisodeNotFound, ValidationFailed
from services.domain.ids import DocumentId, EpisodeId, JobId, PassageId, SessionId, session_key
from services.domain.instants import Instant
from services.domain.memory import DocumentVersion, Episode, EpisodeKind, Passage, Role
from services.domain.scope import GraphId, Scope, TenantId
from services.preprocessor.service import Preprocessor
from services.stores.errors import StoreUnavailable, UnstorableText, WriteConflict
from services.stores.memory.sql import SqlMemory
from services.stores.paging import Page
from services.stores.sql.engine import sqlite_engine
from services.stores.vectors.port import Collection, VectorFilter
from tests.doubles.embedder import HashEmbedder
from tests.doubles.vectors import ArrayVectorStore

SCOPE = Scope(TenantId("acme"), GraphId("maya"))
TWIN = Scope(TenantId("other"), GraphId("maya"))
NOON = 1_750_000_000_000_000


class Bench:
    """A preprocessor with its stores, and short ways to ask it."""

    def __init__(self, memory: SqlMemory) -> None:
        self.text = memory.text
        self.vectors = ArrayVectorStore(64)
        self.clock = NOON + 1
        self.service = Preprocessor(self.text, self.vectors, HashEmbedder(64), lambda: Instant(self.clock))

    async def document(self, job: str, text: str, id: str = "atlas", at: int = NOON) -> pb.PreprocessResponse:
        source = pb.Source(kind="document", text=text, document_id=id, reference_time=at)
        return await self.ask(job, source)

    async def talk(self, job: str, *texts: str, ids: bool = True, at: int = NOON) -> pb.PreprocessResponse:
        """Messages of one session; their ids are their texts."""
        messages = [
            pb.SourceMessage(message_id=text if ids else "", role="user", speaker="Maya", text=text)
            for text in texts
        ]
        source = pb.Source(kind="conversation", messages=messages, session_id="s1", reference_time=at)
        return await self.ask(job, source)

    async def ask(self, job: str, source: pb.Source, scope: Scope = SCOPE) -> pb.PreprocessResponse:
        return await self.service.preprocess(scope, pb.PreprocessRequest(job_id=job, source=source))

    async def passages(self, response: pb.PreprocessResponse, scope: Scope = SCOPE) -> list[Passage]:
        found: list[Passage] = []
        for chunk in response.chunks:
            found += await self.text.passages_of(scope, EpisodeId(chunk.episode_id))
        return found

    async def episodes(self, response: pb.PreprocessResponse) -> list[Episode]:
        ids = [EpisodeId(chunk.episode_id) for chunk in response.chunks]
        return list(await self.text.episodes(SCOPE, ids))

    async def gone(self, response: pb.PreprocessResponse) -> set[str]:
        ids = [PassageId(id) for id in response.removed_passage_ids]
        return {passage.text for passage in await self.text.passages(SCOPE, ids)}

    async def everything(self) -> list[object]:
        passages = await self.text.scan_passages(SCOPE, Page(1_000))
        rows = await self.vectors.fetch(SCOPE, Collection.PASSAGES, [one.id for one in passages.items])
        return [passages, sorted(rows), await self.vectors.count(SCOPE, Collection.PASSAGES)]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    memory = await SqlMemory.open(sqlite_engine(tmp_path / "memory.db"))
    yield Bench(memory)
    await memory.close()


async def test_a_conversation_becomes_an_episode_with_a_passage_a_message(bench: Bench) -> None:
    source = pb.Source(
        kind="conversation",
        messages=[
            pb.SourceMessage(message_id="m1", role="user", speaker="Maya", text="I live in Graz.\nStill."),
            pb.SourceMessage(role="assistant", text="Noted."),
            pb.SourceMessage(role="user", text="   "),
            pb.SourceMessage(role="user", speaker="Maya", text=" And work. ", said_at=NOON - 5),
        ],
        session_id="s1",
        title="Hello",
        source="chat",
        reference_time=NOON,
    )
    response = await bench.ask("j1", source)
    [episode] = await bench.episodes(response)
    assert episode.text == "Maya: I live in Graz.\nStill.\nassistant: Noted.\nMaya:  And work. \n"
    assert (episode.kind, episode.session, episode.document) == (EpisodeKind.CONVERSATION, "s1", None)
    assert (episode.title, episode.source, episode.reference_time) == ("Hello", "chat", NOON)
    assert (episode.created_at, episode.job, episode.position) == (NOON + 1, "j1", 0)
    assert response.tokens == episode.tokens == response.chunks[0].tokens
    assert (response.tokens_saved, response.version, response.nothing) == (0, 0, "")
    passages = await bench.passages(response)
    assert [(one.speaker, one.role, one.text, one.message_id, one.said_at) for one in passages] == [
        ("Maya", Role.USER, "I live in Graz.\nStill.", "m1", NOON),
        ("", Role.ASSISTANT, "Noted.", "", NOON),
        ("Maya", Role.USER, " And work. ", "", NOON - 5),
    ]
    assert all(episode.text[one.start : one.end] == one.text for one in passages)


async def test_a_conversation_without_messages_is_the_users_words(bench: Bench) -> None:
    text = "I live in Graz.\n\nMy cat is Miso.\n"
    response = await bench.ask("j1", pb.Source(kind="conversation", text=text, reference_time=NOON))
    [episode] = await bench.episodes(response)
    assert episode.text == text
    passages = await bench.passages(response)
    assert [(one.role, one.text) for one in passages] == [
        (Role.USER, "I live in Graz."),
        (Role.USER, "My cat is Miso."),
    ]


async def test_passages_are_found_by_their_vectors_and_columns(bench: Bench) -> None:
    response = await bench.talk("j1", "I live in Graz.", "My cat is Miso.")
    first, second = await bench.passages(response)
    [query] = await HashEmbedder(64).queries(["my cat is miso"])
    where = VectorFilter(sessions=[session_key(SCOPE, SessionId("s1"))])
    [hits] = await bench.vectors.search(SCOPE, Collection.PASSAGES, [query], 2, where)
    assert [hit.id for hit in hits] == [second.id, first.id]
    rows = await bench.vectors.fetch(SCOPE, Collection.PASSAGES, [first.id])
    assert (rows[first.id].valid_at, rows[first.id].created_at) == (NOON, NOON)


async def test_a_repeated_job_answers_the_same_and_writes_nothing(bench: Bench) -> None:
    first = await bench.document("j1", "# A\n\n" + "One plain sentence of it. " * 900)
    assert len(first.chunks) > 2
    before = await bench.everything()
    bench.clock += 1_000
    assert await bench.document("j1", "# A\n\n" + "One plain sentence of it. " * 900) == first
    assert await bench.everything() == before


async def test_a_job_goes_on_where_it_stopped(bench: Bench) -> None:
    bench.vectors.down = True
    with pytest.raises(StoreUnavailable):
        await bench.talk("j1", "I live in Graz.")
    bench.vectors.down = False
    response = await bench.talk("j1", "I live in Graz.")
    assert len(response.chunks) == 1
    assert await bench.vectors.count(SCOPE, Collection.PASSAGES) == 1


async def test_known_messages_add_nothing(bench: Bench) -> None:
    await bench.talk("j1", "I live in Graz.", "My cat is Miso.")
    response = await bench.talk("j2", "I live in Graz.", "My cat is Miso.", "I work at Initech.", at=NOON + 9)
    assert [one.text for one in await bench.passages(response)] == ["I work at Initech."]
    assert 0 < response.tokens_saved < response.tokens
    again = await bench.talk("j3", "I live in Graz.", "I work at Initech.")
    assert (again.nothing, list(again.chunks), again.tokens_saved) == ("DUPLICATE_CONTENT", [], again.tokens)


async def test_messages_without_ids_are_known_by_speaker_text_and_time(bench: Bench) -> None:
    await bench.talk("j1", "Yes.", ids=False)
    assert (await bench.talk("j2", "Yes.", ids=False)).nothing == "DUPLICATE_CONTENT"
    assert len((await bench.talk("j3", "Yes.", ids=False, at=NOON + 1)).chunks) == 1


async def test_the_same_words_twice_in_one_conversation_are_both_kept(bench: Bench) -> None:
    response = await bench.talk("j1", "Yes.", "Really?", "Yes.", ids=False)
    assert [one.text for one in await bench.passages(response)] == ["Yes.", "Really?", "Yes."]


async def test_a_message_of_several_chunks_is_known_again_as_a_whole(bench: Bench) -> None:
    long = "One plain sentence of it. " * 900
    first = await bench.talk("j1", long, ids=False)
    assert len(first.chunks) > 2
    for passage in await bench.passages(first):
        [episode] = await bench.text.episodes(SCOPE, [passage.episode])
        assert episode.text[passage.start : passage.end] == passage.text
    assert (await bench.talk("j2", long, ids=False)).nothing == "DUPLICATE_CONTENT"


async def test_what_another_session_knows_is_new_here(bench: Bench) -> None:
    await bench.talk("j1", "I live in Graz.")
    source = pb.Source(kind="conversation", text="I live in Graz.", session_id="s2", reference_time=NOON)
    assert len((await bench.ask("j2", source)).chunks) == 1


async def test_an_unchanged_document_is_nothing(bench: Bench) -> None:
    first = await bench.document("j1", "Atlas uses MySQL.")
    again = await bench.document("j2", "Atlas uses MySQL.", at=NOON + 1)
    assert (first.version, again.version) == (1, 1)
    assert (again.nothing, list(again.chunks), again.tokens_saved) == ("UNCHANGED_DOCUMENT", [], again.tokens)


async def test_a_new_version_brings_its_changed_paragraphs_alone(bench: Bench) -> None:
    shared = "".join(f"Paragraph {number} stays as it is.\n\n" for number in range(40))
    await bench.document("j1", f"# Atlas\n\n{shared}## Storage\n\nIt uses MySQL. It is slow.\n")
    after = f"# Atlas\n\n{shared}## Storage\n\nIt uses PostgreSQL. It is slow.\n"
    response = await bench.document("j2", after, at=NOON + 1)
    [episode] = await bench.episodes(response)
    assert episode.text == "It uses PostgreSQL. It is slow."
    assert (episode.heading, episode.version, episode.document) == (("Atlas", "Storage"), 2, "atlas")
    assert response.tokens_saved == response.tokens - episode.tokens > 300
    assert await bench.gone(response) == {"It uses MySQL. It is slow."}
    whole = await bench.service.get_document(SCOPE, pb.GetDocumentRequest(document_id="atlas"))
    assert (whole.version, whole.text, whole.reference_time) == (2, after, NOON + 1)


async def test_every_passage_that_the_newest_version_lacks_is_named(bench: Bench) -> None:
    await bench.document("j1", "One.\n\nTwo.\n\nThree.")
    await bench.document("j2", "One.\n\nTwo and a half.\n\nThree.")
    third = await bench.document("j3", "Three.\n\nOne.")
    assert (third.version, list(third.chunks), third.nothing) == (3, [], "DUPLICATE_CONTENT")
    assert await bench.gone(third) == {"Two.", "Two and a half."}
    assert await bench.document("j3", "Three.\n\nOne.") == third
    back = await bench.document("j4", "Three.\n\nOne.\n\nTwo.")
    assert [one.text for one in await bench.passages(back)] == ["Two."]
    assert await bench.gone(back) == {"Two and a half."}


async def test_an_older_job_that_comes_again_names_no_later_passage(bench: Bench) -> None:
    await bench.document("j1", "One.")
    second = await bench.document("j2", "Two.")
    await bench.document("j3", "Three.")
    assert await bench.document("j2", "Two.") == second


async def test_passages_of_a_deleted_episode_are_not_named(bench: Bench) -> None:
    first = await bench.document("j1", "One.")
    request = pb.DeleteEpisodeTextRequest(episode_id=first.chunks[0].episode_id)
    await bench.service.delete_episode_text(SCOPE, request)
    assert list((await bench.document("j2", "Two.")).removed_passage_ids) == []


async def test_running_summaries_of_a_session_are_compared(bench: Bench) -> None:
    def summary(text: str, session: str = "s1") -> pb.Source:
        return pb.Source(kind="compacted_session", text=text, session_id=session, reference_time=NOON)

    await bench.ask("j1", summary("Maya lives in Graz.\n\nShe has a cat."))
    second = await bench.ask("j2", summary("Maya lives in Graz.\n\nShe has a cat.\n\nShe left Initech."))
    [episode] = await bench.episodes(second)
    assert (episode.text, episode.session, second.version) == ("She left Initech.", "s1", 2)
    other = await bench.ask("j3", summary("Maya lives in Graz.", "s2"))
    assert (other.version, len(other.chunks)) == (1, 1)


async def test_a_document_without_a_name_has_no_versions(bench: Bench) -> None:
    for job in ("j1", "j2"):
        response = await bench.document(job, "Atlas uses MySQL.", id="")
        assert (len(response.chunks), response.version) == (1, 0)


async def test_versions_of_two_jobs_at_once_follow_each_other(bench: Bench) -> None:
    class Overtaken:
        """The same store, in which another job saves a version just before ours."""

        def __init__(self) -> None:
            self.raced = False

        def __getattr__(self, name: str) -> object:
            return getattr(bench.text, name)

        async def save(
            self, scope: Scope, episodes: list[Episode], passages: list[Passage], version: DocumentVersion
        ) -> None:
            if not self.raced:
                self.raced = True
                await bench.document("other", "One.\n\nTwo.")
            await bench.text.save(scope, episodes, passages, version)

    service = Preprocessor(
        Overtaken(),  # type: ignore[arg-type]  # passes on what it does not change
        bench.vectors,
        HashEmbedder(64),
        lambda: Instant(bench.clock),
    )
    source = pb.Source(kind="document", text="One.\n\nThree.", document_id="atlas", reference_time=NOON)
    response = await service.preprocess(SCOPE, pb.PreprocessRequest(job_id="ours", source=source))
    assert response.version == 2
    assert [one.text for one in await bench.passages(response)] == ["Three."]
    assert await bench.gone(response) == {"Two."}


async def test_a_conflict_that_does_not_end_is_told(bench: Bench) -> None:
    class Contended:
        def __getattr__(self, name: str) -> object:
            return getattr(bench.text, name)

        async def save(self, *_: object) -> None:
            raise WriteConflict("another job saved this version of the document")

    service = Preprocessor(
        Contended(),  # type: ignore[arg-type]  # passes on what it does not change
        bench.vectors,
        HashEmbedder(64),
        lambda: Instant(bench.clock),
    )
    source = pb.Source(kind="document", text="One.", document_id="atlas", reference_time=NOON)
    with pytest.raises(WriteConflict):
        await service.preprocess(SCOPE, pb.PreprocessRequest(job_id="j", source=source))


async def test_recalled_text_leaves_nothing_to_understand_and_to_find(bench: Bench) -> None:
    block = "What I know:\n- (Maya) --[lives_in]--> (Graz)  since 2025-01-01 [e1]"
    response = await bench.talk("j1", block)
    assert [chunk.nothing for chunk in response.chunks] == ["RECALLED_TEXT"]
    assert await bench.vectors.count(SCOPE, Collection.PASSAGES) == 0
    mixed = await bench.talk("j2", block + "\n", "My cat is Miso.")
    assert [chunk.nothing for chunk in mixed.chunks] == [""]
    assert await bench.vectors.count(SCOPE, Collection.PASSAGES) == 1


@pytest.mark.parametrize("kind", ["conversation", "document"])
async def test_a_text_without_a_word_is_nothing(bench: Bench, kind: str) -> None:
    response = await bench.ask("j1", pb.Source(kind=kind, text=" \n\n ", reference_time=NOON))
    assert (list(response.chunks), response.nothing) == ([], "NO_DURABLE_FACT")


async def test_asserted_triples_are_kept_one_episode_a_time(bench: Bench) -> None:
    request = pb.RecordAssertionsRequest(
        job_id="j1",
        source="import",
        groups=[
            pb.AssertionGroup(reference_time=NOON, lines=["Maya lives in Graz.", "Maya knows Wen."]),
            pb.AssertionGroup(reference_time=NOON - 9, lines=["Maya lived in Linz."]),
        ],
    )
    response = await bench.service.record_assertions(SCOPE, request)
    first, second = response.episodes
    assert (first.kind, first.reference_time, second.reference_time) == ("assertion", NOON, NOON - 9)
    assert [passage.text for passage in first.passages] == list(request.groups[0].lines)
    assert all(first.text[one.start : one.end] == one.text for one in first.passages)
    assert await bench.vectors.count(SCOPE, Collection.PASSAGES) == 3
    bench.clock += 1
    assert await bench.service.record_assertions(SCOPE, request) == response


async def test_a_quote_counts_all_and_writes_nothing(bench: Bench) -> None:
    text = "One plain sentence of it. " * 900
    source = pb.Source(kind="document", text=text, document_id="atlas", reference_time=NOON)
    quote = await bench.service.quote(SCOPE, pb.QuoteRequest(source=source))
    assert await bench.text.latest_version(SCOPE, DocumentId("atlas")) is None
    response = await bench.ask("j1", source)
    assert (quote.tokens, quote.chunks) == (response.tokens, len(response.chunks))
    blank = await bench.service.quote(SCOPE, pb.QuoteRequest(source=pb.Source(kind="document")))
    assert (blank.tokens, blank.chunks) == (0, 0)


async def test_any_version_of_a_document_can_be_read(bench: Bench) -> None:
    await bench.document("j1", "One.")
    await bench.document("j2", "Two.")
    first = await bench.service.get_document(SCOPE, pb.GetDocumentRequest(document_id="atlas", version=1))
    assert (first.text, first.version, first.created_at) == ("One.", 1, NOON + 1)
    for scope, id, version in ((SCOPE, "atlas", 3), (SCOPE, "other", 0), (TWIN, "atlas", 0)):
        with pytest.raises(DocumentNotFound):
            await bench.service.get_document(scope, pb.GetDocumentRequest(document_id=id, version=version))


async def test_deleting_an_episode_leaves_no_text_and_no_vector(bench: Bench) -> None:
    response = await bench.talk("j1", "I live in Graz.")
    await bench.talk("j2", "My cat is Miso.")
    request = pb.DeleteEpisodeTextRequest(episode_id=response.chunks[0].episode_id)
    with pytest.raises(EpisodeNotFound):
        await bench.service.delete_episode_text(TWIN, request)
    assert (await bench.service.delete_episode_text(SCOPE, request)).deleted
    assert not (await bench.service.delete_episode_text(SCOPE, request)).deleted
    [episode] = await bench.episodes(response)
    assert (episode.text, episode.deleted_at) == ("", bench.clock)
    assert await bench.passages(response) == []
    assert await bench.vectors.count(SCOPE, Collection.PASSAGES) == 1
    [chunk] = (await bench.talk("j1", "I live in Graz.")).chunks
    assert chunk.nothing == "NO_DURABLE_FACT", "a job that comes again does not bring it back"


async def test_twins_share_nothing(bench: Bench) -> None:
    source = pb.Source(kind="document", text="Canary.", document_id="atlas", reference_time=NOON)
    ours, theirs = await bench.ask("j1", source), await bench.ask("j1", source, TWIN)
    assert (ours.version, theirs.version) == (1, 1)
    assert ours.chunks[0].episode_id != theirs.chunks[0].episode_id
    assert await bench.passages(ours, TWIN) == []
    assert await bench.text.episodes_of_job(TWIN, JobId("j2")) == []


@pytest.mark.parametrize(
    "source",
    [
        pb.Source(kind="assertion", text="x"),
        pb.Source(kind="", text="x"),
        pb.Source(kind="conversation", messages=[pb.SourceMessage(role="root", text="x")]),
    ],
)
async def test_wrong_kinds_and_roles_are_refused(bench: Bench, source: pb.Source) -> None:
    with pytest.raises(ValidationFailed):
        await bench.ask("j1", source)


async def test_text_that_no_store_keeps_is_refused_before_anything_is_written(bench: Bench) -> None:
    with pytest.raises(UnstorableText):
        await bench.document("j1", "One.\n\nT\x00wo.")
    assert await bench.text.count_episodes(SCOPE) == 0
    assert (await bench.document("j1", "One.")).version == 1
