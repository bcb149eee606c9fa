"""Verdicts of the rules: contradiction, duplicate, evolution; and doubt, which keeps both."""

import pytest

from services.domain.facts import VoiceFact
from services.domain.memory import EpisodeKind, VoiceKind
from services.domain.records import VerdictKind
from services.llm import tasks
from services.llm.offline import OfflineEngine
from tests.unit.llm.offline.reading import SCOPE, day

SETTING = tasks.Setting(EpisodeKind.CONVERSATION, day("2026-01-01"))
PAIR = [tasks.Pair(0, 0)]

STATEMENTS = [
    ("Ana hates sushi.", "Ana loves sushi.", VerdictKind.CONTRADICTS),
    ("Bo dislikes the cold.", "Bo likes the cold.", VerdictKind.CONTRADICTS),
    ("Ana owns the dogs.", "Ana owns dog.", VerdictKind.DUPLICATE),
    ("Ana hates sushi.", "Bo loves sushi.", None),
    ("Ana hates sushi.", "Ana loves ramen.", None),
    ("Ana likes Apple.", "Ana likes apples.", None),
    ("Ana likes Apple.", "Ana likes apple.", None),
    ("Ana uses Redis 7.", "Ana uses Redis 6.", None),
    ("Ana lives in Oslo.", "Ana lives in Rome.", None),
    ("Ana speaks C.", "Ana speaks C++.", None),
]


@pytest.mark.parametrize(("new", "old", "kind"), STATEMENTS)
async def test_verdict_on_two_statements(new: str, old: str, kind: VerdictKind | None) -> None:
    task = tasks.JudgeStatements([tasks.KnownFact(new)], [tasks.KnownFact(old)], PAIR, SETTING)
    verdicts = (await OfflineEngine().judge_statements(SCOPE, task)).value.verdicts
    assert [verdict.kind for verdict in verdicts] == ([] if kind is None else [kind])


VOICES = [
    ("Always answer in German.", "Always answer in English.", VoiceKind.DIRECTIVE, False),
    ("Never use emojis in replies.", "Always use emojis in replies.", VoiceKind.DIRECTIVE, False),
    ("Don't use emojis.", "Use emojis.", VoiceKind.DIRECTIVE, False),
    (
        "From now on, limit answers to 5 lines.",
        "From now on, limit answers to 10 lines.",
        VoiceKind.DIRECTIVE,
        False,
    ),
    ("I prefer coffee over tea.", "I prefer tea over coffee.", VoiceKind.PREFERENCE, False),
    ("Call me Jo.", "Call me Johanna.", VoiceKind.DIRECTIVE, False),
    ("Please always run the tests!", "always run tests", VoiceKind.DIRECTIVE, True),
    (
        "Always run the linter before you open a PR.",
        "Always run the tests before you open a PR.",
        VoiceKind.DIRECTIVE,
        None,
    ),
    ("I prefer dark chocolate.", "I prefer dark roast.", VoiceKind.PREFERENCE, None),
    ("I want to visit Rome.", "I want to visit Paris.", VoiceKind.GOAL, None),
]


@pytest.mark.parametrize(("new", "old", "kind", "duplicate"), VOICES)
async def test_verdict_on_two_sentences(new: str, old: str, kind: VoiceKind, duplicate: bool | None) -> None:
    task = tasks.JudgeVoice([VoiceFact(new, 0, new, kind)], [tasks.KnownFact(old)], PAIR, SETTING)
    verdicts = (await OfflineEngine().judge_voice(SCOPE, task)).value.verdicts
    assert [verdict.duplicate for verdict in verdicts] == ([] if duplicate is None else [duplicate])


async def test_only_pairs_that_were_asked_are_judged() -> None:
    facts = [tasks.KnownFact("Ana hates sushi.")], [tasks.KnownFact("Ana loves sushi.")]
    task = tasks.JudgeStatements(*facts, [tasks.Pair(0, 7), tasks.Pair(-1, 0)], SETTING)
    assert list((await OfflineEngine().judge_statements(SCOPE, task)).value.verdicts) == []
