"""Figures of the LoCoMo benchmark: recall, nDCG and AUROC, in percent, as means over questions."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

CUTS = (5, 10, 20)


def recall_at(ranked: Sequence[str], evidence: Collection[str], cut: int) -> float:
    """The share of the evidence among the first `cut`."""
    return len(set(ranked[:cut]) & set(evidence)) / len(evidence)


def ndcg_at(ranked: Sequence[str], evidence: Collection[str], cut: int = 10) -> float:
    """Discounted gain of the evidence among the first `cut`, as a share of the best there can be."""
    gain = sum(1 / math.log2(place + 2) for place, id in enumerate(ranked[:cut]) if id in evidence)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(cut, len(evidence))))


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """How often a positive scores above a negative, ties half."""
    won = sum((one > other) + (one == other) / 2 for one in positive for other in negative)
    return won / (len(positive) * len(negative)) if positive and negative else math.nan


@dataclass
class Table:
    """Rows of figures by key, means over what was added."""

    rows: dict[tuple[str, ...], list[tuple[float, ...]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, key: tuple[str, ...], ranked: Sequence[str], evidence: Collection[str]) -> None:
        found = (*(recall_at(ranked, evidence, cut) for cut in CUTS), ndcg_at(ranked, evidence))
        self.rows[key].append(found)

    def mean(self, key: tuple[str, ...]) -> tuple[float, ...]:
        rows = self.rows.get(key, [])
        return tuple(100 * sum(column) / len(rows) for column in zip(*rows, strict=True))


def shown(figures: Iterable[float]) -> str:
    return " ".join(f"{figure:6.1f}" for figure in figures)
