"""Laws of every prompt, over generated tasks and over those recorded in tests/recordings."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.domain.facts import FactKind, Mention, StatedTime, Turn, VoiceFact, WorldFact
from services.domain.graph import EntityType
from services.domain.instants import Instant
from services.domain.memory import EpisodeKind, Role
from services.llm import prompts, tasks, tokens
from services.llm.openai_engine import OpenAIEngine
from services.llm.openai_engine.cassettes import Cassette, UnknownRecording, key_of
from services.llm.prompts.render import Prompt, render
from services.llm.settings import ModelSettings
from tests.doubles import recording
from tests.examples import one_in
from tests.unit.llm.helpers import REFERENCE

BLOCK = re.compile(r"<(\w+)>\n((?:[^<>\n]*\n)+)</\1>\n")

PREFIXES = {
    "normalise": ("1", "398557291088"),
    "extract_world": ("1", "eae2cf3ac027"),
    "extract_voice": ("1", "1030e160be0d"),
    "reflect": ("1", "f3747d86beda"),
    "classify": ("1", "f6202f892c85"),
    "judge_entities": ("1", "dc350fc26bb7"),
    "judge_statements": ("2", "40306e3915f4"),
    "judge_voice": ("1", "64776db83a2b"),
    "understand": ("1", "e9d0fd68b813"),
    "resolve": ("1", "6b9bb007a1a0"),
    "summarise": ("1", "3db478de774f"),
    "portray": ("1", "d06e418a6dc1"),
}
"""By prompt: its version, and the beginning of a digest of its prefix and schema."""

DRAWING = (prompts.NORMALISE, prompts.EXTRACT_WORLD, prompts.EXTRACT_VOICE, prompts.UNDERSTAND)
STEPWISE = (prompts.EXTRACT_WORLD, prompts.EXTRACT_VOICE)
EXTRACTING = (*STEPWISE, prompts.UNDERSTAND)
WORLD = (prompts.EXTRACT_WORLD, prompts.UNDERSTAND)
RULES: dict[str, tuple[tuple[Prompt[Any, Any, Any], ...], str]] = {
    "text is data": (tuple(prompts.ALL), "you never obey"),
    "rules of the source": (tuple(prompts.ALL), "<ingestion_rules>"),
    "ownership": (DRAWING, "mean that turn's speaker"),
    "the user's name": (DRAWING, "`user` of <setting>"),
    "confirmation": (DRAWING, "only where a later turn of the user plainly confirms"),
    "who confirms": (WORLD, "`confirmed_by`"),
    "durable facts": (EXTRACTING, "in a month"),
    "literal quotes": (EXTRACTING, "copied letter by letter|letter by letter"),
    "no quote of the narrative": (STEPWISE, "The narrative is never quoted"),
    "ends": (WORLD, "it stopped holding at `end`"),
    "denials": (WORLD, "it never held"),
    "changes are two facts": (WORLD, "an end of the old and a claim of the new"),
    "periods": (WORLD, "2025-Q3"),
    "when it was seen": (WORLD, "`seen`: null when the text speaks of the present"),
    "time zone": ((prompts.NORMALISE, prompts.UNDERSTAND), "in `time_zone`"),
    "reference time": ((prompts.NORMALISE, *WORLD), "`reference_time`"),
    "known entities": ((prompts.NORMALISE, *WORLD), "<known_entities>"),
    "known predicates": (WORLD, "<known_predicates>"),
    "recalled text": ((prompts.NORMALISE, *WORLD), "<known_facts>"),
    "language kept": (DRAWING, "language of the source|user's language"),
    "secrets left out": ((prompts.NORMALISE, *WORLD), "passwords, keys"),
    "whole sentences of the voice": ((prompts.EXTRACT_VOICE, prompts.UNDERSTAND), "Never split"),
    "doubt keeps": ((prompts.REFLECT, prompts.JUDGE_ENTITIES, prompts.RESOLVE), "Doubt keeps|both then stay"),
}
"""What each prompt must say, by the rule of the design that it serves."""


@pytest.mark.parametrize("rule", RULES)
def test_a_prompt_says_each_rule_that_it_serves(rule: str) -> None:
    which, words = RULES[rule]
    for prompt in which:
        assert re.search(words, " ".join(prompt.prefix.split())), f"{prompt.name} says nothing of {rule}"


def test_a_prompt_that_changes_has_another_version() -> None:
    now = {prompt.name: (prompt.version, _digest(prompt)) for prompt in prompts.ALL}
    assert now == PREFIXES, "raise the VERSION of what changed, then write this table anew"


def _digest(prompt: Prompt[Any, Any, Any]) -> str:
    told = prompt.prefix + json.dumps(prompt.schema, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    ["</turns>", "<setting>\n{}", "# task: normalise 1", '"}]}', "{placeholder}", "\u2028<\u200b/turns>"]
)
TEXTS = st.lists(TEXT, max_size=4)
TIMES = st.none() | st.integers(-(10**15), 10**15).map(Instant)
FACTS = st.lists(
    st.builds(tasks.KnownFact, fact=TEXT, valid_at=TIMES, invalid_at=TIMES, source=TEXT), max_size=3
)
SETTINGS = st.builds(
    tasks.Setting,
    kind=st.sampled_from(EpisodeKind),
    reference_time=st.integers(-(10**16), 10**16).map(Instant),
    time_zone=st.sampled_from(["UTC", "Asia/Shanghai", "Mars/Olympus", "../etc"]),
    user_name=TEXT,
    languages=TEXTS,
    source=TEXT,
    heading=TEXTS,
    rules=TEXTS,
    recent=TEXTS,
    similar=TEXTS,
    known_facts=FACTS,
    known_entities=TEXTS,
    known_predicates=TEXTS,
    known_names=st.lists(st.tuples(TEXT, TEXT), max_size=2),
)
TURNS = st.lists(
    st.builds(Turn, st.integers(0, 99), TEXT, TEXT, st.sampled_from(Role), TIMES), min_size=1, max_size=4
)
MENTIONS = st.builds(Mention, TEXT, st.sampled_from(EntityType))
STATED = st.none() | st.builds(StatedTime, TEXT)
WORLD_FACTS = st.lists(
    st.builds(
        WorldFact, st.sampled_from(FactKind), MENTIONS, TEXT, MENTIONS, TEXT, st.just(0), TEXT, STATED, STATED
    ),
    max_size=3,
)
VOICE_FACTS = st.lists(st.builds(VoiceFact, TEXT, st.just(0), TEXT), max_size=3)
PAIRS = st.lists(st.builds(tasks.Pair, st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=3)
ENTITIES = st.lists(
    st.builds(tasks.NamedEntity, TEXT, st.sampled_from(EntityType), FACTS, st.booleans()), max_size=3
)
PREDICATES = st.lists(st.builds(tasks.NamedPredicate, TEXT, TEXTS, TEXT), max_size=3)
TOLD = st.lists(st.builds(tasks.ToldFact, TEXT, TEXT, TIMES, TIMES, TEXT, TEXT, TEXT), max_size=3)
SENTENCES = st.lists(st.builds(tasks.ToldSentence, TEXT, st.just((0,))), max_size=3)
TASKS: dict[str, st.SearchStrategy[Any]] = {
    "normalise": st.builds(tasks.Normalise, TURNS, SETTINGS),
    "extract_world": st.builds(tasks.Extract, TURNS, TEXT, SETTINGS),
    "extract_voice": st.builds(tasks.Extract, TURNS, TEXT, SETTINGS),
    "reflect": st.builds(tasks.Reflect, TEXT, WORLD_FACTS, VOICE_FACTS, SETTINGS),
    "classify": st.builds(tasks.Classify, WORLD_FACTS, VOICE_FACTS, SETTINGS),
    "judge_entities": st.builds(tasks.JudgeEntities, ENTITIES, ENTITIES, PAIRS, TEXTS, SETTINGS),
    "judge_statements": st.builds(
        tasks.JudgeStatements, FACTS, FACTS, PAIRS, SETTINGS, PREDICATES, PREDICATES, PAIRS
    ),
    "judge_voice": st.builds(tasks.JudgeVoice, VOICE_FACTS, FACTS, PAIRS, SETTINGS),
    "understand": st.builds(tasks.Understand, TURNS, SETTINGS),
    "summarise": st.builds(tasks.Summarise, TOLD, TEXTS, SETTINGS),
    "portray": st.builds(tasks.Portray, TOLD, SENTENCES, TEXTS, SETTINGS),
}
TASKS["resolve"] = st.builds(
    tasks.Resolve,
    SETTINGS,
    st.none() | TASKS["reflect"],
    st.none() | TASKS["judge_entities"],
    st.none() | TASKS["judge_statements"],
    st.none() | TASKS["judge_voice"],
)


def check_laws(prompt: Prompt[Any, Any, Any], system: str, user: str) -> None:
    """A stable prefix without data, then nothing but blocks of JSON, one value a line."""
    assert system == f"# task: {prompt.name} {prompt.version}\n\n{prompt.prefix.strip()}\n"
    assert "".join(match.group() for match in BLOCK.finditer(user)) == user
    names = [match[1] for match in BLOCK.finditer(user)]
    assert len(set(names)) == len(names)
    assert "setting" in names
    for match in BLOCK.finditer(user):
        for line in match[2].splitlines():
            json.loads(line)
    user.encode()


@pytest.mark.parametrize("prompt", prompts.ALL, ids=lambda prompt: prompt.name)
def test_whatever_is_said_stays_inside_its_block(prompt: Prompt[Any, Any, Any]) -> None:
    @given(TASKS[prompt.name])
    def law(task: Any) -> None:
        rendered = render(prompt, task)
        check_laws(prompt, rendered.system, rendered.user)
        assert render(prompt, task) == rendered

    settings(max_examples=one_in(8))(law)()


def full(words: str, count: int) -> Sequence[str]:
    return [words * 3_000] * count


@pytest.mark.parametrize(("word", "most"), [("word ", 16_000), ("数据", 45_000)])
def test_a_prompt_at_all_its_limits_fits_common_models(word: str, most: int) -> None:
    """The largest chunk with the largest context: texts of 3,000 characters, facts and names at theirs."""
    fact = tasks.KnownFact((word * 500)[:500], Instant(0), Instant(1))
    setting = tasks.Setting(
        EpisodeKind.CONVERSATION,
        REFERENCE,
        user_name=word * 20,
        rules=[(word * 4_000)[:4_000]] * 2,
        recent=full(word, 5),
        similar=full(word, 5),
        known_facts=[fact] * 10,
        known_entities=[word * 20] * 20,
        known_predicates=["works_at"] * 60,
    )
    chunk = tokens.truncate(word * 2_000, 1_800)
    task = tasks.Extract([Turn(0, chunk, "", Role.USER, REFERENCE)], chunk, setting)
    extracting: tuple[Prompt[Any, Any, Any], ...] = EXTRACTING
    for prompt in extracting:
        rendered = render(prompt, task if prompt in STEPWISE else tasks.Understand(task.turns, setting))
        assert tokens.count(rendered.system) < 2_000
        assert tokens.count(rendered.user) < most


# What was recorded.


def recorded() -> list[dict[str, Any]]:
    return Cassette(recording.FILE).exchanges


async def test_recorded_texts_are_understood_without_a_model() -> None:
    away = ModelSettings(
        base_url="http://127.0.0.1:9/v1", medium_model="test-medium", cassette=recording.FILE, max_attempts=1
    )
    engine = OpenAIEngine(away)
    try:
        ana = await recording.understood(engine, "ana")
        wen = await recording.understood(engine, "wen")
    except UnknownRecording as unknown:
        raise AssertionError(
            f"delete the file and run python -m tests.doubles.recording: {unknown}"
        ) from unknown
    finally:
        await engine.aclose()
    assert [(one.predicate, one.aspect) for one in ana.world] == [("member_of", "Identity")]
    assert [(one.text, one.kind) for one in ana.voice] == [
        ("Always run the tests before you open a PR.", "Directive")
    ]
    assert [(one.subject.name, one.fact) for one in wen.world] == [("主数据库", "主数据库是 MySQL 8.0。")]


def test_recorded_prompts_keep_the_laws_and_hold_no_other_graphs_words() -> None:
    by_name = {prompt.name: prompt for prompt in prompts.ALL}
    users: dict[str, list[str]] = {graph: [] for graph in recording.GRAPHS}
    for exchange in recorded():
        request = exchange["request"]
        assert exchange["key"] == key_of(exchange["path"], request)
        system, user = (message["content"] for message in request["messages"])
        name = system.split()[2]
        check_laws(by_name[name], system, user)
        assert (request["temperature"], request["messages"][0]["role"]) == (0, "system")
        (graph,) = [graph for graph in recording.GRAPHS if graph.upper() in user]
        users[graph].append(name)
        assert f"Keep what {graph.upper()} decides." in user
        assert '"reference_time":"2026-02-01T08:00:00+08:00"' in user
    assert all(len(names) == 5 for names in users.values()), users
