"""JobService: reading, listing, cancelling, watching and retrying jobs."""

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio

from gateway.commands.retrying import RetryJob
from gateway.errors import ValidationFailed, Violation
from gateway.interceptors.call import current_caller
from gateway.paging import opened, page_of, sealed, token_of
from gateway.settings import GatewaySettings
from gateway.store.job_values import JobFilter, JobKind, JobState
from gateway.store.job_view import JobView, WatchPoint
from palimpsest.v1 import job_pb2, jobs_pb2
from services.domain.ids import JobId

Context = grpc.aio.ServicerContext[Any, Any]

_STATE, _KIND = "JOB_STATE_", "JOB_KIND_"


class JobServicer:
    """GetJob, ListJobs, CancelJob and WatchJob."""

    def __init__(self, view: JobView) -> None:
        self._view = view

    async def GetJob(self, request: jobs_pb2.GetJobRequest, context: Context) -> jobs_pb2.GetJobResponse:
        return jobs_pb2.GetJobResponse(
            job=await self._view.read(current_caller().tenant, JobId(request.job_id))
        )

    async def ListJobs(
        self, request: jobs_pb2.ListJobsRequest, context: Context
    ) -> jobs_pb2.ListJobsResponse:
        tenant = current_caller().tenant
        where = JobFilter(
            graph=request.graph_id,
            states=[JobState(job_pb2.JobState.Name(one).removeprefix(_STATE)) for one in request.states],
            kind=JobKind(job_pb2.JobKind.Name(request.kind).removeprefix(_KIND)) if request.kind else None,
        )
        listed = await self._view.list(tenant, where, page_of(tenant, request))
        return jobs_pb2.ListJobsResponse(
            jobs=listed.items, next_page_token=token_of(tenant, request, listed.after)
        )

    async def CancelJob(
        self, request: jobs_pb2.CancelJobRequest, context: Context
    ) -> jobs_pb2.CancelJobResponse:
        tenant = current_caller().tenant
        return jobs_pb2.CancelJobResponse(job=await self._view.cancel(tenant, JobId(request.job_id)))

    async def WatchJob(
        self, request: jobs_pb2.WatchJobRequest, context: Context
    ) -> AsyncIterator[jobs_pb2.WatchJobResponse]:
        tenant = current_caller().tenant
        seen = None
        if request.cursor:
            seen = _point(opened(tenant, request, request.cursor, "cursor"))
        async for job, point in self._view.watch(tenant, JobId(request.job_id), seen):
            cursor = sealed(tenant, request, f"{point.event}.{point.version}")
            yield jobs_pb2.WatchJobResponse(job=job, cursor=cursor)


class JobsAndRetries(JobServicer):
    """All of JobServicer, and RetryJob, which needs the pipeline."""

    def __init__(self, view: JobView, retry: RetryJob, settings: GatewaySettings) -> None:
        super().__init__(view)
        self._retry = retry
        self._defaults = settings.tenant_limits

    async def RetryJob(
        self, request: jobs_pb2.RetryJobRequest, context: Context
    ) -> jobs_pb2.RetryJobResponse:
        caller = current_caller()
        return await self._retry(caller.tenant, request, caller.limits.over(self._defaults).max_jobs)


def _point(position: str) -> WatchPoint:
    event, _, version = position.partition(".")
    if not (event.isdecimal() and version.isdecimal()):
        raise ValidationFailed(Violation("cursor", "is not of this job", "token.bound"))
    return WatchPoint(int(event), int(version))
