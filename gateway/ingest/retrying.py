"""Retrying: what is left of an ingest whose chunks failed, how it is kept, and how a retry takes it up.

Only chunks that failed, or were held back and are released, are understood. Their texts are saved; what was
said and understood meanwhile under another request, or was deleted, has nothing in it any more, and costs
nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from gateway.convert.names import nothing_out
from gateway.credits.money import MicroCredits, PriceTable
from gateway.ingest.durable import JSON
from gateway.ingest.milestones import Milestone, Reached, unwatched
from gateway.ingest.patience import Patience
from gateway.services import Services
from gateway.store.job_values import JobKind
from gateway.store.jobs import Jobs
from gateway.store.progress import Progress
from palimpsest.internal.v1 import preprocessor_pb2
from services.domain.ids import JobId


@dataclass(frozen=True, slots=True)
class Left:
    """The chunks of a job that failed, by their place: `episode` and `tokens` of each.

    `chunks` of `total` are left; the others were kept, or are `held` back for review.
    """

    chunks: Mapping[int, JSON]
    total: int
    time_zone: str
    held: Mapping[int, JSON] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        return self.total - len(self.chunks)

    def quote(self, prices: PriceTable) -> MicroCredits:
        """The most that a retry may cost."""
        return MicroCredits(sum(prices.ingest(int(one["tokens"])) for one in self.chunks.values()))

    def released(self) -> "Left":
        """With what is held back among what a retry takes up."""
        return Left({**self.chunks, **self.held}, self.total, self.time_zone)

    def to_bytes(self) -> bytes:
        left = {"chunks": packed(self.chunks), "total": self.total, "time_zone": self.time_zone}
        return json.dumps(left | ({"held": packed(self.held)} if self.held else {})).encode()

    @classmethod
    def from_bytes(cls, kept: bytes) -> Self:
        read = json.loads(kept)
        return cls(unpacked(read["chunks"]), read["total"], read["time_zone"], unpacked(read.get("held", {})))


def packed(chunks: Mapping[int, JSON]) -> JSON:
    """Chunks as JSON, each with what a retry needs of it."""
    return {str(index): [one["episode"], one["tokens"]] for index, one in chunks.items()}


def unpacked(read: Mapping[str, Sequence[Any]]) -> dict[int, JSON]:
    return {int(index): {"episode": episode, "tokens": tokens} for index, (episode, tokens) in read.items()}


class Retrying:
    """The first step of a retry; the others are those of an ingest. Idempotent."""

    def __init__(
        self,
        services: Services,
        jobs: Jobs,
        progress: Progress,
        patience: Patience,
        store_seconds: float,
        reached: Reached = unwatched,
    ) -> None:
        self._services = services
        self._jobs = jobs
        self._progress = progress
        self._patience = patience
        self._store_seconds = store_seconds
        self._reached = reached

    async def take_up(self, job_id: JobId) -> JSON:
        """As `Steps.preprocess`, of what is left. In `chunks` the others are null."""

        async def work() -> JSON:
            job = await self._jobs.start(job_id)
            assert job.kind is JobKind.INGEST, "only an ingest has chunks"
            left = Left.from_bytes(await self._jobs.payload(job_id))
            indexes = sorted(left.chunks)
            asked = preprocessor_pb2.TakeUpRequest(
                episode_ids=[str(left.chunks[index]["episode"]) for index in indexes]
            )
            taken = await self._services.call(
                job.scope, self._services.preprocessor.TakeUp, asked, self._store_seconds
            )
            self._reached(Milestone.TAKEN_UP)
            nothing = dict(zip(indexes, taken.nothing, strict=True))
            await self._progress.reopen(
                job_id, {index: nothing_out(reason) for index, reason in nothing.items()}
            )
            return {
                "chunks": [
                    {**left.chunks[index], "nothing": nothing[index]} if index in nothing else None
                    for index in range(left.total)
                ],
                "nothing": "",
                "saved": 0,
                "version": 0,
                "document": "",
                "time_zone": left.time_zone,
                "held": packed(left.held),
            }

        return await self._patience.attempt(job_id, "take_up", work)
