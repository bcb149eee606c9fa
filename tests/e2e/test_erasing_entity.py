"""EraseEntity: one person goes from a shared graph, from its past too; what is said of others stays."""

from pathlib import Path
from typing import Any

from palimpsest.v1 import common_pb2, entity_pb2, episode_pb2, job_pb2, memory_entities_pb2, privacy_pb2
from services.domain.facts import FactKind, Mention, VoiceFact, WorldFact
from services.domain.memory import VoiceKind
from services.llm import tasks
from tests.doubles.engine import ScriptedEngine
from tests.doubles.product import Product, Tenant, a_product
from tests.e2e.erasing import erased, holding, removed
from tests.e2e.talking import Memory

PERSON = "Zanzibar Quill"
WORD = "quill"
LINES = (
    "Maya lives in Graz, and Zanzibar Quill does too.",
    "She keeps a parrot called Kiwi.",
    "Maya likes tea.",
)


def said(turn: int, subject: str, predicate: str, target: str, fact: str) -> WorldFact:
    quote = LINES[turn]
    return WorldFact(FactKind.CLAIM, Mention(subject), predicate, Mention(target), fact, turn, quote)


def hears(engine: ScriptedEngine) -> None:
    engine.world = tasks.WorldFacts(
        (
            said(0, "Maya", "lives_in", "Graz", "Maya lives in Graz with Zanzibar Quill."),
            said(0, PERSON, "lives_in", "Graz", "Zanzibar Quill lives in Graz."),
            said(1, PERSON, "owns", "Kiwi", "Zanzibar Quill keeps a parrot called Kiwi."),
            said(2, "Maya", "likes", "tea", "Maya likes tea."),
        )
    )
    spoken = [(LINES[1], 1), (LINES[2], 2)]
    engine.voice = tasks.VoiceFacts(
        tuple(VoiceFact(text, turn, text, VoiceKind.PREFERENCE) for text, turn in spoken)
    )


async def filled(product: Product, engine: ScriptedEngine) -> tuple[Tenant, Memory]:
    tenant = await product.tenant("acme")
    memory = Memory(tenant, "notes")
    hears(engine)
    await memory.say(
        [(episode_pb2.MESSAGE_ROLE_USER, line) for line in LINES],
        "2025-01-01",
        session_id="s",
        title=f"Of {PERSON}",
    )
    engine.world, engine.voice = tasks.WorldFacts(()), tasks.VoiceFacts(())
    # Whose work ends that of another: what follows from it is derived anew without them.
    await memory.assert_triples(("Initech", "headquartered_in", "Graz"), at="2025-01-01")
    await memory.assert_triples(("Q. Zanzibar", "likes", "rum"), at="2025-02-01")
    return tenant, memory


async def named(tenant: Tenant, name: str) -> entity_pb2.Entity:
    request = memory_entities_pb2.GetEntityRequest(graph_id="notes", entity=entity_pb2.EntityRef(name=name))
    answer: Any = await tenant.call(tenant.memory.GetEntity, request)
    found: entity_pb2.Entity = answer.entity
    return found


async def test_a_person_goes_and_what_is_said_of_others_stays(tmp_path: Path) -> None:
    engine = ScriptedEngine()
    async with a_product(tmp_path, engine=engine) as product:
        tenant, memory = await filled(product, engine)
        quill, other = await named(tenant, PERSON), await named(tenant, "Q. Zanzibar")
        merging = memory_entities_pb2.MergeEntitiesRequest(
            graph_id="notes",
            into_entity_id=quill.entity_id,
            entity_ids=[other.entity_id],
            request_id="merge",
            reason=f"both are {PERSON}",
        )
        merged = await tenant.call(tenant.memory.MergeEntities, merging)
        before = common_pb2.KnownAt(revision=merged.revision)
        assert WORD in str(await memory.recall(f"Where does {PERSON} live?")).lower()

        request = privacy_pb2.EraseEntityRequest(
            graph_id="notes", entity=entity_pb2.EntityRef(name=PERSON), request_id="forget"
        )
        done = await erased(tenant, tenant.privacy.EraseEntity, request)
        assert (done.state, done.entity_id) == (job_pb2.JOB_STATE_SUCCEEDED, quill.entity_id)
        counts = removed(done)
        assert (counts["graph"]["statements"], counts["graph"]["entities"]) == (3, 2)
        assert counts["memory"]["passages"] == 3

        assert holding(tmp_path, WORD) == set()
        left = {(one.subject.name, one.predicate.name, one.fact) for one in await memory.statements()}
        assert left == {
            ("Maya", "lives_in", "Maya lives in Graz"),
            ("Maya", "likes", "Maya likes tea."),
            ("Initech", "headquartered_in", "Initech headquartered in Graz"),
        }
        past = await memory.statements(known_at=before)
        assert {one.subject.name for one in past} == {"Maya", "Initech"}
        for name in (PERSON, "Q. Zanzibar", quill.entity_id, other.entity_id):
            where = memory_entities_pb2.GetEntityRequest(
                graph_id="notes", entity=entity_pb2.EntityRef(name=name)
            )
            assert (await tenant.refused(tenant.memory.GetEntity, where)).reason == "ENTITY_NOT_FOUND"
        recalled = await memory.recall("Who lives in Graz and who likes tea?")
        assert WORD not in str(recalled).lower()
        assert {one.passage.text for one in recalled.passages} == {LINES[2], "Initech headquartered in Graz"}
        assert [one.text for one in await memory.voice("tea parrot")] == [LINES[2]]

        again = await tenant.call(tenant.privacy.EraseEntity, request)
        assert again.erasure == done
        # What is told from now on is learned as ever.
        await memory.assert_triples(("Maya", "likes", "rum"), at="2025-03-01")
        assert "rum" in {fact[2] for fact in await memory.facts()}
