"""Names of one thing, by the offline rules: what one text spells out or spells twice; all else stays two."""

import pytest

from services.domain.graph import EntityType
from services.domain.memory import EpisodeKind
from services.llm import tasks
from services.llm.offline import OfflineEngine
from tests.unit.llm.offline.reading import SCOPE, day

SETTING = tasks.Setting(EpisodeKind.CONVERSATION, day("2026-01-01"))
BOTH = "Maya Kapoor leads Atlas. Maya K. lives in Graz."


async def judged(
    new: str,
    known: str,
    said: str = BOTH,
    *others: str,
    here: bool = True,
    type: EntityType = EntityType.UNKNOWN,
) -> list[bool]:
    """Verdicts on the pair; `others` are known to the graph and offered as well."""
    candidates = [tasks.NamedEntity(known, type, (), here)]
    candidates += [tasks.NamedEntity(other, type) for other in others]
    pairs = [tasks.Pair(0, at) for at in range(len(candidates))]
    task = tasks.JudgeEntities(
        [tasks.NamedEntity(new, type, (), here=True)], candidates, pairs, [said], SETTING
    )
    verdicts = (await OfflineEngine().judge_entities(SCOPE, task)).value.verdicts
    assert {verdict.candidate for verdict in verdicts} <= {0}
    return [verdict.same for verdict in verdicts]


@pytest.mark.parametrize(
    ("new", "known"),
    [
        ("Maya K.", "Maya Kapoor"),
        ("Maya Kapoor", "Maya K."),
        ("M. Kapoor", "Maya Kapoor"),
        ("张伟", "張偉"),
        ("José García", "Jose Garcia"),
        ("Иван П.", "Иван Петров"),
    ],
)
async def test_two_spellings_in_one_text_are_one(new: str, known: str) -> None:
    assert await judged(new, known) == [True]
    assert await judged(new, known, here=False) == [], "the text doesn't name the known one"


@pytest.mark.parametrize(
    ("new", "known", "said"),
    [
        ("IBM", "International Business Machines", "International Business Machines (IBM) hired Ana."),
        ("NYC", "New York City", "Ana left NYC (New York City)."),
        ("北大", "北京大学", "Ana在北京大学（北大）学习。"),
    ],
)
async def test_what_the_text_spells_out_is_one(new: str, known: str, said: str) -> None:
    assert await judged(new, known, said) == [True]
    assert await judged(new, known, said, here=False) == [True]
    assert await judged(new, known, f"{new} and {known} are in it.") == []


async def test_a_second_bearer_of_the_name_is_a_doubt() -> None:
    assert await judged("Maya K.", "Maya Kapoor", BOTH, "Maya Kumar") == []
    assert await judged("Maya K.", "Maya Kapoor", BOTH, "M. Kapoor", "Ravi Kumar") == [True]


@pytest.mark.parametrize(
    ("new", "known"),
    [
        ("Munich", "München"),
        ("Müller", "Möller"),
        ("Muller", "Müller"),
        ("Acme", "Acme Inc."),
        ("Berlin", "Bonn"),
    ],
)
async def test_else_both_stay(new: str, known: str) -> None:
    assert await judged(new, known) == []


async def test_positions_that_were_not_sent_are_passed_over() -> None:
    task = tasks.JudgeEntities([], [], [tasks.Pair(0, 3)], [BOTH], SETTING)
    assert (await OfflineEngine().judge_entities(SCOPE, task)).value.verdicts == []
