"""Voice facts: which sentences of the user are kept whole, and as what."""

import pytest

from services.domain.memory import EpisodeKind, VoiceKind
from tests.unit.llm.offline.reading import ASSISTANT, USER, understand

SENTENCES = [
    ("When you write code, use type hints.", VoiceKind.DIRECTIVE),
    ("You must never share my address.", VoiceKind.DIRECTIVE),
    ("Remember to always answer in German.", VoiceKind.DIRECTIVE),
    ("Please keep your answers short.", VoiceKind.DIRECTIVE),
    ("Use tabs, not spaces.", VoiceKind.DIRECTIVE),
    ("I prefer dark mode.", VoiceKind.PREFERENCE),
    ("I'd rather take the train than fly.", VoiceKind.PREFERENCE),
    ("I usually run 5 km before work.", VoiceKind.HABIT),
    ("Every Sunday I call my mother.", VoiceKind.HABIT),
    ("I go swimming every morning.", VoiceKind.HABIT),
    ("I believe that small teams ship faster.", VoiceKind.BELIEF),
    ("In my opinion, tests are documentation.", VoiceKind.BELIEF),
    ("My goal is to run a marathon next year.", VoiceKind.GOAL),
    ("I want to learn Portuguese.", VoiceKind.GOAL),
    ("I need to renew my passport in May.", VoiceKind.TASK),
    ("Remind me to water the plants.", VoiceKind.TASK),
]


@pytest.mark.parametrize(("text", "kind"), SENTENCES)
async def test_a_sentence_of_the_users_voice(text: str, kind: VoiceKind) -> None:
    assert [(fact.text, fact.kind) for fact in (await understand(text)).voice] == [(text, kind)]


@pytest.mark.parametrize(
    "text",
    [
        "Don't worry about it!",
        "Never give up on your dreams!",
        "I love sushi.",
        "I want to know how Redis works.",
        "I always wanted a dog.",
        "I have to say it went well.",
        "Please review this pull request.",
        "Do you prefer tea or coffee?",
        "I never thought of that before.",
    ],
)
async def test_what_only_sounds_so_is_left_out(text: str) -> None:
    assert list((await understand(text)).voice) == []


async def test_only_the_users_own_words_are_voice() -> None:
    got = await understand((ASSISTANT, "I prefer tabs over spaces."), "Yes, right.")
    assert list(got.voice) == []
    two = await understand((USER, "I prefer tea.", "Caroline"), (USER, "I prefer coffee.", "Ana"))
    assert [fact.text for fact in two.voice] == ["I prefer coffee."]


async def test_a_handbook_directs_nobody() -> None:
    text = "Always run the tests before you open a PR."
    assert list((await understand(text, kind=EpisodeKind.DOCUMENT)).voice) == []
