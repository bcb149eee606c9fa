"""`job retry`: what it asks of the server."""

from palimpsest.v1 import job_pb2, jobs_pb2
from tests.unit.cli.conftest import Run
from tests.unit.cli.serving import Scripted


def test_a_retry_names_its_job(server: Scripted, run: Run) -> None:
    server.answers("RetryJob", jobs_pb2.RetryJobResponse(job=job_pb2.Job(job_id="j1")))
    assert run("job", "retry", "j1", "--request-id", "r").exit_code == 0
    assert (server.last.job_id, server.last.request_id) == ("j1", "r")
