"""What follows ingests, over real stores: what is written rests on what is believed, and on nothing else."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from palimpsest.internal.v1 import erasing_pb2, resolver_judging_pb2, resolver_pb2, values_pb2
from palimpsest.internal.v1 import resolver_carrying_pb2 as carrying_pb2
from palimpsest.internal.v1 import summaries_pb2 as pb
from services.classifier.parts import Parts
from services.classifier.service import Classifier
from services.domain.errors import Conflict, PersonaNotFound, SessionNotFound
from services.domain.facts import VoiceFact
from services.domain.memory import VoiceKind
from services.domain.scope import GraphId
from services.llm import tasks
from services.recall.topics import LIFT
from services.stores.paging import Page
from services.wire.facts import voice_out
from tests.builders import on
from tests.integration.recalling import Memory, a_memory
from tests.integration.resolving import TODAY, said

Fact = tuple[str, str, str]
SETTING = values_pb2.Setting(kind="assertion", reference_time=TODAY, user_name="Maya")


@dataclass
class Followed:
    """A memory whose follow-ups are made when a test says so, as the gateway makes them."""

    memory: Memory
    classifier: Classifier

    async def tell(self, name: str, session: str, *facts: Fact, at: str = "2025-01-01") -> int:
        """An episode of a session that says facts, of aspect Identity."""
        lines = [("Maya", " ".join(fact).replace("_", " ")) for fact in facts]
        episode = await self.memory.say(name, at, *lines, session=session)
        world = self.memory.world
        world.clock.at = on(at)
        staged = resolver_pb2.StoreFactsRequest(episode_id=episode.id, setting=SETTING)
        for number, (subject, predicate, target) in enumerate(facts):
            asserted = said(values_pb2.FACT_KIND_CLAIM, (subject, predicate, target), on(at), episode)
            staged.world.append(
                values_pb2.WorldFact(
                    kind=asserted.kind,
                    subject=asserted.subject,
                    predicate=predicate,
                    object=asserted.object,
                    fact=f"{lines[number][1]}.",
                    turn=number,
                    quote=lines[number][1],
                    confidence=1,
                    aspect="Identity",
                    passage_id=f"passage-{name}-{number}",
                )
            )
        await world.resolver.store_facts(world.scope, staged)
        resolved = await world.resolver.resolve(
            world.scope, resolver_pb2.ResolveRequest(episode_id=episode.id)
        )
        return int(resolved.revision)

    async def speak(self, name: str, session: str, kind: VoiceKind, text: str) -> None:
        world = self.memory.world
        episode = await self.memory.say(name, "2025-01-01", ("Maya", text), session=session)
        voice = voice_out(VoiceFact(text, 0, text, kind), f"passage-{name}-0")
        staged = resolver_pb2.StoreFactsRequest(episode_id=episode.id, voice=[voice], setting=SETTING)
        await world.resolver.store_facts(world.scope, staged)
        await world.resolver.resolve(world.scope, resolver_pb2.ResolveRequest(episode_id=episode.id))

    async def delete(self, name: str) -> None:
        world = self.memory.world
        await world.memory.text.delete_episode(world.scope, f"episode-{name}", TODAY)  # type: ignore[arg-type]  # an id
        request = resolver_pb2.RevokeRequest(commit_id=f"delete-{name}", episode_id=f"episode-{name}")
        await world.resolver.revoke(world.scope, request)

    async def follow(self) -> int:
        """Brings everything up to the newest revision; answers how much was made anew."""
        recall, scope, made = self.memory.recall, self.memory.world.scope, 0
        while True:
            changes = await recall.read_changes(scope, pb.ReadChangesRequest(max_revisions=2))
            if changes.nothing:
                break
            for session in changes.session_ids:
                gathered = await recall.gather_session(scope, pb.GatherSessionRequest(session_id=session))
                asked = pb.SummariseRequest(session_id=session, facts=gathered.facts, setting=SETTING)
                made += (await self.classifier.summarise(scope, asked)).made
            note = pb.NoteFollowedRequest(revision=changes.revision, generation=changes.generation)
            await self.classifier.note_followed(scope, note)
        asked_of = pb.GatherPersonaRequest(user_name="Maya", now=TODAY)
        facts = (await recall.gather_persona(scope, asked_of)).facts
        update = pb.UpdatePersonaRequest(facts=facts, setting=SETTING)
        return made + (await self.classifier.update_persona(scope, update)).made

    async def session(self, name: str) -> list[str]:
        read = await self.memory.recall.read_session(
            self.memory.world.scope, pb.ReadSessionRequest(session_id=name)
        )
        assert all(one.statement_ids or one.voice_ids for one in read.summary.sentences)
        return [one.text for one in read.summary.sentences]

    async def persona(self) -> dict[str, list[str]]:
        request = pb.ReadPersonaRequest(now=TODAY)
        read = await self.memory.recall.read_persona(self.memory.world.scope, request)
        return {
            one.id: [one.text] if one.protected else [sentence.text for sentence in one.sentences]
            for one in read.persona.sections
        }

    async def edit(self, *sections: pb.PersonaSection, expected: int = 0) -> int:
        request = pb.EditPersonaRequest(sections=sections, expected_version=expected, actor="key:k")
        return int((await self.classifier.edit_persona(self.memory.world.scope, request)).version)

    @property
    def asked(self) -> Sequence[object]:
        """What models were asked to tell."""
        kinds = tasks.Summarise | tasks.Portray
        return [task for task in self.memory.world.engine.asked if isinstance(task, kinds)]


@pytest.fixture
async def followed(tmp_path: Path) -> AsyncIterator[Followed]:
    async with a_memory(tmp_path, ["lives_in"]) as memory:
        world = memory.world
        parts = Parts(
            world.engine,
            memory.embedder,
            world.memory.summaries,
            world.memory.decisions,
            world.memory.revisions,
            world.clock,
        )
        yield Followed(memory, Classifier(parts))


def mine(text: str, section: str = "notes") -> pb.PersonaSection:
    return pb.PersonaSection(id=section, title="Mine", text=text, protected=True)


class TestSummaries:
    async def test_a_session_is_what_its_texts_say(self, followed: Followed) -> None:
        await followed.tell("a", "one", ("Maya", "lives_in", "Graz"))
        await followed.tell("b", "two", ("Maya", "knows", "Ben"))
        assert await followed.session("one") == [], "it is not written yet"
        await followed.follow()
        assert await followed.session("one") == ["Maya lives in Graz."]
        assert await followed.session("two") == ["Maya knows Ben."]
        with pytest.raises(SessionNotFound):
            await followed.session("three")
        labels = await followed.memory.recall.list_labels(
            followed.memory.world.scope, pb.ListLabelsRequest(page_size=1)
        )
        assert (len(labels.labels), labels.more) == (1, True)

    async def test_the_same_facts_make_nothing_anew(self, followed: Followed) -> None:
        await followed.tell("a", "one", ("Maya", "lives_in", "Graz"))
        assert await followed.follow() == 2
        asked = len(followed.asked)
        await followed.tell("again", "one", ("Maya", "lives_in", "Graz"), at="2024-12-31")
        await followed.tell("b", "", ("Ben", "knows", "Ana"))
        await followed.follow()
        assert await followed.follow() == 0
        assert len(followed.asked) <= asked + 2

    async def test_a_sentence_goes_at_once_when_its_fact_ends_and_comes_back_as_it_reads(
        self, followed: Followed
    ) -> None:
        await followed.tell("a", "one", ("Maya", "lives_in", "Graz"), ("Maya", "knows", "Ben"))
        await followed.follow()
        await followed.tell("b", "two", ("Maya", "lives_in", "Wien"), at="2025-06-01")
        assert await followed.session("one") == ["Maya knows Ben."]
        assert (await followed.persona())["identity"] == ["Maya knows Ben."]
        await followed.follow()
        assert sorted(await followed.session("one")) == [
            "Maya knows Ben.",
            "Maya lives in Graz (until 2025-06-01).",
        ]
        assert sorted((await followed.persona())["identity"]) == ["Maya knows Ben.", "Maya lives in Wien."]

    async def test_of_a_deleted_text_no_word_is_left(self, followed: Followed) -> None:
        await followed.tell("a", "one", ("Maya", "lives_in", "Graz"), ("Maya", "knows", "Ben"))
        await followed.tell("b", "two", ("Maya", "knows", "Ben"))
        await followed.follow()
        await followed.delete("a")
        scope, store = followed.memory.world.scope, followed.memory.world.memory.summaries
        kept = repr([await store.sessions(scope, ["one", "two"]), await store.persona(scope)])  # type: ignore[list-item]  # names
        assert "Graz" not in kept
        await followed.follow()
        with pytest.raises(SessionNotFound):
            await followed.session("one")
        assert await followed.session("two") == ["Maya knows Ben."]
        assert await store.labelled(scope, ["Home"]) == []

    async def test_a_fact_that_a_user_ends_is_told_so(self, followed: Followed) -> None:
        await followed.tell("a", "one", ("Maya", "knows", "Ben"))
        await followed.follow()
        world = followed.memory.world
        (fact,) = (await followed.memory.ask("Who does Maya know?")).facts
        world.clock.at = TODAY
        asker = resolver_judging_pb2.Asker(commit_id="end", actor="key:k")
        request = resolver_judging_pb2.EndStatementRequest(
            asker=asker, statement_id=fact.statement.id, at=on("2025-03-01")
        )
        await world.resolver.end_statement(world.scope, request)
        assert await followed.session("one") == []
        await followed.follow()
        assert await followed.session("one") == ["Maya knows Ben (until 2025-03-01)."]

    async def test_what_was_read_before_a_deletion_is_not_written_after_it(self, followed: Followed) -> None:
        await followed.tell("a", "one", ("Maya", "lives_in", "Graz"))
        scope, recall = followed.memory.world.scope, followed.memory.recall
        gathered = await recall.gather_session(scope, pb.GatherSessionRequest(session_id="one"))
        await followed.delete("a")
        asked = pb.SummariseRequest(session_id="one", facts=gathered.facts, setting=SETTING)
        with pytest.raises(Exception, match="taken away"):
            await followed.classifier.summarise(scope, asked)


class TestPersona:
    async def test_it_is_identity_preferences_and_directives_of_the_user(self, followed: Followed) -> None:
        with pytest.raises(PersonaNotFound):
            await followed.persona()
        await followed.tell("a", "one", ("Maya", "lives_in", "Graz"), ("Ben", "lives_in", "Linz"))
        await followed.speak("b", "one", VoiceKind.PREFERENCE, "I prefer tea.")
        await followed.speak("c", "one", VoiceKind.DIRECTIVE, "Always be brief.")
        await followed.speak("d", "one", VoiceKind.GOAL, "I want to run.")
        await followed.follow()
        assert await followed.persona() == {
            "identity": ["Maya lives in Graz."],
            "preferences": ["I prefer tea."],
            "directives": ["Always be brief."],
        }

    async def test_the_models_words_rest_on_facts_and_tell_all_of_them(self, followed: Followed) -> None:
        world = followed.memory.world
        world.engine.portrait_of = lambda _: tasks.Portrayed([tasks.ToldSentence("Maya, of Graz.", (0,))])
        await followed.tell("a", "one", ("Maya", "lives_in", "Graz"))
        await followed.follow()
        await followed.tell("b", "one", ("Maya", "knows", "Ben"))
        await followed.follow()
        told = (await followed.persona())["identity"]
        assert told[0] == "Maya, of Graz."
        assert len(told) == 2
        (last,) = [task for task in followed.asked if isinstance(task, tasks.Portray)][-1:]
        assert [one.text for one in last.before] == ["Maya, of Graz."]
        await followed.tell("c", "two", ("Maya", "lives_in", "Wien"), at="2025-06-01")
        await followed.follow()
        (last,) = [task for task in followed.asked if isinstance(task, tasks.Portray)][-1:]
        assert list(last.gone) == ["Maya, of Graz."]

    async def test_a_users_section_is_never_overwritten(self, followed: Followed) -> None:
        await followed.tell("a", "one", ("Maya", "lives_in", "Graz"))
        await followed.follow()
        await followed.edit(mine("I am Maya.", "identity"), mine("No calls before ten."))
        assert await followed.persona() == {"identity": ["I am Maya."], "notes": ["No calls before ten."]}
        await followed.tell("b", "two", ("Maya", "lives_in", "Wien"), at="2025-06-01")
        await followed.speak("c", "one", VoiceKind.PREFERENCE, "I prefer tea.")
        await followed.follow()
        assert await followed.persona() == {
            "identity": ["I am Maya."],
            "preferences": ["I prefer tea."],
            "notes": ["No calls before ten."],
        }
        await followed.edit(pb.PersonaSection(id="identity"), pb.PersonaSection(id="notes"))
        assert await followed.persona() == {"preferences": ["I prefer tea."]}
        await followed.follow()
        assert (await followed.persona())["identity"] == ["Maya lives in Wien."]

    async def test_an_edit_counts_once_and_only_on_what_was_read(self, followed: Followed) -> None:
        first = await followed.edit(mine("One."))
        assert await followed.edit(mine("One."), expected=7) == first, "it is so already"
        with pytest.raises(Conflict):
            await followed.edit(mine("Two."), expected=first + 1)
        assert await followed.edit(mine("Two."), expected=first) == first + 1
        scope = followed.memory.world.scope
        decisions = await followed.memory.world.memory.decisions.list_decisions(scope, "persona", Page())
        assert [(one.action, one.actor) for one in decisions.items] == [("update_persona", "key:k")] * 2
        assert "Two" not in repr(decisions)


class TestLabels:
    async def test_near_names_are_one_label(self, followed: Followed) -> None:
        named = iter(["Work", "WORK ", "work"])
        world = followed.memory.world

        def summary(task: tasks.Summarise) -> tasks.Summarised:
            return tasks.Summarised(
                "What was told there", [next(named)], [tasks.ToldSentence(task.facts[0].fact, (0,))]
            )

        world.engine.summary_of = summary
        for name in ("one", "two", "three"):
            await followed.tell(name, name, ("Maya", "knows", name.capitalize()))
        await followed.follow()
        labels = await followed.memory.recall.list_labels(world.scope, pb.ListLabelsRequest())
        assert [(one.name, one.sessions) for one in labels.labels] == [("Work", 3)]


class TestRecall:
    async def test_labels_hide_only_when_asked_to_and_lift_when_named(self, followed: Followed) -> None:
        await followed.tell("a", "home", ("Maya", "lives_in", "Graz"))
        await followed.tell("b", "work", ("Maya", "works_at", "Acme"))
        memory, named = followed.memory, "What about Maya and home?"
        before = {one.session_id: one.score for one in (await memory.ask(named)).passages}
        await followed.follow()
        answer = await memory.ask("What about Maya?")
        assert {one.session_id for one in answer.passages} == {"home", "work"}
        answer = await memory.ask("What about Maya?", labels=["WORK"])
        assert {one.session_id for one in answer.passages} == {"work"}
        assert [one.statement.fact for one in answer.facts] == ["Maya works at Acme."]
        after = {one.session_id: one.score for one in (await memory.ask(named)).passages}
        assert after["home"] == pytest.approx(min(1.0, before["home"] + LIFT))
        assert after["work"] == before["work"], "nothing is hidden"

    async def test_summaries_and_the_persona_come_along_as_far_as_they_stand(
        self, followed: Followed
    ) -> None:
        await followed.tell("a", "one", ("Maya", "lives_in", "Graz"))
        await followed.follow()
        memory = followed.memory
        both: dict[str, Any] = {"include_summaries": True, "include_persona": True}
        bare = await memory.ask("Where does Maya live?")
        assert not bare.summaries
        assert not bare.HasField("persona")
        answer = await memory.ask("Where does Maya live?", **both)
        assert [[each.text for each in one.sentences] for one in answer.summaries] == [
            ["Maya lives in Graz."]
        ]
        assert [each.text for each in answer.persona.sections[0].sentences] == ["Maya lives in Graz."]
        before = await memory.ask("Where does Maya live?", as_of=on("2020-01-01"), **both)
        assert not before.persona.sections, "nobody knows that it held then"
        await followed.tell("b", "two", ("Maya", "lives_in", "Wien"), at="2025-06-01")
        later = await memory.ask("Where does Maya live?", **both)
        assert not later.summaries
        assert not later.persona.sections


async def test_of_an_erased_entity_no_word_is_written(followed: Followed) -> None:
    await followed.tell("a", "one", ("Maya", "knows", "Ben"), ("Maya", "lives_in", "Graz"))
    await followed.speak("b", "two", VoiceKind.PREFERENCE, "I prefer lunch with Ben.")
    await followed.edit(mine("Ben is my brother.", "kin"), mine("Be brief."))
    await followed.follow()
    world = followed.memory.world
    scope, store = world.scope, world.memory.summaries
    (ben,) = (await world.graph.find_entities(scope, ["ben"], await world.memory.revisions.current(scope)))[
        "ben"
    ]
    plan = erasing_pb2.PlanEntityErasureRequest(entity_id=ben.id)
    erased = (await world.resolver.plan_entity_erasure(scope, plan)).erased
    request = erasing_pb2.EraseEntityRequest(commit_id="erase", actor="key:k", erased=erased)
    told = await world.resolver.erase_entity(scope, request)
    assert {one.store: dict(one.rows) for one in told.stores}["memory"]["summaries"] == 5
    kept = [(await store.scan_sessions(scope, Page())).items, await store.persona(scope)]
    assert "Ben" not in repr(kept)
    left = await world.resolver.erase_entity(
        scope, erasing_pb2.EraseEntityRequest(commit_id="erase", erased=erased, count_only=True)
    )
    assert not any("summaries" in one.rows for one in left.stores)
    await followed.follow()
    assert await followed.session("one") == ["Maya lives in Graz."]
    assert await followed.persona() == {"identity": ["Maya lives in Graz."], "notes": ["Be brief."]}


async def test_what_is_written_is_carried_with_a_graph(followed: Followed) -> None:
    await followed.tell("a", "one", ("Maya", "lives_in", "Graz"))
    await followed.edit(mine("Be brief."))
    await followed.follow()
    world = followed.memory.world
    scope, store = world.scope, world.memory.summaries
    told = [piece async for piece in world.resolver.export(scope, carrying_pb2.ExportRequest())]
    lines = b"".join(piece.lines for piece in told)
    copy = replace(scope, graph=GraphId("copy"), origin=scope.key)
    request = carrying_pb2.ImportRequest(revision=told[0].begun.revision, lines=lines)
    for _ in range(2):
        await world.resolver.import_(copy, request)
    read = (await store.scan_sessions(copy, Page())).items, await store.persona(copy)
    assert read == ((await store.scan_sessions(scope, Page())).items, await store.persona(scope))
    assert await store.labelled(copy, ["home"]) == ["one"]
    recall = followed.memory.recall
    shown = (await recall.read_session(copy, pb.ReadSessionRequest(session_id="one"))).summary
    assert [one.text for one in shown.sentences] == ["Maya lives in Graz."]
