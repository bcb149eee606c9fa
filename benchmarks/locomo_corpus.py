"""LoCoMo as the benchmark reads it: turns, questions and the turns that answer them, ids repaired."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo" / "conversations.json"

TUNED = ("conv-26", "conv-41", "conv-43")
"""Conversations that weights were chosen on."""
KEPT_OUT = ("conv-30", "conv-42")
"""Conversations that nothing was chosen on."""

CATEGORIES: Mapping[int, str] = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = 5


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: the unit that is searched for. `id` is the source's own (`D3:11`)."""

    id: str
    session: str
    at: datetime
    speaker: str
    text: str
    by_assistant: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the ids of the turns that answer it (of an adversarial one: that seem to)."""

    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Two people's talk over months. `questions` are those whose evidence is among the turns."""

    name: str
    turns: Sequence[Turn]
    questions: Sequence[Question]
    user: str = ""
    """Whom "I" in a question means."""

    @property
    def sessions(self) -> Mapping[str, Sequence[Turn]]:
        """Turns by session, in their order."""
        found: dict[str, list[Turn]] = {}
        for turn in self.turns:
            found.setdefault(turn.session, []).append(turn)
        return found


def load(path: Path = DATA) -> list[Conversation]:
    """Every conversation of the file."""
    return [_conversation(one) for one in json.loads(path.read_text(encoding="utf-8"))]


def _conversation(found: Mapping[str, Any]) -> Conversation:
    turns = list(_turns(found["conversation"]))
    known = {turn.id for turn in turns}
    questions = []
    for one in found["qa"]:
        evidence = frozenset(repaired(one["evidence"])) & known
        if evidence:
            questions.append(Question(one["question"], one["category"], evidence))
    return Conversation(found["sample_id"], turns, questions)


def _turns(talk: Mapping[str, Any]) -> Iterator[Turn]:
    names = [name for name, held in talk.items() if isinstance(held, list)]
    for name in sorted(names, key=lambda name: int(name.removeprefix("session_"))):
        at = datetime.strptime(talk[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in talk[name]:
            yield Turn(turn["dia_id"], name, at, turn["speaker"], _text(turn))


def _text(turn: Mapping[str, Any]) -> str:
    """What was said, and what a picture that was sent shows, as LoCoMo's own evaluation gives both."""
    caption = turn.get("blip_caption")
    return f"{turn['text']} [shared {caption}]" if caption else str(turn["text"])


def repaired(evidence: Sequence[str]) -> Iterator[str]:
    """Ids as they are meant: "D8:6; D9:17" is two, "D:11:26" is D11:26."""
    for text in evidence:
        for session, turn in re.findall(r"D:?0*(\d+):0*(\d+)", text):
            yield f"D{session}:{turn}"
