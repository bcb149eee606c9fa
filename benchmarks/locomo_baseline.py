"""The baseline of the LoCoMo benchmark: the min-max sum of BM25, BM25 over windows, and an embedder."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.locomo_corpus import Conversation, Question, Turn
from services.llm.port import Embedder, Vectors
from services.recall.bm25 import Bm25
from services.recall.terms import terms

Scores = npt.NDArray[np.float64]


class Embedded:
    """The vectors of a conversation's turns and questions, kept in a file: (texts, dimension), float32."""

    def __init__(self, turns: Vectors, questions: Vectors) -> None:
        self.turns = turns
        self.questions = questions

    @classmethod
    async def of(cls, conversation: Conversation, embedder: Embedder, folder: Path) -> "Embedded":
        """Reads them, or computes and writes them. `folder` is of the conversation's content."""
        file = folder / f"{conversation.name}-{embedder.name}.npz"
        if not file.exists():
            turns = await embedder.passages([shown(turn) for turn in conversation.turns])
            questions = await embedder.queries([question.text for question in conversation.questions])
            np.savez(file, turns=turns, questions=questions)
        with np.load(file) as found:
            return cls(found["turns"], found["questions"])


class Baseline:
    """Scores every turn of a conversation, each as `Speaker: text`, stemmed, without stop words."""

    def __init__(self, conversation: Conversation, embedded: Embedded) -> None:
        self._turns = conversation.turns
        self._alone, self._windows = Bm25(), Bm25()
        words = [terms(shown(turn)) for turn in self._turns]
        for at, turn in enumerate(self._turns):
            self._alone.add(turn.id, words[at])
            beside = [n for n in (at - 1, at, at + 1) if self._in_session(n, turn)]
            self._windows.add(turn.id, [word for n in beside for word in words[n]])
        self._vectors = embedded.turns
        asked = [question.text for question in conversation.questions]
        self._asked = dict(zip(asked, embedded.questions, strict=True))

    def _in_session(self, at: int, turn: Turn) -> bool:
        return 0 <= at < len(self._turns) and self._turns[at].session == turn.session

    def scores(self, question: Question) -> Scores:
        """Of each turn, 0 to 3."""
        asked = terms(question.text)
        return (
            min_max(self._alone.scores(asked))
            + min_max(self._windows.scores(asked))
            + min_max(np.asarray(self._vectors @ self._asked[question.text], dtype=np.float64))
        )

    def ranked(self, scores: Scores) -> list[str]:
        """Ids of turns, best first; equal ones in the order of the talk."""
        return [self._turns[int(at)].id for at in np.argsort(-scores, kind="stable")]

    def margin(self, question: Question, scores: Scores) -> float:
        """How much better the named person's best turn is than the best of anybody else.

        Without a name, or with both: the best of all.
        """
        named = [speaker for speaker in self.speakers if speaker.casefold() in question.text.casefold()]
        theirs = np.array([turn.speaker in named for turn in self._turns])
        if not theirs.any() or theirs.all():
            return float(scores.max())
        return float(scores[theirs].max() - scores[~theirs].max())

    @property
    def speakers(self) -> Sequence[str]:
        return sorted({turn.speaker for turn in self._turns})


def shown(turn: Turn) -> str:
    """What is searched by, and what stands in a prompt."""
    return f"{turn.speaker}: {turn.text}"


def min_max(scores: Scores) -> Scores:
    least, most = float(scores.min()), float(scores.max())
    return (scores - least) / (most - least) if most > least else np.zeros_like(scores)
