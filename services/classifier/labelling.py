"""Labelling: topic names that are unique in a graph; what is called nearly so already is called so."""

from collections.abc import Sequence

import numpy as np

from services.domain.scope import Scope
from services.domain.summaries import MAX_LABELS, SAME_LABEL, label_key
from services.llm.port import Embedder, Vectors
from services.stores.memory.port import SummaryStore
from services.stores.memory.summaries import LabelVector


class Labelling:
    """Unifies the labels of a session with those of its graph."""

    def __init__(self, summaries: SummaryStore, embedder: Embedder) -> None:
        self._summaries = summaries
        self._embedder = embedder

    async def known(self, scope: Scope) -> list[LabelVector]:
        """The labels of a graph, by name."""
        return list(await self._summaries.label_vectors(scope))

    async def unified(self, names: Sequence[str], known: Sequence[LabelVector]) -> list[LabelVector]:
        """For each name the label that it is: of the same lower-cased form, or as near as SAME_LABEL, or new.

        Each label once, at most MAX_LABELS. Raises EngineError.
        """
        labels = {label_key(label.name): label for label in known}
        found: dict[str, LabelVector] = {}
        for name in names:
            key, words = label_key(name), " ".join(name.split())
            if not key or len(found) == MAX_LABELS:
                continue
            label = labels.get(key)
            if label is None:
                label = await self._nearest(words, list(labels.values()))
                labels[label_key(label.name)] = label
            found.setdefault(label_key(label.name), label)
        return list(found.values())

    async def _nearest(self, name: str, labels: Sequence[LabelVector]) -> LabelVector:
        """A label that means the same, else a new one."""
        vector, *missing = await self._embedder.passages(
            [name, *(one.name for one in labels if not self._is_ours(one))]
        )
        mine = LabelVector(name, np.asarray(vector, dtype="<f4").tobytes(), self._embedder.name)
        if not labels:
            return mine
        rest = iter(missing)
        others: Vectors = np.stack(
            [np.frombuffer(one.vector, dtype="<f4") if self._is_ours(one) else next(rest) for one in labels]
        )
        cosines = others @ vector
        best = int(np.argmax(cosines))
        return labels[best] if cosines[best] >= SAME_LABEL else mine

    def _is_ours(self, label: LabelVector) -> bool:
        """False for one whose vector another embedder made, or none: an import brings names alone."""
        return label.embedder == self._embedder.name and len(label.vector) == 4 * self._embedder.dimension
