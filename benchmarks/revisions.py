"""How much of a new version of a document has to be understood: ours against the whole text, and a floor.

    python -m benchmarks.revisions [--documents 40] [--seed 1]

*Revisions* (../shared/data/revisions, IteraTeR): real edits of short texts, before and after. *Generated*:
long documents of headings, prose, lists, tables and code, in English and Chinese, with edits of a kind each
(a word, a sentence, a paragraph added, removed, moved, lines broken anew, a heading renamed, nothing). *One
line*: the same edits in a text without a single line break.

For each kind, as shares of the new version's tokens (o200k_base), all versions together: `ours`, what is
ingested; `sentences`, a floor: sentences that no version before had, each without its paragraph; `lines`, a
peer: the added lines of difflib, as a client would send that diffs by itself. `lost` counts sentences that
are new but not in what is ingested: it must be 0.
"""

import argparse
import difflib
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from services.domain.ids import EpisodeId
from services.domain.instants import Instant
from services.domain.memory import Passage
from services.domain.scope import GraphId, Scope, TenantId
from services.domain.sentences import sentences
from services.llm import tokens
from services.preprocessor.blocks import blocks
from services.preprocessor.layout import of_document
from services.preprocessor.passages import passages_of
from services.preprocessor.versions import changes

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "revisions" / "revisions.jsonl"
NOW = Instant(0)
SCOPE = Scope(TenantId("t"), GraphId("g"))
SUBJECTS = ("Atlas", "Borealis", "the billing service", "the gateway", "主数据库", "支付服务")
VERBS = ("uses", "stores", "reads", "replaces", "monitors", "依赖", "迁移到了")
OBJECTS = ("PostgreSQL 16", "MySQL 8.0", "Redis", "nightly backups", "two replicas", "消息队列", "对象存储")

Parts = list[list[str]]
"""A document as paragraphs of sentences; a heading, a table or code is a paragraph of one."""


@dataclass
class Tally:
    """Tokens of all versions of one kind of edit."""

    whole: int = 0
    ours: int = 0
    floor: int = 0
    lines: int = 0
    lost: int = 0
    versions: int = 0
    seconds: float = 0.0

    def add(self, before: str, after: str) -> None:
        earlier = passages(before)
        started = time.perf_counter()
        layout = changes(after, before, earlier, NOW)
        self.seconds += time.perf_counter() - started
        ingested = "" if layout is None else layout.text
        new = new_sentences(before, after)
        self.versions += 1
        self.whole += tokens.count(after)
        self.ours += tokens.count(ingested)
        self.floor += tokens.count(" ".join(new))
        added = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
        self.lines += tokens.count("\n".join(line[1:] for line in added if line.startswith("+")))
        said = said_in(ingested)
        self.lost += sum(one not in said for one in new)

    def row(self, kind: str) -> str:
        shares = [f"{100 * part / self.whole:8.1f} %" for part in (self.ours, self.floor, self.lines)]
        pace = self.whole / self.seconds / 1000
        return f"{kind:18}{self.versions:9}{self.whole:10,}" + "".join(shares) + f"{self.lost:6}{pace:10,.0f}"


def passages(text: str) -> list[Passage]:
    """Those that a first version makes."""
    layout = of_document(text, NOW)
    spans = layout.cut()
    return passages_of(SCOPE, layout, spans, [EpisodeId(str(at)) for at in range(len(spans))])


def said_in(text: str) -> set[str]:
    """Its sentences, without regard to how lines are broken."""
    found = (text[block.start : block.end] for block in blocks(text) if block.heading is None)
    return {" ".join(one.split()) for paragraph in found for one in sentences(paragraph)}


def new_sentences(before: str, after: str) -> list[str]:
    return sorted(said_in(after) - said_in(before))


def a_sentence(chance: random.Random) -> str:
    said = f"{chance.choice(SUBJECTS)} {chance.choice(VERBS)} {chance.choice(OBJECTS)}"
    return f"{said} since week {chance.randint(1, 5_000)}."


def a_document(chance: random.Random, paragraphs: int) -> Parts:
    found: Parts = []
    for number in range(paragraphs):
        if number % 8 == 0:
            found.append([f"## Part {number // 8}"])
        kind = chance.random()
        if kind < 0.7:
            found.append([a_sentence(chance) for _ in range(chance.randint(2, 7))])
        elif kind < 0.85:
            rows = "\n".join(f"| {a_sentence(chance)} | {number} |" for _ in range(4))
            found.append([f"| what | n |\n|---|---|\n{rows}"])
        else:
            found.append([f"```python\nrun({number}, {chance.randint(1, 10**6)})\n\nstop()\n```"])
    return found


def edits(chance: random.Random, parts: Parts) -> Iterator[tuple[str, Parts]]:
    """Each kind of edit of one document."""
    prose = [at for at, part in enumerate(parts) if len(part) > 1]
    at = chance.choice(prose)

    def changed(new: Sequence[str]) -> Parts:
        return [*parts[:at], list(new), *parts[at + 1 :]]

    yield "nothing", list(parts)
    yield "a word", changed([parts[at][0].replace("week", "about week"), *parts[at][1:]])
    yield "a sentence", changed([*parts[at][:1], a_sentence(chance), *parts[at][1:]])
    yield "sentence removed", changed(parts[at][1:])
    yield "paragraph added", [*parts[:at], [a_sentence(chance), a_sentence(chance)], *parts[at:]]
    yield "paragraph removed", [*parts[:at], *parts[at + 1 :]]
    moved = [*parts[:at], *parts[at + 1 :]]
    moved.insert(chance.randrange(1, len(moved)), parts[at])
    yield "paragraph moved", moved
    yield (
        "lines broken",
        [[one.replace(" since", "\nsince") for one in part] if len(part) > 1 else part for part in parts],
    )
    yield (
        "heading renamed",
        [
            [one.replace("## Part 1", "## Chapter 1")] if len(part) == 1 else part
            for part in parts
            for one in part[:1]
        ],
    )


def written(parts: Parts) -> str:
    return "\n\n".join(" ".join(part) for part in parts) + "\n"


def on_one_line(parts: Parts) -> str:
    return " ".join(one for part in parts if len(part) > 1 for one in part)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(
        f"{'':18}{'versions':>9}{'tokens':>10}{'ours':>10}{'sentences':>10}{'lines':>10}{'lost':>6}{'kT/s':>10}"
    )
    if DATA.exists():
        real = Tally()
        for line in DATA.read_text("utf-8").splitlines():
            revision = json.loads(line)
            real.add(revision["before"], revision["after"])
        print(real.row("revisions"))
    chance = random.Random(asked.seed)
    long: dict[str, Tally] = {}
    line_: dict[str, Tally] = {}
    for _ in range(asked.documents):
        parts = a_document(chance, chance.randint(40, 120))
        for kind, after in edits(chance, parts):
            long.setdefault(kind, Tally()).add(written(parts), written(after))
            line_.setdefault(kind, Tally()).add(on_one_line(parts), on_one_line(after))
    for title, tallies in (("generated", long), ("one line", line_)):
        print(title)
        for kind, tally in tallies.items():
            print("  " + tally.row(kind)[:200])


if __name__ == "__main__":
    main()
