"""`palimpsest gateway`: processes of their own before services that run elsewhere, as in production."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio

from gateway.credits.money import MicroCredits
from gateway.keys import KeyScope
from gateway.main import open_gateway_stores
from gateway.settings import GatewaySettings
from palimpsest import local
from palimpsest.v1 import job_pb2, jobs_pb2
from services.domain.scope import TenantId
from tests.doubles.product import Tenant, a_product
from tests.doubles.sqlite_files import lay
from tests.e2e.talking import Memory
from tests.e2e.up_process import clean_environment

SECRET = "a secret of the whole installation"
COMMAND = "import typer; from gateway.alone import command; typer.run(command)"


@asynccontextmanager
async def a_gateway(data: Path, target: str, jobs: int) -> AsyncIterator[str]:
    """A process with the data of all gateways; answers where it listens."""
    folder = data / f"process-{jobs}"
    folder.mkdir()
    settings = {
        "PALIMPSEST_SERVICES_TARGET": target,
        "PALIMPSEST_ASSERTION_SECRET": SECRET,
        "PALIMPSEST_EXECUTOR_ID": f"gateway-{jobs}",
        "PALIMPSEST_WORKFLOW_CONCURRENCY": str(jobs),
        "PALIMPSEST_SWEEP_SECONDS": "0.5",
        **{f"PALIMPSEST_{name.upper()}_URL": f"sqlite:///{data / name}.db" for name in ("ledger", "jobs")},
        "PALIMPSEST_WORKFLOWS_URL": f"sqlite:///{data / 'workflows.db'}",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", COMMAND, "--port", "0", "--data-dir", str(folder)),
        env=clean_environment(settings),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(90):
            while (found := local.announced(folder)) is None:
                assert process.returncode is None, (await process.communicate())[1].decode()
                await asyncio.sleep(0.1)
        yield found
    finally:
        if process.returncode is None:
            process.terminate()
    _, said = await process.communicate()
    assert process.returncode == 0, said.decode()


async def test_one_takes_calls_and_another_does_the_jobs(tmp_path: Path) -> None:
    services, data = tmp_path / "services", lay(tmp_path)
    services.mkdir()
    stores = await open_gateway_stores(GatewaySettings(data_dir=data))
    await stores.tenants.create(TenantId("acme"), "")
    async with stores.ledger.books(TenantId("acme")) as books:
        await books.grant(TenantId("acme"), "start", MicroCredits(1_000_000), "")
    _, key = await stores.keys.create(TenantId("acme"), "all", [KeyScope.ERASE])
    await stores.close()
    async with a_product(services, settings={"assertion_secret": SECRET}) as elsewhere:
        target = elsewhere.running.services_target
        async with a_gateway(data, target, jobs=0) as front, grpc.aio.insecure_channel(front) as channel:
            memory = Memory(Tenant("acme", key, channel), "g")
            asked = memory.episode("Ada moved to Graz.", "2026-01-10")
            added = await memory.tenant.call(memory.tenant.memory.AddEpisode, asked)
            await memory.assert_triples(
                ("Ada", "lives_in", "Oslo")
            )  # by the front itself, while the job waits
            waiting = await memory.tenant.call(
                memory.tenant.jobs.GetJob, jobs_pb2.GetJobRequest(job_id=added.job.job_id)
            )
            assert waiting.job.state == job_pb2.JOB_STATE_QUEUED
            async with a_gateway(data, target, jobs=2):
                job = await memory.end_of(added.job.job_id)
    assert job.state == job_pb2.JOB_STATE_SUCCEEDED
