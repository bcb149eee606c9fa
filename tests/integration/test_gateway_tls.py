"""TLS and mTLS of the gateway, from files that are replaced while it runs; the client's side of it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from gateway.settings import GatewaySettings
from gateway.tls import Certificates, TlsSettings, TlsUnusable
from palimpsest.connection import Connection
from palimpsest.errors import Unreachable
from palimpsest.tls import Tls
from palimpsest.tls import TlsUnusable as ClientTlsUnusable
from palimpsest.v1 import credits_pb2, credits_pb2_grpc
from tests.doubles.certificates import Authority, Issued
from tests.doubles.gateway import RunningGateway, running_gateway


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "ours")


@pytest.fixture
def theirs(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "theirs")


@pytest.fixture
def issued(ours: Authority) -> Issued:
    return ours.issue("gateway")


@asynccontextmanager
async def secured(
    folder: Path, issued: Issued, clients: Path | None = None, **more: Any
) -> AsyncIterator[RunningGateway]:
    tls = TlsSettings(
        certificate=str(issued.certificate), key=str(issued.key), client_authorities=str(clients or "")
    )
    settings = GatewaySettings(gateway_port=0, drain_seconds=0.2, gateway_tls=tls, **more)
    async with running_gateway(folder, settings) as running:
        yield running


async def balance(running: RunningGateway, tls: Tls | None, scheme: str = "https://") -> int:
    """What acme has, asked over a connection of its own."""
    target = f"{scheme}localhost:{running.gateway.port}"
    async with Connection(target, running.keys["acme"], tls) as connection:
        answer = await connection.call(connection.credits.GetBalance, credits_pb2.GetBalanceRequest(), 30)
    return answer.balance.available_micros


async def test_a_client_that_trusts_the_authority_is_answered(
    tmp_path: Path, ours: Authority, theirs: Authority, issued: Issued
) -> None:
    async with secured(tmp_path, issued) as running:
        assert await balance(running, Tls(str(ours.file))) == 1000
        for tls, scheme in ((Tls(str(theirs.file)), "https://"), (None, "https://"), (None, "")):
            with pytest.raises(Unreachable):
                await balance(running, tls, scheme)


async def test_probes_that_speak_no_tls_have_a_port_that_tells_health_and_nothing_else(
    tmp_path: Path, issued: Issued
) -> None:
    async with secured(tmp_path, issued, health_port=0) as running:
        target = f"127.0.0.1:{running.gateway.health_port}"
        async with grpc.aio.insecure_channel(target) as channel:
            probe: Any = health_pb2_grpc.HealthStub(channel)
            answer = await probe.Check(health_pb2.HealthCheckRequest(), timeout=30)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
            asked: Any = credits_pb2_grpc.CreditServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await asked.GetBalance(credits_pb2.GetBalanceRequest(), timeout=30)
            assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_the_name_in_the_certificate_may_be_told(tmp_path: Path, ours: Authority) -> None:
    async with secured(tmp_path, ours.issue("gateway")) as running:
        with pytest.raises(Unreachable):
            await balance(running, Tls(str(ours.file), server_name="elsewhere"))
        assert await balance(running, Tls(str(ours.file), server_name="localhost")) == 1000


async def test_a_client_must_show_a_certificate_where_the_gateway_asks(
    tmp_path: Path, ours: Authority, theirs: Authority, issued: Issued
) -> None:
    friend, stranger = theirs.issue("friend"), ours.issue("stranger")
    old = theirs.issue("old", expired=True)
    async with secured(tmp_path, issued, theirs.file) as running:
        trust = str(ours.file)
        assert await balance(running, Tls(trust, str(friend.certificate), str(friend.key))) == 1000
        for shown in (
            Tls(trust),
            Tls(trust, str(stranger.certificate), str(stranger.key)),
            Tls(trust, str(old.certificate), str(old.key)),
        ):
            with pytest.raises(Unreachable):
                await balance(running, shown)


async def test_replaced_files_count_from_the_next_connection_on(
    tmp_path: Path, ours: Authority, theirs: Authority, issued: Issued
) -> None:
    async with secured(tmp_path, issued) as running:
        target = f"https://localhost:{running.gateway.port}"
        async with Connection(target, running.keys["acme"], Tls(str(ours.file))) as before:
            request = credits_pb2.GetBalanceRequest()
            await before.call(before.credits.GetBalance, request, 30)
            issued.replace(theirs.issue("next"))
            assert await balance(running, Tls(str(theirs.file))) == 1000
            with pytest.raises(Unreachable):
                await balance(running, Tls(str(ours.file)))
            await before.call(before.credits.GetBalance, request, 30)


async def test_half_a_replacement_leaves_what_was_there(
    tmp_path: Path, ours: Authority, issued: Issued
) -> None:
    renewed = ours.issue("renewed")
    async with secured(tmp_path, issued) as running:
        issued.certificate.write_bytes(renewed.certificate.read_bytes())
        assert await balance(running, Tls(str(ours.file))) == 1000
        issued.certificate.write_bytes(b"nothing of the kind")
        assert await balance(running, Tls(str(ours.file))) == 1000
        issued.certificate.unlink()
        assert await balance(running, Tls(str(ours.file))) == 1000


async def test_whose_clients_are_taken_may_change(tmp_path: Path, ours: Authority, issued: Issued) -> None:
    partners = Authority(tmp_path, "partners")
    clients = tmp_path / "clients.pem"
    clients.write_bytes(ours.file.read_bytes())
    friend = partners.issue("friend")
    tls = Tls(str(ours.file), str(friend.certificate), str(friend.key))
    async with secured(tmp_path, issued, clients) as running:
        with pytest.raises(Unreachable):
            await balance(running, tls)
        clients.write_bytes(ours.file.read_bytes() + partners.file.read_bytes())
        assert await balance(running, tls) == 1000


def broken(ours: Authority, issued: Issued) -> Iterator[TlsSettings]:
    other = ours.issue("other")
    yield TlsSettings(certificate=str(issued.certificate), key=str(other.key))
    yield TlsSettings(certificate=str(issued.key), key=str(issued.key))
    yield TlsSettings(certificate="nowhere.pem", key=str(issued.key))
    yield TlsSettings(
        certificate=str(issued.certificate), key=str(issued.key), client_authorities=str(issued.key)
    )


def test_files_that_do_not_fit_are_told_before_anything_is_served(ours: Authority, issued: Issued) -> None:
    for settings in broken(ours, issued):
        with pytest.raises(TlsUnusable) as failure:
            Certificates(settings).credentials()
        assert "PRIVATE" not in str(failure.value)


@pytest.mark.parametrize(
    "given", [{"certificate": "a.pem"}, {"key": "a.key"}, {"client_authorities": "ca.pem"}]
)
def test_settings_of_tls_come_together(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="certificate"):
        TlsSettings(**given)


async def test_a_log_line_says_that_a_certificate_stays_and_holds_nothing_of_it(
    tmp_path: Path, ours: Authority, issued: Issued
) -> None:
    secret = issued.key.read_text("ascii").splitlines()[1]
    async with secured(tmp_path, issued) as running:
        with capture_logs() as logs:
            issued.certificate.unlink()
            await balance(running, Tls(str(ours.file)))
    assert any(line["event"] == "the certificate in use stays" for line in logs)
    assert secret not in str(logs)


def test_a_client_is_told_which_file_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(ClientTlsUnusable, match="nowhere"):
        Connection("localhost:1", tls=Tls("nowhere.pem"))
    with pytest.raises(ClientTlsUnusable, match="together"):
        Connection("localhost:1", tls=Tls(certificate="a.pem"))


def test_a_clients_tls_comes_from_its_environment() -> None:
    assert Tls.of({}) is None
    named = {"PALIMPSEST_TLS_AUTHORITIES": "ca.pem", "PALIMPSEST_TLS_SERVER_NAME": "memory"}
    assert Tls.of(named) == Tls("ca.pem", server_name="memory")
