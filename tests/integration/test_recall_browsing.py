"""Lists of episodes, of sentences of the voice and of entities, and one entity, over real stores."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from palimpsest.internal.v1 import recall_lists_pb2 as pb
from palimpsest.internal.v1 import resolver_pb2
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import EntityNotFound, ValidationFailed
from services.domain.ids import EpisodeId, PassageId, RecordId, Revision, VoiceId
from services.domain.instants import Instant
from services.domain.memory import VoiceAspect, VoiceClaim, VoiceEnd, VoiceKind
from tests.builders import on
from tests.integration.recalling import Memory, a_memory, twin
from tests.integration.resolving import TODAY

END = values.FACT_KIND_END


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with a_memory(tmp_path, ["lives_in"]) as memory:
        yield memory


class TestEpisodes:
    async def test_the_latest_first_without_their_texts(self, memory: Memory) -> None:
        for name, day in (("a", "2024-01-01"), ("b", "2024-03-01"), ("c", "2024-02-01")):
            await memory.say(name, day, ("Ana", f"Words of {name}."), session="s" if name != "b" else "t")
        scope = memory.world.scope

        async def ids(**fields: Any) -> list[str]:
            answer = await memory.recall.list_episodes(scope, pb.ListEpisodesRequest(**fields))
            assert not any(episode.text or episode.passages for episode in answer.episodes)
            return [episode.id.removeprefix("episode-") for episode in answer.episodes]

        assert await ids() == ["b", "c", "a"]
        assert await ids(session_id="s") == ["c", "a"]
        assert await ids(since=on("2024-02-01"), until=on("2024-03-01")) == ["c"]
        assert await ids(document_id="handbook") == await ids(source="mail") == []
        first = await memory.recall.list_episodes(scope, pb.ListEpisodesRequest(page_size=2))
        assert await ids(page_size=2, after=first.after) == ["a"]
        assert not (await memory.recall.list_episodes(twin(), pb.ListEpisodesRequest())).episodes
        with pytest.raises(ValidationFailed):
            await ids(after="nonsense")


class TestVoice:
    async def test_what_holds_latest_start_first_as_known_then(self, memory: Memory) -> None:
        scope, voice, log = memory.world.scope, memory.world.memory.voice, memory.world.memory.revisions

        def aspect(name: str, kind: VoiceKind) -> VoiceAspect:
            return VoiceAspect(VoiceId(name), kind, f"I {name}.", created_at=Revision(1))

        def claim(name: str, day: str) -> VoiceClaim:
            episode, passage = EpisodeId(f"episode-{name}"), PassageId(f"passage-{name}")
            return VoiceClaim(
                RecordId(f"c-{name}"), VoiceId(name), episode, passage, "", on(day), Revision(1)
            )

        for revision in (0, 1):
            await log.begin(scope, Revision(revision), f"c{revision}", on("2024-01-01"), b"", "")
            await log.publish(scope, Revision(revision + 1))
        aspects = [
            aspect("run", VoiceKind.HABIT),
            aspect("swim", VoiceKind.HABIT),
            aspect("rest", VoiceKind.GOAL),
        ]
        claims = [claim("run", "2024-01-01"), claim("swim", "2024-03-01"), claim("rest", "2024-02-01")]
        await voice.apply(scope, Revision(1), aspects, claims, [], [])
        at, by, later = on("2024-03-01"), VoiceId("swim"), EpisodeId("episode-swim")
        end = VoiceEnd(RecordId("e"), VoiceId("run"), at, by, later, recorded_at=Revision(2))
        await voice.apply(scope, Revision(2), [], [], [end], [])

        async def ids(**fields: Any) -> list[str]:
            request = pb.ListVoiceAspectsRequest(**({"now": TODAY} | fields))
            return [one.id for one in (await memory.recall.list_voice_aspects(scope, request)).voice]

        assert await ids() == ["swim", "rest"]
        assert await ids(include_ended=True) == ["swim", "rest", "run"]
        assert await ids(valid_at=on("2024-02-15")) == ["rest", "run"]
        assert await ids(known_at=values.KnownAt(revision=1)) == ["swim", "rest", "run"]
        assert await ids(kinds=["Goal"]) == ["rest"]
        assert await ids(episode_id="episode-run", include_ended=True) == ["run"]
        request = pb.ListVoiceAspectsRequest(now=TODAY, include_ended=True, page_size=2)
        first = await memory.recall.list_voice_aspects(scope, request)
        request.after = first.after
        [run] = (await memory.recall.list_voice_aspects(scope, request)).voice
        assert (run.invalid_at, run.replaced_by, run.invalidated_by) == (at, "swim", "episode-swim")
        assert (run.known_from, run.known_from_at) == (1, on("2024-01-01"))
        assert not (
            await memory.recall.list_voice_aspects(twin(), pb.ListVoiceAspectsRequest(now=TODAY))
        ).voice
        for bad in ({"kinds": ["Nonsense"]}, {"after": "nonsense"}):
            with pytest.raises(ValidationFailed):
                await ids(**bad)


class TestEntities:
    async def entity(self, memory: Memory, entity: str, **fields: Any) -> pb.EntityCard:
        asked: dict[str, Any] = {"entity": entity, "now": TODAY} | fields
        request = pb.ReadEntityRequest(**asked)
        return (await memory.recall.read_entity(memory.world.scope, request)).entity

    async def test_one_by_name_and_id_with_what_holds_now(self, memory: Memory) -> None:
        await memory.tell("a", "2024-01-01", ("Mara", "lives_in", "Paris"), ("Mara", "knows", "Mara"))
        await memory.tell("b", "2024-02-01", ("Mara", "lives_in", "Rome"), ("Ben", "likes", "Mara"))
        card = await self.entity(memory, "MARA")
        assert (card.entity.name, card.statements, card.created_at) == ("Mara", 3, 1)
        assert card.created_at_clock == on("2024-01-01")
        assert await self.entity(memory, card.entity.id) == card
        assert (await self.entity(memory, "Mara", known_at=values.KnownAt(revision=1))).statements == 2
        assert (await self.entity(memory, "lives in", type="Predicate")).statements == 1
        for unknown in ("Nobody", "lives in", "nonsense' or true", card.entity.id[::-1]):
            with pytest.raises(EntityNotFound):
                await self.entity(memory, unknown)
        for fields in ({"type": "Predicate"}, {"known_at": values.KnownAt(revision=0)}):
            with pytest.raises(EntityNotFound):
                await self.entity(memory, "Mara", **fields)
        request = pb.ReadEntityRequest(entity=card.entity.id, now=TODAY)
        with pytest.raises(EntityNotFound):
            await memory.recall.read_entity(twin(), request)

    async def test_lists_by_key_then_page_by_page(self, memory: Memory) -> None:
        await memory.tell("a", "2024-01-01", ("Zed", "knows", "ada"), ("Mara", "knows", "Marc"))
        await memory.tell("b", "2024-01-02", ("Ada Two", "knows", "Zed"))
        scope = memory.world.scope

        async def names(**fields: Any) -> list[str]:
            request = pb.ListEntitiesRequest(**({"now": TODAY} | fields))
            answer = await memory.recall.list_entities(scope, request)
            return [card.entity.name for card in answer.entities]

        assert await names() == ["ada", "Ada Two", "Mara", "Marc", "Zed"]
        assert await names(name_prefix="MAR") == ["Mara", "Marc"]
        assert await names(name_prefix="x") == await names(types=["Place"]) == []
        assert await names(types=["Predicate"]) == ["knows"]
        assert await names(known_at=values.KnownAt(revision=1)) == ["ada", "Mara", "Marc", "Zed"]
        seen: list[str] = []
        request = pb.ListEntitiesRequest(now=TODAY, page_size=2)
        while True:
            page = await memory.recall.list_entities(scope, request)
            seen += [f"{card.entity.name} {card.statements}" for card in page.entities]
            if not page.after:
                break
            request.after = page.after
        assert seen == ["ada 1", "Ada Two 1", "Mara 1", "Marc 1", "Zed 2"]
        assert not (await memory.recall.list_entities(twin(), pb.ListEntitiesRequest())).entities
        for bad in ({"types": ["Nonsense"]}, {"after": "nonsense"}):
            with pytest.raises(ValidationFailed):
                await names(**bad)

    async def test_of_several_of_one_name_the_one_with_most_facts(self, memory: Memory) -> None:
        place, person = (values.Mention(name="Austin", type=type) for type in ("Place", "Person"))
        episode = await memory.say("a", "2024-01-01", ("Ana", "About Austin."))
        for number, (subject, target) in enumerate([(place, "Texas"), (person, "tea"), (person, "mate")]):
            assertion = resolver_pb2.Assertion(
                kind=values.FACT_KIND_CLAIM, subject=subject, predicate="likes",
                object=values.Target(mention=values.Mention(name=target)),
                attested_at=Instant(on("2024-01-01")), confidence=1.0, episode_id=episode.id,
            )  # fmt: skip
            await memory.world.tell(f"c{number}", assertion)
        assert (await self.entity(memory, "Austin")).entity.type == "Person"
        assert (await self.entity(memory, "austin", type="Place")).entity.type == "Place"
