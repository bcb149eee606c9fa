"""Stage: where the story is told. Prints what happens, and checks every fact that it tells."""

import time
from dataclasses import dataclass, field

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule

from palimpsest.connection import Connection, new_request_id
from palimpsest.v1 import episode_pb2, job_pb2, memory_ingest_pb2
from palimpsest.watching import wait_for


@dataclass(slots=True)
class Stage:
    """What a chapter works with: the tenant's connection, the console, and what did not hold."""

    connection: Connection
    console: Console
    broken: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    """Of all texts that were taken in."""
    _started: float = field(default_factory=time.monotonic)

    def chapter(self, title: str) -> None:
        """Opens a chapter; says how long the story has run."""
        seconds = time.monotonic() - self._started
        self.console.print()
        self.console.print(Rule(f"[bold]{title}[/]  [dim]{seconds:.0f} s[/]", align="left"))

    def tell(self, text: str) -> None:
        """A paragraph of the story; rich's markup."""
        self.console.print(text, highlight=False)

    def show(self, shown: RenderableType) -> None:
        """What a call answered."""
        self.console.print(Padding(shown, (0, 0, 0, 4), expand=False), highlight=False)

    def expect(self, what: str, holds: bool) -> None:
        """A fact that the story tells; one that does not hold fails the demo in the end."""
        self.console.print(f"  [green]✓[/] {what}" if holds else f"  [bold red]✗ {what}[/]", highlight=False)
        if not holds:
            self.broken.append(what)

    async def add(self, request: memory_ingest_pb2.AddEpisodeRequest) -> job_pb2.Job:
        """Takes in a text and waits until its job has ended."""
        job_id = await self.accept(request)
        job = await wait_for(self.connection, job_id)
        self._must_succeed(job)
        return job

    async def accept(self, request: memory_ingest_pb2.AddEpisodeRequest) -> str:
        """Takes in a text; returns its job's id without waiting for it."""
        request.request_id = new_request_id()
        job_id = (await self.connection.call(self.connection.memory.AddEpisode, request)).job.job_id
        self.jobs.append(job_id)
        return job_id

    def _must_succeed(self, job: job_pb2.Job) -> None:
        if job.state != job_pb2.JOB_STATE_SUCCEEDED:
            self.expect(f"job {job.job_id} ended {job_pb2.JobState.Name(job.state)}", False)


def said(graph: str, text: str, day: str) -> memory_ingest_pb2.AddEpisodeRequest:
    """A sentence that the user says on a day, `2026-01-10`."""
    request = memory_ingest_pb2.AddEpisodeRequest(
        graph_id=graph, text=text, kind=episode_pb2.EPISODE_KIND_CONVERSATION, session_id="notes"
    )
    request.reference_time.FromJsonString(f"{day}T09:00:00Z")
    return request
