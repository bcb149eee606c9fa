"""What every engine must do, whatever is behind it. Subclasses give the fixture `engine`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from services.domain.facts import FactKind, Mention, NothingReason, Turn, VoiceFact, WorldFact
from services.domain.graph import EntityType
from services.domain.instants import instant
from services.domain.memory import EpisodeKind, Role, VoiceKind
from services.domain.scope import GraphId, Scope, TenantId
from services.llm import tasks
from services.llm.port import Engine, Receipt

SCOPE = Scope(TenantId("acme"), GraphId("ana"))
OTHER = Scope(TenantId("globex"), GraphId("ana"))
REFERENCE = instant(datetime(2026, 2, 1, 12, tzinfo=UTC))
SETTING = tasks.Setting(EpisodeKind.CONVERSATION, REFERENCE, user_name="Ana")


def turns(*said: str, role: Role = Role.USER) -> tuple[Turn, ...]:
    return tuple(Turn(at, text, "", role, REFERENCE) for at, text in enumerate(said))


def extract(*said: str) -> tasks.Extract:
    return tasks.Extract(turns(*said), " ".join(said), SETTING)


def claim(subject: str, predicate: str, target: str, fact: str) -> WorldFact:
    person = Mention(subject, EntityType.PERSON)
    return WorldFact(FactKind.CLAIM, person, predicate, Mention(target), fact, 0, fact)


def entities(names: Sequence[str], pairs: Sequence[tuple[int, int]], said: str) -> tasks.JudgeEntities:
    """Names of one text against each other, all of them on both sides."""
    sides = [tasks.NamedEntity(name, EntityType.UNKNOWN, (), here=True) for name in names]
    return tasks.JudgeEntities(sides, sides, [tasks.Pair(*pair) for pair in pairs], [said], SETTING)


class EngineContract:
    """The contract. `engine` is a fixture of the subclass; it may be shared by all tests."""

    async def test_small_talk_leaves_nothing_and_says_why(self, engine: Engine) -> None:
        answer = await engine.normalise(SCOPE, tasks.Normalise(turns("ok thanks!"), SETTING))
        assert answer.value.nothing is not None
        assert answer.value.narrative == ""

    async def test_a_fact_becomes_a_narrative(self, engine: Engine) -> None:
        answer = await engine.normalise(SCOPE, tasks.Normalise(turns("Bob joined the team."), SETTING))
        assert answer.value.nothing is None
        assert "Bob" in answer.value.narrative

    async def test_facts_point_to_sent_turns_and_quote_them_literally(self, engine: Engine) -> None:
        said = ("Kiran works on project Alpha.", "ok thanks!", "I live in Graz.")
        answer = await engine.extract_world(SCOPE, extract(*said))
        assert answer.value.facts
        for fact in answer.value.facts:
            assert fact.quote
            assert fact.quote in said[fact.turn]
            assert 0 <= fact.confidence <= 1
            assert fact.subject.name
            assert fact.predicate
            assert fact.fact

    async def test_a_user_is_called_by_name(self, engine: Engine) -> None:
        answer = await engine.extract_world(SCOPE, extract("I live in Graz."))
        assert {fact.subject.name for fact in answer.value.facts} == {"Ana"}

    async def test_a_change_is_an_end_and_a_claim(self, engine: Engine) -> None:
        answer = await engine.extract_world(SCOPE, extract("Kiran was reassigned from Alpha to Beta."))
        objects = {
            fact.kind: fact.object.name for fact in answer.value.facts if isinstance(fact.object, Mention)
        }
        assert objects.get(FactKind.END) == "Alpha"
        assert objects.get(FactKind.CLAIM) == "Beta"

    async def test_a_directive_is_one_whole_sentence_of_voice(self, engine: Engine) -> None:
        said = "Always run the tests before you open a PR."
        found = (await engine.extract_voice(SCOPE, extract(said))).value.facts
        assert [fact.text.rstrip(".") for fact in found] == [said.rstrip(".")]
        assert found[0].quote in said
        world = await engine.extract_world(SCOPE, extract(said))
        assert not world.value.facts

    async def test_words_of_an_assistant_alone_are_no_fact(self, engine: Engine) -> None:
        said = turns("You could move Atlas to CockroachDB.", role=Role.ASSISTANT)
        answer = await engine.extract_world(SCOPE, tasks.Extract(said, "", SETTING))
        assert not answer.value.facts

    async def test_reflect_keeps_positions_that_were_sent(self, engine: Engine) -> None:
        world = [claim("Ana", "lives_in", "Graz", "Ana lives in Graz.")]
        voice = [VoiceFact("Always run the tests before you open a PR.", 0, "Always")]
        kept = (await engine.reflect(SCOPE, tasks.Reflect("", world, voice, SETTING))).value
        assert list(kept.world) == [0]
        assert list(kept.voice) == [0]

    async def test_classify_answers_each_fact_in_order(self, engine: Engine) -> None:
        world = [
            claim("Ana", "lives_in", "Graz", "Ana lives in Graz."),
            claim("Bob", "member_of", "the team", "Bob is a member of the team."),
        ]
        voice = [VoiceFact("Always run the tests before you open a PR.", 0, "Always")]
        classified = (await engine.classify(SCOPE, tasks.Classify(world, voice, SETTING))).value
        assert len(classified.world) == 2
        assert list(classified.voice) == [VoiceKind.DIRECTIVE]

    async def test_judges_only_what_was_offered(self, engine: Engine) -> None:
        new = [tasks.KnownFact("Ana lives in Graz."), tasks.KnownFact("Bob is a member of the team.")]
        candidates = [tasks.KnownFact("Ana lives in Graz."), tasks.KnownFact("Ana owns a Honda Civic.")]
        pairs = [tasks.Pair(0, 0), tasks.Pair(1, 1)]
        task = tasks.JudgeStatements(new, candidates, pairs, SETTING)
        judged = (await engine.judge_statements(SCOPE, task)).value
        assert {tasks.Pair(one.new, one.candidate) for one in judged.verdicts} <= set(pairs)

    async def test_an_acronym_that_the_text_spells_out_is_its_full_name(self, engine: Engine) -> None:
        said = "Ana joined International Business Machines (IBM) in May."
        task = entities(["International Business Machines", "IBM"], [(0, 1)], said)
        verdicts = (await engine.judge_entities(SCOPE, task)).value.verdicts
        assert [(one.new, one.candidate, one.same) for one in verdicts] == [(0, 1, True)]

    async def test_a_full_name_and_its_initial_in_one_text_are_one(self, engine: Engine) -> None:
        said = "Maya Kapoor leads Atlas. Maya K. lives in Graz."
        verdicts = (
            await engine.judge_entities(SCOPE, entities(["Maya Kapoor", "Maya K."], [(0, 1)], said))
        ).value
        assert [(one.new, one.candidate, one.same) for one in verdicts.verdicts] == [(0, 1, True)]

    async def test_names_that_nothing_joins_are_not_joined(self, engine: Engine) -> None:
        known = tasks.NamedEntity(
            "Maya Kapoor", EntityType.PERSON, [tasks.KnownFact("Maya Kapoor likes tea.")]
        )
        new = tasks.NamedEntity(
            "Maya K.", EntityType.PERSON, [tasks.KnownFact("Maya K. owns a kite.")], here=True
        )
        task = tasks.JudgeEntities([new], [known], [tasks.Pair(0, 0)], ["Maya K. owns a kite."], SETTING)
        assert not [one for one in (await engine.judge_entities(SCOPE, task)).value.verdicts if one.same]

    async def test_judges_only_entities_that_were_offered(self, engine: Engine) -> None:
        task = entities(["Maya Kapoor", "Maya K.", "NYC", "New York City"], [(2, 3)], "Maya K. left NYC.")
        verdicts = (await engine.judge_entities(SCOPE, task)).value.verdicts
        assert {tasks.Pair(one.new, one.candidate) for one in verdicts} <= {tasks.Pair(2, 3)}

    async def test_the_same_sentence_said_again_is_a_duplicate(self, engine: Engine) -> None:
        said = "Always run the tests before you open a PR."
        new = [VoiceFact(said, 0, said, VoiceKind.DIRECTIVE)]
        task = tasks.JudgeVoice(new, [tasks.KnownFact(said)], [tasks.Pair(0, 0)], SETTING)
        verdicts = (await engine.judge_voice(SCOPE, task)).value.verdicts
        assert [(one.new, one.candidate, one.duplicate) for one in verdicts] == [(0, 0, True)]

    async def test_understanding_at_once_says_what_the_steps_say(self, engine: Engine) -> None:
        said = "Kiran was reassigned from Alpha to Beta. Always run the tests before you open a PR."
        drawn = tasks.Extract(turns(said), said, SETTING)
        world = (await engine.extract_world(SCOPE, drawn)).value.facts
        voice = (await engine.extract_voice(SCOPE, drawn)).value.facts
        classes = (await engine.classify(SCOPE, tasks.Classify(world, voice, SETTING))).value
        answer = await engine.understand(SCOPE, tasks.Understand(turns(said), SETTING))
        assert answer.receipt.stage == "understand"
        assert answer.value.nothing is None
        assert [replace(one, aspect=None, event_at=None) for one in answer.value.world] == list(world)
        assert [(one.aspect, one.event_at) for one in answer.value.world] == list(classes.world)
        assert [replace(one, kind=None) for one in answer.value.voice] == list(voice)
        assert [one.kind for one in answer.value.voice] == list(classes.voice)

    async def test_understanding_at_once_says_why_there_is_nothing(self, engine: Engine) -> None:
        answer = await engine.understand(SCOPE, tasks.Understand(turns("ok thanks!"), SETTING))
        assert (answer.value.nothing, list(answer.value.world), list(answer.value.voice)) == (
            NothingReason.SMALL_TALK,
            [],
            [],
        )

    async def test_resolving_at_once_says_what_the_parts_say(self, engine: Engine) -> None:
        said = "Always run the tests before you open a PR."
        voice = tasks.JudgeVoice(
            [VoiceFact(said, 0, said, VoiceKind.DIRECTIVE)],
            [tasks.KnownFact(said)],
            [tasks.Pair(0, 0)],
            SETTING,
        )
        named = entities(["Maya Kapoor", "Maya K."], [(0, 1)], "Maya Kapoor leads Atlas. Maya K. lives here.")
        fact = [tasks.KnownFact("Ana lives in Graz.")]
        told = tasks.JudgeStatements(fact, fact, [tasks.Pair(0, 0)], SETTING)
        reflect = tasks.Reflect("", [claim("Ana", "lives_in", "Graz", "Ana lives in Graz.")], (), SETTING)
        answer = await engine.resolve(SCOPE, tasks.Resolve(SETTING, reflect, named, told, voice))
        resolved = answer.value
        assert answer.receipt.stage == "resolve"
        assert resolved.kept is not None
        assert (list(resolved.kept.world), list(resolved.kept.voice)) == ([0], [])
        for part, alone in (
            (resolved.entities, (await engine.judge_entities(SCOPE, named)).value),
            (resolved.statements, (await engine.judge_statements(SCOPE, told)).value),
            (resolved.voice, (await engine.judge_voice(SCOPE, voice)).value),
        ):
            assert [(one.new, one.candidate) for one in part.verdicts] == [
                (one.new, one.candidate) for one in alone.verdicts
            ]
        only = await engine.resolve(SCOPE, tasks.Resolve(SETTING, entities=named))
        assert only.value.kept is None
        assert not [*only.value.statements.verdicts, *only.value.voice.verdicts]

    async def test_nothing_to_do_costs_no_call(self, engine: Engine) -> None:
        receipts: Sequence[Receipt] = (
            (await engine.reflect(SCOPE, tasks.Reflect("", (), (), SETTING))).receipt,
            (await engine.classify(SCOPE, tasks.Classify((), (), SETTING))).receipt,
            (await engine.judge_entities(SCOPE, tasks.JudgeEntities((), (), (), (), SETTING))).receipt,
            (await engine.judge_statements(SCOPE, tasks.JudgeStatements((), (), (), SETTING))).receipt,
            (await engine.judge_voice(SCOPE, tasks.JudgeVoice((), (), (), SETTING))).receipt,
        )
        assert [receipt.calls for receipt in receipts] == [0, 0, 0, 0, 0]

    async def test_a_receipt_names_stage_engine_and_version(self, engine: Engine) -> None:
        receipt = (await engine.extract_world(SCOPE, extract("Bob joined the team."))).receipt
        assert receipt.stage == "extract_world"
        assert receipt.engine == engine.name
        assert receipt.prompt_version
        assert receipt.milliseconds >= 0

    async def test_the_same_text_gives_the_same_facts_in_every_scope(self, engine: Engine) -> None:
        task = extract("Kiran works on project Alpha.", "I live in Graz.")
        here = await engine.extract_world(SCOPE, task)
        there = await engine.extract_world(OTHER, task)
        assert here.value == there.value
