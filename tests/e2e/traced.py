"""A document that is said within a trace of its caller's, and the spans that a product wrote of it."""

from collections.abc import Sequence
from typing import Any

import grpc.aio

from palimpsest.v1 import job_pb2
from tests.doubles.product import Tenant
from tests.e2e.talking import Memory
from tests.e2e.up_process import UpProcess

CANARY = "Zanzibarine"


class Traced(Tenant):
    """A tenant whose calls belong to a trace of its own."""

    trace = "4bf92f3577b34da6a3ce929d0e0e4736"

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        return (*super().metadata, ("traceparent", f"00-{self.trace}-00f067aa0ba902b7-01"))


def hops(spans: Sequence[dict[str, Any]]) -> set[str]:
    return {span["name"] for span in spans}


def orphans(spans: Sequence[dict[str, Any]]) -> list[str]:
    """Spans whose parent is neither in the trace nor the caller's own."""
    known = {span["context"]["span_id"] for span in spans} | {"0x00f067aa0ba902b7"}
    return [span["name"] for span in spans if span["parent_id"] not in known]


async def remember(up: UpProcess, graph: str, trace: str) -> tuple[Memory, list[dict[str, Any]]]:
    """Says a sentence within a trace; its spans once all are written."""
    tenant = up.tenant()
    async with grpc.aio.insecure_channel(up.target) as channel:
        traced = Traced(tenant.id, tenant.key, channel)
        traced.trace = trace
        memory = Memory(traced, graph)
        job = await memory.say(f"{CANARY} lives in Oslo.", at="2025-02-01")
        assert job.state == job_pb2.JOB_STATE_SUCCEEDED
        await memory.recall(f"Where does {CANARY} live?", min_revision=job.revision)
    return memory, up.spans(trace)
