"""Does recall find the turns that answer LoCoMo's questions? By the public API, beside a baseline.

    python -m benchmarks.locomo [--conversations conv-26 ...] [--budget 1000] [--build build/locomo] [--legs]

Five conversations (../shared/data/locomo, CC BY-NC 4.0: measured with, never shipped) are taken in by the
offline engine, one graph each, and kept in `--build` under a key of their content, so that only the first
run is slow. Then each question is asked of its conversation's graph, with local embeddings and no model. A
unit is a turn, that is a passage; the pool is the question's conversation; `recall@k` is the share of a
question's evidence among the first k passages, as a mean over questions, `nDCG` is at 10.

The baseline scores the same turns in the same run: the min-max sum of BM25 (stemmed, stop words out), BM25
over windows of three turns, and the same embedder. `tuned` are the conversations that weights were chosen
on; nothing was chosen on those `kept out`.

At an equal token budget: the share of the evidence that the context cites, against that in as many of the
baseline's turns, best first, as fit. Abstention: AUROC of questions with an answer (categories 1 to 4)
against adversarial ones (5), by `abstention_score`, and by the margin between the best turn of the person
whom the question names and the best turn of the other.
"""

import argparse
import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from benchmarks.locomo_baseline import Baseline, Embedded
from benchmarks.locomo_baseline import shown as turn_shown
from benchmarks.locomo_corpus import ADVERSARIAL, CATEGORIES, KEPT_OUT, TUNED, Conversation, Question, load
from benchmarks.locomo_figures import CUTS, Table, auroc, shown
from benchmarks.locomo_memory import Memory, folder_of, open_memory
from palimpsest.v1 import recall_pb2
from services.llm import tokens
from services.llm.local_embedder import LocalEmbedder

OURS, BASELINE = "ours", "baseline"
MAX_PASSAGES = 20
ALL = 200
"""Passages asked for, to see what each leg found."""
LEGS = ("lexical", "dense", "neighbour", "time")
CONTENT = "1"
"""Changed when what is stored of the same turns changes: the folder is filled anew then."""


@dataclass
class Figures:
    """What was measured."""

    units: Table = field(default_factory=Table)
    legs: Table = field(default_factory=Table)
    packed: dict[tuple[str, ...], list[float]] = field(default_factory=lambda: defaultdict(list))
    """Shares of the evidence within the token budget."""
    certain: dict[tuple[str, str, bool], list[float]] = field(default_factory=lambda: defaultdict(list))
    """By set and by who: how sure there is an answer, where there is one and where there is none."""


class Bench:
    """One conversation: its graph, its baseline, its turns."""

    def __init__(
        self, memory: Memory, conversation: Conversation, baseline: Baseline, turns: Mapping[str, str]
    ) -> None:
        self._memory = memory
        self._conversation = conversation
        self._baseline = baseline
        self._turns = turns
        self._sets = ("tuned" if conversation.name in TUNED else "kept out", "all")
        lines = [f"- {turn.at:%Y-%m-%d} {turn_shown(turn)} [e1]" for turn in conversation.turns]
        costs = [tokens.count(line) + 1 for line in lines]
        self._cost = {turn.id: cost for turn, cost in zip(conversation.turns, costs, strict=True)}

    async def ask(self, question: Question, budget: int, legs: bool, figures: Figures) -> None:
        """Adds what one question shows."""
        scores = self._baseline.scores(question)
        answer = await self._recall(question, max_passages=MAX_PASSAGES, token_budget=budget)
        has_answer = question.category != ADVERSARIAL
        for name in self._sets:
            figures.certain[name, OURS, has_answer].append(1 - answer.abstention_score)
            figures.certain[name, BASELINE, has_answer].append(self._baseline.margin(question, scores))
        if not has_answer:
            return
        ours, theirs = self._passages(answer), self._baseline.ranked(scores)
        cited, fitting = self._cited(answer), self._fitting(theirs, budget)
        for name in self._sets:
            for category in (CATEGORIES[question.category], "all"):
                figures.units.add((name, category, OURS), ours, question.evidence)
                figures.units.add((name, category, BASELINE), theirs, question.evidence)
                for who, found in ((OURS, cited), (BASELINE, fitting)):
                    share = len(found & question.evidence) / len(question.evidence)
                    figures.packed[name, category, who].append(share)
        if legs:
            await self._legs(question, figures)

    async def _recall(self, question: Question, **fields: Any) -> recall_pb2.RecallResponse:
        return await self._memory.recall(self._conversation.name, question.text, **fields)

    async def _legs(self, question: Question, figures: Figures) -> None:
        answer = await self._recall(question, max_passages=ALL, max_facts=20, explain=True)
        places: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for found in answer.passages:
            for by in found.found_by:
                leg = recall_pb2.RecallLeg.Name(by.leg).removeprefix("RECALL_LEG_").lower()
                places[leg].append((by.rank, self._turns[found.passage.passage_id]))
        ranked = {leg: [id for _, id in sorted(found)] for leg, found in places.items()}
        names = [name for fact in answer.facts for name in fact.evidence]
        facts = [self._turns.get(answer.evidence[name].passage_id, "") for name in names]
        ranked["facts alone"] = list(dict.fromkeys(id for id in facts if id))
        for category in (CATEGORIES[question.category], "all"):
            for leg in (*LEGS, "facts alone"):
                figures.legs.add((category, leg), ranked.get(leg, []), question.evidence)

    def _passages(self, answer: recall_pb2.RecallResponse) -> list[str]:
        return [self._turns[found.passage.passage_id] for found in answer.passages]

    def _cited(self, answer: recall_pb2.RecallResponse) -> set[str]:
        """Turns that a line of the context points at: its first evidence, which is the one that it shows."""
        names = {fact.evidence[0] for fact in answer.facts if fact.in_context and fact.evidence}
        names |= {one.evidence[0] for one in answer.voice if one.in_context and one.evidence}
        names |= {found.evidence for found in answer.passages if found.in_context}
        return {self._turns.get(answer.evidence[name].passage_id, "") for name in names}

    def _fitting(self, ranked: Sequence[str], budget: int) -> set[str]:
        """As many of the first turns as fit, each a line with its date and evidence."""
        fitting: set[str] = set()
        for id in ranked[:MAX_PASSAGES]:
            if self._cost[id] <= budget:
                fitting.add(id)
                budget -= self._cost[id]
        return fitting


def tell(figures: Figures, budget: int) -> None:
    """Prints the tables."""
    cuts = " ".join(f"{f'@{cut}':>6}" for cut in CUTS)
    print(f"\n{'recall of passages, categories 1 to 4':44} {cuts}   nDCG")
    for name in ("tuned", "kept out", "all"):
        for category in ("all", *(CATEGORIES[one] for one in (1, 2, 3, 4))):
            rows = {who: figures.units.mean((name, category, who)) for who in (OURS, BASELINE)}
            if not rows[OURS]:
                continue
            asked = len(figures.units.rows[name, category, OURS])
            for who, row in rows.items():
                print(f"  {name:9} {category:11} {asked:4} {who:14} {shown(row)}")
            gained = (one - other for one, other in zip(rows[OURS], rows[BASELINE], strict=True))
            print(f"  {name:9} {category:11} {asked:4} {'difference':14} {shown(gained)}")
    if figures.legs.rows:
        print("\nby leg, all conversations")
    for category, leg in figures.legs.rows:
        print(f"  {category:11} {leg:29} {shown(figures.legs.mean((category, leg)))}")
    print(f"\nshare of the evidence within {budget} tokens")
    for name in ("tuned", "kept out", "all"):
        for category in ("all", *(CATEGORIES[one] for one in (1, 2, 3, 4))):
            found = [figures.packed.get((name, category, who), []) for who in (OURS, BASELINE)]
            if found[0]:
                means = [100 * sum(each) / len(each) for each in found]
                print(f"  {name:9} {category:11} ours {means[0]:5.1f}   baseline {means[1]:5.1f}")
    print("\nAUROC of answerable against adversarial questions")
    for name in ("tuned", "kept out", "all"):
        pairs = [
            (figures.certain[name, who, True], figures.certain[name, who, False]) for who in (OURS, BASELINE)
        ]
        if all(pair[0] for pair in pairs):
            ours, peer = (auroc(*pair) for pair in pairs)
            print(f"  {name:9} ours {ours:.3f}   margin between the best turns of the two {peer:.3f}")


async def gather(names: Sequence[str], build: Path, budget: int, legs: bool) -> Figures:
    """Asks every question of these conversations; of all where none is named."""
    conversations = [one for one in load() if not names or one.name in names]
    folder = folder_of(build, load(), CONTENT)
    figures = Figures()
    async with AsyncExitStack() as stack:
        embedder = LocalEmbedder()
        stack.push_async_callback(embedder.aclose)
        memory = await open_memory(stack, folder, conversations)
        for conversation in conversations:
            turns = await memory.turns(conversation.name)
            assert set(turns.values()) >= {turn.id for turn in conversation.turns}, "a turn is missing"
            baseline = Baseline(conversation, await Embedded.of(conversation, embedder, folder))
            bench = Bench(memory, conversation, baseline, turns)
            started = time.perf_counter()
            for question in conversation.questions:
                await bench.ask(question, budget, legs, figures)
            asked = len(conversation.questions)
            print(
                f"  {conversation.name}: {asked} questions, {time.perf_counter() - started:.0f} s", flush=True
            )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = (*TUNED, *KEPT_OUT)
    parser.add_argument("--conversations", nargs="*", default=[], choices=known, metavar="NAME")
    parser.add_argument("--budget", type=int, default=1_000, help="tokens of a context")
    parser.add_argument("--build", type=Path, default=Path("build/locomo"))
    parser.add_argument("--legs", action="store_true", help="ask once more for what each leg found")
    options = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    found = asyncio.run(gather(options.conversations, options.build, options.budget, options.legs))
    tell(found, options.budget)


if __name__ == "__main__":
    main()
