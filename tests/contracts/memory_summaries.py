"""What memory promises of labels, summaries and the persona."""

from dataclasses import replace

import pytest

from services.domain.ids import Revision, SessionId, StatementId, VoiceId
from services.domain.instants import Instant
from services.domain.summaries import Cited, Label, Persona, PersonaSection, SessionSummary
from services.stores.errors import ScopeErased, UnstorableText, WriteConflict
from services.stores.memory.sql import SqlMemory
from services.stores.memory.summaries import LabelVector
from services.stores.paging import Page
from tests.contracts.memory_base import SCOPE, TWINS, all_pages, hostile, unstorable


def cited(text: str, *statements: str, voice: tuple[str, ...] = ()) -> Cited:
    return Cited(text, tuple(map(StatementId, statements)), tuple(map(VoiceId, voice)), f"basis of {text}")


def summary(
    session: str, *sentences: Cited, revision: int = 3, labels: tuple[str, ...] = ()
) -> SessionSummary:
    return SessionSummary(
        SessionId(session),
        f"A title for {session}",
        labels,
        sentences,
        Instant(1_000),
        Revision(revision),
        "made from",
        "model",
        "1",
    )


def vectors(*names: str) -> list[LabelVector]:
    return [LabelVector(name, name.encode(), "embedder") for name in names]


PERSONA = Persona(
    (
        PersonaSection("identity", "About Maya", sentences=(cited("Maya lives in Graz.", "a"),)),
        PersonaSection("notes", "Notes", "Mine alone.", protected=True),
    ),
    1,
    Instant(5),
    Revision(3),
    "made from",
    "model",
    "1",
)


class SummaryContract:
    """SummaryStore. `memory` is a fixture of the subclass."""

    async def test_a_summary_reads_as_it_was_written(self, memory: SqlMemory) -> None:
        store = memory.summaries
        first = summary("s", cited("One.", "a", "b"), cited("Two.", voice=("v",)), labels=("Work", "Home"))
        assert await store.save_session(SCOPE, first, vectors("Work", "Home"))
        assert list(await store.sessions(SCOPE, [SessionId("none"), SessionId("s")])) == [first]
        assert await store.citing(SCOPE, ["b", "none"]) == ["s"]
        assert await store.citing(SCOPE, ["v"]) == ["s"]
        assert await store.label_vectors(SCOPE) == vectors("Home", "Work")
        later = replace(summary("s", cited("Three.", "c"), revision=4), labels=("Home",))
        assert await store.save_session(SCOPE, later)
        assert list(await store.sessions(SCOPE, [SessionId("s")])) == [later]
        assert await store.citing(SCOPE, ["a", "b", "v"]) == []
        assert await store.label_vectors(SCOPE) == vectors("Home")
        assert not await store.save_session(SCOPE, first, vectors("Work", "Home"))
        assert list(await store.sessions(SCOPE, [SessionId("s")])) == [later]
        for twin in TWINS:
            assert not await store.sessions(twin, [SessionId("s")])
            assert not await store.citing(twin, ["c"])
            assert not await store.labels(twin)

    async def test_labels_are_counted_and_go_with_their_last_session(self, memory: SqlMemory) -> None:
        store = memory.summaries
        for session, labels in (("a", ("Work", "Home")), ("b", ("Home",)), ("c", ("Home", "art"))):
            await store.save_session(SCOPE, summary(session, labels=labels), vectors(*labels))
        assert list(await store.labels(SCOPE)) == [Label("Home", 3), Label("art", 1), Label("Work", 1)]
        assert await store.labelled(SCOPE, ["WORK", "Art", "none"]) == ["a", "c"]
        await store.drop_session(SCOPE, SessionId("a"), Revision(2))
        assert await store.labelled(SCOPE, ["work"]) == ["a"], "what is later stays"
        for _ in range(2):
            await store.drop_session(SCOPE, SessionId("a"), Revision(3))
        assert list(await store.labels(SCOPE)) == [Label("Home", 2), Label("art", 1)]
        found = await all_pages(lambda page: store.scan_sessions(SCOPE, page), 1)
        assert sorted(one.session for one in found) == ["b", "c"]

    async def test_a_persona_is_replaced_by_who_read_it(self, memory: SqlMemory) -> None:
        store = memory.summaries
        assert await store.persona(SCOPE) is None
        with pytest.raises(WriteConflict):
            await store.save_persona(SCOPE, PERSONA, 1)
        await store.save_persona(SCOPE, PERSONA, 0)
        assert await store.persona(SCOPE) == PERSONA
        with pytest.raises(WriteConflict):
            await store.save_persona(SCOPE, PERSONA, 0)
        second = replace(PERSONA, version=2, sections=PERSONA.sections[1:])
        await store.save_persona(SCOPE, second, 1)
        with pytest.raises(WriteConflict):
            await store.save_persona(SCOPE, PERSONA, 1)
        assert await store.persona(SCOPE) == second
        assert await store.persona(TWINS[0]) is None

    async def test_what_is_followed_never_goes_back(self, memory: SqlMemory) -> None:
        store = memory.summaries
        assert await store.followed(SCOPE) == 0
        for revision, expected in ((4, 4), (2, 4), (5, 5)):
            await store.follow(SCOPE, Revision(revision))
            assert await store.followed(SCOPE) == expected
        assert await store.followed(TWINS[0]) == 0

    async def test_what_cites_forgotten_text_goes_with_it_and_does_not_come_back(
        self, memory: SqlMemory
    ) -> None:
        store = memory.summaries
        one = summary("s", cited("One.", "a", "b"), cited("Two.", "c"), labels=("Work",))
        other = summary("other", cited("Other.", "d"), labels=("Work", "Home"))
        for written in (one, other):
            await store.save_session(SCOPE, written, vectors("Work", "Home"))
        await store.save_persona(SCOPE, PERSONA, 0)
        for _ in range(2):
            await store.forget(SCOPE, Revision(5), ["a", "none"])
        (left,) = await store.sessions(SCOPE, [SessionId("s")])
        assert (left.sentences, left.title, left.labels, left.made_from) == (one.sentences[1:], "", (), "")
        assert list(await store.sessions(SCOPE, [SessionId("other")])) == [other]
        persona = await store.persona(SCOPE)
        assert persona is not None
        assert (persona.sections, persona.version) == (PERSONA.sections[1:], 2)
        assert list(await store.labels(SCOPE)) == [Label("Home", 1), Label("Work", 1)]
        # Whoever read before that may have the words still.
        with pytest.raises(WriteConflict):
            await store.save_session(SCOPE, replace(one, revision=Revision(4)))
        with pytest.raises(WriteConflict):
            await store.save_persona(SCOPE, replace(PERSONA, revision=Revision(4), version=3), 2)
        assert await store.save_session(SCOPE, replace(one, revision=Revision(5)), vectors("Work"))

    async def test_nothing_is_written_of_an_erased_graph(self, memory: SqlMemory) -> None:
        store = memory.summaries
        await store.save_session(SCOPE, summary("s", cited("One.", "a"), labels=("Work",)), vectors("Work"))
        await store.save_persona(SCOPE, PERSONA, 0)
        await store.follow(SCOPE, Revision(3))
        read = (await memory.fences.fence(SCOPE)).generation
        await memory.fences.put_up(SCOPE)
        await memory.erase(SCOPE)
        assert await memory.rows(SCOPE) == {}
        for generation in (None, read):
            with pytest.raises(ScopeErased):
                await store.save_session(SCOPE, summary("s"), (), generation)
            with pytest.raises(ScopeErased):
                await store.save_persona(SCOPE, PERSONA, 0, generation)
            with pytest.raises(ScopeErased):
                await store.follow(SCOPE, Revision(3), generation)
        await memory.fences.take_down(SCOPE)
        with pytest.raises(ScopeErased):
            await store.save_session(SCOPE, summary("s"), (), read)
        assert await memory.rows(SCOPE) == {}

    @hostile
    async def test_any_text_comes_back(self, memory: SqlMemory, text: str) -> None:
        one = replace(summary("s", cited(text, "a")), title=text)
        await memory.summaries.save_session(SCOPE, one)
        assert list(await memory.summaries.sessions(SCOPE, [SessionId("s")])) == [one]
        persona = replace(PERSONA, sections=(PersonaSection("notes", text, text, protected=True),))
        await memory.summaries.save_persona(SCOPE, persona, 0)
        assert await memory.summaries.persona(SCOPE) == persona

    @unstorable
    async def test_text_that_can_not_be_stored_is_refused_whole(self, memory: SqlMemory, text: str) -> None:
        with pytest.raises(UnstorableText):
            await memory.summaries.save_session(SCOPE, summary("s", cited(text, "a")))
        section = PersonaSection("notes", "Notes", text, protected=True)
        with pytest.raises(UnstorableText):
            await memory.summaries.save_persona(SCOPE, replace(PERSONA, sections=(section,)), 0)
        assert await memory.rows(SCOPE) == {}
        assert (await memory.summaries.scan_sessions(SCOPE, Page())).items == []
