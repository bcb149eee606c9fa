"""What the transport itself promises: frame by frame, as HTTP/2 of a client that is no library's."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest

from gateway.settings import GatewaySettings
from palimpsest.v1 import memory_ingest_pb2, memory_pb2_grpc
from palimpsest.v1.episode_pb2 import EPISODE_KIND_CONVERSATION
from tests.doubles.gateway import running_gateway

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING, GOAWAY = 0x4, 0x6, 0x7
MAX_CONCURRENT_STREAMS = 0x3
ENHANCE_YOUR_CALM, NO_ERROR = 0xB, 0x0
CLOSED = -1


class Frames:
    """A connection that sends and reads bare frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, kind: int, payload: bytes = b"") -> None:
        self._writer.write(struct.pack(">I", len(payload))[1:] + bytes([kind, 0]) + bytes(4) + payload)

    async def next(self, *kinds: int, acknowledged: bool = False) -> tuple[int, bytes]:
        """The next frame of one of these kinds; CLOSED when the connection ends before.

        Frames that only acknowledge ours are passed over, unless asked for.
        """
        while True:
            try:
                head = await self._reader.readexactly(9)
                payload = await self._reader.readexactly(int.from_bytes(head[:3], "big"))
            except (asyncio.IncompleteReadError, ConnectionError):
                return CLOSED, b""
            acknowledges = head[3] in (SETTINGS, PING) and head[4] & 1
            if head[3] in kinds and (acknowledged or not acknowledges):
                return head[3], payload


@asynccontextmanager
async def frames(port: int) -> AsyncIterator[Frames]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        connection = Frames(reader, writer)
        writer.write(PREFACE)
        connection.send(SETTINGS)
        yield connection
    finally:
        writer.close()


def error_of(goaway: bytes) -> int:
    return int.from_bytes(goaway[4:8], "big")


async def test_a_connection_may_have_a_thousand_calls(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as running, frames(running.gateway.port) as connection:
        _, payload = await connection.next(SETTINGS)
        told = dict(struct.iter_unpack(">HI", payload))
        assert told[MAX_CONCURRENT_STREAMS] == 1000


async def test_a_client_that_pings_too_often_is_cut_off(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as running, frames(running.gateway.port) as connection:
        await connection.next(SETTINGS)
        # One after the other: what comes in after the server has closed may cost its last words.
        kind, payload, number = PING, b"", 0
        while kind == PING:
            connection.send(PING, struct.pack(">Q", number))
            kind, payload = await connection.next(PING, GOAWAY, acknowledged=True)
            number += 1
        assert number < 10
        assert kind == GOAWAY
        assert error_of(payload) == ENHANCE_YOUR_CALM


async def test_an_old_connection_is_closed_gracefully(tmp_path: Path) -> None:
    settings = GatewaySettings(gateway_port=0, drain_seconds=0.2)
    young = settings.model_copy(update={"max_connection_age_seconds": 1})
    async with running_gateway(tmp_path, young) as running, frames(running.gateway.port) as connection:
        kind, payload = await connection.next(GOAWAY)
        assert kind == GOAWAY
        assert error_of(payload) == NO_ERROR


async def test_beyond_the_cap_of_messages_the_transport_refuses(tmp_path: Path) -> None:
    request = memory_ingest_pb2.AddEpisodeRequest(
        graph_id="g", request_id="r", text="x" * 17 * 1024 * 1024, kind=EPISODE_KIND_CONVERSATION
    )
    async with running_gateway(tmp_path) as running:
        add = memory_pb2_grpc.MemoryServiceStub(running.channel).AddEpisode
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await running.call(add, request, seconds=60)
    assert failure.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in (failure.value.details() or "")
