"""The vector contract on the real Milvus server, 2.3.5, and what only that has: indexes, users, TLS."""

import asyncio
import datetime
import ipaddress
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from subprocess import PIPE

import numpy as np
import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pymilvus import AsyncMilvusClient

from services.stores.errors import StoreError, StoreUnavailable
from services.stores.vectors.layout import Index
from services.stores.vectors.milvus import MilvusOptions, MilvusVectorStore, Tls
from services.stores.vectors.port import VectorFilter, VectorRow
from tests.contracts.vector_filters import (
    FILTERS,
    OPERATIONS,
    ROWS,
    SEEDS,
    WHERE,
    Operations,
    agree,
    find_alike,
)
from tests.contracts.vector_models import VectorModelsContract
from tests.contracts.vector_reembed import ReembedContract
from tests.contracts.vector_store import DIMENSION, FACTS, VectorStoreContract, axis, fresh_scope
from tests.doubles.milvus_server import MilvusServer
from tests.machine import ROOT

pytestmark = pytest.mark.milvus


class TestMilvusServerVectors(VectorStoreContract):
    @pytest.fixture
    async def store(self, milvus_server: MilvusServer) -> AsyncIterator[MilvusVectorStore]:
        store = MilvusVectorStore(MilvusOptions(milvus_server.uri, "axes", DIMENSION, timeout_seconds=60))
        yield store
        await store.close()

    @settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(rows=ROWS, filters=FILTERS, flushed=st.booleans(), seed=SEEDS)
    async def test_any_filter_finds_what_it_finds_in_arrays(
        self,
        store: MilvusVectorStore,
        rows: list[VectorRow],
        filters: list[VectorFilter],
        flushed: bool,
        seed: int,
    ) -> None:
        await find_alike(store, rows, filters, flushed, seed)

    @pytest.mark.slow
    @settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(operations=OPERATIONS, last=WHERE, seed=SEEDS)
    async def test_the_server_answers_as_arrays_do(
        self, store: MilvusVectorStore, operations: Operations, last: VectorFilter, seed: int
    ) -> None:
        await agree(store, operations, last, seed)


@pytest.mark.slow  # every day on Milvus Lite
class TestMilvusServerModels(VectorModelsContract, ReembedContract):
    @pytest.fixture
    def uri(self, milvus_server: MilvusServer) -> str:
        return milvus_server.uri


def other_network(pid: int) -> bool:
    """Whether a process is in a network of its own."""
    return Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()


def test_only_loopback_is_listened_on_and_the_server_has_no_other_network(
    milvus_server: MilvusServer,
) -> None:
    guard = psutil.Process(milvus_server.pid)
    [server] = [child for child in guard.children() if child.name() == "milvus"]
    assert other_network(server.pid)
    interfaces = Path(f"/proc/{server.pid}/net/dev").read_text().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in interfaces] == ["lo"]
    here = {
        (connection.laddr.ip, connection.laddr.port)
        for connection in psutil.net_connections("tcp")
        if connection.laddr
        and connection.pid in (guard.pid, server.pid)
        and connection.status == psutil.CONN_LISTEN
    }
    assert here <= {("127.0.0.1", milvus_server.port)}


def test_run_as_a_program_it_tells_where_it_is_and_ends_with_its_parent(
    tmp_path: Path,
    milvus_server: MilvusServer,  # what it needs is here and installed
) -> None:
    command = [sys.executable, "-m", "tests.doubles.milvus_server", "--data-dir", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE, text=True) as program:
        assert program.stdout is not None
        uri = program.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", uri)
        [guard] = psutil.Process(program.pid).children()
        [server] = guard.children()
        assert server.name() == "milvus"
        program.kill()
    gone, left = psutil.wait_procs([guard, server], timeout=30)
    assert {process.pid for process in gone} == {guard.pid, server.pid}
    assert not left


@pytest.mark.slow
async def test_an_index_of_the_kind_that_is_asked_for_is_made_and_searched(
    milvus_server: MilvusServer,
) -> None:
    scope = fresh_scope()
    options = MilvusOptions(
        milvus_server.uri, "indexed", DIMENSION, f"t{scope.key}", index=Index("HNSW", m=24, ef=40)
    )
    store = MilvusVectorStore(options)
    client = AsyncMilvusClient(milvus_server.uri, dedicated=True)
    try:
        numbers = np.random.default_rng(7).standard_normal((1_500, DIMENSION)).astype(np.float32)
        await store.upsert(scope, FACTS, [VectorRow(f"r{i}", row) for i, row in enumerate(numbers)])
        name = store.models.name(FACTS)
        await client.flush(name)  # what is not flushed, or small, is searched without an index
        told = await client.describe_index(name, "vector")
        assert (told["index_type"], told["M"], told["metric_type"]) == ("HNSW", "24", "COSINE")
        for limit in (10, 200):
            [hits] = await store.search(scope, FACTS, [numbers[0]], limit)
            cosines = numbers @ numbers[0] / np.linalg.norm(numbers, axis=1)
            nearest = {f"r{i}" for i in np.argsort(-cosines)[:limit]}
            assert len(nearest & {hit.id for hit in hits}) >= 0.95 * limit
            assert hits[0].id == "r0"
    finally:
        await client.close()
        await store.close()


@pytest.mark.slow
async def test_rows_outlive_a_crash_of_the_server_and_the_client_finds_it_again(tmp_path: Path) -> None:
    scope = fresh_scope()
    server = await asyncio.to_thread(MilvusServer.start, tmp_path)
    store = MilvusVectorStore(MilvusOptions(server.uri, "axes", DIMENSION, timeout_seconds=30))
    try:
        await store.upsert(scope, FACTS, [VectorRow("x", axis(0)), VectorRow("y", axis(1))])
        await store.delete(scope, FACTS, ["y"])
        await asyncio.to_thread(server.kill)
        with pytest.raises(StoreUnavailable):
            await store.fetch(scope, FACTS, ["x"])
        server = await asyncio.to_thread(MilvusServer.start, tmp_path, server.port)
        async with asyncio.timeout(60):
            # A server that starts loads its collections while it answers already.
            while True:
                try:
                    found = await store.fetch(scope, FACTS, ["x", "y"])
                    break
                except StoreError:
                    await asyncio.sleep(0.2)
        assert list(found) == ["x"]
        await store.upsert(scope, FACTS, [VectorRow("z", axis(2))])
        assert await store.count(scope, FACTS) == 2
    finally:
        await store.close()
        await asyncio.to_thread(server.kill)


@pytest.mark.slow
async def test_users_and_tls_are_held_to(tmp_path: Path) -> None:
    certificate, key = certified(tmp_path)
    variables = {
        "authorization_enabled": "true",
        "tls_mode": "1",
        "server_pem_path": str(certificate),
        "server_key_path": str(key),
        "ca_pem_path": str(certificate),
    }
    server = await asyncio.to_thread(MilvusServer.start, tmp_path / "milvus", 0, variables)
    secure = server.uri.replace("http://", "https://")
    scope, trusted = fresh_scope(), Tls(authorities=str(certificate), server_name="milvus.test")
    try:
        for token, tls, uri, expected in (
            ("root:Milvus", trusted, secure, None),
            ("root:wrong", trusted, secure, StoreError),
            ("", trusted, secure, StoreError),
            ("root:Milvus", Tls(), secure, StoreUnavailable),
            ("root:Milvus", Tls(), server.uri, StoreUnavailable),
        ):
            store = MilvusVectorStore(
                MilvusOptions(uri, "axes", DIMENSION, token=token, tls=tls, timeout_seconds=10)
            )
            assert "Milvus" not in repr(store._options).replace("MilvusOptions", "")
            try:
                if expected is None:
                    await store.upsert(scope, FACTS, [VectorRow("x", axis(0))])
                    assert await store.count(scope, FACTS) == 1
                else:
                    with pytest.raises(expected) as raised:
                        await store.count(scope, FACTS)
                    assert "wrong" not in str(raised.value)
            finally:
                await store.close()
    finally:
        await asyncio.to_thread(server.kill)


def certified(folder: Path) -> tuple[Path, Path]:
    """A certificate of a server called milvus.test that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "milvus.test")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("milvus.test"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    made, private = folder / "server.pem", folder / "server.key"
    made.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return made, private
