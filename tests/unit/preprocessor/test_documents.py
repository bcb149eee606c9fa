"""Documents, their versions and running summaries, on a real store in SQLite."""

from typing import Any

import pytest

from palimpsest.internal.v1 import preprocessor_pb2 as pb
from services.domain.errors import DocumentNotFound
from services.domain.ids import DocumentId
from services.domain.instants import Instant
from services.domain.memory import DocumentVersion, Episode, Passage
from services.domain.scope import Scope
from services.preprocessor.service import Preprocessor
from services.stores.errors import WriteConflict
from tests.doubles.embedder import HashEmbedder
from tests.unit.preprocessor.bench import NOON, SCOPE, TWIN, Bench


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


async def test_what_stood_beside_a_removed_sentence_is_said_anew(bench: Bench) -> None:
    """Else its facts would end with a passage that the document still says in part."""
    await bench.document("j1", "It uses MySQL. It has one replica.\n\nMore.")
    second = await bench.document("j2", "It uses MySQL.\n\nMore.", at=NOON + 1)
    assert [one.text for one in await bench.passages(second)] == ["It uses MySQL."]
    assert await bench.gone(second) == {"It uses MySQL. It has one replica."}
    third = await bench.document("j3", "More.\n\nIt uses MySQL.", at=NOON + 2)
    assert (list(third.chunks), third.version) == ([], 3)


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


async def test_what_was_deleted_is_learned_anew_when_it_is_sent_again(bench: Bench) -> None:
    first = await bench.document("j1", "One paragraph that is long enough to be found.\n\nTwo.")
    request = pb.DeleteEpisodeTextRequest(episode_id=first.chunks[0].episode_id)
    await bench.service.delete_episode_text(SCOPE, request)
    again = await bench.document("j2", "One paragraph that is long enough to be found.\n\nTwo.")
    assert (again.version, again.nothing, len(again.chunks)) == (2, "", 1)
    assert len(await bench.passages(again)) == 2


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
            self,
            scope: Scope,
            episodes: list[Episode],
            passages: list[Passage],
            version: DocumentVersion,
            generation: int,
            *,
            unknown: bool,
        ) -> None:
            if not self.raced:
                self.raced = True
                await bench.document("other", "One.\n\nTwo.")
            await bench.text.save(scope, episodes, passages, version, generation, unknown=unknown)

    service = Preprocessor(
        Overtaken(),  # type: ignore[arg-type]  # passes on what it does not change
        bench.vectors,
        HashEmbedder(64),
        lambda: Instant(bench.clock),
        bench.memory,
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

        async def save(self, *_: object, **__: object) -> None:
            raise WriteConflict("another job saved this version of the document")

    service = Preprocessor(
        Contended(),  # type: ignore[arg-type]  # passes on what it does not change
        bench.vectors,
        HashEmbedder(64),
        lambda: Instant(bench.clock),
        bench.memory,
    )
    source = pb.Source(kind="document", text="One.", document_id="atlas", reference_time=NOON)
    with pytest.raises(WriteConflict):
        await service.preprocess(SCOPE, pb.PreprocessRequest(job_id="j", source=source))


async def test_any_version_of_a_document_can_be_read(bench: Bench) -> None:
    await bench.document("j1", "One.")
    await bench.document("j2", "Two.")
    first = await bench.service.get_document(SCOPE, pb.GetDocumentRequest(document_id="atlas", version=1))
    assert (first.text, first.version, first.created_at) == ("One.", 1, NOON + 1)
    for scope, id, version in ((SCOPE, "atlas", 3), (SCOPE, "other", 0), (TWIN, "atlas", 0)):
        with pytest.raises(DocumentNotFound):
            await bench.service.get_document(scope, pb.GetDocumentRequest(document_id=id, version=version))


async def test_what_a_version_is_given_while_it_is_deleted_goes_with_it_or_on_to_the_next(
    bench: Bench,
) -> None:
    for number, text in enumerate(("One.\n\nTwo.", "One.", "One.\n\nThree.")):
        await bench.document(f"j{number}", text)

    class Hurried:
        """The first version is deleted just after the second was looked at."""

        def __init__(self) -> None:
            self.done = False

        def __getattr__(self, name: str) -> object:
            return getattr(bench.text, name)

        async def of_document(self, *asked: Any) -> object:
            found = await bench.text.of_document(*asked)
            if not self.done:
                self.done = True
                await delete(bench.service, 1)
            return found

    async def delete(service: Preprocessor, version: int) -> pb.DeleteDocumentTextResponse:
        asked = pb.DeleteDocumentTextRequest(document_id="atlas", version=version)
        return await service.delete_document_text(SCOPE, asked)

    service = Preprocessor(
        Hurried(),  # type: ignore[arg-type]  # passes on what it does not change
        bench.vectors,
        HashEmbedder(64),
        lambda: Instant(bench.clock),
        bench.memory,
    )
    gone = await delete(service, 2)
    seconds = await bench.text.of_document(SCOPE, DocumentId("atlas"), 2)
    assert {one.id for one in seconds} == set(gone.episode_ids)
    assert all(one.deleted_at is not None for one in seconds)
    thirds = await bench.text.of_document(SCOPE, DocumentId("atlas"), 3)
    assert sorted(one.text for one in thirds) == ["One.", "Three."]
