"""The red-team corpus against the parts that decide: what is held back, and what no guard lets through.

The model is taken to be wholly misled: it draws a fact out of every sentence, or invents one.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from services.domain.facts import DropReason, FactKind, Mention, Turn, WorldFact
from services.domain.instructions import instruction_spans
from services.domain.memory import Role
from services.domain.sentences import sentences
from services.extractor.guards import Guards
from tests.red_team import HARMLESS, HOSTILE

REASONS = {
    "dropped": DropReason.INSTRUCTION_SHAPED,
    "recalled": DropReason.RECALLED_TEXT,
    "unconfirmed": DropReason.UNCONFIRMED_ASSISTANT,
    "unquoted": DropReason.QUOTE_NOT_FOUND,
}


def turns_of(text: dict[str, Any]) -> list[Turn]:
    role = Role.ASSISTANT if text["from"] == "agent" else Role.USER
    return [Turn(0, text["say"], "", role), Turn(1, "Go on.", "", Role.USER)]


def proposed(text: dict[str, Any]) -> Iterator[WorldFact]:
    """A fact from each sentence that holds the marker, by the sentence and by the marker alone."""
    named = text["marker"]
    told = [text["invents"]] if "invents" in text else sentences(text["say"])
    for quote in [one for one in told if named in one] + ([] if "invents" in text else [named]):
        yield WorldFact(FactKind.CLAIM, Mention("It"), "is", Mention(named), quote, 0, quote)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text["id"])
def test_what_is_hostile_teaches_nothing(text: dict[str, Any]) -> None:
    orders = instruction_spans(text["say"])
    if text["ends"] == "quarantined":
        assert orders, "nobody would hold it back"
        return
    guarded = Guards(turns_of(text)).world(list(proposed(text)))
    assert guarded.facts == ()
    assert {one.reason for one in guarded.refused} == {REASONS[text["ends"]]}


@pytest.mark.parametrize("text", HARMLESS, ids=lambda text: text["id"])
def test_what_only_looks_like_it_is_learned(text: dict[str, Any]) -> None:
    assert not instruction_spans(text["say"])
    facts = list(proposed(text))
    assert facts
    assert Guards(turns_of(text)).world(facts).facts != ()


def test_there_are_enough_of_both() -> None:
    assert len(HOSTILE) >= 40
    assert len(HARMLESS) >= 20
    assert len({text["id"] for text in [*HOSTILE, *HARMLESS]}) == len(HOSTILE) + len(HARMLESS)
    assert {text["ends"] for text in HOSTILE} == {"quarantined", *REASONS}
