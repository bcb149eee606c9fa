"""Retrying: what is left of an ingest whose chunks failed, how it is kept, and how a retry takes it up.

Only chunks that failed are understood again. Their texts are saved; what was said and understood meanwhile
under another request, or was deleted, has nothing in it any more, and costs nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

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

    `chunks` of `total` are left; the others were kept.
    """

    chunks: Mapping[int, JSON]
    total: int
    time_zone: str

    @property
    def kept(self) -> int:
        return self.total - len(self.chunks)

    def quote(self, prices: PriceTable) -> MicroCredits:
        """The most that a retry may cost."""
        return MicroCredits(sum(prices.ingest(int(one["tokens"])) for one in self.chunks.values()))

    def to_bytes(self) -> bytes:
        chunks = {str(index): [one["episode"], one["tokens"]] for index, one in self.chunks.items()}
        return json.dumps({"chunks": chunks, "total": self.total, "time_zone": self.time_zone}).encode()

    @classmethod
    def from_bytes(cls, kept: bytes) -> Self:
        read = json.loads(kept)
        chunks = {
            int(index): {"episode": episode, "tokens": tokens}
            for index, (episode, tokens) in read["chunks"].items()
        }
        return cls(chunks, read["total"], read["time_zone"])


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
            }

        return await self._patience.attempt(job_id, "take_up", work)
