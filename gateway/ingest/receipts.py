"""Receipts of services as a job shows them."""

from collections.abc import Sequence

from palimpsest.internal.v1 import values_pb2
from palimpsest.v1 import job_pb2


def stages_of(receipts: Sequence[values_pb2.Receipt]) -> list[job_pb2.StageReceipt]:
    """One for each."""
    return [
        job_pb2.StageReceipt(
            stage=receipt.stage,
            model=receipt.model,
            prompt_version=receipt.prompt_version,
            calls=receipt.calls,
            tokens_in=receipt.tokens_in,
            tokens_out=receipt.tokens_out,
            tokens_cached=receipt.tokens_cached,
            duration_millis=round(receipt.milliseconds),
        )
        for receipt in receipts
    ]
