"""Watching a job until it ends, over broken connections."""

import asyncio
from collections.abc import AsyncIterator

from palimpsest.connection import Connection
from palimpsest.errors import CallError, TryAgain
from palimpsest.v1 import job_pb2, jobs_pb2

FINAL = frozenset(
    {
        job_pb2.JOB_STATE_SUCCEEDED,
        job_pb2.JOB_STATE_PARTIAL,
        job_pb2.JOB_STATE_FAILED,
        job_pb2.JOB_STATE_CANCELLED,
    }
)
"""States after which a job changes no more, unless failed chunks are retried."""

TRIES = 5
"""Broken streams in a row, without a message between, after which we give up."""
WAIT_SECONDS = 1.0
TOO_OLD = "CURSOR_EXPIRED"


async def watch_job(connection: Connection, job_id: str) -> AsyncIterator[job_pb2.Job]:
    """The job now, then after each change, until a final state.

    Goes on with the last cursor when the stream breaks, or without one when that has become too old. Raises
    CallError: NotFound, or TryAgain when the server stays away.
    """
    cursor, left = "", TRIES
    while True:
        try:
            request = jobs_pb2.WatchJobRequest(job_id=job_id, cursor=cursor)
            async for response in connection.stream(connection.jobs.WatchJob, request):
                cursor, left = response.cursor, TRIES
                yield response.job
                if response.job.state in FINAL:
                    return
        except TryAgain as error:
            left -= 1
            if left == 0:
                raise
            await asyncio.sleep(error.retry_after_seconds or WAIT_SECONDS)
        except CallError as error:
            if error.reason != TOO_OLD or not cursor:
                raise
            cursor = ""


async def wait_for(connection: Connection, job_id: str) -> job_pb2.Job:
    """The job in its final state. Raises as `watch_job`."""
    last = job_pb2.Job()
    async for job in watch_job(connection, job_id):
        last = job
    return last
