"""The two model ports: `Engine` understands text, `Embedder` turns text into vectors.

Every method is one task with typed input and output (services/llm/tasks.py), whether a remote model, the
offline rules or a script of a test does it. Engines hold no state of a scope.

EngineError
├── ModelUnavailable       time-out, dropped connection, 5xx, breaker open; safe to retry later
├── ModelRateLimited       429 after waiting as told; safe to retry after `retry_after_seconds`
├── ModelOutputInvalid     still not the asked shape after one repair
│   └── ModelOutputCut     because it was cut off at the output limit
├── ModelRefused           the model declined
└── ModelMisconfigured     unknown model, bad key, wrong dimension; repeating can't help
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from services.domain.scope import Scope
from services.llm import tasks

T = TypeVar("T")
Vectors = npt.NDArray[np.float32]
"""Unit vectors, shape (count, dimension)."""


class EngineError(Exception):
    """A model call that gave no usable answer. `str()` never holds text of users.

    `receipt` tells what the failed task cost, where any call was made; `before` what was spent on other tasks
    of the same work, which went down with it.
    """

    receipt: "Receipt | None" = None
    before: "tuple[Receipt, ...]" = ()

    @property
    def receipts(self) -> "tuple[Receipt, ...]":
        """All that was spent for nothing."""
        return self.before if self.receipt is None else (*self.before, self.receipt)


class ModelUnavailable(EngineError):
    """The endpoint can't be reached now."""


class ModelRateLimited(EngineError):
    """The endpoint asks us to wait. `waited`: we did, as often as we may; so nobody above needs to."""

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        self.waited = False


class ModelOutputInvalid(EngineError):
    """The answer is not of the asked shape, after one repair."""


class ModelOutputCut(ModelOutputInvalid):
    """The answer was cut off at the output limit, after one repair."""


class ModelRefused(EngineError):
    """The model declined to answer."""


class ModelMisconfigured(EngineError):
    """Settings name a model, key or dimension that the endpoint does not have."""


class Tier(StrEnum):
    """Which model does a task: MEDIUM normalises, extracts, classifies; LOW reflects and resolves."""

    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What one task cost. Tokens are the provider's counts; 0 calls for the offline engine."""

    stage: str
    engine: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    milliseconds: float
    prompt_version: str = ""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A task's output and what it cost."""

    value: T
    receipt: Receipt
    warnings: tuple[str, ...] = field(default=())


class Engine(Protocol):
    """Understands text. Every method raises EngineError; none answers silently with nothing."""

    @property
    def name(self) -> str:
        """`offline`, or the kind of endpoint; shown in every receipt."""
        ...

    @property
    def judges_predicates(self) -> bool:
        """Whether `judge_statements` says anything of predicates; if not, it need not be asked."""
        ...

    async def normalise(self, scope: Scope, task: tasks.Normalise) -> Answer[tasks.Normalised]: ...

    async def extract_world(self, scope: Scope, task: tasks.Extract) -> Answer[tasks.WorldFacts]: ...

    async def extract_voice(self, scope: Scope, task: tasks.Extract) -> Answer[tasks.VoiceFacts]: ...

    async def reflect(self, scope: Scope, task: tasks.Reflect) -> Answer[tasks.Kept]: ...

    async def classify(self, scope: Scope, task: tasks.Classify) -> Answer[tasks.Classified]: ...

    async def judge_entities(
        self, scope: Scope, task: tasks.JudgeEntities
    ) -> Answer[tasks.JudgedEntities]: ...

    async def judge_statements(self, scope: Scope, task: tasks.JudgeStatements) -> Answer[tasks.Judged]: ...

    async def judge_voice(self, scope: Scope, task: tasks.JudgeVoice) -> Answer[tasks.JudgedVoice]: ...

    async def understand(self, scope: Scope, task: tasks.Understand) -> Answer[tasks.Understood]:
        """`normalise`, both extractions and `classify` as one task."""
        ...

    async def resolve(self, scope: Scope, task: tasks.Resolve) -> Answer[tasks.Resolved]:
        """`reflect` and the judgements, those that the task holds, as one task."""
        ...

    async def summarise(self, scope: Scope, task: tasks.Summarise) -> Answer[tasks.Summarised]: ...

    async def portray(self, scope: Scope, task: tasks.Portray) -> Answer[tasks.Portrayed]: ...


class Embedder(Protocol):
    """Turns text into unit vectors. The same text gives the same vector."""

    @property
    def name(self) -> str:
        """Names the model and so the collection; a change of name is a migration."""
        ...

    @property
    def dimension(self) -> int: ...

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Vectors of stored texts, shape (len(texts), dimension). Raises EngineError."""
        ...

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of questions, shape (len(texts), dimension). Raises EngineError."""
        ...
