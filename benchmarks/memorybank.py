"""What recall finds for MemoryBank's probing questions, English and Chinese: a hit list to read by eye.

    python -m benchmarks.memorybank [--users 3] [--passages 3] [--languages en cn] [--build build/memorybank]

The days of dialogue of each user (../shared/data/memorybank, MIT) are taken in by the public API, one graph a
user, with the offline engine and local embeddings; the folder is kept, so that only the first run is slow.
Each probing question is then asked of its user's graph. There is no gold: below each question stand the
first passages, with score and date, and the first facts.
"""

import argparse
import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from benchmarks.locomo_corpus import Conversation, Question, Turn
from benchmarks.locomo_memory import Memory, folder_of, open_memory

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "memorybank"
CONTENT = "1"
SHOWN = 110
"""Characters of a passage."""


def load(language: str, users: int) -> list[Conversation]:
    """The first users of a language, one conversation each, a session a day."""
    told = json.loads((DATA / f"memory_bank_{language}.json").read_text(encoding="utf-8"))
    lines = (DATA / f"probing_questions_{language}.jsonl").read_text(encoding="utf-8").splitlines()
    asked = {name: questions for line in lines for name, questions in json.loads(line).items()}
    return [
        Conversation(
            name=f"{language}-{at}",
            turns=list(_turns(name, told[name]["history"])),
            questions=[Question(text, 0, frozenset()) for text in asked.get(name, ())],
            user=name,
        )
        for at, name in enumerate(list(told)[:users])
    ]


def _turns(name: str, history: dict[str, list[dict[str, Any]]]) -> Iterator[Turn]:
    for day, pairs in sorted(history.items()):
        at = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
        for number, pair in enumerate(pairs):
            yield Turn(f"{day}:{number}q", day, at, name, pair["query"])
            yield Turn(f"{day}:{number}r", day, at, "AI", pair["response"], by_assistant=True)


async def show(memory: Memory, conversation: Conversation, passages: int) -> None:
    """Prints what is found for each question of one user."""
    print(f"\n== {conversation.name}: {conversation.user}, {len(conversation.turns)} messages")
    last = max(turn.at for turn in conversation.turns)
    for question in conversation.questions:
        answer = await memory.recall(
            conversation.name, question.text, max_passages=passages, max_facts=2, now=last
        )
        print(f"\n? {question.text}   (abstention {answer.abstention_score:.2f})")
        for found in answer.passages:
            said = found.passage
            text = " ".join(said.text.split())
            day = said.reference_time.ToDatetime().date()
            print(f"    {found.score:.2f} {day} {said.speaker}: {text[:SHOWN]}")
        for fact in answer.facts:
            print(f"    {fact.score:.2f} fact: {fact.statement.fact}")


async def run(languages: Sequence[str], users: int, passages: int, build: Path) -> None:
    conversations = [one for language in languages for one in load(language, users)]
    async with AsyncExitStack() as stack:
        folder = folder_of(build, conversations, CONTENT)
        memory = await open_memory(stack, folder, conversations)
        for conversation in conversations:
            await show(memory, conversation, passages)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=3, help="of each language")
    parser.add_argument("--passages", type=int, default=3)
    parser.add_argument("--languages", nargs="+", default=["en", "cn"], choices=["en", "cn"])
    parser.add_argument("--build", type=Path, default=Path("build/memorybank"))
    options = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    asyncio.run(run(options.languages, options.users, options.passages, options.build))


if __name__ == "__main__":
    main()
