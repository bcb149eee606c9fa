"""`palimpsest up`: starts everything with one command, and leaves nothing when it stops."""

import signal
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2

from palimpsest.v1 import credits_pb2, credits_pb2_grpc
from tests.e2e.up_process import UpProcess

pytestmark = pytest.mark.milvus


def healthy(channel: grpc.Channel) -> bool:
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    return bool(check(health_pb2.HealthCheckRequest()).status == health_pb2.HealthCheckResponse.SERVING)


def test_it_serves_and_gives_a_tenant_its_credits(running: UpProcess) -> None:
    tenant = running.tenant(credits_micros=5)
    with grpc.insecure_channel(running.target) as channel:
        assert healthy(channel)
        balance = credits_pb2_grpc.CreditServiceStub(channel).GetBalance(
            credits_pb2.GetBalanceRequest(), metadata=tenant.metadata
        )
    assert balance.balance.available_micros == 5


def test_it_says_where_it_is_and_that_no_model_is_behind_it(running: UpProcess) -> None:
    assert running.target in running.output
    assert "engine    offline" in running.output
    assert str(running.data_dir / "logs") in running.output.replace("\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_and_nothing_is_left(tmp_path: Path, with_signal: signal.Signals) -> None:
    """Every day at the end of what all tests share (conftest.py)."""
    UpProcess(tmp_path / "data").start().end(with_signal)
